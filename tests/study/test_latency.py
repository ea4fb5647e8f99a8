"""Latencies of a study, in cases that `made_up` of `test_sample` lacks."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study import latency
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.latency import busy_notes
from tests.study.builders import data_of, study_on, timed

QUERIES = [f"q{n:02}" for n in range(12)]
DATA = data_of(dict.fromkeys(QUERIES, "ab"), {query: {"a": 1.0} for query in QUERIES}, "ab")
USUAL = [10.0 + n for n in range(12)]


def study_of(ms: list[float] = USUAL, **columns: list[float]) -> Study:
    """Return systems "one" with these latencies, "two" with twice as long ones, and "untimed"."""
    runs = []
    for name, factor in (("two", 2.0), ("untimed", math.nan), ("one", 1.0)):
        made = run_from_ranking(name, DATA.id, DATA.candidates, f"{name}.trec")
        runs.append(replace(timed(made, factor * np.array(ms), **columns), id=name))
    return study_on(DATA, *runs)


def test_without_times_or_tokens_there_is_nothing():
    study = study_of()
    assert list(latency.timed(study)) == ["two", "one"]
    assert latency.times(study, "untimed").documents == (0, 0)
    assert latency.times(study, FIRST_STAGE) is latency.summary(study, "untimed") is None
    points, line = latency.cloud(study, FIRST_STAGE, "tokens")
    assert (len(points), line) == (0, None)
    assert latency.ratio(study, "one", "two").ratio == pytest.approx(2.0)
    assert latency.ratio(study, FIRST_STAGE, "one") is latency.ratio(study, "one", FIRST_STAGE)
    assert latency.token_lengths(study, "one") is None


def test_the_times_of_a_fetched_first_stage_are_those_of_its_own_data_set():
    parts, medians = {}, []

    def cache(key, make):
        parts[key] = parts[key] if key in parts else make()
        return parts[key]

    for factor in (1.0, 3.0):
        data = DATA.named("data")
        made = run_from_ranking("", DATA.id, DATA.candidates, "")
        data.timings = timed(made, factor * np.array(USUAL)).queries
        study = study_on(data, cache=cache)
        medians.append(latency.times(study, FIRST_STAGE).summary.p50)
    assert medians == [15.5, 46.5]


def test_documents_are_counted_of_the_queries_that_were_timed():
    study = study_of([math.nan, math.nan, *USUAL[2:]], pairs=[1.0, 99.0, *range(4, 13), math.nan])
    assert latency.times(study, "one").documents == (4, 12)
    points, line = latency.cloud(study, "one", "documents")
    assert (len(points), line) == (9, None)


def measured(*rows: tuple[str, str, int, float, float]) -> Study:
    """Return a study of runs: (name, kind, depth, documents per query, ms)."""
    base = replace(study_of().run("one"), settings={"model": "m"})
    return study_on(DATA, *(
        replace(timed(base, ms, pairs=documents), id=name, name=name, reranker=kind, depth=depth)
        for name, kind, depth, documents, ms in rows
    ))  # fmt: skip


def test_a_deeper_run_that_was_measured_faster_is_pointed_out():
    """p95 of 28, 59 and 28 ms for 20, 50 and 100 documents."""
    of = measured(
        ("d20", "cross-encoder", 20, 20.0, 28.0), ("d50", "cross-encoder", 50, 50.0, 59.0),
        ("d100", "cross-encoder", 100, 100.0, 28.0), ("other", "bi-encoder", 100, 100.0, 1.0),
    )  # fmt: skip
    found = [(each.deeper, each.shallower) for each in latency.inversions(of)]
    assert found == [("d100", "d50")]
    [said] = busy_notes(of)
    assert said.startswith("d100 reranks 100 documents and was measured faster than d50 with 50")
    assert latency.inversions(study_of()) == ()
    # A run whose queries failed, and its retry: of one depth, 45 documents per query against 46.
    retried = measured(("first", "bm25", 50, 45.0, 59.0), ("retried", "bm25", 50, 46.0, 28.0))
    assert latency.inversions(retried) == ()
