"""Names tell things apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.words import names


def test_the_first_free_number_is_taken():
    assert names.free("BM25", ["BM25", "BM25 (2)"]) == "BM25 (3)"
    assert names.free("MiniLM", ["BM25"]) == "MiniLM"


@given(
    st.dictionaries(
        st.integers(0, 20).map(str), st.sampled_from(["a", "a (2)", "b", ""]), max_size=9
    )
)
def test_no_two_labels_are_alike(labels):
    result = names.distinct(labels)
    assert list(result) == list(labels)
    assert len(set(result.values())) == len(labels)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (20, "What is (are) Gout ?"),
        (17, "… is (are) Gout ?"),
        (16, "… (are) Gout ?"),
        (10, "… Gout ?"),
        (2, "… Gout ?"),
    ],
)
def test_no_more_of_a_start_that_many_titles_share_is_dropped_than_has_to_be(width, shown):
    titles = {name: f"What is (are) {name} ?" for name in ("Asthma", "Flu", "Gout", "Lupus")}
    titles["x"] = "How to treat Flu"
    found = names.distinguishing(titles, width)
    assert (found["Gout"], found["x"]) == (shown, "How to treat Flu")


def test_how_a_text_begins_is_not_cut_at_both_ends():
    openings = {str(n): f"Shingles is a rash {n} that…" for n in range(4)}
    assert names.distinguishing(openings) == openings


WORDS = st.lists(st.sampled_from(["what", "is", "flu", "gout"]), min_size=1, max_size=7)


@given(st.lists(WORDS.map(" ".join), max_size=9))
def test_the_end_of_a_title_always_stays(titles):
    named = names.distinguishing({str(place): title for place, title in enumerate(titles)})
    for place, title in enumerate(titles):
        assert named[str(place)].split()[-1] == title.split()[-1]


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 10, ["short"]),
        ("cross-encoder max length 512", 14, ["cross-encoder", "max length 512"]),
        ("a" * 25, 10, ["a" * 10, "a" * 10, "a" * 5]),
        ("重排序模型第二版", 8, ["重排序模", "型第二版"]),
        ("", 10, [""]),
    ],
)
def test_a_name_is_whole_on_lines_that_fit(text, width, expected):
    assert names.lines(text, width) == expected


@pytest.mark.parametrize(
    ("text", "limit", "found"),
    [("abcd", 4, "abcd"), ("abcde", 4, "abc…"), ("ab de", 4, "ab…"), ("", 4, "")],
)
def test_what_is_longer_than_its_limit_ends_in_a_sign_within_it(text, limit, found):
    assert names.shortened(text, limit) == found


@pytest.mark.parametrize(
    ("text", "width", "found"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc…fg"),
        # A full-width sign takes two columns.
        ("ａｂｃ", 6, "ａｂｃ"),
        ("ａｂｃｄ", 6, "ａ…ｄ"),
        # What was cut at its end is cut there again.
        ("abcdefg…", 6, "abcde…"),
        ("a  b", 3, "a b"),
    ],
)
def test_of_a_wide_name_the_middle_is_left_out(text, width, found):
    assert names.middle(text, width) == found


def test_of_a_name_without_end_the_middle_is_left_out():
    found = names.lines("x" * 10_000 + "end", 10)
    assert len(found) <= 6
    assert "".join(found).endswith("end")
