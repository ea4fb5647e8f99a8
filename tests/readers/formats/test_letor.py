"""LETOR: how many lines make such a file, and the features of each."""

import pytest

from rankdash.readers import ReadLimits
from rankdash.readers.formats import letor


@pytest.mark.parametrize("good", ["2 qid:1 1:0.5 2:3 # d1", "1 1:0.5 2:3"])
@pytest.mark.parametrize(("bad", "enough"), [(1, True), (2, False)])
def test_half_of_the_lines_make_a_file_of_features(good, bad, enough):
    """With a query or, as SVMlight has it, without."""
    assert letor.matches("\n".join(["# a comment", good, *["of another form"] * bad])) == enough


def features(text: str) -> dict[str, list[str]]:
    frame = letor.read(text, "x", ReadLimits()).frame
    return {name: list(frame[name]) for name in frame.columns if name.startswith("feature")}


def test_a_feature_that_a_line_leaves_out_is_0_and_the_first_of_two_counts():
    text = "2 qid:1 3:0.5 3:0.9 # a\n1 qid:1 10:7 # b\n0 qid:1 2:4 3:0.1 # c\n"
    found = features(text)
    assert found == {
        "feature 2": ["0", "0", "4"],
        "feature 3": ["0.5", "0", "0.1"],
        "feature 10": ["0", "7", "0"],
    }
    assert list(found) == ["feature 2", "feature 3", "feature 10"]


def test_a_query_has_the_first_title_that_a_comment_gives_it():
    text = "# qid:1: rambo\n# qid:1: rocky\n1 qid:1 1:2 # d\n0 qid:2 1:2 # d\n"
    assert list(letor.read(text, "x", ReadLimits()).frame["query"]) == ["rambo", None]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("2 qid:1 # a\n0 qid:1 # b", ["2", "0"]),
        ("2 qid:1 1:3 # a\n0 qid:1 1:5 # b", ["2", "0"]),
        ("2 qid:1 1:3 # a\n0 qid:1", ["2"]),
        ("2 qid:1 1:3 # a\n0 qid:1\n", ["2", "0"]),
    ],
)
def test_the_last_line_of_a_cut_file_is_refused_where_the_others_have_features(text, labels):
    assert list(letor.read(text, "x", ReadLimits()).frame["label"]) == labels


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("1 qid:1 1:2 # d1 of some source", "d1"),
        ("1 qid:1 1:2 # inc = 1 docid = d2 prob = 0.1", "d2"),
        ("1 qid:1 1:2 #DOCID=d3", "d3"),
        ("1 qid:1 1:2", "1-1"),
        ("1 qid:1 1:2 #", "1-1"),
    ],
)
def test_the_comment_of_a_line_names_its_document(line, found):
    table = letor.read(f"{line}\n0 qid:1 1:2 # other\n", "x", ReadLimits())
    assert table.frame["doc_id"].tolist() == [found, "other"]
    assert [finding.count for finding in table.findings] == ([1] if found == "1-1" else [])


def test_documents_without_a_name_are_counted_by_query():
    table = letor.read("1 qid:a 1:2\n0 qid:b 1:2\n\n0 qid:a 1:2\n", "x", ReadLimits())
    assert table.frame["doc_id"].tolist() == ["a-1", "b-1", "a-2"]
    assert table.lines.tolist() == [1, 2, 4]
    assert table.findings[0].count == 3
    assert table.wants == ("score",)
    assert letor.read("1 qid:a # d\n", "x", ReadLimits()).wants == ()
