"""Pairs of real sets with all of their labels."""

from dataclasses import replace

import numpy as np

from rankdash.core.sampling.label_plan import Additive, LabelPlan, LabelPool, pool_of
from tests.sets import loaded


def real_pool(name: str, reranking: str = "") -> tuple[LabelPool, np.ndarray]:
    """Return the pool of the first stage and a reranking of a set, and the labels of all its pairs,
    0 for pairs without one. reranking: a part of its name."""
    found = loaded(name)
    known = (reranking,) if reranking else ("by_title", "minilm")
    run = next(run for run in found.runs if any(each in run.name for each in known))
    pool = pool_of({"first stage": found.dataset.candidates, "reranked": run.ranking}, 10)
    return pool, np.nan_to_num(pool.aligned(found.dataset.qrels))


def without_difference(pool: LabelPool, metric: Additive, labels) -> LabelPool:
    """Return the pool with the two systems swapped in some queries: of 2,000 random choices the one
    with the smallest difference."""
    plan = LabelPlan.make(pool, metric, seed=0)
    own = np.bincount(pool.query, plan.weights[0] * metric.gains(labels))
    swaps = np.random.default_rng(7).choice([-1.0, 1.0], (2_000, len(own)))
    best = swaps[np.argmin(np.abs(swaps @ own))]
    return replace(pool, ranks=np.where(best[pool.query] < 0, pool.ranks[::-1], pool.ranks))
