"""Tables of an id and a text: which side they are, and ids that come again."""

import pytest

from rankdash.readers import MappingNeeded

QRELS = "q1 0 d1 1\nq2 0 d2 1\n"


@pytest.mark.parametrize(
    ("name", "ids", "side"),
    [
        ("passages.csv", ("q1", "q2"), "queries"),
        ("questions.csv", ("d1", "d2"), "documents"),
        ("questions.csv", ("x", "y"), "queries"),
        ("passages.csv", ("x", "y"), "documents"),
        ("questions.csv", ("q1", "d1"), "queries"),
        ("passages.csv", ("q1", "d1"), "documents"),
        ("passages.csv", ("q1", "q2", "d1"), "queries"),
    ],
)
def test_the_ids_tell_the_side_of_a_table_and_where_both_fit_its_name(parse, name, ids, side):
    rows = "".join(f"{identity},words of {identity}\n" for identity in ids)

    parsed = parse({name: f"id,text\n{rows}", "qrels": QRELS})

    assert parsed.formats[name] == f"CSV, {side}"


@pytest.mark.parametrize(
    ("files", "side"),
    [
        ({"d.csv": "doc_id,document\nd1,words\n"}, "queries"),
        ({"q.csv": "query_id,query\nq1,words\n"}, "documents"),
        ({}, None),
        ({"d.csv": "doc_id,document\nd1,words\n", "q.csv": "query_id,query\nq1,words\n"}, None),
    ],
    ids=["documents there", "queries there", "neither", "both"],
)
def test_a_table_that_neither_ids_nor_name_tell_is_the_side_that_is_missing(parse, files, side):
    files = {"table.csv": "id,text\nx,words of x\n", "qrels": QRELS, **files}
    if side:
        assert parse(files).formats["table.csv"] == f"CSV, {side}"
    else:
        with pytest.raises(MappingNeeded, match="recognised as query or document"):
            parse(files)


def test_an_id_that_comes_again_is_refused_with_another_text_or_title_and_else_counted(
    parse, found
):
    rows = "d1,One,words\nd1,One,words\nd1,Two,words\nd1,One,more\nd2,One,words\nd3,,a\nd4,,b\n"

    parsed = parse({"docs.csv": f"doc_id,title,document\n{rows}", "qrels": QRELS})

    assert found(parsed, "repeated_id").params["lines"] == "4, 5"
    assert found(parsed, "repeated_rows").count == 1
    assert parsed.documents["title"].tolist()[:2] == ["One", "One"]
