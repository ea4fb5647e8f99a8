"""Pairs of real sets with all of their labels."""

import numpy as np

from rankdash.analysis.labelling.label_pool import LabelPool, pool_of
from tests.sets import loaded


def real_pool(name: str) -> tuple[LabelPool, np.ndarray]:
    """The pool of the first stage and a reranking of a set, and the labels of all its pairs; those
    that nobody judged are 0."""
    found = loaded(name)
    run = next(run for run in found.runs if "by_title" in run.name or "minilm" in run.name)
    pool = pool_of({"first stage": found.dataset.candidates, "reranked": run.ranking}, 10)
    return pool, np.nan_to_num(pool.aligned(found.dataset.qrels))
