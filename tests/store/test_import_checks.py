"""What comes from elsewhere is taken where it is what the store itself would have written."""

import math
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pytest

from rankdash.ranking.ranking import Ranking
from rankdash.store.tables import TIES
from rankdash.store.workspace_file import import_checks
from rankdash.store.workspace_file.json_parts import (
    CorrectionRow,
    DatasetPart,
    JudgePart,
    NoteRow,
    PlanRow,
    RunNoteRow,
    RunPart,
    fitted,
)


class Row(NamedTuple):
    """As of a note or a label, of which it is asked whether the data set has them."""

    query_id: str = ""
    doc_id: str = ""


def ranking_tables(**changes):
    """The three tables of a ranking of two queries, with columns changed."""
    ranking = Ranking.from_lists([("a", ["x", "y"], [2.0, 1.0]), ("b", ["y", "x"], [3.0, 0.5])])
    columns = {
        "rows": {"document": ranking.docs, "score": ranking.scores, "given": ranking.given},
        "queries": {"query_id": ["a", "b"], "documents": [2, 2], "tied": [False, False]},
        "documents": {"doc_id": ["x", "y"]},
    }
    for name, values in changes.items():
        next(table for table in columns.values() if name in table)[name] = values
    made = [
        pa.table({name: pa.array(each) for name, each in one.items()}) for one in columns.values()
    ]
    made[0] = made[0].replace_schema_metadata({TIES: b"stable"})
    return made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        # Each query begins anew; what has no score stands last.
        ({"score": [1.0, 0.5, 9.0, math.nan]}, None),
        ({"score": [1.0, 1.5, 9.0, 8.0]}, "not in order"),
        ({"score": [math.nan, 1.0, 9.0, 8.0]}, "not in order"),
        ({"score": [math.inf, 1.0, 9.0, 8.0]}, "not in order"),
        ({"score": [1.0, 1.0, 9.0, 8.0]}, "ties are not where"),
        ({"score": [1.0, 1.0, 9.0, 8.0], "tied": [True, False]}, None),
        ({"score": [1.0, 1.0, 9.0, 8.0], "tied": [True, True]}, "ties are not where"),
        ({"document": [0, 0, 1, 0]}, "ranks a document twice"),
        ({"document": [0, 2, 1, 0]}, "do not fit"),
        ({"document": [0, -1, 1, 0]}, "do not fit"),
        ({"documents": [2, 1]}, "do not fit"),
        ({"documents": [5, -1]}, "do not fit"),
        ({"given": [0, 1, 2, 4]}, "what it was made from"),
        ({"given": [0, 1, 2, -1]}, "what it was made from"),
        ({"given": [3, 2, 1, 0]}, None),
        ({"query_id": ["a", "a"]}, "empty or listed twice"),
        ({"query_id": ["a", ""]}, "empty or listed twice"),
        ({"query_id": ["a", None]}, "missing in a row"),
        ({"query_id": [1, 2]}, "is not text"),
        ({"doc_id": ["x", "x"]}, "empty or listed twice"),
        ({"tied": [False, None]}, "missing in a row"),
    ],
)
def test_a_ranking_is_taken_where_it_is_one_that_the_store_writes(changes, said):
    tables = ranking_tables(**changes)
    if said is None:
        assert import_checks.ranking(*tables).offsets.tolist() == [0, 2, 4]
    else:
        with pytest.raises(ValueError, match=said):
            import_checks.ranking(*tables)


@pytest.mark.parametrize("ties", [None, {TIES: b""}, {TIES: b"any"}])
def test_a_ranking_says_how_its_ties_are_ordered(ties):
    rows, *others = ranking_tables()
    with pytest.raises(ValueError, match="how ties are ordered"):
        import_checks.ranking(rows.replace_schema_metadata(ties), *others)


