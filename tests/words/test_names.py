"""Names that distinguish systems, settings and files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.base import text


def test_the_first_free_number_is_taken():
    assert text.free("BM25", ["BM25", "BM25 (2)"]) == "BM25 (3)"
    assert text.free("MiniLM", ["BM25"]) == "MiniLM"


@given(
    st.dictionaries(
        st.integers(0, 20).map(str), st.sampled_from(["a", "a (2)", "b", ""]), max_size=9
    )
)
def test_no_two_labels_are_alike(labels):
    result = text.distinct(labels)
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
    found = text.distinguishing(titles, width)
    assert (found["Gout"], found["x"]) == (shown, "How to treat Flu")


def test_how_a_text_begins_is_not_cut_at_both_ends():
    openings = {str(n): f"Shingles is a rash {n} that…" for n in range(4)}
    assert text.distinguishing(openings) == openings


WORDS = st.lists(st.sampled_from(["what", "is", "flu", "gout"]), min_size=1, max_size=7)


@given(st.lists(WORDS.map(" ".join), max_size=9))
def test_the_end_of_a_title_always_stays(titles):
    named = text.distinguishing({str(place): title for place, title in enumerate(titles)})
    for place, title in enumerate(titles):
        assert named[str(place)].split()[-1] == title.split()[-1]


def test_what_is_longer_than_its_place_is_cut_or_broken(texts):
    lines = [("short", 10), ("cross-encoder max length 512", 14), ("a" * 25, 10), ("", 10)]
    lines += [("重排序模型第二版", 8)]
    short = [("abcd", 4), ("abcde", 4), ("ab de", 4), ("", 4)]
    # A full-width sign takes two columns. An ellipsis at the end of a name is truncated again.
    middle = [("abcdef", 6), ("abcdefg", 6), ("ａｂｃ", 6), ("ａｂｃｄ", 6), ("abcdefg…", 6)]
    middle += [("a  b", 3)]
    texts(
        "names",
        {
            "lines": [(*each, text.lines(*each)) for each in lines],
            "at most": [(*each, text.shortened(*each)) for each in short],
            "in the middle": [(*each, text.middle(*each)) for each in middle],
        },
    )


def test_of_a_name_without_end_the_middle_is_left_out():
    found = text.lines("x" * 10_000 + "end", 10)
    assert len(found) <= 6
    assert "".join(found).endswith("end")
