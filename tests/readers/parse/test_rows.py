"""Rows of a file: a label without a rank or a score is a label all the same."""

import io
import json

import pandas as pd
import pytest

import rankdash as rd
from rankdash.errors import FormatError
from rankdash.loading import load
from rankdash.readers import Source, read
from rankdash.readers.parse.skipped_rows import Refusals

# Five questions of an FAQ. The search finds the answers of three among its first three, and those
# of two not at all.
FAQ = pd.DataFrame(
    [
        ("q1", "How do I return it?", "a1", "Send it back.", 1, 1),
        ("q1", "How do I return it?", "a9", "Our shops.", 0, 2),
        ("q2", "Where is my parcel?", "a9", "Our shops.", 0, 1),
        ("q2", "Where is my parcel?", "a2", "Follow it online.", 1, 2),
        ("q3", "Can I pay later?", "a9", "Our shops.", 0, 1),
        ("q3", "Can I pay later?", "a8", "Gift cards.", 0, 2),
        ("q3", "Can I pay later?", "a3", "Pay in 30 days.", 1, 3),
        ("q4", "Do you ship abroad?", "a9", "Our shops.", 0, 1),
        ("q4", "Do you ship abroad?", "a4", "To all of Europe.", 1, None),
        ("q5", "Is it in stock?", "a8", "Gift cards.", None, 1),
        ("q5", "Is it in stock?", "a5", "See the product page.", 1, None),
    ],
    columns=["query_id", "query", "doc_id", "document", "label", "rank"],
)


def _records(frame):
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _entries(frame):
    """One entry a query, with lists; `initial_scores` fall with the rank."""
    scored = frame.assign(initial_score=10 - frame["rank"])
    return [
        {
            "query_id": query,
            "query": rows["query"].iloc[0],
            "docs": rows["document"].to_list(),
            "doc_ids": rows["doc_id"].to_list(),
            "true_scores": [None if pd.isna(x) else x for x in rows["label"]],
            "initial_scores": [None if pd.isna(x) else x for x in rows["initial_score"]],
        }
        for query, rows in scored.groupby("query_id", sort=False)
    ]


def _parquet(frame):
    packed = io.BytesIO()
    frame.to_parquet(packed)
    return packed.getvalue()


def _lines(records):
    return "\n".join(map(json.dumps, records)).encode()


SCORED = FAQ.assign(score=10 - FAQ["rank"]).drop(columns="rank")
FORMS = {
    "csv": {"faq.csv": FAQ.to_csv(index=False).encode()},
    "csv, scores": {"faq.csv": SCORED.to_csv(index=False).encode()},
    "json lines": {"faq.jsonl": _lines(_records(FAQ))},
    "json lines, keys left out": {
        "faq.jsonl": _lines(
            {name: value for name, value in row.items() if value is not None}
            for row in _records(FAQ)
        )
    },
    "json": {"faq.json": json.dumps(_records(SCORED)).encode()},
    "nested json": {"faq.json": json.dumps(_entries(FAQ)).encode()},
    "parquet": {"faq.parquet": _parquet(FAQ)},
    "nested parquet": {"faq.parquet": _parquet(pd.DataFrame(_entries(FAQ)))},
    "mixed": {
        "one.csv": FAQ[:7].to_csv(index=False).encode(),
        "two.jsonl": _lines(_records(FAQ[7:])),
    },
}


def _means(data):
    found = rd.evaluate(data, metrics="hit@3, mrr, recall@3, map")
    return {spec: round(found.mean(spec), 6) for spec in ("hit@3", "mrr", "recall@3", "map")}


@pytest.mark.parametrize("files", FORMS.values(), ids=list(FORMS))
def test_a_label_without_a_rank_is_a_label_of_a_document_that_was_not_found(files):
    loaded = load([Source(name, data) for name, data in files.items()])

    data = loaded.dataset
    assert len(data.qrels) == 10
    assert len(data.candidates) == 9
    assert data.candidates.documents_of("q4")[0] == ["a9"]
    mrr = round((1 + 1 / 2 + 1 / 3) / 5, 6)
    assert _means(data) == {"hit@3": 0.6, "mrr": mrr, "recall@3": 0.6, "map": mrr}
    codes = {found.code: found for found in loaded.report.findings}
    assert codes["unranked_rows"].count == 2
    assert codes["unlabelled_rows"].count == 1
    assert not {"bad_rank", "bad_score", "no_label"} & codes.keys()


