"""Marked words of a query: which are marked, which are not, and no text becomes HTML."""

import html
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.kit.widgets.text import marked_html, snippet, spans, terms


def marked(query: str, text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text, terms(query))]


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("returning a gift", "Return it; returns of GIFTS were returned.",
         ["Return", "returns", "GIFTS", "returned"]),
        ("how do I return it", "How do I do it: return", ["return"]),
        ("what is it", "It is what it is", ["It", "is", "what", "it", "is"]),
        ("cat food", "category cats cat seafood foods", ["cats", "cat", "foods"]),
        ("studies", "study studied studying student", ["study", "studied", "studying"]),
        ("treat stopping pulls", "treatment stopped pulling pullover",
         ["treatment", "stopped", "pulling"]),
        ("vitamin B12", "B12, b12 and B1", ["B12", "b12"]),
        ("copies", "he copped it", []),
        ("gift", "gifting gifted", ["gifting", "gifted"]),
        # A stem has at least four letters, and a word of four letters is not shortened.
        ("barred", "bars barring bar", ["barring"]),
        ("less", "lessen lesson", []),
        ("tree", "trees tre treed", ["trees"]),
        ("copies", "copy copying copied cope", ["copy", "copying", "copied"]),
        ("easy copy", "easier copies, copying", ["easier", "copies", "copying"]),
        ("naïve café", "CAFÉ Naïve cafe", ["CAFÉ", "Naïve"]),
        # In Chinese the longest common substrings are marked.
        ("急性淋巴细胞白血病的治疗方法是什么", "急性淋巴细胞白血病可治疗。方法很多，是什么的",
         ["急性淋巴细胞白血病", "治疗", "方法"]),
        ("如何退货", "退货的方法：退回货物", ["退货"]),
        ("谁是唐太宗?", "唐太宗李世民是谁", ["唐太宗"]),
        ("茶", "喝茶", ["茶"]),
        # A query of one character matches this character; of two, both or none.
        ("退货", "退了货", []),
        ("退货", "退货退货", ["退货", "退货"]),
        ("iPhone 手机保修", "ＩＰＨＯＮＥ手机的保修期", ["ＩＰＨＯＮＥ", "手机", "保修"]),
    ],
)  # fmt: skip
def test_english_is_marked_whatever_its_ending_and_chinese_by_what_is_in_common(
    query, text, expected
):
    assert marked(query, text) == expected


@pytest.mark.parametrize(
    ("text", "length", "part"),
    [
        ("gift", 4, "gift"),
        ("gifts", 4, "gift"),
        # If two places contain equally many words, the first is shown.
        ("gift " + "x " * 30 + "gift", 8, "gift x x"),
        # A snippet at the end of the text starts earlier.
        ("x " * 30 + "gift", 12, "x x x gift"),
        # A snippet starts at the beginning of a word.
        ("abcdefgh gift" + " y" * 30, 8, "gift y y"),
    ],
)
def test_a_snippet_begins_before_its_first_place_and_is_as_long_as_it_may(text, length, part):
    start, end = snippet(text, spans(text, terms("gift one")), length)
    assert text[start:end] == part


@given(st.lists(st.sampled_from(["gift", "GIFT", "one", "two", "x", "a" * 14])), st.integers(1, 40))
def test_no_part_of_as_many_signs_after_a_place_has_more_of_the_words(words, length):
    text = " ".join(words)
    found = spans(text, terms("gift one two aaaaaaaaaaaaaa"))
    start, _end = snippet(text, found, length)
    reach = length * 3 // 4
    counts = [
        len({text[a:b].lower() for a, b in found if a >= first and b <= first + reach})
        for first, _ in found
    ]
    if found and len(text) > length:
        best = found[counts.index(max(counts))][0]
        # It starts a quarter of its length earlier or at the next word, and has its full length.
        earliest = min(max(0, best - length // 4), len(text) - length)
        assert earliest <= start <= earliest + 20


@pytest.mark.parametrize(
    ("start", "end", "html"),
    [
        (0, 6, "<mark>gift</mark> a"),
        (0, 2, "<mark>gi</mark>"),
        (2, 11, "<mark>ft</mark> and <mark>gi</mark>"),
        (4, 9, " and "),
    ],
)
def test_a_mark_ends_where_its_part_does(start, end, html):
    text = "gift and gift"
    assert marked_html(text, spans(text, terms("gift")), start, end) == html


HOSTILE = st.text(alphabet="<>&\"'`ab退货 \u202e\x00İßﬁ/=", max_size=60)


@given(HOSTILE, HOSTILE)
def test_whatever_the_text_nothing_but_marks_is_markup(query, text):
    found = spans(text, terms(query))
    assert all(0 <= a < b <= len(text) for a, b in found)
    assert all(b <= c for (_, b), (c, _) in itertools.pairwise(found))
    made = marked_html(text, found)
    bare = re.sub("</?mark>", "", made)
    assert "<" not in bare
    assert ">" not in bare
    gone = "\u202e\x00"
    assert html.unescape(bare) == "".join(each for each in text if each not in gone)
    assert made.count("<mark>") == made.count("</mark>") == len(found)


@given(HOSTILE, st.integers(0, 60), st.integers(0, 60))
def test_a_part_holds_the_part_and_no_more(text, one, other):
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    made = marked_html(text, spans(text, terms("ab 退货")), start, end)
    expected = "".join(each for each in text[start:end] if each not in "\u202e\x00")
    assert html.unescape(re.sub("</?mark>", "", made)) == expected
