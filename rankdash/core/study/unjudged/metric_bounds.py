"""Bounds of a metric, or of its difference between two systems, under all possible labels.

Each unjudged document of the pool may have any label from 0 to the top grade; existing labels do
not change. `highest` is the largest value of `plus - minus` for each query under one assignment of
labels, the same for both sides; a side that is None counts as 0. The lowest value is the negated
highest of the swapped sides, so both use the same code.

An additional relevant document also increases the number of relevant documents that a system should
find: R of recall and average precision, and the ideal of NDCG. So "all relevant" is not always the
best case, nor "none relevant" the worst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from rankdash.core.data.arrays import Floats, Integers, blocks, offsets_from, owners, places
from rankdash.core.metrics import Conventions, Judged, Measure
from rankdash.core.metrics.definitions import (
    EXPONENTIAL,
    JARVELIN_KEKALAINEN,
    LINEAR,
    GainForm,
    raw_gain,
)
from rankdash.core.metrics.engine import Relevance, within
from rankdash.core.metrics.judged import all_labelled

Kind = Literal["tight", "outer", "range"]
"""The quality of a bound. tight: some assignment of labels reaches it. outer: no assignment exceeds
it, but perhaps none reaches it. range: only the range of the metric is known."""

_SUMS = {"dcg": LINEAR, "dcg_exp": EXPONENTIAL}
_FORMS = {"ndcg": LINEAR, "ndcg_exp": EXPONENTIAL, "ndcg_jk": JARVELIN_KEKALAINEN}


@dataclass(frozen=True, eq=False)
class BoundSide:
    """One system: its labels in rank order, and (U,) the ranks of the pool's documents in its list,
    inf outside the cutoff."""

    relevance: Relevance
    rank: Floats


@dataclass(frozen=True, eq=False)
class Case:
    """A metric at its cutoff over a pool of U documents of Q queries.

    offsets: (Q + 1,). query: (U,). top: the label of a fully relevant document.
    judged: the join of either side, for the labels of the queries.
    """

    measure: Measure
    conventions: Conventions
    judged: Judged
    offsets: Integers
    query: Integers
    top: float

    @property
    def k(self) -> int | None:
        return self.measure.k

    def sum(self, weights: Floats) -> Floats:
        """Return (Q,) the sum of (U,) weights by query."""
        total = np.bincount(self.query, weights, minlength=len(self.offsets) - 1)
        return total.astype(np.float64)

    def lists(self, weights: Floats, padding: float) -> Iterator[tuple[Integers, Floats]]:
        """Yield the queries with a pool in blocks: (S,) indices and (S, W) weights, padded."""
        filled = np.flatnonzero(np.diff(self.offsets))
        compact = offsets_from(np.diff(self.offsets)[filled])
        owner = np.repeat(filled, np.diff(compact))
        for block in blocks(compact):
            if block.positions is None:
                yield filled, block.take(weights, padding)
            else:
                yield owner[block.positions[:, 0]], block.take(weights, padding)


def highest(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> tuple[Floats, Kind]:
    """Return (Q,) the highest possible plus - minus, and the kind of the bound."""
    name = case.measure.metric.name
    if name in _FORMS:
        return _ndcg(case, plus, minus), "tight"
    if name in _KERNELS:
        return _KERNELS[name](case, plus, minus)
    return _by_range(case, plus, minus), "range"


def _per_side(
    plus: BoundSide | None, minus: BoundSide | None, value: Callable[[BoundSide], Floats]
) -> Floats:
    """Return value(plus) - value(minus); a missing side counts as 0."""
    total = np.zeros(1)
    if plus is not None:
        total = total + value(plus)
    if minus is not None:
        total = total - value(minus)
    return total


def _either(plus: BoundSide | None, minus: BoundSide | None) -> BoundSide:
    """Return `plus`, or `minus` if it is None, to read labels that are the same for both."""
    return plus if plus is not None else cast(BoundSide, minus)


def _now(case: Case, side: BoundSide) -> Floats:
    """Return (Q,) the current values; unjudged documents count as not relevant."""
    measure = case.measure
    return measure.metric.compute(side.relevance, measure.k, measure.parameter)


def _by_range(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> Floats:
    low, high = case.measure.metric.range
    beyond = (high if plus is not None else 0.0) - (low if minus is not None else 0.0)
    now = _per_side(plus, minus, lambda side: _now(case, side))
    return np.where(np.diff(case.offsets) > 0, beyond, now)


def _additive(
    case: Case,
    plus: BoundSide | None,
    minus: BoundSide | None,
    weight: Callable[[BoundSide], Floats],
) -> Floats:
    """Return the bound of a metric that is a sum over relevant documents, so that each label has an
    independent effect."""
    change = _per_side(plus, minus, weight)
    return _per_side(plus, minus, lambda side: _now(case, side)) + case.sum(np.maximum(change, 0))


def _ndcg(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> Floats:
    form = _FORMS[case.measure.metric.name]
    start = _per_side(
        plus, minus, lambda side: discounted(side.relevance.judged, form, case.k, case.top)
    )
    change = _per_side(plus, minus, lambda side: discounts(form, side.rank))
    most = int(np.diff(case.offsets).max(initial=0))
    ideal = Ideal.of(case.judged, form, case.k, case.top, most)
    best = _per_side(plus, minus, lambda side: _now(case, side))
    for queries, weights in case.lists(change, -np.inf):
        ordered = _descending(weights)
        best[queries] = highest_quotient(start[queries], ordered, queries, ideal)
    return best


def _dcg(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> tuple[Floats, Kind]:
    form = _SUMS[case.measure.metric.name]
    top = raw_gain(form, np.array([case.top]))
    return _additive(case, plus, minus, lambda side: top * discounts(form, side.rank)), "tight"


def _precision(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> tuple[Floats, Kind]:
    def weight(side: BoundSide) -> Floats:
        depth = np.maximum(side.relevance.depth(case.k), 1)
        return np.isfinite(side.rank) / depth[case.query]

    return _additive(case, plus, minus, weight), "tight"


def _rank_biased(
    case: Case, plus: BoundSide | None, minus: BoundSide | None
) -> tuple[Floats, Kind]:
    p = case.measure.parameter

    def weight(side: BoundSide) -> Floats:
        return np.where(np.isfinite(side.rank), (1 - p) * p ** (side.rank - 1), 0.0)

    return _additive(case, plus, minus, weight), "tight"


def _first(
    case: Case, plus: BoundSide | None, minus: BoundSide | None, worth: Callable[[Floats], Floats]
) -> Floats:
    """Return the bound of a metric that depends on the first relevant document: one additional
    label is enough, because more labels can only raise `minus`."""

    def alone(side: BoundSide) -> Floats:
        return np.maximum(_now(case, side)[case.query], worth(side.rank))

    best = np.broadcast_to(
        _per_side(plus, minus, lambda side: _now(case, side)), len(case.offsets) - 1
    ).copy()
    np.maximum.at(best, case.query, _per_side(plus, minus, alone))
    return best


def _reciprocal(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> tuple[Floats, Kind]:
    return _first(case, plus, minus, lambda rank: 1 / rank), "tight"


def _hit(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> tuple[Floats, Kind]:
    return _first(case, plus, minus, lambda rank: np.isfinite(rank).astype(np.float64)), "tight"


def _recall(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> tuple[Floats, Kind]:
    return _share(case, plus, minus, np.zeros(len(case.offsets) - 1)), "tight"


def _f1(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> tuple[Floats, Kind]:
    depths = [side.relevance.depth(case.k) for side in (plus, minus) if side is not None]
    best = 2 * _share(case, plus, minus, depths[0])
    alike = depths[0] == depths[-1]
    if alike.all():
        return best, "tight"
    # With different divisors, the sum of the bounds of both sides is an outer bound.
    apart = _f1(case, plus, None)[0] + _f1(case, None, minus)[0]
    return np.where(alike, best, apart), "outer"


def _share(case: Case, plus: BoundSide | None, minus: BoundSide | None, extra: Floats) -> Floats:
    """Return the bound of a share: the number of relevant documents within the cutoff, divided by
    the number of all relevant documents plus (Q,) `extra`."""

    def found(side: BoundSide) -> Floats:
        hits = side.relevance.hits
        return side.relevance.total(hits.query[within(hits.rank, case.k)])

    count = _either(plus, minus).relevance.relevant_count
    start = _per_side(plus, minus, found)
    divisor = count + extra
    best = _quotient(start, divisor)
    change = _per_side(plus, minus, lambda one: np.isfinite(one.rank).astype(np.float64))
    for queries, weights in case.lists(change, -np.inf):
        gained = start[queries, None] + _running(_descending(weights))
        more = np.arange(gained.shape[1])
        best[queries] = _quotient(gained, divisor[queries, None] + more).max(axis=1)
    return best


def _quotient(numerator: Floats, divisor: Floats) -> Floats:
    """Divide; 0 if the divisor is 0."""
    result = np.zeros(np.broadcast_shapes(numerator.shape, divisor.shape))
    np.divide(numerator, divisor, out=result, where=divisor > 0)
    return result


def _descending(cells: Floats) -> Floats:
    ordered: Floats = -np.sort(-cells, axis=1)
    return ordered


def _running(cells: Floats) -> Floats:
    """Return (S, W + 1) sums of the first 0, 1, … cells of each row."""
    sums = np.zeros((len(cells), cells.shape[1] + 1))
    np.cumsum(cells, axis=1, out=sums[:, 1:])
    return sums


def _average_precision(
    case: Case, plus: BoundSide | None, minus: BoundSide | None
) -> tuple[Floats, Kind]:
    """Maximise over the number n of additional relevant documents: at the n highest ranks for plus,
    the n lowest for minus. Exact for one side; for two, each side has its own documents, so the
    bound is outer."""
    counts = np.diff(case.offsets)
    best = np.full(len(counts), -np.inf)
    relevant = _either(plus, minus).relevance.relevant_count
    sums = {}
    for name, one in (("plus", plus), ("minus", minus)):
        if one is not None:
            sums[name] = _precision_sum(one, case.k), *_above_and_below(case, one)
    index = np.arange(len(case.query), dtype=np.float64)
    for queries, cells in case.lists(index, -1.0):
        at = cells.astype(np.int64)
        inside = at >= 0
        value = np.zeros((len(queries), at.shape[1] + 1))
        if plus is not None:
            start, above, below = sums["plus"]
            rank = np.where(inside, plus.rank[at], np.inf)
            order = np.argsort(rank, axis=1)
            rank, chosen = _by(order, rank), _by(order, at)
            gain = (above[chosen] + np.arange(1, at.shape[1] + 1)) / rank
            gain += np.where(np.isfinite(rank), below[chosen], 0.0)
            value += start[queries, None] + _running(gain)
        if minus is not None:
            start, above, below = sums["minus"]
            rank = np.where(inside, minus.rank[at], 0.0)
            order = np.argsort(-rank, axis=1)
            rank, chosen = _by(order, rank), _by(order, at)
            counted = np.isfinite(rank) & (rank > 0)
            inverse = np.divide(1.0, rank, out=np.zeros_like(rank), where=counted)
            gain = (above[chosen] + 1) * inverse + np.where(counted, below[chosen], 0.0)
            gain += np.where(counted, _running(inverse)[:, :-1], 0.0)
            value -= start[queries, None] + _running(gain)
        more = np.arange(value.shape[1])
        divisor = relevant[queries, None] + more
        if case.k is not None and case.conventions.ap_norm == "min(R,k)":
            divisor = np.minimum(divisor, case.k)
        value = np.where(more <= counts[queries, None], _quotient(value, divisor), -np.inf)
        best[queries] = value.max(axis=1)
    now = _per_side(plus, minus, lambda one: _now(case, one))
    kind: Kind = "tight" if plus is None or minus is None else "outer"
    return np.where(counts > 0, best, now), kind


def _by(order: Integers, cells: np.ndarray) -> np.ndarray:
    return np.take_along_axis(cells, order, axis=1)


def _precision_sum(side: BoundSide, k: int | None) -> Floats:
    """Return (Q,) the sum of P@i over the relevant ranks i within k."""
    hits = side.relevance.hits
    inside = within(hits.rank, k)
    return side.relevance.total(hits.query[inside], hits.ordinal[inside] / hits.rank[inside])


def _above_and_below(case: Case, side: BoundSide) -> tuple[Floats, Floats]:
    """Return for each document of the pool the number of relevant documents above it, and the sum
    of 1/rank over the relevant ones below it within the cutoff."""
    hits = side.relevance.hits
    inside = within(hits.rank, case.k)
    query, rank = hits.query[inside], hits.rank[inside]
    offsets = offsets_from(np.bincount(query, minlength=len(case.offsets) - 1))
    inverse = np.append(0.0, np.cumsum(1 / rank))
    deepest = int(max(rank.max(initial=0), side.rank[np.isfinite(side.rank)].max(initial=0))) + 2
    place = np.where(np.isfinite(side.rank), side.rank, deepest - 1).astype(np.int64)
    at = np.searchsorted(query * deepest + rank, case.query * deepest + place)
    above = (at - offsets[case.query]).astype(np.float64)
    return above, inverse[offsets[case.query + 1]] - inverse[at]


def _err(case: Case, plus: BoundSide | None, minus: BoundSide | None) -> tuple[Floats, Kind]:
    """Return the bound of ERR: it has no divisor, so every additional relevant document raises
    it."""
    value = np.zeros(len(case.offsets) - 1)
    if plus is not None:
        value = value + _err_if_relevant(case, plus)
    if minus is not None:
        value = value - _now(case, minus)
    return value, "tight" if plus is None or minus is None else "outer"


def _err_if_relevant(case: Case, side: BoundSide) -> Floats:
    judged = all_labelled(side.relevance.judged, case.query, side.rank, case.top)
    return case.measure.metric.compute(
        Relevance(judged, case.conventions), case.k, case.measure.parameter
    )


_KERNELS: dict[str, Callable[[Case, BoundSide | None, BoundSide | None], tuple[Floats, Kind]]] = {
    "dcg": _dcg,
    "dcg_exp": _dcg,
    "precision": _precision,
    "rbp": _rank_biased,
    "mrr": _reciprocal,
    "hit": _hit,
    "recall": _recall,
    "f1": _f1,
    "map": _average_precision,
    "err": _err,
}


# The highest possible NDCG, or difference of two, under all possible labels: exact.
#
# With the order fixed, NDCG is a quotient whose numerator is linear in the gains of the unjudged
# documents, and the divisor, the ideal, depends only on how many documents reach each grade:
# Σ_j step_j · D(N_j + n_j), where step_j is the gain between two neighbouring grades, N_j labelled
# documents and n_j new ones reach the upper one, and D(n) is the sum of the first n discounts. For
# a trial value t the best n_j of each step is independent of the others: numerator and t · divisor
# are both sums over steps. (A document that reaches a grade also reaches the lower ones: for t ≥ 0
# this follows from the decreasing discounts.) Dinkelbach's iteration (1967, On nonlinear fractional
# programming) then converges to the best quotient in a few rounds.
#
# If even the best numerator is negative, the best quotient is at an extreme point: every unjudged
# document has the top grade or 0, and all possible counts are tried.

_PRECISE = 1e-13
_MOST_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class Ideal:
    """The ideal DCG of Q queries as a sum over steps between neighbouring grades, highest first.

    offsets: (Q + 1,). size: (T,) the gain between two grades. reached: (T,) how many labelled
    documents reach the upper one. sums: (n + 1,) sums of the first discounts, constant above k.
    """

    offsets: Integers
    size: Floats
    reached: Integers
    sums: Floats

    @classmethod
    def of(cls, judged: Judged, form: GainForm, k: int | None, top: float, most: int) -> Ideal:
        """Create the ideal. most: the maximum number of documents added to a query."""
        queries = len(judged.query_ids)
        counts = np.diff(judged.pool_offsets)
        offsets = offsets_from(counts + 1)
        gains = np.zeros(int(offsets[-1]) + 1)
        gains[offsets[:-1]] = _gain(form, np.full(queries, top), top)
        at = np.repeat(offsets[:-1], counts) + places(judged.pool_offsets)
        gains[at] = _gain(form, judged.pool_label, top)
        last = np.zeros(len(gains) - 1, dtype=bool)
        last[offsets[1:] - 1] = True
        size = gains[:-1] - np.where(last, 0.0, gains[1:])
        positive = size > 0
        sums = _discount_sums(form, k, int(counts.max(initial=0)) + most)
        owner = owners(offsets)[positive]
        return cls(
            offsets_from(np.bincount(owner, minlength=queries)),
            size[positive],
            (places(offsets) - 1)[positive],
            sums,
        )

    def steps(self, queries: Integers) -> Iterable[tuple[Integers, Floats, Integers]]:
        """Yield for the first, second, … step: the indices into `queries` of the queries with such
        a step, and for each its size and the number of labelled documents that reach it."""
        start, count = self.offsets[queries], np.diff(self.offsets)[queries]
        for step in range(int(count.max(initial=0))):
            rows = np.flatnonzero(count > step)
            at = start[rows] + step
            yield rows, self.size[at], self.reached[at]


def _gain(form: GainForm, labels: Floats, top: float) -> Floats:
    """Return gains scaled by the top grade of all queries, so that queries are comparable."""
    return form.gain(labels, np.full(len(labels), top))


def _discount_sums(form: GainForm, k: int | None, most: int) -> Floats:
    rank = np.arange(1, most + 1)
    worth = 1 / form.discount(rank)
    if k is not None:
        worth[k:] = 0.0
    return np.append(0.0, np.cumsum(worth))


def discounted(judged: Judged, form: GainForm, k: int | None, top: float) -> Floats:
    """Return (Q,) the discounted gain of each list as ranked, scaled by the top grade."""
    inside = np.ones(len(judged.rank), dtype=bool) if k is None else judged.rank <= k
    worth = _gain(form, judged.label[inside], top) / form.discount(judged.rank[inside])
    total = np.bincount(judged.query[inside], worth, minlength=len(judged.query_ids))
    return total.astype(np.float64)


def discounts(form: GainForm, rank: Floats) -> Floats:
    """Return (U,) the factor of a gain at each rank; 0 for inf (outside the cutoff)."""
    finite = np.isfinite(rank)
    worth = np.zeros(len(rank))
    worth[finite] = 1 / form.discount(rank[finite].astype(np.int64))
    return worth


def highest_quotient(start: Floats, weights: Floats, queries: Integers, ideal: Ideal) -> Floats:
    """Return (S,) the highest (start + Σ gain · weight) / ideal over gains from 0 to the top gain.

    start: (S,). weights: (S, W), each row descending, -inf in the padding. queries: (S,) the query
    of each row in `ideal`.
    """
    sums = np.zeros((len(weights), weights.shape[1] + 1))
    np.cumsum(weights, axis=1, out=sums[:, 1:])
    best = _extreme(start, sums, queries, ideal)
    most = start + _top_gain(queries, ideal) * np.maximum(weights, 0.0).sum(axis=1)
    rows = np.flatnonzero(most >= 0)
    best[rows] = _climb(start[rows], sums[rows], queries[rows], ideal, np.maximum(best[rows], 0))
    return best


def _top_gain(queries: Integers, ideal: Ideal) -> Floats:
    total = np.zeros(len(queries))
    for rows, size, _ in ideal.steps(queries):
        total[rows] += size
    return total


def _extreme(start: Floats, sums: Floats, queries: Integers, ideal: Ideal) -> Floats:
    """Return the best quotient if 0, 1, … documents have the top grade and the others 0."""
    more = np.arange(sums.shape[1])
    divisor = np.zeros(sums.shape)
    for rows, size, reached in ideal.steps(queries):
        divisor[rows] += size[:, None] * ideal.sums[reached[:, None] + more]
    value = start[:, None] + _top_gain(queries, ideal)[:, None] * sums
    ratios = np.where(np.isneginf(sums), -np.inf, 0.0)
    np.divide(value, divisor, out=ratios, where=(divisor > 0) & ~np.isneginf(sums))
    highest: Floats = ratios.max(axis=1)
    return highest


def _climb(start: Floats, sums: Floats, queries: Integers, ideal: Ideal, trial: Floats) -> Floats:
    more = np.arange(sums.shape[1])
    steps = list(ideal.steps(queries))
    for _ in range(_MOST_ROUNDS):
        value, divisor = start.copy(), np.zeros(len(start))
        for rows, size, reached in steps:
            worth = ideal.sums[reached[:, None] + more]
            at = np.argmax(sums[rows] - trial[rows, None] * worth, axis=1)
            value[rows] += size * sums[rows, at]
            divisor[rows] += size * worth[np.arange(len(rows)), at]
        better = np.divide(value, divisor, out=np.zeros_like(value), where=divisor > 0)
        if not (better > trial + _PRECISE).any():
            break
        trial = np.maximum(trial, better)
    return trial
