"""The highest possible NDCG, or difference of two, under labels that are not there yet: exact.

With the order fixed, NDCG is a quotient whose numerator is linear in the gains of the unjudged
documents, and whose divisor, the ideal, depends only on how many documents reach each grade:
Σ_j step_j · D(N_j + n_j), where step_j is the gain between two neighbouring grades, N_j labelled
documents and n_j new ones reach the upper one, and D(n) is the sum of the first n discounts. For
a trial value t the best n_j of each step can be found by itself: numerator and t · divisor are
both sums over steps. (That a document which reaches a grade also reaches those below holds by
itself for t ≥ 0, since D rises less and less.) Dinkelbach's iteration (1967, On nonlinear
fractional programming) then climbs to the best quotient in a few rounds.

Where even the best numerator is negative, the quotient is best at an extreme point: every
unjudged document has the top grade or none, and the possible counts are tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rankdash.core.data.ragged import Floats, Integers, offsets_from, owners, places
from rankdash.core.metrics import Judged
from rankdash.core.metrics.gain import GainForm

_PRECISE = 1e-13
_MOST_ROUNDS = 60


@dataclass(frozen=True, eq=False)
class Ideal:
    """The ideal of Q queries in steps of gain, from the top grade down.

    offsets: (Q + 1,). size: (T,) the gain between two grades. reached: (T,) how many labelled
    documents reach the upper one. sums: (n + 1,) sums of the first discounts, cut at k.
    """

    offsets: Integers
    size: Floats
    reached: Integers
    sums: Floats

    @classmethod
    def of(cls, judged: Judged, form: GainForm, k: int | None, top: float, most: int) -> Ideal:
        """most: how many documents may be added to a query at most."""
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
        kept = size > 0
        sums = _discount_sums(form, k, int(counts.max(initial=0)) + most)
        owner = owners(offsets)[kept]
        return cls(
            offsets_from(np.bincount(owner, minlength=queries)),
            size[kept],
            (places(offsets) - 1)[kept],
            sums,
        )

    def steps(self, queries: Integers) -> Iterable[tuple[Integers, Floats, Integers]]:
        """For the first, second, … step: rows of `queries` that have one, its size, its count."""
        start, count = self.offsets[queries], np.diff(self.offsets)[queries]
        for step in range(int(count.max(initial=0))):
            rows = np.flatnonzero(count > step)
            at = start[rows] + step
            yield rows, self.size[at], self.reached[at]


def _gain(form: GainForm, labels: Floats, top: float) -> Floats:
    """Gains on the scale of the top grade of all queries, so that they can be compared."""
    return form.gain(labels, np.full(len(labels), top))


def _discount_sums(form: GainForm, k: int | None, most: int) -> Floats:
    rank = np.arange(1, most + 1)
    worth = 1 / form.discount(rank)
    if k is not None:
        worth[k:] = 0.0
    return np.append(0.0, np.cumsum(worth))


def discounted(judged: Judged, form: GainForm, k: int | None, top: float) -> Floats:
    """(Q,) the gain of each list as ranked, on the scale of the top grade."""
    inside = np.ones(len(judged.rank), dtype=bool) if k is None else judged.rank <= k
    worth = _gain(form, judged.label[inside], top) / form.discount(judged.rank[inside])
    total = np.bincount(judged.query[inside], worth, minlength=len(judged.query_ids))
    return total.astype(np.float64)


def discounts(form: GainForm, rank: Floats) -> Floats:
    """(U,) what a gain counts at each rank; 0 for inf, outside the cutoff."""
    known = np.isfinite(rank)
    worth = np.zeros(len(rank))
    worth[known] = 1 / form.discount(rank[known].astype(np.int64))
    return worth


def highest_quotient(start: Floats, weights: Floats, queries: Integers, ideal: Ideal) -> Floats:
    """(S,) the highest (start + Σ gain · weight) / ideal over gains from 0 to that of the top.

    start: (S,). weights: (S, W), each row descending, -inf in the padding. queries: (S,) which
    queries of `ideal` the rows are.
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
    """The best where 0, 1, … documents have the top grade and the others none."""
    more = np.arange(sums.shape[1])
    divisor = np.zeros(sums.shape)
    for rows, size, reached in ideal.steps(queries):
        divisor[rows] += size[:, None] * ideal.sums[reached[:, None] + more]
    value = start[:, None] + _top_gain(queries, ideal)[:, None] * sums
    found = np.where(np.isneginf(sums), -np.inf, 0.0)
    np.divide(value, divisor, out=found, where=(divisor > 0) & ~np.isneginf(sums))
    highest: Floats = found.max(axis=1)
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
