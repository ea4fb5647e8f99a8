"""What a reranker is given and what its answers are taken for, a piece at a time."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from rankdash.rerankers import Call, Request, Scored
from rankdash.runs import scoring
from rankdash.runs.plan import plan
from rankdash.runs.runner import FIRST_BLOCK, LARGEST_BLOCK, _Work
from rankdash.runs.scoring import Asked, Meter, Requests
from rankdash.store.score_cache import KeptScores


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
        ({"doc_text": dict.fromkeys(["d0", "d1"], " ")}, True, "exclude",
         "2 documents have no text, such as "),
        ({"doc_text": dict.fromkeys(["d0", "d1"], " ")}, True, "empty", ""),
    ],
)  # fmt: skip
def test_why_a_query_cannot_be_put_to_what_reads_texts(make_dataset, made, needs_text, rule, said):
    requests = asked_of(make_dataset, needs_text, rule, queries=1, documents=2, depth=2, **made)
    found = requests.lacking("q0")
    first = requests.of("q0").doc_ids[0]
    assert found == (f"{said}{first!r}" if said.endswith(" ") else said)


def test_a_single_document_without_a_text_is_named(make_dataset):
    made = asked_of(make_dataset, queries=1, documents=1, depth=1, doc_text={"d0": ""})
    assert made.lacking("q0") == "document 'd0' has no text"


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


def test_of_a_long_text_the_beginning_is_shown(make_dataset):
    long = {"d0": "x" * 2000 + "y"}
    made = asked_of(make_dataset, queries=1, documents=1, depth=1, doc_text=long)
    assert made.texts(9) == ["ask q0", "x" * 2000]


def calls(*spans):
    """(start, end, seconds waited in between) of each."""
    return [Call(start, end, retry_wait_s=waited) for start, end, waited in spans]


@pytest.mark.parametrize(
    ("seconds", "spans", "left"),
    [
        (5.0, [], 5.0),
        (5.0, [(0, 5, 2)], 3.0),
        (5.0, [(0, 2, 0), (2, 5, 1)], 4.0),
        # Both waited at once: no less than the longest took without its own waits.
        (5.0, [(0, 5, 3), (0, 5, 4)], 2.0),
    ],
)
def test_waits_before_another_attempt_are_no_time_of_an_answer(seconds, spans, left):
    assert scoring._without_waits(seconds, calls(*spans)) == left


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        (Scored(np.ones(1), index_seconds=0.5), 1500.0),
        (Scored(np.ones(1), index_seconds=3.0), 0.0),
        (Scored.failed(1, "no"), math.nan),
    ],
)
def test_a_latency_has_no_index_work_in_it_and_a_failure_none(answer, taken):
    asked = Asked([], [answer], 2.0, 1.0)
    assert scoring._latency_ms(asked) == pytest.approx(taken, nan_ok=True)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Scored(np.array([1.0, 2.0])), ""),
        (Scored(np.array([1.0])), "scores of the reranker: 1, documents: 2"),
        (Scored(np.ones((2, 1))), "scores of the reranker: 2, documents: 2"),
        (Scored(np.array([1.0, np.nan])), "documents scored: 1 of 2"),
        (Scored(np.array([np.inf, -np.inf])), "documents scored: 0 of 2"),
        (Scored.failed(2, "x" * 600), "x" * 500),
        (Scored.failed(2, "Bearer sk-secret-0815-4711"), "Bearer •••"),
    ],
)
def test_an_answer_is_usable_or_fails_in_words(answer, said):
    found = scoring._usable(answer, 2)
    assert found.error == said
    assert (found is answer) == (said == "")
    assert np.isfinite(found.scores).all() == (said == "")
    assert len(found.scores) == 2


def test_gaps_are_filled_in_order_and_what_was_kept_stays():
    kept = KeptScores(
        np.array([1.0, np.nan, 3.0, np.nan]),
        np.array([5, -1, 6, -1], dtype=np.int32),
        np.array([7, -1, 8, -1], dtype=np.int32),
    )
    found = scoring._found(Scored(np.array([9.0, 8.0]), np.array([1, 2]), None))
    merged = scoring._merged(kept, found)
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


@pytest.mark.parametrize(
    ("rate", "most", "least", "queries", "pairs"),
    [
        (math.inf, 4, 1, 4, 20),
        (math.inf, 99, 1, 8, 40),
        (12.0, 8, 1, 2, 10),
        (15.0, 8, 1, 3, 15),
        (1.0, 8, 1, 1, 5),
        (1.0, 8, 3, 3, 15),
        (math.inf, 2, 3, 3, 15),
    ],
)
def test_a_block_takes_about_a_second_and_keeps_the_requests_under_way(
    rate, most, least, queries, pairs
):
    work = _Work.__new__(_Work)
    work._least, work._scoring = least, SimpleNamespace(missing=lambda query: 5)
    names = [f"q{number}" for number in range(8)]
    assert work._block(names, rate, most) == (names[:queries], pairs)


@pytest.mark.parametrize(
    ("pairs", "seconds", "rate"), [(10, 4.0, 2.5), (0, 4.0, math.inf), (10, 0.0, math.inf)]
)
def test_the_first_block_goes_by_the_pace_of_what_was_timed(pairs, seconds, rate):
    work = _Work.__new__(_Work)
    work._scoring = SimpleNamespace(serial=Meter(pairs=pairs, seconds=seconds))
    assert work._first_rate() == rate


def test_blocks_of_what_costs_no_time_double_up_to_the_largest():
    sizes = []
    work = _Work.__new__(_Work)
    work._least, work._cancelled, work._clock = 1, lambda: False, lambda: 0
    work._cache, work._fingerprint = None, ""
    work._todo = SimpleNamespace(together=[f"q{number}" for number in range(4000)])
    work._scoring = SimpleNamespace(
        missing=lambda query: 1, serial=Meter(), fresh=[],
        together=lambda block: sizes.append(len(block)) or [],
    )  # fmt: skip
    assert list(work._in_blocks()) == [[]] * len(sizes)
    assert sizes[:3] == [FIRST_BLOCK, 20, 40]
    assert max(sizes) == LARGEST_BLOCK == 1024
    assert sum(sizes) == 4000
