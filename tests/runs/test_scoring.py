"""What a reranker is given and what its answers are taken for, a piece at a time."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from rankdash.rerankers import Call, Request, Scored
from rankdash.runs.plan import plan
from rankdash.runs.scoring import Asked, Meter, Requests, Scoring
from rankdash.store.score_cache import KeptScores
from tests.runs.clock import Clock


def asked_of(make_dataset, needs_text=True, rule="exclude", **made):
    dataset = make_dataset(**made)
    asked = plan(dataset, needs_text=needs_text, without_text=rule)
    return Requests(dataset, asked, needs_text)


@pytest.mark.parametrize(
    ("made", "needs_text", "rule", "said"),
    [
        ({}, True, "exclude", ""),
        ({"query_text": " "}, True, "exclude", "the query has no text"),
        ({"query_text": " "}, True, "empty", "the query has no text"),
        ({"query_text": " "}, False, "exclude", ""),
        ({"doc_text": {"d0": " "}}, True, "exclude", ""),
        ({"documents": 1, "depth": 1, "doc_text": {"d0": ""}}, True, "exclude",
         "document 'd0' has no text"),
        ({"doc_text": dict.fromkeys(["d0", "d1"], " ")}, True, "exclude",
         "2 documents have no text, such as "),
        ({"doc_text": dict.fromkeys(["d0", "d1"], " ")}, True, "empty", ""),
    ],
)  # fmt: skip
def test_why_a_query_cannot_be_put_to_what_reads_texts(make_dataset, made, needs_text, rule, said):
    shape = {"queries": 1, "documents": 2, "depth": 2}
    requests = asked_of(make_dataset, needs_text, rule, **{**shape, **made})
    found = requests.lacking("q0")
    first = requests.of("q0").doc_ids[0]
    assert found == (f"{said}{first!r}" if said.endswith(" ") else said)


@pytest.mark.parametrize(
    ("most", "queries", "documents"), [(2, [0, 3], 2), (3, [0, 2, 4], 3), (5, [0, 1, 2, 3, 4], 4)]
)
def test_texts_are_shown_evenly_spread_and_no_more_than_asked_for(
    make_dataset, most, queries, documents
):
    made = asked_of(make_dataset, queries=5, documents=8, depth=8)
    texts = made.texts(most)
    assert texts[: len(queries)] == [f"ask q{number}" for number in queries]
    assert len(texts) == len(queries) + documents
    assert len(set(texts)) == len(texts)
    assert len(made.texts(100)) == 5 + 8
    long = {"d0": "x" * 2000 + "y"}
    made = asked_of(make_dataset, queries=1, documents=1, depth=1, doc_text=long)
    assert made.texts(9) == ["ask q0", "x" * 2000]


def calls(*spans):
    """(start, end, seconds waited in between) of each."""
    return tuple(Call(start, end, retry_wait_s=waited) for start, end, waited in spans)


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        (Scored(np.ones(1)), 5.0),
        (Scored(np.ones(1), calls=calls((0, 5, 2))), 3.0),
        (Scored(np.ones(1), calls=calls((0, 2, 0), (2, 5, 1))), 4.0),
        # Both waited at once: no less than the longest took without its own waits.
        (Scored(np.ones(1), calls=calls((0, 5, 3), (0, 5, 4))), 2.0),
        (Scored(np.ones(1), index_seconds=0.5), 4.5),
        (Scored(np.ones(1), index_seconds=6.0), 0.0),
        (Scored.failed(1, "no"), math.nan),
    ],
)
def test_a_latency_has_no_waits_and_no_index_work_in_it_and_a_failure_none(
    make_dataset, answer, taken
):
    requests, clock = asked_of(make_dataset, queries=1, documents=1, depth=1), Clock()
    reranker = SimpleNamespace(score=lambda requests: clock.pass_ms(5000) or [answer])
    found = Scoring(reranker, requests, 1, True, clock, clock).alone("q0")
    assert found.latency_ms / 1000 == pytest.approx(taken, nan_ok=True)


def test_gaps_are_filled_in_order_and_what_was_kept_stays(make_dataset):
    kept = KeptScores(
        np.array([1.0, np.nan, 3.0, np.nan]),
        np.array([5, -1, 6, -1], dtype=np.int32),
        np.array([7, -1, 8, -1], dtype=np.int32),
    )
    requests = asked_of(make_dataset, queries=1, documents=4, depth=4)
    answer = Scored(np.array([9.0, 8.0]), np.array([1, 2]), None)
    reranker = SimpleNamespace(score=lambda requests: [answer])
    merged = Scoring(reranker, requests, 1, True, int, int, kept={"q0": kept}).alone("q0")
    assert merged.scores.tolist() == [1, 9, 3, 8]
    assert merged.read.tolist() == [5, 1, 6, 2]
    assert merged.full.tolist() == [7, -1, 8, -1]
    assert np.isnan(kept.scores[1]), "what was kept is not changed"


def test_a_meter_adds_what_was_answered_and_all_of_the_time():
    meter = Meter()
    three = Request("q", "ask", ["a", "b", "c"], ["x"] * 3)
    good = Scored(np.ones(3), np.array([1, 2, 3]), index_seconds=0.25)
    meter.add(Asked([three, three], [good, Scored.failed(3, "no")], 2.0, 1.5), 2)
    meter.add(Asked([three], [good], 1.0, 0.5), 1)
    assert (meter.pairs, meter.computed_tokens, meter.seconds) == (6, 12.0, 3.0)
    assert (meter.cpu_seconds, meter.index_seconds, meter.together) == (2.0, 0.5, 2)
    meter.add(Asked([three], [Scored(np.ones(3))], 1.0, 0.5), 1)
    assert (meter.pairs, math.isnan(meter.computed_tokens)) == (9, True)
