"""What came of a query, in numbers that are known or are none."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.ranking.measured import Measured
from rankdash.rerankers import Call, Scored, create
from rankdash.runs.plan import plan
from rankdash.runs.results import QueryResult, assemble, results_from, to_row
from rankdash.runs.resume import still_good
from rankdash.runs.runner import rerank
from rankdash.runs.usage import usage


def counts(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    ("read", "full", "tokens", "truncated"),
    [
        ((3, 4), (3, 4), 7, 0),
        ((3, 4), (3, 9), 7, 1),
        ((3, 0), (9, 9), 3, 2),
        ((3, -1), (9, 9), math.nan, math.nan),
        ((3, 4), (9, -1), 7, math.nan),
        ((), (), math.nan, math.nan),
    ],
)
def test_tokens_of_which_some_are_unknown_have_no_sum(read, full, tokens, truncated):
    found = QueryResult("q", "done", read=counts(*read), full=counts(*full))
    assert [found.tokens, found.truncated] == pytest.approx([tokens, truncated], nan_ok=True)


CALL = Call(1.0, 1.5, attempts=2, retry_wait_s=0.25, status=200, billed={"units": 2.0}, note="cut")


def test_a_result_comes_back_from_the_row_it_is_kept_as():
    told = QueryResult(
        "q", "done", "", np.array([0.5, 1.5]), 3.0, 1.0, counts(3, 4), counts(3, 9), 1, (CALL,),
        np.array([2.5, 3.5]),
    )  # fmt: skip
    (found,) = results_from(pd.DataFrame([to_row(told)]))
    for name in ("scores", "read", "full", "repeated_ms"):
        assert getattr(found, name).tolist() == getattr(told, name).tolist()
    for name in ("query_id", "state", "reason", "latency_ms", "index_ms", "cached"):
        assert getattr(found, name) == getattr(told, name)
    assert (found.calls[0].end, dict(found.calls[0].billed)) == (1.5, {"units": 2.0})


def test_a_row_of_an_older_version_has_what_it_kept():
    row = to_row(QueryResult("q", "done", scores=np.array([0.5])))
    lacking = dict.fromkeys(("read", "full", "repeated_ms", "calls")) | {"cached": math.nan}
    (found,) = results_from(pd.DataFrame([row | lacking]))
    assert [len(each) for each in (found.read, found.full, found.repeated_ms)] == [0, 0, 0]
    assert (found.cached, found.calls, found.scores.tolist()) == (0, (), [0.5])
    assert math.isnan(found.tokens)


def assembled(dataset, asked, results, depth=None):
    return assemble(dataset, create("bm25", {}), depth, asked, results, 12.5, Measured(pairs=9))


def test_a_run_has_a_row_for_each_query_and_counts_what_was_done(make_dataset):
    dataset = make_dataset(queries=4, depth=3, without_candidates=["q3"])
    asked = plan(dataset, 2, ["q0", "q1", "q3"])
    results = {
        "q0": QueryResult(
            "q0", "done", scores=np.array([1.0, 2.0]), latency_ms=4.0, cached=1, calls=(CALL,),
            read=counts(3, 4), full=counts(3, 9), repeated_ms=np.array([4.0, 5.0]),
        ),
        "q1": QueryResult("q1", "failed", "no answer", latency_ms=math.nan),
    }  # fmt: skip
    run = assembled(dataset, asked, results, 2)
    rows = run.queries.set_index("query_id")
    assert rows["state"].to_dict() == {
        "q0": "done", "q1": "failed", "q2": "skipped", "q3": "skipped",
    }  # fmt: skip
    assert rows["reason"].tolist() == ["", "no answer", "not in the sample", "no candidates"]
    assert rows["pairs"].tolist() == pytest.approx([2.0, math.nan, 0.0, 0.0], nan_ok=True)
    assert rows.loc["q0", ["tokens", "truncated", "latency_ms"]].tolist() == [7, 1, 4]
    first = dataset.candidates.documents_of("q0")[0]
    assert run.ranking.documents_of("q0")[0] == [first[1], first[0], first[2]]
    assert list(run.ranking.query_ids) == ["q0"]
    # In the order of the ranking; what was not reranked was not read.
    assert (run.reading.read.tolist(), run.reading.full.tolist()) == ([4, 3, -1], [9, 3, -1])
    told = run.measured
    assert (told.pairs, told.cached_pairs, told.scored_pairs, told.serial_queries) == (9, 1, 1, 1)
    assert told.repeated_ms == {"q0": (4.0, 5.0)}
    assert (run.depth, run.load_ms) == (2, 12.5)
    (call,) = run.calls.to_dict("records")
    assert (call["query_id"], call["ms"], call["retry_wait_ms"]) == ("q0", 500.0, 250.0)
    assert (call["billed"], call["note"], call["error"]) == ('{"units": 2.0}', "cut", "")


def test_runs_that_asked_for_something_else_have_other_ids(make_dataset):
    dataset = make_dataset(queries=2, depth=3)
    asked = plan(dataset)
    done = {query: QueryResult(query, "done", scores=np.zeros(3)) for query in asked.documents}
    first = assembled(dataset, asked, done)
    assert first.id == assembled(dataset, asked, done).id
    assert first.calls is None and first.reading is None
    others = [
        assembled(dataset, asked, done, 3),
        assembled(dataset, plan(dataset, None, ["q0"]), done),
        assembled(dataset, replace(asked, without_text="empty"), done),
        assemble(dataset, create("bm25", {"k1": 0.5}), None, asked, done, 0.0, Measured()),
    ]
    assert len({first.id, *(run.id for run in others)}) == 5
    assert others[2].measured.without_text == "empty"


def test_of_an_earlier_attempt_counts_what_was_done_for_as_many_documents(make_dataset):
    asked = plan(make_dataset(queries=5, depth=3), 2)
    results = [
        QueryResult("q0", "done", scores=np.zeros(2)),
        QueryResult("q1", "done", scores=np.zeros(3)),
        QueryResult("q2", "failed", "no answer", scores=np.zeros(2)),
        QueryResult("q3", "done", scores=np.zeros(1)),
        QueryResult("elsewhere", "done", scores=np.zeros(2)),
    ]
    assert list(still_good(results, asked)) == ["q0"]


class Calls:
    """Answers with one call for a document, of which the first is noted, and fails on q5."""

    name = "calls"

    def __init__(self, calls=True):
        self.settings = {}
        self._calls = calls

    def prepare(self, corpus):
        pass

    def fingerprint(self):
        return ""

    def score(self, requests):
        return [self._score(request) for request in requests]

    def _score(self, request):
        size = len(request.documents)
        call = Call(0.0, 0.1, billed={"tokens": 3.0, "dollars": 0.5})
        calls = (replace(call, note="repaired: 1 missing"), *[call] * (size - 1))
        if request.query_id == "q5":
            return Scored.failed(size, "cut", (Call(0.0, 0.1, status=0, error="cut"),))
        return Scored(np.arange(float(size)), calls=calls if self._calls else ())


def test_calls_units_failures_and_notes_are_summed(make_dataset):
    found = usage(rerank(make_dataset(queries=6, depth=5), Calls()))
    assert found.calls == 5 * 5 + 1
    assert found.failed == 1
    assert found.billed == {"tokens": 75.0, "dollars": 12.5}
    assert found.noted == 5


def test_a_run_without_calls_has_no_usage(make_dataset):
    assert usage(rerank(make_dataset(queries=3), Calls(calls=False))) is None


def test_what_a_service_bills_as_no_number_is_not_added(make_dataset):
    run = rerank(make_dataset(queries=2, depth=2), Calls())
    billed = run.calls["billed"].tolist()
    run = replace(run, calls=run.calls.assign(billed=['{"tokens": NaN}', *billed[1:]]))
    assert usage(run).billed == {"tokens": 9.0, "dollars": 1.5}
