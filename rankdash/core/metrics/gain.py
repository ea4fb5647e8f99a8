"""Discounted cumulative gain: NDCG in the three forms that are in use, and the sums themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.metrics.engine import MetricDefinition, Relevance, Terms, within


@dataclass(frozen=True)
class GainForm:
    """What a label is worth, and how that fades with the rank.

    gain: (labels, highest label of their query) → worth, up to a factor of the query.
    discount: ranks from 1 → divisor.
    """

    gain: Callable[[Floats, Floats], Floats]
    discount: Callable[[Integers], Floats]


def _linear(labels: Floats, top: Floats) -> Floats:
    return labels


def _exponential(labels: Floats, top: Floats) -> Floats:
    # (2^label - 1) / 2^top: the factor leaves NDCG as it is and keeps labels of 2,000 finite.
    gain: Floats = np.exp2(labels - top) - np.exp2(-top)
    return gain


def _log_discount(rank: Integers) -> Floats:
    discount: Floats = np.log2(rank + 1.0)
    return discount


def _late_log_discount(rank: Integers) -> Floats:
    return np.maximum(np.log2(rank), 1.0)


LINEAR = GainForm(_linear, _log_discount)
EXPONENTIAL = GainForm(_exponential, _log_discount)
JARVELIN_KEKALAINEN = GainForm(_linear, _late_log_discount)


def _ranked_weights(relevance: Relevance, form: GainForm) -> Floats:
    """(J,) the discounted gain of each position, up to the factor of its query."""
    return relevance.kept(
        (form, "ranked"),
        lambda: _weights(relevance, form, relevance.query, relevance.rank, relevance.label),
    )


def _best_sum(relevance: Relevance, form: GainForm, k: int | None) -> Floats:
    """(Q,) the highest that any order of all labelled documents could have within k, up to the
    factor."""
    return relevance.kept((form, "ideal sum", k), lambda: _ideal_sum(relevance, form, k))


def _ideal_sum(relevance: Relevance, form: GainForm, k: int | None) -> Floats:
    query, rank = relevance.pool_query, relevance.pool_rank
    weights = relevance.kept(
        (form, "ideal"),
        lambda: _weights(relevance, form, query, rank, relevance.judged.pool_label),
    )
    inside = within(rank, k)
    return relevance.total(query[inside], weights[inside])


def _weights(
    relevance: Relevance, form: GainForm, query: Integers, rank: Integers, label: Floats
) -> Floats:
    """What each label adds to the sum of its query, at any cutoff that it is within."""
    return form.gain(label, relevance.top_label[query]) / form.discount(rank)


def _normalised(form: GainForm) -> Callable[[Relevance, int | None, float], Terms]:
    def ndcg(relevance: Relevance, k: int | None, parameter: float) -> Terms:
        best = _best_sum(relevance, form, k)
        return Terms(_ranked_weights(relevance, form), best, of_hits=False)

    return ndcg


def _sum(form: GainForm) -> Callable[[Relevance, int | None, float], Terms]:
    def dcg(relevance: Relevance, k: int | None, parameter: float) -> Terms:
        return Terms(_raw_weights(relevance, form), of_hits=False)

    return dcg


def _raw_weights(relevance: Relevance, form: GainForm) -> Floats:
    """(J,) the discounted gain of each position, without the factor of its query."""

    def made() -> Floats:
        # Beyond 2^1023 there is no number: such a query has no value.
        with np.errstate(over="ignore"):
            weights = raw_gain(form, relevance.label) / form.discount(relevance.rank)
        return np.where(np.isfinite(weights), weights, np.nan)

    return relevance.kept((form, "raw"), made)


def raw_gain(form: GainForm, labels: Floats) -> Floats:
    """(n,) what labels are worth: rel, or 2^rel - 1."""
    return form.gain(labels, np.zeros(1))


_SUM_NOTE = (
    "Not divided by the best possible sum: there is no highest value, and a query with more "
    "relevant documents weighs more."
)
_IDEAL = "over the same sum for the best order of all labelled documents, cut at k"

DEFINITIONS = (
    MetricDefinition(
        name="ndcg",
        title="NDCG",
        meaning="How close the order is to the best possible one, where high grades and top ranks "
        "weigh most.",
        formula=f"Σ rel_i / log2(i+1), {_IDEAL}",
        reference="Järvelin and Kekäläinen 2002, with the log2(i+1) discount; as in trec_eval",
        latex=r"\frac{\sum_{i=1}^{k} \mathrm{rel}_i / \log_2(i+1)}"
        r"{\sum_{i=1}^{k} \mathrm{rel}^{*}_i / \log_2(i+1)}",
        note="Linear gain: a label of 3 is worth three times a label of 1. The three forms of NDCG "
        "differ: labels 3, 1, 2, 0, 0 in rank order give 0.973 with linear gain (ndcg), 0.972 with "
        "exponential gain (ndcg_exp) and 0.935 in the 2002 form (ndcg_jk).",
        needs_grades=True,
        binary=False,
        terms=_normalised(LINEAR),
        aliases=("ndcg_cut", "ndcg_linear"),
        dcg="log2",
    ),
    MetricDefinition(
        name="ndcg_exp",
        title="NDCG (exponential gain)",
        meaning="NDCG in which each grade is worth about twice the one below.",
        formula=f"Σ (2^rel_i − 1) / log2(i+1), {_IDEAL}",
        reference="Burges et al. 2005, Learning to Rank using Gradient Descent",
        latex=r"\frac{\sum_{i=1}^{k} (2^{\mathrm{rel}_i} - 1) / \log_2(i+1)}"
        r"{\sum_{i=1}^{k} (2^{\mathrm{rel}^{*}_i} - 1) / \log_2(i+1)}",
        note="Not comparable with linear NDCG, except on 0/1 labels, where they are the same.",
        needs_grades=True,
        binary=False,
        terms=_normalised(EXPONENTIAL),
        aliases=("ndcg_burges", "ndcg_exponential"),
        dcg="exp-log2",
    ),
    MetricDefinition(
        name="ndcg_jk",
        title="NDCG (2002 form)",
        meaning="NDCG in which the first two ranks weigh the same.",
        formula=f"rel_1 + Σ_(i≥2) rel_i / log2 i, {_IDEAL}",
        reference="Järvelin and Kekäläinen 2002, Cumulated Gain-Based Evaluation, with b = 2",
        latex=r"\frac{\mathrm{rel}_1 + \sum_{i=2}^{k} \mathrm{rel}_i / \log_2 i}"
        r"{\mathrm{rel}^{*}_1 + \sum_{i=2}^{k} \mathrm{rel}^{*}_i / \log_2 i}",
        note="As published tutorials compute it; not comparable with the other forms.",
        needs_grades=True,
        binary=False,
        terms=_normalised(JARVELIN_KEKALAINEN),
        aliases=("ndcg_2002",),
    ),
    MetricDefinition(
        name="dcg",
        title="DCG",
        meaning="The sum that NDCG is made of: grades, each divided by the discount of its rank.",
        formula="Σ rel_i / log2(i+1) over ranks i ≤ k",
        latex=r"\sum_{i=1}^{k} \frac{\mathrm{rel}_i}{\log_2(i+1)}",
        reference="Järvelin and Kekäläinen 2002, with the log2(i+1) discount",
        note=_SUM_NOTE,
        range=(0.0, math.inf),
        needs_grades=True,
        binary=False,
        perfect_is_top=False,
        terms=_sum(LINEAR),
        aliases=("dcg_linear",),
    ),
    MetricDefinition(
        name="dcg_exp",
        title="DCG (exponential gain)",
        meaning="The sum that NDCG with exponential gain is made of.",
        formula="Σ (2^rel_i − 1) / log2(i+1) over ranks i ≤ k",
        latex=r"\sum_{i=1}^{k} \frac{2^{\mathrm{rel}_i} - 1}{\log_2(i+1)}",
        reference="Burges et al. 2005, Learning to Rank using Gradient Descent",
        note=_SUM_NOTE,
        range=(0.0, math.inf),
        needs_grades=True,
        binary=False,
        perfect_is_top=False,
        terms=_sum(EXPONENTIAL),
        aliases=("dcg_burges", "dcg_exponential"),
    ),
)
