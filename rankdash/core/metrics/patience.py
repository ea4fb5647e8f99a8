"""Metrics that model a reader who may stop at any rank: RBP and ERR."""

from __future__ import annotations

import numpy as np

from rankdash.core.data.arrays import Floats, offsets_from, products_before
from rankdash.core.metrics.engine import MetricDefinition, Parameter, Relevance, within

_PERSISTENCE = Parameter(
    name="p",
    meaning="the chance that the reader goes on to the next document",
    default=0.8,
    low=0.0,
    high=1.0,
)


def _rank_biased_precision(relevance: Relevance, k: int | None, persistence: float) -> Floats:
    hits = relevance.hits
    inside = within(hits.rank, k)
    weight = (1.0 - persistence) * persistence ** (hits.rank[inside] - 1.0)
    return relevance.total(hits.query[inside], weight)


def _expected_reciprocal_rank(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    top = relevance.scale_top
    inside = within(relevance.rank, k)
    query = relevance.query[inside]
    # (2^label - 1) / 2^top, written so that labels of 2,000 stay finite.
    stops = np.exp2(relevance.label[inside] - top) - np.exp2(-top)
    offsets = offsets_from(np.bincount(query, minlength=len(relevance)))
    reaches = products_before(1.0 - stops, offsets)
    return relevance.total(query, reaches * stops / relevance.rank[inside])


DEFINITIONS = (
    MetricDefinition(
        name="rbp",
        title="RBP",
        meaning="The share of relevant documents that a patient reader sees; p is the chance of "
        "going on to the next document.",
        formula="(1 − p) Σ p^(i−1) over the relevant ranks i ≤ k; p = 0.8 unless given",
        latex=r"(1 - p) \sum_{i=1}^{k} g_i \, p^{i-1}",
        reference="Moffat and Zobel 2008, Rank-Biased Precision",
        note="A perfect order does not reach 1: that needs endless relevant documents.",
        perfect_is_top=False,
        parameter=_PERSISTENCE,
        compute=_rank_biased_precision,
    ),
    MetricDefinition(
        name="err",
        title="ERR",
        meaning="How soon a reader who stops when satisfied is expected to stop.",
        formula="Σ (1/i) · s_i · Π_(j<i) (1 − s_j) over ranks i ≤ k; s = (2^rel − 1) / 2^max, "
        "max the highest label of the set; ir_measures and gdeval use 4",
        latex=r"\sum_{i=1}^{k} \frac{s_i}{i} \prod_{j=1}^{i-1} (1 - s_j),"
        r" \quad s_i = \frac{2^{\mathrm{rel}_i} - 1}{2^{\mathrm{rel}_{\max}}}",
        reference="Chapelle et al. 2009, Expected Reciprocal Rank for Graded Relevance",
        note="A perfect order does not reach 1: no label satisfies for certain. Depends on the "
        "highest label of the whole set, or the one given in the conventions.",
        needs_grades=True,
        binary=False,
        perfect_is_top=False,
        compute=_expected_reciprocal_rank,
    ),
)
