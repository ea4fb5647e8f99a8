"""What is said of times that are not a run's own, or not of this machine."""

from dataclasses import replace

import numpy as np
import pytest

from rankdash.analysis.latency import Apart
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import SHIPPED_WITH, Ranking, Run
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.runs.combining import KIND as FUSION
from rankdash.words.latency import added, left_out_of_times, where_measured


def run(reranker: str, **changes: object) -> Run:
    ranking = Ranking.from_lists([("q", ["a", "b"], np.array([2.0, 1.0]))])
    made = run_from_ranking("r", "data", ranking, "r.trec")
    return replace(made, reranker=reranker, **changes)


PARTS = {"part_ids": "one, first stage, two"}
SHIPPED = {SHIPPED_WITH: "sample", "cpu": "AMD EPYC"}


@pytest.mark.parametrize(
    ("reranker", "settings", "machine", "said", "short"),
    [
        (FUSION, PARTS, {}, "the sums of the times of its parts, one asked after the other",
         "sum of its parts"),
        (FUSION, PARTS, {SHIPPED_WITH: "sample"},
         "shipped with the sample: the sums of the times of its parts", "sum of its parts"),
        # Of the first stage alone, and so of nothing that takes time.
        (FUSION, {"part_ids": "first stage, first stage"}, {}, "", ""),
        ("cascade", {}, {}, "those of both stages together", ""),
        ("bi-encoder", {}, {}, "", ""),
    ],
)  # fmt: skip
def test_the_times_of_a_fused_run_are_called_sums_whoever_made_it(
    reranker, settings, machine, said, short
):
    made = run(reranker, settings=settings, machine=machine)
    assert (where_measured(made), added(made)) == (said, short)


def test_shipped_times_are_of_another_machine():
    shipped = run("bi-encoder", machine=SHIPPED, created="2026-11-21T06:14:49+00:00")
    assert where_measured(shipped).startswith("shipped with the sample: measured on AMD EPYC, ")
    assert added(None) == ""


@pytest.mark.parametrize(
    ("lost", "index", "said"),
    [
        ({}, 0.0, ""),
        ({}, 5.0, "5.0 s of preparation, such as embedding documents"),
        ({"failed": 1, "untimed": 2}, 0.0, "1 failed query; 2 queries scored in batches or from "
         "the cache"),
        ({"timed_out": 2, "limit_ms": 2000.0}, 0.0, "2 queries given up after 2.0 s, which count "
         "as over the target"),
        ({"retried": 1, "retry_wait_ms": 3000.0}, 0.0, "3.0 s of waiting before retries, for 1 "
         "query"),
        ({"skipped": 1}, 0.0, "1 query that was not requested"),
    ],
)  # fmt: skip
def test_what_is_in_no_latency_is_named_and_counted(lost, index, said):
    usual = dict.fromkeys(
        ("timed", "untimed", "failed", "timed_out", "skipped", "retried", "retry_wait_ms",
         "cached_pairs"), 0,
    )  # fmt: skip
    apart = Apart(**{**usual, **lost})
    assert left_out_of_times(apart, Measured(index_seconds=index)) == said
    assert (left_out_of_times(apart, None) == said) is not bool(index)