def test_what_a_data_set_does_not_have_is_refused_in_each_table(make_dataset, make_run):
    data = make_dataset()
    run = make_run(data)
    for changes in ({"query_id": ["007", "b"]}, {"doc_id": ["1", "y"]}):
        tables = ranking_tables(**({"query_id": ["007", "7"], "doc_id": ["1", "01"]} | changes))
        with pytest.raises(ValueError, match="its data set does not have"):
            import_checks.ranking(*tables, data=data)

    def taken(**changes):
        queries = pa.table(run.queries.assign(**changes))
        return import_checks.run_queries(queries, data, run.ranking)

    pd.testing.assert_frame_equal(taken(), run.queries)
    for changes, said in (
        ({"query_id": ["007", "7", "x"]}, "does not have"),
        ({"query_id": ["007", "7", "7"]}, "listed twice"),
        ({"state": ["done", "failed", "failed"]}, "not done"),
        ({"state": ["done", "done", "?"]}, "no state"),
        ({"reason": ["", "", None]}, "no state"),
        ({"more": 1.0}, "its columns are not"),
    ):
        with pytest.raises(ValueError, match=said):
            taken(**changes)
    import_checks.refuse_unknown(data, [Row("7")], [Row(doc_id="NA")])
    for asked in ([Row("x")], []), ([], [Row(doc_id="x")]):
        with pytest.raises(ValueError, match="does not have"):
            import_checks.refuse_unknown(data, *asked)


def test_tables_of_a_run_have_their_columns_and_rows():
    counts = pa.table({"read": pa.array([1, 2], pa.int32()), "full": pa.array([3, 4], pa.int32())})
    found = import_checks.reading(counts, 2)
    assert (found.read.tolist(), found.full.tolist()) == ([1, 2], [3, 4])
    with pytest.raises(ValueError, match="do not fit the ranking"):
        import_checks.reading(counts, 3)
    asked = pa.table({"query_id": ["a"], "status": [200], "ms": [1.5], "error": ["x"]})
    taken = import_checks.calls(asked)
    assert taken.to_dict("records") == [{"query_id": "a", "status": 200, "ms": 1.5, "error": "x"}]
    assert taken["status"].dtype == "int64"
    with pytest.raises(ValueError, match="no column query_id"):
        import_checks.calls(asked.drop_columns(["query_id"]))
    texts = pa.table({"query_id": ["a"], "text": pa.nulls(1), "type": ["t"]})
    assert list(import_checks.texts(texts, ("query_id", "text")).columns) == texts.column_names
    with pytest.raises(ValueError, match="its columns are not text, query_id"):
        import_checks.texts(texts, ("text", "query_id"))


def test_the_same_run_has_the_same_documents_in_the_same_order_and_the_same_latencies(
    make_dataset, make_run
):
    run = make_run(make_dataset())
    first, last = ("007", ["01", "1", "1.0"], [3.0, 3.0, math.nan]), ("7", ["1"], [0.1])
    for lists, same in (
        ([first, last], True),
        ([("007", ["1", "01", "1.0"], [3.0, 3.0, math.nan]), last], False),
        ([("007", ["01", "1", "1.0"], [3.0, 3.0, 2.0]), last], False),
        ([first, ("二", ["1"], [0.1])], False),
        ([("007", ["01", "1"], [3.0, 3.0]), last], False),
    ):
        reading = run.reading if same else None
        other = replace(run, ranking=Ranking.from_lists(lists), reading=reading, name="another")
        assert import_checks.same(run, other) is same
    later = run.queries.assign(latency_ms=run.queries["latency_ms"] + 5.0)
    assert not import_checks.same(run, replace(run, queries=later))


MOMENT = "2026-01-02T03:04:05+00:00"
NOTE = {"query_id": "7", "tags": ["a"], "note": "", "changed": MOMENT}
RUN_NOTE = {"note": "x", "changed": MOMENT}
CORRECTED = {
    "query_id": "7", "doc_id": "1", "withdrawn": 0, "label": None, "who": "", "made": MOMENT
}  # fmt: skip
RUN_PART = {
    "name": "n", "reranker": "r", "settings": {}, "machine": {}, "depth": 0, "load_ms": None,
    "created": MOMENT, "note": None, "pinned": None, "explanations": [],
}  # fmt: skip
DATA_PART = {
    "name": "n", "source": "upload", "first_stage": "given", "report": "{}", "notes": [],
    "corrections": [],
}  # fmt: skip
PLAN = {"id": "p", "settings": {}, "before": 0, "guidelines": "", "created": MOMENT, "pauses": []}
JUDGE = {
    "id": "j", "name": "n", "model": "m", "template": "t", "settings": {}, "top": 3,
    "systems": ["a"], "depth": 1, "state": "done", "usage": {}, "unsettled": 0,
    "created": MOMENT, "started": None, "finished": None, "pairs": [],
}  # fmt: skip


