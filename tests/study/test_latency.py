"""What the latencies of a study are of: which queries, which system, which level."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.latency import summarize
from rankdash.dataset import Dataset
from rankdash.ranking.ranking import Ranking, Reading
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study import latency
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of
from rankdash.words.latency import busy_notes

QUERIES = [f"q{n:02}" for n in range(12)]


def study_of(**columns: list[float]) -> Study:
    """Systems "one" with these latencies, "two" that takes twice as long, and "untimed"."""
    lists = [(query, ["a", "b"], [2.0, 1.0]) for query in QUERIES]
    ranking = Ranking.from_lists(lists)
    data = Dataset(
        "set",
        pd.DataFrame({"query_id": QUERIES, "text": QUERIES}),
        pd.DataFrame({"doc_id": ["a", "b"], "title": "", "text": "text"}),
        pd.DataFrame({"query_id": QUERIES, "doc_id": "a", "label": 1.0}),
        ranking,
    )
    ms = np.array(columns.pop("latency_ms", [10.0 + n for n in range(12)]))
    runs = []
    for name, times in (("one", ms), ("untimed", ms * math.nan), ("two", 2 * ms)):
        made = run_from_ranking(name, data.id, ranking, f"{name}.trec")
        table = made.queries.assign(latency_ms=times, **columns)
        runs.append(replace(made, id=name, queries=table))
    return Study(data, systems_of(data, runs), FIRST_STAGE, ("two", "untimed", "one"))


def test_latencies_are_those_of_systems_that_were_timed_in_the_order_of_the_study():
    study = study_of()
    assert list(latency.timed(study)) == ["two", "one"]
    assert latency.times(study, FIRST_STAGE) is None
    assert latency.times(study, "untimed").summary.n == 0
    assert latency.summary(study, "untimed") is None
    assert latency.summary(study, FIRST_STAGE) is None
    assert latency.summary(study, "one").n == 12


def test_documents_are_counted_of_the_queries_that_were_timed():
    ms = [math.nan, math.nan, *(10.0 + n for n in range(10))]
    study = study_of(latency_ms=ms, pairs=[1.0, 99.0, *range(4, 13), math.nan])
    found = latency.times(study, "one")
    assert found.documents == (4, 12)
    assert found.ordered.tolist() == ms[2:]
    assert latency.times(study, "untimed").documents == (0, 0)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_of_latencies_have_the_level_of_the_study(level):
    study = study_of()
    study = replace(study, statistics=replace(study.statistics, level=level))
    table = study.run("one").queries
    assert latency.summary(study, "one").p50_interval == summarize(table, level).p50_interval
    assert summarize(table, 0.5).p50_interval != summarize(table, 0.95).p50_interval
    _points, line = latency.cloud(
        replace(study_of(pairs=list(range(12))), statistics=study.statistics), "one", "documents"
    )
    assert line.slope == pytest.approx(1.0)


def test_a_cloud_is_of_timed_queries_whose_documents_or_tokens_are_known():
    ms = [math.nan, *(10.0 + n for n in range(1, 12))]
    study = study_of(
        latency_ms=ms,
        pairs=[float(n) for n in range(12)],
        tokens=[*(100.0 * n for n in range(11)), math.nan],
    )
    points, line = latency.cloud(study, "one", "documents")
    assert points.to_numpy().tolist() == [[float(n), 10.0 + n] for n in range(1, 12)]
    assert line.n == 11
    points, line = latency.cloud(study, "one", "tokens")
    assert points.to_numpy().tolist() == [[100.0 * n, 10.0 + n] for n in range(1, 11)]
    assert line.slope == pytest.approx(0.01)
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
    assert latency.token_lengths(study, FIRST_STAGE) is None
    assert latency.token_lengths(study, "one") is None
    read = np.array([10, 20] * 12, dtype=np.int32)
    reading = Reading(read=read, full=read + np.array([0, 5] * 12, dtype=np.int32))
    run = replace(study.run("one"), reading=reading)
    read_by = replace(study, systems=systems_of(study.dataset, [run]), challengers=("one",))
    found = latency.token_lengths(read_by, "one")
    assert (found.pairs, found.cut, found.limit) == (24, 12, 20)


def test_a_deeper_run_that_was_measured_faster_is_pointed_out():
    """p95 of 28, 59 and 28 ms for 20, 50 and 100 documents."""
    study = study_of()
    base = study.run("one")
    runs = [
        replace(base, id=name, name=name, reranker=kind, depth=documents, settings={"model": "m"},
                queries=base.queries.assign(pairs=float(documents), latency_ms=ms))
        for name, kind, documents, ms in (
            ("d20", "cross-encoder", 20, 28.0), ("d50", "cross-encoder", 50, 59.0),
            ("d100", "cross-encoder", 100, 28.0), ("other", "bi-encoder", 100, 1.0),
        )
    ]  # fmt: skip
    names = tuple(each.id for each in runs)
    of = Study(study.dataset, systems_of(study.dataset, runs), FIRST_STAGE, names)
    found = [(each.deeper, each.shallower) for each in latency.inversions(of)]
    assert found == [("d100", "d50")]
    [said] = busy_notes(of)
    assert said.startswith("d100 reranks 100 documents and was measured faster than d50 with 50")
    assert latency.inversions(study) == ()


def test_runs_of_one_depth_are_not_compared_by_how_many_documents_they_had():
    """A run whose queries failed, and its retry: 45 documents per query against 46."""
    study = study_of()
    base = replace(study.run("one"), depth=50, settings={"model": "m"})
    runs = [
        replace(base, id=name, name=name,
                queries=base.queries.assign(pairs=documents, latency_ms=ms))
        for name, documents, ms in (("first", 45.0, 59.0), ("retried", 46.0, 28.0))
    ]  # fmt: skip
    of = Study(study.dataset, systems_of(study.dataset, runs), FIRST_STAGE, ("first", "retried"))
    assert latency.inversions(of) == ()
