"""What is said of times that are not a run's own, or not of this machine."""

from dataclasses import replace

import numpy as np
import pytest

from rankdash.ranking.ranking import SHIPPED_WITH, Ranking, Run
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.runs.combining import KIND as FUSION
from rankdash.words.latency import added, where_measured


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
