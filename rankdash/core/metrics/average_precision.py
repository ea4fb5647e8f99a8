"""Average precision, binary and graded."""

from __future__ import annotations

import numpy as np

from rankdash.core.data.arrays import Floats
from rankdash.core.metrics.engine import MetricDefinition, Relevance, ratio, within


def _divisor(relevance: Relevance, k: int | None) -> Floats:
    count = relevance.relevant_count
    if k is not None and relevance.conventions.ap_norm == "min(R,k)":
        return np.minimum(count, k)
    return count


def _binary_sum(relevance: Relevance, k: int | None) -> Floats:
    hits = relevance.hits
    inside = within(hits.rank, k)
    weights = relevance.kept(
        "precision at hits", lambda: hits.ordinal / hits.rank, of_threshold=True
    )
    return relevance.total(hits.query[inside], weights[inside])


def _graded_sum(relevance: Relevance, k: int | None) -> Floats:
    hits = relevance.hits
    inside = within(hits.rank, k)
    weights = hits.ordinal[inside] / hits.rank[inside] * hits.label[inside]
    return relevance.total(hits.query[inside], weights)


def _average_precision(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    return ratio(_binary_sum(relevance, k), _divisor(relevance, k))


def _graded(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    return ratio(_graded_sum(relevance, k), _divisor(relevance, k) * relevance.scale_top)


def _graded_normalised(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    labels = relevance.judged.pool_label
    counted = labels >= relevance.conventions.threshold
    counted &= relevance.pool_rank <= _divisor(relevance, k)[relevance.pool_query]
    best = relevance.total(relevance.pool_query[counted], labels[counted])
    return ratio(_graded_sum(relevance, k), best)


DEFINITIONS = (
    MetricDefinition(
        name="map",
        title="MAP",
        meaning="Precision averaged over the ranks of all relevant documents: those not found "
        "count 0.",
        formula="(1/R) Σ P@i over the relevant ranks i ≤ k",
        latex=r"\frac{1}{R} \sum_{i=1}^{k} g_i P_i",
        reference="Buckley and Voorhees 2005, Retrieval System Evaluation; as in trec_eval",
        note="Divided by R, also at a cutoff below R, unless the conventions say min(R,k).",
        compute=_average_precision,
        aliases=("ap", "map_cut", "average_precision"),
    ),
    MetricDefinition(
        name="map_graded",
        title="MAP (graded)",
        meaning="MAP in which a document counts by its grade as a share of the highest grade.",
        formula="(1/R) Σ P@i · rel_i/max_rel over the relevant ranks i ≤ k; max_rel is the "
        "highest label of the set",
        latex=r"\frac{1}{R} \sum_{i=1}^{k} g_i P_i \frac{\mathrm{rel}_i}{\mathrm{rel}_{\max}}",
        reference="The MedCorpus variant of average precision",
        note="A perfect order does not reach 1 if a relevant grade is below the highest label: "
        "with a highest label of 3, [3,2,1] and [1,2,3] both give 0.667. Below an irrelevant "
        "document, moving a higher grade above a lower one lowers it. Depends on the highest label "
        "of the whole set, or the one given in the conventions.",
        needs_grades=True,
        perfect_is_top=False,
        compute=_graded,
        aliases=("ap_graded", "graded_map"),
    ),
    MetricDefinition(
        name="map_graded_norm",
        title="MAP (graded, normalised)",
        meaning="Graded MAP divided by the best it could be, so that a perfect order is 1.",
        formula="Σ P@i · rel_i/max_rel over the relevant ranks i ≤ k, divided by Σ rel/max_rel "
        "over all relevant documents",
        latex=r"\frac{\sum_{i=1}^{k} g_i P_i \, \mathrm{rel}_i}{\sum_{i=1}^{R} \mathrm{rel}^{*}_i}",
        reference="The MedCorpus variant of average precision, normalised",
        note="Any order that puts all relevant documents first is 1, whatever their grades. Below "
        "an irrelevant document, moving a higher grade above a lower one lowers it.",
        needs_grades=True,
        compute=_graded_normalised,
        aliases=("ap_graded_norm",),
    ),
)
