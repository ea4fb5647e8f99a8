"""Definitions of the metrics: of gain (DCG), of relevant documents, and of label coverage."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankdash.core.data.arrays import Floats, Integers, offsets_from, products_before
from rankdash.core.metrics.engine import (
    MetricDefinition,
    Parameter,
    Relevance,
    Terms,
    ratio,
    within,
)


@dataclass(frozen=True)
class GainForm:
    """Gain of a label, and its discount by rank.

    gain: (labels, highest label of their query) → gain, up to a factor of the query.
    discount: ranks from 1 → divisor.
    """

    gain: Callable[[Floats, Floats], Floats]
    discount: Callable[[Integers], Floats]


def _linear(labels: Floats, top: Floats) -> Floats:
    return labels


def _exponential(labels: Floats, top: Floats) -> Floats:
    # (2^label - 1) / 2^top: the factor does not change NDCG, and labels of 2,000 stay finite.
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
    """Return the (J,) discounted gain of each position, up to a constant factor per query."""
    return relevance.cached(
        (form, "ranked"),
        lambda: _weights(relevance, form, relevance.query, relevance.rank, relevance.label),
    )


def _best_sum(relevance: Relevance, form: GainForm, k: int | None) -> Floats:
    """Return the (Q,) highest sum within k of any order of all labelled documents, up to the same
    factor."""
    return relevance.cached((form, "ideal sum", k), lambda: _ideal_sum(relevance, form, k))


def _ideal_sum(relevance: Relevance, form: GainForm, k: int | None) -> Floats:
    query, rank = relevance.pool_query, relevance.pool_rank
    weights = relevance.cached(
        (form, "ideal"),
        lambda: _weights(relevance, form, query, rank, relevance.judged.pool_label),
    )
    inside = within(rank, k)
    return relevance.total(query[inside], weights[inside])


def _weights(
    relevance: Relevance, form: GainForm, query: Integers, rank: Integers, label: Floats
) -> Floats:
    """Return the discounted gain of each label."""
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
    """Return the discounted gain of each position, without the factor of its query, shape (J,)."""

    def made() -> Floats:
        # Gains beyond 2^1023 overflow: such a query has no value.
        with np.errstate(over="ignore"):
            weights = raw_gain(form, relevance.label) / form.discount(relevance.rank)
        return np.where(np.isfinite(weights), weights, np.nan)

    return relevance.cached((form, "raw"), made)


def raw_gain(form: GainForm, labels: Floats) -> Floats:
    """Return the gain of labels, (n,): rel, or 2^rel - 1."""
    return form.gain(labels, np.zeros(1))


_SUM_NOTE = (
    "Not divided by the best possible sum: values have no upper limit, and a query with more "
    "relevant documents weighs more."
)
_IDEAL = "divided by the same sum for the best order of all labelled documents at cutoff k"


# Metrics of relevant documents: the first one, precision at each of them, sets, preferences,
# readers who may stop at any rank; and the label coverage of a list.


def _reciprocal_rank(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    hits = relevance.hits
    nothing = 0.0 if relevance.conventions.mrr_none == "zero" else np.nan
    return Terms(np.where(hits.ordinal == 1, 1.0 / hits.rank, 0.0), nothing=nothing)


def _ap_divisor(relevance: Relevance, k: int | None) -> Floats:
    count = relevance.relevant_count
    if k is not None and relevance.conventions.ap_norm == "min(R,k)":
        return np.minimum(count, k)
    return count


def _precision_at_hits(relevance: Relevance) -> Floats:
    hits = relevance.hits
    return relevance.cached(
        "precision at hits", lambda: hits.ordinal / hits.rank, of_threshold=True
    )


def _average_precision(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    return Terms(_precision_at_hits(relevance), _ap_divisor(relevance, k))


def _graded(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    weights = _precision_at_hits(relevance) * relevance.hits.label
    return Terms(weights, _ap_divisor(relevance, k) * relevance.scale_top)


def _graded_normalised(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    labels = relevance.judged.pool_label
    counted = labels >= relevance.conventions.threshold
    counted &= relevance.pool_rank <= _ap_divisor(relevance, k)[relevance.pool_query]
    best = relevance.total(relevance.pool_query[counted], labels[counted])
    return Terms(_precision_at_hits(relevance) * relevance.hits.label, best)


def _precision(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    return Terms(np.ones(len(relevance.hits.rank)), relevance.depth(k))


def _recall(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    return Terms(np.ones(len(relevance.hits.rank)), relevance.relevant_count)


def _hit(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    return Terms((relevance.hits.ordinal == 1).astype(np.float64))


def _f1(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    # Equal to 2PR / (P + R) with each over its own divisor.
    twice = np.full(len(relevance.hits.rank), 2.0)
    return Terms(twice, relevance.depth(k) + relevance.relevant_count)


def _r_precision(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    hits, count = relevance.hits, relevance.relevant_count
    return Terms((hits.rank <= count[hits.query]).astype(np.float64), count)


def _judged(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    # Lists as ranked: under `judged_only` all condensed lists would have the value 1.
    judged = relevance.judged
    shown = judged.lengths if k is None else np.minimum(judged.lengths, k)
    values = np.full(len(relevance), np.nan)
    np.divide(judged.judged_within(k), shown, out=values, where=shown > 0)
    return values


def _bpref(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    """Return the terms of bpref, which uses labelled documents only."""
    hits, count = relevance.hits, relevance.relevant_count
    bound = np.minimum(relevance.judged.pool_size - count, count)
    worse_above = np.minimum(hits.judged_rank - hits.ordinal, count[hits.query])
    return Terms(1.0 - ratio(worse_above, bound[hits.query]), count)


_PERSISTENCE = Parameter(
    name="p",
    meaning="the probability that the reader continues to the next document",
    default=0.8,
    low=0.0,
    high=1.0,
)


def _rank_biased_precision(relevance: Relevance, k: int | None, persistence: float) -> Terms:
    weights = (1.0 - persistence) * persistence ** (relevance.hits.rank - 1.0)
    return Terms(weights.astype(np.float64))


def _expected_reciprocal_rank(relevance: Relevance, k: int | None, parameter: float) -> Terms:
    top = relevance.scale_top

    def made() -> Floats:
        # (2^label - 1) / 2^top, written so that labels of 2,000 stay finite.
        stops = np.exp2(relevance.label - top) - np.exp2(-top)
        offsets = offsets_from(np.bincount(relevance.query, minlength=len(relevance)))
        reached: Floats = products_before(1.0 - stops, offsets) * stops / relevance.rank
        return reached

    return Terms(relevance.cached(("err", top), made), of_hits=False)


DEFINITIONS = (
    MetricDefinition(
        name="ndcg",
        title="NDCG",
        meaning="How close the order is to the best possible one; high grades and top ranks weigh "
        "most.",
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
        note="As computed in published tutorials; not comparable with the other forms.",
        needs_grades=True,
        binary=False,
        terms=_normalised(JARVELIN_KEKALAINEN),
        aliases=("ndcg_2002",),
    ),
    MetricDefinition(
        name="dcg",
        title="DCG",
        meaning="The numerator of NDCG: the sum of the grades, each divided by the discount of "
        "its rank.",
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
        meaning="The numerator of NDCG with exponential gain.",
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
    MetricDefinition(
        name="mrr",
        title="MRR",
        meaning="How near the top the first relevant document is.",
        formula="1 / rank of the first relevant document within k, else 0",
        latex=r"\max_{i \le k} \frac{g_i}{i}",
        reference="Voorhees 1999, The TREC-8 Question Answering Track Report",
        terms=_reciprocal_rank,
        aliases=("rr", "recip_rank", "reciprocal_rank"),
    ),
    MetricDefinition(
        name="map",
        title="MAP",
        meaning="Precision averaged over the ranks of all relevant documents; documents that are "
        "not retrieved count 0.",
        formula="(1/R) Σ P@i over the relevant ranks i ≤ k",
        latex=r"\frac{1}{R} \sum_{i=1}^{k} g_i P_i",
        reference="Buckley and Voorhees 2005, Retrieval System Evaluation; as in trec_eval",
        note="Divided by R, also at a cutoff below R, unless the conventions set min(R,k).",
        terms=_average_precision,
        aliases=("ap", "map_cut", "average_precision"),
    ),
    MetricDefinition(
        name="map_graded",
        title="MAP (graded)",
        meaning="MAP with each document weighted by its grade as a share of the highest grade.",
        formula="(1/R) Σ P@i · rel_i/max_rel over the relevant ranks i ≤ k; max_rel is the "
        "highest label of the set",
        latex=r"\frac{1}{R} \sum_{i=1}^{k} g_i P_i \frac{\mathrm{rel}_i}{\mathrm{rel}_{\max}}",
        reference="The MedCorpus variant of average precision",
        note="A perfect order does not reach 1 if a relevant grade is below the highest label: "
        "with a highest label of 3, [3,2,1] and [1,2,3] both score 0.667. Below an "
        "irrelevant document, moving a higher grade above a lower one lowers the value. "
        "Depends on the highest label of the whole set, or the one set in the conventions.",
        needs_grades=True,
        perfect_is_top=False,
        terms=_graded,
        aliases=("ap_graded", "graded_map"),
    ),
    MetricDefinition(
        name="map_graded_norm",
        title="MAP (graded, normalised)",
        meaning="Graded MAP divided by its highest possible value, so that a perfect order scores "
        "1.",
        formula="Σ P@i · rel_i/max_rel over the relevant ranks i ≤ k, divided by Σ rel/max_rel "
        "over all relevant documents",
        latex=r"\frac{\sum_{i=1}^{k} g_i P_i \, \mathrm{rel}_i}{\sum_{i=1}^{R} \mathrm{rel}^{*}_i}",
        reference="The MedCorpus variant of average precision, normalised",
        note="Any order with all relevant documents first scores 1, whatever their grades. Below "
        "an irrelevant document, moving a higher grade above a lower one lowers the value.",
        needs_grades=True,
        terms=_graded_normalised,
        aliases=("ap_graded_norm",),
    ),
    MetricDefinition(
        name="precision",
        title="Precision",
        meaning="The share of relevant documents among the first k.",
        formula="relevant documents within k, divided by k",
        latex=r"\frac{1}{k} \sum_{i=1}^{k} g_i",
        reference="Manning, Raghavan and Schütze 2008, chapter 8",
        note="Divided by k even if fewer documents were returned. A perfect order does not reach "
        "1 if a list contains fewer relevant documents than ranks.",
        perfect_is_top=False,
        terms=_precision,
        aliases=("p", "prec", "set_p", "setp"),
    ),
    MetricDefinition(
        name="recall",
        title="Recall",
        meaning="The share of all relevant documents that are within the first k.",
        formula="relevant documents within k, divided by R",
        latex=r"\frac{1}{R} \sum_{i=1}^{k} g_i",
        reference="Manning, Raghavan and Schütze 2008, chapter 8",
        terms=_recall,
        aliases=("r", "set_recall", "setr"),
    ),
    MetricDefinition(
        name="hit",
        title="Hit",
        meaning="Whether at least one relevant document is within the first k.",
        formula="1 if a relevant document is within k, else 0",
        latex=r"\max_{i \le k} g_i",
        reference="Success@k in trec_eval",
        terms=_hit,
        aliases=("success", "hit_rate", "hits"),
    ),
    MetricDefinition(
        name="r_precision",
        title="R-precision",
        meaning="Precision at rank R, the number of relevant documents of the query.",
        formula="relevant documents within R, divided by R",
        latex=r"\frac{1}{R} \sum_{i=1}^{R} g_i",
        reference="Buckley and Voorhees 2005, Retrieval System Evaluation",
        has_cutoff=False,
        terms=_r_precision,
        aliases=("rprec", "rprecision"),
    ),
    MetricDefinition(
        name="f1",
        title="F1",
        meaning="The harmonic mean of precision and recall within the first k.",
        formula="2 · precision@k · recall@k / (precision@k + recall@k)",
        latex=r"\frac{2 \sum_{i=1}^{k} g_i}{k + R}",
        reference="van Rijsbergen 1979, Information Retrieval",
        note="A perfect order does not reach 1 if a list contains fewer relevant documents than "
        "ranks.",
        perfect_is_top=False,
        terms=_f1,
        aliases=("f", "f_1", "set_f", "setf"),
    ),
    MetricDefinition(
        name="judged",
        title="Judged",
        meaning="The share of the first k documents that have a label, relevant or not.",
        formula="labelled documents within k, divided by k or by the length of a shorter list",
        latex=r"\frac{1}{\min(k, n)} \sum_{i=1}^{k} j_i",
        reference="Judged@k in ir_measures",
        note="Does not measure quality. If it differs between systems, their other metrics are "
        "not equally reliable. An empty list has no value.",
        binary=False,
        measures_quality=False,
        terms=_judged,
        aliases=("judged_share",),
    ),
    MetricDefinition(
        name="bpref",
        title="bpref",
        meaning="How rarely documents labelled not relevant rank above relevant ones; unlabelled "
        "documents have no effect.",
        formula="(1/R) Σ 1 − min(n_i, R) / min(N, R) over the relevant ranks i ≤ k. n_i: number "
        "of documents above rank i that are labelled not relevant. N: number of all documents "
        "labelled not relevant",
        latex=r"\frac{1}{R} \sum_{i=1}^{k} g_i \left(1 - \frac{\min(n_i, R)}{\min(N, R)}\right)",
        reference="Buckley and Voorhees 2004, Retrieval Evaluation with Incomplete Information; "
        "as in trec_eval",
        terms=_bpref,
        skips_unlabelled=True,
    ),
    MetricDefinition(
        name="rbp",
        title="RBP",
        meaning="The share of relevant documents among those that a patient reader sees; p is the "
        "probability of continuing to the next document.",
        formula="(1 − p) Σ p^(i−1) over the relevant ranks i ≤ k; p = 0.8 by default",
        latex=r"(1 - p) \sum_{i=1}^{k} g_i \, p^{i-1}",
        reference="Moffat and Zobel 2008, Rank-Biased Precision",
        note="A perfect order does not reach 1, which would need infinitely many relevant "
        "documents.",
        perfect_is_top=False,
        parameter=_PERSISTENCE,
        terms=_rank_biased_precision,
    ),
    MetricDefinition(
        name="err",
        title="ERR",
        meaning="The expected reciprocal rank at which a satisfied reader stops.",
        formula="Σ (1/i) · s_i · Π_(j<i) (1 − s_j) over ranks i ≤ k; s = (2^rel − 1) / 2^max, "
        "max the highest label of the set; ir_measures and gdeval use 4",
        latex=r"\sum_{i=1}^{k} \frac{s_i}{i} \prod_{j=1}^{i-1} (1 - s_j),"
        r" \quad s_i = \frac{2^{\mathrm{rel}_i} - 1}{2^{\mathrm{rel}_{\max}}}",
        reference="Chapelle et al. 2009, Expected Reciprocal Rank for Graded Relevance",
        note="A perfect order does not reach 1, because no label satisfies a reader with "
        "certainty. Depends on the highest label of the whole set, or the one set in the "
        "conventions.",
        needs_grades=True,
        binary=False,
        perfect_is_top=False,
        terms=_expected_reciprocal_rank,
    ),
)
