"""How many queries a verdict needs: planned for a stated power, from the differences as they are.

Per-query differences are mostly 0, tied and skewed, so that formulas for the normal distribution
promise too much. The queries to come are drawn from those that are there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankdash.analysis.statistics.bootstrap import SEED
from rankdash.analysis.statistics.significance import LEVEL, Test, sign_flip_p, spread_of

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

POWER = 0.80
FEWEST_PLANNED = 20
"""Fewer differences than this do not tell how others like them would be."""
PRACTICAL = 100_000
"""More queries than this, and than ten times what there are, are nobody's plan."""

# The ends of a range need not be as exact as the number that is most likely.
_DRAWS, _DRAWS_AT_ENDS = 1_000, 200
_ROUNDS = 4
_REACHED = 0.99
_KINDS = 48
# The weights of gains and losses are at the most e to the power of so much apart, and so exact.
_MOST_TILTED, _EXACT = 500.0, 1e-12
# Up to so many changed queries the flips themselves are drawn; beyond, their sum is normal.
_FEW_CHANGED = 30
_FLIPS = 1_000
# Differences that add up to 0 have a mean of about 1e-17 in one order and of 0 in another.
_ROUNDING = 1e-8


@dataclass(frozen=True)
class QueryPlan:
    """How many more queries, to two digits, would prove a change; None where no practical number
    would.

    likely: so many prove the change that was seen with a power of `POWER`. least, most: the same
    for the ends of the middle half of what the true change may be; the one nearer to 0 needs most.
    none_within: that middle half holds 0.
    """

    likely: int | None
    least: int | None
    most: int | None
    none_within: bool


def smallest_detectable(
    differences: FloatArray, *, level: float = LEVEL, power: float = POWER
) -> float:
    """The mean difference that this many queries would find with that power.

    From the variance of the paired differences, not of two independent proportions. NaN for fewer
    than two queries, and where the differences do not vary. Source: Sakai (2016), topic set size
    design, t test.
    """
    from scipy.special import stdtrit

    n, spread = len(differences), spread_of(differences)
    if spread == 0:
        return math.nan
    reach = stdtrit(n - 1, (1 + level) / 2) + stdtrit(n - 1, power)
    return float(reach * spread / math.sqrt(n))


def plan(
    differences: FloatArray,
    ends: tuple[float, float],
    *,
    test: Test = "sign-flip",
    level: float = LEVEL,
    verdict_level: float = LEVEL,
    power: float = POWER,
    seed: int = SEED,
) -> QueryPlan | None:
    """How many queries like these to add to these for a p of at most 1 - level.

    differences: (n,). ends: the interval of their mean at `verdict_level`. The queries that are
    there stay as they are; those to come are drawn from them with replacement, tilted where the
    true change is to be another than the one seen, so that zeros and steps stay.

    None for fewer than `FEWEST_PLANNED` differences, without an interval, or if they do not vary or
    add up to 0.
    """
    from scipy.special import ndtri

    n, mean = len(differences), float(np.mean(differences)) if len(differences) else 0.0
    unchanged = abs(mean) <= _ROUNDING or spread_of(differences) == 0
    if n < FEWEST_PLANNED or unchanged or math.isnan(ends[0]):
        return None
    sign = math.copysign(1.0, mean)
    # A quarter of what the true change may be lies beyond either end of the middle half.
    middle = float(ndtri(0.75) / ndtri((1 + verdict_level) / 2))
    near, far = sorted(sign * (mean + middle * (end - mean)) for end in ends)
    queries = _Queries(differences * sign, test, level, seed)
    likely = queries.needed(abs(mean), power, _DRAWS)
    if likely is None:
        return QueryPlan(None, None, None, bool(near <= 0))
    least, most = (queries.needed(end, power, _DRAWS_AT_ENDS) for end in (far, near))
    return QueryPlan(likely, least, most, bool(near <= 0))


