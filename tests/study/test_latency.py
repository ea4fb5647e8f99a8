"""What the latencies of a study are of: which queries, which system, which level."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rankdash.analysis.latency import summarize
from rankdash.ranking.ranking import Reading
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study import latency
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE
from rankdash.words.latency import busy_notes
from tests.study.builders import data_of, study_on, timed

QUERIES = [f"q{n:02}" for n in range(12)]
DATA = data_of(dict.fromkeys(QUERIES, "ab"), {query: {"a": 1.0} for query in QUERIES}, "ab")
USUAL = [10.0 + n for n in range(12)]


def study_of(ms: list[float] = USUAL, **columns: list[float]) -> Study:
    """Systems "one" with these latencies, "two" that takes twice as long, and "untimed"."""
    runs = []
    for name, factor in (("two", 2.0), ("untimed", math.nan), ("one", 1.0)):
        made = run_from_ranking(name, DATA.id, DATA.candidates, f"{name}.trec")
        runs.append(replace(timed(made, factor * np.array(ms), **columns), id=name))
    return study_on(DATA, *runs)


def test_latencies_are_those_of_systems_that_were_timed_in_the_order_of_the_study():
    study = study_of()
    assert list(latency.timed(study)) == ["two", "one"]
    assert latency.times(study, FIRST_STAGE) is None
    assert latency.times(study, "untimed").summary.n == 0
    found = {each: latency.summary(study, each) for each in (FIRST_STAGE, "untimed", "one")}
    assert found[FIRST_STAGE] is found["untimed"] is None
    assert found["one"].n == 12


def test_documents_are_counted_of_the_queries_that_were_timed():
    ms = [math.nan, math.nan, *USUAL[2:]]
    study = study_of(ms, pairs=[1.0, 99.0, *range(4, 13), math.nan])
    found = latency.times(study, "one")
    assert found.documents == (4, 12)
    assert found.ordered.tolist() == ms[2:]
    assert latency.times(study, "untimed").documents == (0, 0)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_latencies_have_the_level_of_the_study(level):
    study = study_of(pairs=list(range(12)))
    study = replace(study, statistics=replace(study.statistics, level=level))
    rows = study.run("one").queries
    assert latency.summary(study, "one").p50_interval == summarize(rows, level).p50_interval
    assert summarize(rows, 0.5).p50_interval != summarize(rows, 0.95).p50_interval
    _points, line = latency.cloud(study, "one", "documents")
    assert line.slope == pytest.approx(1.0)


def test_a_cloud_is_of_timed_queries_whose_documents_or_tokens_are_known():
    tokens = [*(100.0 * n for n in range(11)), math.nan]
    study = study_of([math.nan, *USUAL[1:]], pairs=[*map(float, range(12))], tokens=tokens)
    for against, unit, last in (("documents", 1.0, 12), ("tokens", 100.0, 11)):
        points, line = latency.cloud(study, "one", against)
        assert points.to_numpy().tolist() == [[unit * n, 10.0 + n] for n in range(1, last)]
        assert (line.n, line.slope) == (last - 1, pytest.approx(1 / unit))
    points, line = latency.cloud(study, FIRST_STAGE, "tokens")
    assert (len(points), line) == (0, None)


def test_a_ratio_is_of_the_second_system_to_the_first():
    study = study_of()
    found = latency.ratio(study, "one", "two")
    assert (found.ratio, found.n) == (pytest.approx(2.0), 12)
    assert latency.ratio(study, "two", "one").ratio == pytest.approx(0.5)
    assert latency.ratio(study, FIRST_STAGE, "one") is None
    assert latency.ratio(study, "one", FIRST_STAGE) is None


def test_lengths_in_tokens_are_of_what_the_system_read():
    study = study_of()
    assert latency.token_lengths(study, FIRST_STAGE) is latency.token_lengths(study, "one") is None
    read = np.array([10, 20] * 12, dtype=np.int32)
    reading = Reading(read=read, full=read + np.array([0, 5] * 12, dtype=np.int32))
    found = latency.token_lengths(study_on(DATA, replace(study.run("one"), reading=reading)), "one")
    assert (found.pairs, found.cut, found.limit) == (24, 12, 20)


def measured(*rows: tuple[str, str, int, float, float]) -> Study:
    """Runs: (name, kind, depth, documents per query, ms)."""
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
