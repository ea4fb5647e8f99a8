"""Labels of several people: which columns say who and when, and which rows are a label."""

import math

import pytest

from rankdash.errors import DataError, LimitError
from rankdash.readers import Source
from rankdash.readers.parse.limits import ReadLimits
from rankdash.readers.rated import read_rated


def rated(text: str, name: str = "labels.csv", **options: object):
    found = read_rated(Source(name, text.encode()), **options)
    return None if found is None else found[0]


def rows(text: str, *columns: str):
    return rated(text)[list(columns)].to_numpy().tolist()


def test_a_row_is_of_a_person_and_a_pair():
    frame = rated("query_id,doc_id,label,rater,time\nq1,d1,2, Ann ,2026-01-31T12:00:00+02:00\n")
    assert list(frame.columns) == ["query_id", "doc_id", "label", "rater", "time"]
    assert frame.to_numpy().tolist() == [["q1", "d1", 2.0, "Ann", "2026-01-31T10:00:00+00:00"]]


@pytest.mark.parametrize("name", ["rater", "Annotator", "assessor", "labeler", "who", "标注员"])
def test_a_column_says_who_labelled(name):
    assert rows(f"query_id,doc_id,label,{name}\nq1,d1,1,Bo\n", "rater", "time") == [["Bo", ""]]


def test_of_two_names_of_people_the_surer_counts_and_a_row_may_name_nobody():
    head = "query_id,doc_id,label,who,rater\n"
    assert rows(f"{head}q1,d1,1,Ann,Bo\nq2,d1,1,Ann,\n", "rater") == [["Bo"], [""]]


@pytest.mark.parametrize("name", ["time", "made", "Created At", "updated_at"])
def test_a_time_that_is_none_is_left_out(name):
    text = f"query_id,doc_id,label,rater,{name}\nq1,d1,1,a,2026-01-31\nq2,d1,1,a,soon\nq3,d1,1,a,\n"
    assert rows(text, "time") == [["2026-01-31T00:00:00+00:00"], [""], [""]]


@pytest.mark.parametrize("head", ["query_id,doc_id,label", "query_id,label,rater", "doc_id,rater"])
def test_a_file_without_people_or_ids_or_labels_is_of_another_kind(head):
    cells = {"query_id": "q1", "doc_id": "d1", "label": "1", "rater": "Ann"}
    assert rated(f"{head}\n{','.join(cells[name] for name in head.split(','))}\n") is None


@pytest.mark.parametrize("word", ["cannot tell", "Unsure", "skip", "not sure", "不确定"])
def test_who_cannot_tell_says_so_and_gives_no_label(word):
    found = rows(f"query_id,doc_id,label,rater\nq1,d1,{word},Ann\nq1,d2,0,Ann\n", "doc_id", "label")
    assert found == [["d1", pytest.approx(math.nan, nan_ok=True)], ["d2", 0.0]]


def test_an_empty_label_is_none_and_its_row_needs_no_ids():
    text = "query_id,doc_id,label,rater\nq1,,,Ann\nq1,d1,1,Ann\n,d2,,Bo\n"
    assert rows(text, "query_id", "doc_id", "label") == [["q1", "d1", 1.0]]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (",d2,1,Bo", "A label has no query_id."),
        ("q2,,1,Bo", "A label has no doc_id."),
        ("q2,,unsure,Bo", "A label has no doc_id."),
        ("q2,d2,high,Bo", "A label is not a number: 'high'."),
    ],
)
def test_a_label_of_nothing_and_one_that_is_none_name_their_line(row, said):
    with pytest.raises(DataError) as caught:
        rated(f"query_id,doc_id,label,rater\nq1,d1,1,Ann\n{row}\n")
    assert caught.value.message == said
    assert (caught.value.file, caught.value.line) == ("labels.csv", 3)


def test_the_limits_of_the_readers_hold():
    text = "query_id,doc_id,label,rater\nq1,d1,1,Ann\nq1,d2,1,Ann\n"
    assert len(rated(text, limits=ReadLimits(rows=2))) == 2
    with pytest.raises(LimitError):
        rated(text, limits=ReadLimits(rows=1))