class _Queries:
    """The differences of the queries that are there, gains above 0, as kinds with their counts."""

    def __init__(self, differences: FloatArray, test: Test, level: float, seed: int) -> None:
        self.n, self._test, self._alpha, self._seed = len(differences), test, 1 - level, seed
        values, counts = _kinds(differences)
        # Zeros come last: they count as queries and change no sum.
        self._values = np.append(values, 0.0)
        self._present = np.append(counts, self.n - counts.sum())

    def needed(self, change: float, power: float, draws: int) -> int | None:
        from scipy.special import ndtri

        shares = self._tilted(change)
        if shares is None:
            return None
        # An end of the interval can lie beyond the largest value, which no weights reach.
        change = float(shares @ self._values)
        spread = math.sqrt(max(float(shares @ self._values**2) - change**2, 0.0))
        most = max(PRACTICAL, 10 * self.n)
        reach = float(ndtri(1 - self._alpha / 2) + ndtri(power))
        root = max(reach * spread / change, math.sqrt(self.n + 1))
        for _ in range(_ROUNDS):
            if root**2 - self.n > most:
                return None
            more = max(math.ceil(root**2) - self.n, 1)
            proven = self._proven(more, shares, draws)
            # Half a draw from 0 and 1, whose quantiles have no end.
            found = float(ndtri(np.clip(proven, 0.5 / draws, 1 - 0.5 / draws)))
            step = (float(ndtri(power)) - found) * spread / change
            root = max(root + step, math.sqrt(self.n + 1))
        more = _two_digits(max(math.ceil(root**2) - self.n, 1))
        return more if more <= most else None

    def _tilted(self, change: float) -> FloatArray | None:
        """The share of each kind, weighted exponentially so that the mean is `change`; None where
        no weights give it."""
        if change <= _ROUNDING:
            return None
        shares: FloatArray = self._present / self.n
        values = self._values
        # No weights make the mean as large as the largest value.
        change = min(change, _REACHED * float(values[shares > 0].max()))
        if abs(float(shares @ values) - change) <= _ROUNDING:
            return shares
        scale = float(np.abs(values).max())
        # Newton's steps, and half the way where one leads astray: to import scipy.optimize would
        # take a hundred times as long.
        low, tilt, high = -_MOST_TILTED, 0.0, _MOST_TILTED
        while True:
            exponents = tilt * values / scale
            weights = shares * np.exp(exponents - exponents[shares > 0].max())
            weights = np.asarray(weights / weights.sum())
            mean = float(weights @ values)
            low, high = (low, tilt) if mean > change else (tilt, high)
            slope = float(weights @ (values - mean) ** 2) / scale
            following = tilt + (change - mean) / slope if slope > 0 else high
            if not low < following < high:
                following = (low + high) / 2
            if abs(following - tilt) <= _EXACT:
                return weights
            tilt = following

    def _proven(self, more: int, shares: FloatArray, draws: int) -> float:
        """The share of draws of so many more queries that are a proven gain with those there."""
        drawn = np.random.default_rng(self._seed).multinomial(more, shares, size=draws)
        counts = (self._present + drawn).astype(np.float64)
        gains = counts @ self._values > 0
        significant = self._p(counts) <= self._alpha + 1e-12
        return float((gains & significant).mean())

    def _p(self, counts: FloatArray) -> FloatArray:
        """(R,) the p of each draw; counts: (R, kinds)."""
        from scipy.special import ndtr, stdtr

        values, n = self._values, int(counts[0].sum())
        if self._test == "t":
            means = counts @ values / n
            spread = np.sqrt(np.maximum(counts @ values**2 / n - means**2, 1e-300) / (n - 1))
            return np.asarray(2 * stdtr(n - 1, -np.abs(means / spread)))
        changed = counts[:, :-1].sum(axis=1)
        if self._test == "sign-flip" and changed.max() <= _FEW_CHANGED:
            return self._flipped(counts[:, :-1], int(changed.max()))
        sizes = _ranks(counts, values) if self._test == "wilcoxon" else np.abs(values)
        signed = (counts * sizes * np.sign(values)).sum(axis=1)
        spread = np.sqrt((counts * sizes**2).sum(axis=1))
        return np.asarray(2 * ndtr(-np.abs(signed) / np.maximum(spread, 1e-300)))

    def _flipped(self, counts: FloatArray, most: int) -> FloatArray:
        alike, place = np.unique(counts, axis=0, return_inverse=True)
        columns = np.zeros((most, len(alike)))
        for column, each in enumerate(alike):
            drawn = np.repeat(self._values[:-1], each.astype(np.int64))
            columns[: len(drawn), column] = drawn
        return sign_flip_p(columns, flips=_FLIPS, seed=self._seed)[place.reshape(-1)]


def _two_digits(queries: int) -> int:
    """Rounded up to two digits: no plan is more exact."""
    unit = int(10 ** max(len(str(queries)) - 2, 0))
    return math.ceil(queries / unit) * unit


def _kinds(differences: FloatArray) -> tuple[FloatArray, IntArray]:
    """Values other than 0 and how many queries have each; of many, about `_KINDS` groups of
    neighbours with their mean."""
    values, counts = np.unique(np.round(differences[differences != 0], 9), return_counts=True)
    if len(values) <= _KINDS:
        return values, counts.astype(np.int64)
    group = (np.cumsum(counts) - counts) * _KINDS // counts.sum()
    group = np.unique(group * 2 + (values > 0), return_inverse=True)[1]
    sizes = np.bincount(group, counts)
    means = np.bincount(group, counts * values) / sizes
    return means, sizes.astype(np.int64)


def _ranks(counts: FloatArray, values: FloatArray) -> FloatArray:
    """(R, kinds) the mean rank of each kind by size among the changed, ties sharing theirs."""
    sizes, place = np.unique(np.abs(values[:-1]), return_inverse=True)
    alike = np.zeros((len(counts), len(sizes)))
    np.add.at(alike.T, place, counts[:, :-1].T)
    ranks = np.cumsum(alike, axis=1) - (alike - 1) / 2
    return np.hstack([ranks[:, place], np.zeros((len(counts), 1))])