def test_a_query_of_which_nothing_was_found_counts_as_zero():
    text = "query_id,doc_id,label,rank\nq1,a,1,1\nq2,b,1,\n"

    data = load([Source("x", text.encode())]).dataset
    with pytest.warns(UserWarning, match="q2"):
        assert _means(data)["hit@3"] == 0.5


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [("rank", "abc", "bad_rank"), ("rank", "1.5", "bad_rank"), ("score", "abc", "bad_score")],
)
def test_a_value_that_cannot_be_read_is_told_by_file_and_line(parse, found, column, value, code):
    rows = f"query_id,doc_id,label,{column}\nq1,a,1,1\nq1,b,1,\nq1,c,0,{value}\nq1,d,1,2\n"

    parsed = parse({"x.csv": rows})

    assert (found(parsed, code).file, found(parsed, code).line) == ("x.csv", 4)
    assert parsed.qrels["doc_id"].tolist() == ["a", "b", "d"]


def test_nothing_but_values_that_cannot_be_read_stop_the_file(parse):
    with pytest.raises(FormatError, match="rank is not a whole number") as refused:
        parse({"x.csv": "query_id,doc_id,label,rank\nq1,a,1,abc\nq1,b,0,def\n"})
    assert (refused.value.file, refused.value.line) == ("x.csv", 2)


def test_a_row_that_says_nothing_of_its_pair_is_refused(parse, found):
    labelled = parse({"x": "query_id,doc_id,label,rank\nq1,a,1,1\nq1,b,,\n"})
    ranked = parse({"q": "q1 0 a 1\n", "x": "query_id,doc_id,rank\nq1,a,1\nq1,b,\nq1,c,2\n"})

    assert found(labelled, "no_label").line == 3
    assert found(ranked, "bad_rank").line == 3


def test_a_reranker_that_saw_only_the_first_documents_loses_no_other(parse):
    rows = "query_id,doc_id,label,initial_score,pred_score\nq1,a,0,9,1\nq1,b,1,8,2\nq1,c,1,7,\n"

    parsed = parse({"x.csv": rows})

    assert parsed.candidates.documents_of("q1")[0] == ["a", "b", "c"]
    assert [list(each.documents_of("q1")[0]) for each in parsed.rankings.values()] == [["b", "a"]]
    assert len(parsed.qrels) == 3


def test_a_reranked_document_that_nobody_judged_keeps_its_place(parse):
    rows = "query_id,doc_id,label,pred_score\nq1,a,0,1\nq1,b,,3\nq1,c,1,2\n"

    parsed = parse({"x.csv": rows})

    assert parsed.candidates.documents_of("q1")[0] == ["b", "c", "a"]


def test_a_column_of_ranks_without_any_is_no_ranking(parse):
    parsed = parse({"x": "query,document,label,rank\na,b,1,\na,c,0,\n"})

    assert parsed.candidates is None
    assert len(parsed.qrels) == 2


def test_ranks_order_where_scores_are_missing(parse):
    rows = "query_id,doc_id,label,score,rank\nq1,a,1,0.5,2\nq1,b,0,,1\nq1,c,1,,\n"

    assert parse({"x": rows}).candidates.documents_of("q1")[0] == ["b", "a"]


@pytest.mark.parametrize(
    ("ranks", "told"), [((1, 2, 3), 0), ((0, 1, 2), 0), ((2, 3), 1), ((1, 3), 1), ((1, 2, 4), 1)]
)
def test_ranks_that_leave_out_places_are_told(parse, ranks, told):
    rows = "".join(f"q1,d{at},1,{rank}\n" for at, rank in enumerate(ranks))

    parsed = parse({"x": f"query_id,doc_id,label,rank\n{rows}"})

    assert sum(found.code == "rank_gaps" for found in parsed.findings) == told


