"""Reciprocal rank of the first relevant document."""

from __future__ import annotations

import numpy as np

from rankdash.core.data.arrays import Floats
from rankdash.core.metrics.engine import MetricDefinition, Relevance, within


def _reciprocal_rank(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    hits = relevance.hits
    nothing = 0.0 if relevance.conventions.mrr_none == "zero" else np.nan
    values = np.full(len(relevance), nothing)
    first = (hits.ordinal == 1) & within(hits.rank, k)
    values[hits.query[first]] = 1.0 / hits.rank[first]
    return values


DEFINITIONS = (
    MetricDefinition(
        name="mrr",
        title="MRR",
        meaning="How near the top the first relevant document is.",
        formula="1 / rank of the first relevant document within k, else 0",
        latex=r"\max_{i \le k} \frac{g_i}{i}",
        reference="Voorhees 1999, The TREC-8 Question Answering Track Report",
        compute=_reciprocal_rank,
        aliases=("rr", "recip_rank", "reciprocal_rank"),
    ),
)
