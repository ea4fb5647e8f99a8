"""What services charged for a run, summed from its calls."""

from dataclasses import replace

import numpy as np

from rankdash.rerankers import Call, Scored
from rankdash.runs.runner import rerank
from rankdash.runs.usage import usage


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
