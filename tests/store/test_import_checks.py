"""Imported tables are accepted only if the store itself could have written them."""

import math
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
import pyarrow as pa

from rankdash.core.data.ranking import Ranking
from rankdash.core.workspace.tables import TIES
from rankdash.core.workspace.workspace_file import import_checks
from tests.approved import table
from tests.results import shown

TIED = [1.0, 1.0, 9.0, 8.0]
RANKINGS = {
    "as it is written": {},
    "each query begins anew, and what has no score is last": {"score": [1.0, 0.5, 9.0, math.nan]},
    "scores that rise": {"score": [1.0, 1.5, 9.0, 8.0]},
    "no score before a score": {"score": [math.nan, 1.0, 9.0, 8.0]},
    "an infinite score": {"score": [math.inf, 1.0, 9.0, 8.0]},
    "a tie that is not named": {"score": TIED},
    "a tie": {"score": TIED, "tied": [True, False]},
    "a tie too many": {"score": TIED, "tied": [True, True]},
    "a document twice": {"document": [0, 0, 1, 0]},
    "a document too high": {"document": [0, 2, 1, 0]},
    "a document too low": {"document": [0, -1, 1, 0]},
    "fewer rows than there are": {"documents": [2, 1]},
    "a query of less than no row": {"documents": [5, -1]},
    "made from a row too high": {"given": [0, 1, 2, 4]},
    "made from a row too low": {"given": [0, 1, 2, -1]},
    "made from rows in another order": {"given": [3, 2, 1, 0]},
    "a query twice": {"query_id": ["a", "a"]},
    "an empty query": {"query_id": ["a", ""]},
    "a missing query": {"query_id": ["a", None]},
    "queries that are numbers": {"query_id": [1, 2]},
    "a known document twice": {"doc_id": ["x", "x"]},
    "a missing tie": {"tied": [False, None]},
    "nothing on ties": {"ties": None},
    "no order of ties": {"ties": {TIES: b""}},
    "any order of ties": {"ties": {TIES: b"any"}},
    "of a data set": {"query_id": ["007", "7"], "doc_id": ["1", "01"], "of data": True},
    "a foreign query": {"query_id": ["007", "b"], "doc_id": ["1", "01"], "of data": True},
    "a foreign document": {"query_id": ["007", "7"], "doc_id": ["1", "y"], "of data": True},
}
QUERIES = {
    "as it is written": {},
    "a foreign query": {"query_id": ["007", "7", "x"]},
    "a query twice": {"query_id": ["007", "7", "7"]},
    "a ranked query that is not done": {"state": ["done", "failed", "failed"]},
    "an unknown state": {"state": ["done", "done", "?"]},
    "a missing reason": {"reason": ["", "", None]},
    "one column more": {"more": 1.0},
}
CALLS = pa.table({"query_id": ["a"], "status": [200], "ms": [1.5], "error": ["x"]})
READ = pa.table({"read": pa.array([1, 2], pa.int32()), "full": pa.array([3, 4], pa.int32())})
TEXTS = pa.table({"query_id": ["a"], "text": pa.nulls(1), "type": ["t"]})


class Row(NamedTuple):
    """Ids of a note or a label, which the data set must contain."""

    query_id: str = ""
    doc_id: str = ""


def ranking_of(data, **changes):
    """Return the ranking that is read from three tables with changed columns."""
    ranking = Ranking.from_lists([("a", ["x", "y"], [2.0, 1.0]), ("b", ["y", "x"], [3.0, 0.5])])
    columns = {
        "rows": {"document": ranking.docs, "score": ranking.scores, "given": ranking.given},
        "queries": {"query_id": ["a", "b"], "documents": [2, 2], "tied": [False, False]},
        "documents": {"doc_id": ["x", "y"]},
    }
    data = data if changes.pop("of data", False) else None
    metadata = changes.pop("ties", {TIES: b"stable"})
    for name, values in changes.items():
        next(table for table in columns.values() if name in table)[name] = values
    rows, *others = (
        pa.table({name: pa.array(each) for name, each in one.items()}) for one in columns.values()
    )
    rows = rows.replace_schema_metadata(metadata)
    return import_checks.ranking(rows, *others, data=data).frame()


def test_a_table_is_taken_if_the_store_may_have_written_it(make_dataset, make_run, approved):
    data = make_dataset()
    run = make_run(data)

    def queries_of(**changes):
        table = pa.table(run.queries.assign(**changes))
        return import_checks.run_queries(table, data, run.ranking)[["query_id", "state"]]

    def known(queries, documents):
        return import_checks.refuse_unknown(data, queries, documents)

    cases = {
        **{f"ranking: {why}": (ranking_of, (data,), each) for why, each in RANKINGS.items()},
        **{f"queries: {why}": (queries_of, (), each) for why, each in QUERIES.items()},
        "a row of the data set": (known, ([Row("7")], [Row(doc_id="NA")]), {}),
        "a foreign query": (known, ([Row("x")], []), {}),
        "a foreign document": (known, ([], [Row(doc_id="x")]), {}),
        "tokens that were read": (import_checks.reading, (READ, 2), {}),
        "tokens of fewer rows": (import_checks.reading, (READ, 3), {}),
        "calls": (import_checks.calls, (CALLS,), {}),
        "calls without a query": (import_checks.calls, (CALLS.drop_columns(["query_id"]),), {}),
        "texts": (import_checks.texts, (TEXTS, ("query_id", "text")), {}),
        "texts in another order": (import_checks.texts, (TEXTS, ("text", "query_id")), {}),
    }
    said = {}
    for name, (check, given, changes) in cases.items():
        try:
            said[name] = shown(check(*given, **changes))
        except ValueError as refused:
            said[name] = f"refused: {refused}"
    approved("store/tables", table(said))
    pd.testing.assert_frame_equal(
        import_checks.run_queries(pa.table(run.queries), data, run.ranking), run.queries
    )
    assert import_checks.calls(CALLS)["status"].dtype == "int64"


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