@pytest.mark.parametrize(("second", "told"), [(2.0, 0), (2.5, 1)])
def test_equal_scores_contradict_no_rank(parse, second, told):
    rows = f"q1,a,1,1,2.0\nq1,b,0,2,{second}\nq2,b,0,1,9\n"

    parsed = parse({"x": f"query_id,doc_id,label,rank,score\n{rows}"})

    assert sum(found.code == "rank_against_score" for found in parsed.findings) == told


@pytest.mark.parametrize(("wide", "read"), [(1, True), (2, False)])
def test_rows_of_another_width_count_among_those_refused(parse, wide, read):
    """Of 2 rows 1 is refused, or 2 of 3."""
    text = "query,document,label\na,b,1\n" + "a,b,c,1\n" * wide
    if read:
        assert len(parse({"x": text}).qrels) == 1
    else:
        with pytest.raises(FormatError, match="Rows that cannot be used: 2 of 3") as refused:
            parse({"x": text})
        assert refused.value.line == 3


def test_rows_that_are_refused_are_neither_unjudged_candidates_nor_unranked(parse, found):
    """The last two rows have no document: one has no label, the other no score."""
    rows = "q1,a,1,3\nq1,b,,2\nq1,c,0,\nq1,,,1\nq1,,1,\n"

    parsed = parse({"x": f"query_id,doc_id,label,score\n{rows}"})

    assert found(parsed, "no_document").params["lines"] == "5, 6"
    assert found(parsed, "unlabelled_rows").count == 1
    assert found(parsed, "unranked_rows").count == 1


def refused(rows: int) -> Refusals:
    made = Refusals("x.csv")
    made.add("bad_label", list(range(rows + 1, 1, -1)))
    return made


@pytest.mark.parametrize(("rows", "ends"), [(20, "21"), (21, "21 …")])
def test_twenty_lines_are_named_and_dots_say_that_there_are_more(rows, ends):
    (finding,) = refused(rows).findings()
    assert finding.params["lines"] == ", ".join(map(str, range(2, 21))) + f", {ends}"
    assert finding.line == 2


def test_five_rows_are_shown_of_all_that_were_refused_for_one_reason():
    """As two tables of one file may be refused for it."""
    made = Refusals("x.csv")
    made.add("bad_label", [2, 3, 4], ["a", "b", "c"])
    made.add("bad_label", [5, 6, 7], ["d", "e", "f"])
    made.add("no_query", [8], ["g"])
    assert [each.examples for each in made.findings()] == [("a", "b", "c", "d", "e"), ("g",)]


def test_the_first_line_is_named_in_whatever_order_rows_were_refused():
    with pytest.raises(FormatError) as stopped:
        refused(3).stop_if_most(3)
    assert stopped.value.line == 2


@pytest.mark.parametrize("word", ["cannot tell", "Cannot Tell", "cannot_tell", "无法判断"])
def test_what_cannot_be_told_is_no_label_and_no_bad_row(word):
    text = f"query_id,doc_id,label\nq1,d1,2\nq1,d2,{word}\nq1,d3,0\n"
    parsed = read([Source("labels.csv", text.encode())])
    assert parsed.qrels["doc_id"].tolist() == ["d1", "d3"]
    codes = {(each.severity, each.code) for each in parsed.findings}
    assert ("note", "cannot_tell") in codes
    assert not any(severity == "warning" for severity, _ in codes)


def test_draws_are_noticed_only_where_both_columns_are_filled():
    head = "query_id,doc_id,label,draw,probability\n"
    drawn = head + "q1,d1,2,1,0.25\nq1,d2,0,2,0.5\nq1,d3,1,,\n"
    found = [each for each in read([Source("a.csv", drawn.encode())]).findings
             if each.code == "labels_drawn"]  # fmt: skip
    assert [(each.severity, each.count) for each in found] == [("warning", 2)]
    # A row that is refused was not drawn either: its document is empty.
    refused = read([Source("a.csv", (drawn + "q1,,1,4,0.5\n").encode())]).findings
    assert [each.count for each in refused if each.code == "labels_drawn"] == [2]
    for text in (head + "q1,d1,2,,\n", head.replace("draw,", "") + "q1,d1,2,0.5\n"):
        codes = {each.code for each in read([Source("a.csv", text.encode())]).findings}
        assert "labels_drawn" not in codes
