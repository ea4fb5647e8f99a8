"""Metrics of what is within the cutoff in any order, and how much of it is labelled."""

from __future__ import annotations

import numpy as np

from rankdash.core.data.arrays import Floats
from rankdash.core.metrics.engine import MetricDefinition, Relevance, ratio, within


def _found(relevance: Relevance, k: int | None) -> Floats:
    """(Q,) relevant documents within the cutoff."""
    hits = relevance.hits
    return relevance.total(hits.query[within(hits.rank, k)])


def _precision(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    return ratio(_found(relevance, k), relevance.depth(k))


def _recall(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    return ratio(_found(relevance, k), relevance.relevant_count)


def _hit(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    return (_found(relevance, k) > 0).astype(np.float64)


def _f1(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    # 2PR / (P + R) with both over their own divisor comes to this.
    return ratio(2 * _found(relevance, k), relevance.depth(k) + relevance.relevant_count)


def _r_precision(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    hits = relevance.hits
    inside = hits.rank <= relevance.relevant_count[hits.query]
    return ratio(relevance.total(hits.query[inside]), relevance.relevant_count)


def _judged(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    # The lists as ranked: under `judged_only` the condensed ones would all say 1.
    judged = relevance.judged
    shown = judged.lengths if k is None else np.minimum(judged.lengths, k)
    values = np.full(len(relevance), np.nan)
    np.divide(judged.judged_within(k), shown, out=values, where=shown > 0)
    return values


DEFINITIONS = (
    MetricDefinition(
        name="precision",
        title="Precision",
        meaning="The share of the first k places that hold a relevant document.",
        formula="relevant documents within k, divided by k",
        latex=r"\frac{1}{k} \sum_{i=1}^{k} g_i",
        reference="Manning, Raghavan and Schütze 2008, chapter 8",
        note="Divided by k even when fewer came back. A perfect order does not reach 1 where a "
        "list holds fewer relevant documents than places.",
        perfect_is_top=False,
        compute=_precision,
        aliases=("p", "prec", "set_p", "setp"),
    ),
    MetricDefinition(
        name="recall",
        title="Recall",
        meaning="The share of all relevant documents that is within the first k.",
        formula="relevant documents within k, divided by R",
        latex=r"\frac{1}{R} \sum_{i=1}^{k} g_i",
        reference="Manning, Raghavan and Schütze 2008, chapter 8",
        compute=_recall,
        aliases=("r", "set_recall", "setr"),
    ),
    MetricDefinition(
        name="hit",
        title="Hit",
        meaning="Whether at least one relevant document is within the first k.",
        formula="1 if a relevant document is within k, else 0",
        latex=r"\max_{i \le k} g_i",
        reference="Success@k in trec_eval",
        compute=_hit,
        aliases=("success", "hit_rate", "hits"),
    ),
    MetricDefinition(
        name="r_precision",
        title="R-precision",
        meaning="Precision at the number of relevant documents the query has.",
        formula="relevant documents within R, divided by R",
        latex=r"\frac{1}{R} \sum_{i=1}^{R} g_i",
        reference="Buckley and Voorhees 2005, Retrieval System Evaluation",
        has_cutoff=False,
        compute=_r_precision,
        aliases=("rprec", "rprecision"),
    ),
    MetricDefinition(
        name="f1",
        title="F1",
        meaning="The harmonic mean of precision and recall within the first k.",
        formula="2 · precision@k · recall@k / (precision@k + recall@k)",
        latex=r"\frac{2 \sum_{i=1}^{k} g_i}{k + R}",
        reference="van Rijsbergen 1979, Information Retrieval",
        note="A perfect order does not reach 1 if a list holds fewer relevant documents than "
        "places.",
        perfect_is_top=False,
        compute=_f1,
        aliases=("f", "f_1", "set_f", "setf"),
    ),
    MetricDefinition(
        name="judged",
        title="Judged",
        meaning="The share of the first k documents that has a label, relevant or not.",
        formula="labelled documents within k, divided by k or by the length of a shorter list",
        latex=r"\frac{1}{\min(k, n)} \sum_{i=1}^{k} j_i",
        reference="Judged@k in ir_measures",
        note="Says nothing of quality. If it differs between systems, trust their other numbers "
        "differently. An empty list has no value.",
        binary=False,
        measures_quality=False,
        compute=_judged,
        aliases=("judged_share",),
    ),
)
