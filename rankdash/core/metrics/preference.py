"""Binary preference: a metric that looks at labelled documents only."""

from __future__ import annotations

import numpy as np

from rankdash.core.data.arrays import Floats
from rankdash.core.metrics.engine import MetricDefinition, Relevance, ratio, within


def _bpref(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    hits = relevance.hits
    count = relevance.relevant_count
    bound = np.minimum(relevance.judged.pool_size - count, count)
    worse_above = np.minimum(hits.judged_rank - hits.ordinal, count[hits.query])
    kept = 1.0 - ratio(worse_above, bound[hits.query])
    inside = within(hits.rank, k)
    return ratio(relevance.total(hits.query[inside], kept[inside]), count)


DEFINITIONS = (
    MetricDefinition(
        name="bpref",
        title="bpref",
        meaning="How rarely a document labelled not relevant ranks above a relevant one; "
        "documents without a label change nothing.",
        formula="(1/R) Σ 1 − min(n_i, R) / min(N, R) over the relevant ranks i ≤ k; n_i documents "
        "labelled not relevant stand above i, N are in the labels",
        latex=r"\frac{1}{R} \sum_{i=1}^{k} g_i \left(1 - \frac{\min(n_i, R)}{\min(N, R)}\right)",
        reference="Buckley and Voorhees 2004, Retrieval Evaluation with Incomplete Information; "
        "as in trec_eval",
        compute=_bpref,
        skips_unlabelled=True,
    ),
)