def judged(**said):
    pair = {"query_id": "7", "doc_id": "1", "reason": "r", "error": "", "kind": "", "answers": []}
    return {"pairs": [pair | said]}


@pytest.mark.parametrize(
    ("kind", "given", "at_most", "too_much"),
    [
        (NoteRow, NOTE, {"tags": ["x" * 40] * 20}, {"tags": ["x"] * 21}),
        (NoteRow, NOTE, {"note": "x" * 4000}, {"note": "x" * 4001}),
        (NoteRow, NOTE, {"tags": [], "note": "x"}, {"tags": [], "note": ""}),
        (NoteRow, NOTE, {"tags": ["x"]}, {"tags": [""]}),
        (NoteRow, NOTE, {"tags": ["x" * 40]}, {"tags": ["x" * 41]}),
        (NoteRow, NOTE, {"who": "x" * 80}, {"who": "x" * 81}),
        (NoteRow, NOTE, {"query_id": "x" * 1000}, {"query_id": "x" * 1001}),
        (NoteRow, NOTE, {"query_id": "a b"}, {"query_id": "a\0b"}),
        (NoteRow, NOTE, {"changed": "2026-01-02"}, {"changed": "2026-13-02"}),
        (CorrectionRow, CORRECTED, {"withdrawn": 1}, {"withdrawn": 2}),
        (CorrectionRow, CORRECTED, {"label": -2.5}, {"label": math.inf}),
        (CorrectionRow, CORRECTED, {"label": 1.0}, {"label": "high"}),
        (RunNoteRow, RUN_NOTE, {"note": "x" * 4000}, {"note": "x" * 4001}),
        (RunNoteRow, RUN_NOTE, {"note": "x"}, {"note": ""}),
        (DatasetPart, DATA_PART, {"name": "x"}, {"name": 3}),
        (DatasetPart, DATA_PART, {"notes": []}, {"corrections": {"a": 1}}),
        (DatasetPart, DATA_PART, {"plan": None}, {"plan": PLAN | {"before": 1}}),
        (PlanRow, PLAN, {"id": "0p_-"}, {"id": "../p"}),
        (JudgePart, JUDGE, {"id": "J"}, {"id": "../x"}),
        (JudgePart, JUDGE, {"state": "cancelled"}, {"state": "running"}),
        (JudgePart, JUDGE, {"pairs": []}, judged(grade=4.0)),
        (JudgePart, JUDGE, {"pairs": []}, judged(grade=None)),
        (JudgePart, JUDGE, {"pairs": []}, judged(grade=1.0, error="e")),
        (RunPart, RUN_PART, {"name": "x"}, {"name": ""}),
        (RunPart, RUN_PART, {"name": "退"}, {"name": "\ud800"}),
        (RunPart, RUN_PART, {"created": "2026-01-02"}, {"created": "yesterday"}),
        (RunPart, RUN_PART, {"reranker": "x" * 200}, {"reranker": "x" * 201}),
        (RunPart, RUN_PART, {"depth": None}, {"depth": -1}),
        (RunPart, RUN_PART, {"depth": 3}, {"depth": "deep"}),
        (RunPart, RUN_PART, {"load_ms": 1.5}, {"load_ms": math.inf}),
        (RunPart, RUN_PART, {"settings": {"a": "x" * 999_991}}, {"settings": {"a": "x" * 999_993}}),
        (RunPart, RUN_PART, {"settings": {"a": 1}}, {"settings": []}),
        (RunPart, RUN_PART, {"machine": {"a": "x" * 999_991}}, {"machine": {"a": "x" * 999_993}}),
    ],
)
def test_a_row_of_a_file_is_one_that_the_store_may_write(kind, given, at_most, too_much):
    found = fitted(given | at_most, kind)
    assert all(getattr(found, name) == value for name, value in at_most.items())
    with pytest.raises(ValueError, match=r"."):
        fitted(given | too_much, kind)
