"""Number of queries that a verdict needs, for a chosen power, from the observed differences.

Per-query differences are mostly 0, tied and skewed, so formulas for the normal distribution are too
optimistic. Future queries are therefore sampled from the existing ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rankdash.core.base.rules import LEVEL, SEED, Test
from rankdash.core.data.arrays import Flags, Floats, Integers
from rankdash.core.statistics.inference import sign_flip_p, spread_of, without_skewness

POWER = 0.80
FEWEST_PLANNED = 20
"""Fewer differences than this do not show how similar queries would behave."""
PRACTICAL = 100_000
"""A plan with more queries than this, and more than ten times the existing ones, is impractical."""

_DRAWS = 1_000
_FORESEEN = 4
_REACHED = 0.99
_KINDS = 48
# The weights of gains and losses differ by at most a factor of e to this power, so they are exact.
_MOST_TILTED, _EXACT = 500.0, 1e-12
# Up to this many changed queries, flips are sampled; beyond, their sum is approximated as normal.
_FEW_CHANGED = 30
_FLIPS = 1_000
# Accuracy of steps such as 1/3.
_SAME_STEP = 1e-6
# Differences that add up to 0 may have a mean of 0 or of about 1e-17, depending on their order.
_ROUNDING = 1e-8


@dataclass(frozen=True)
class QueryPlan:
    """Numbers of additional queries, to two digits, that would prove a change; None if no practical
    number would.

    likely: the least number with a power of at least `POWER` for the observed change. least, most:
        the same for the ends of the middle half of the interval; the end nearer to 0 needs most.
    none_within: whether that middle half contains 0.
    """

    likely: int | None
    least: int | None
    most: int | None
    none_within: bool


def smallest_detectable(
    differences: Floats, *, level: float = LEVEL, power: float = POWER
) -> float:
    """Return the mean difference that this number of queries detects with that power.

    From the variance of the paired differences, not of two independent proportions. NaN for fewer
    than two queries, and if the differences do not vary. Source: Sakai (2016), topic set size
    design, t test.
    """
    from scipy.special import stdtrit

    n, spread = len(differences), spread_of(differences)
    if spread == 0:
        return math.nan
    reach = stdtrit(n - 1, (1 + level) / 2) + stdtrit(n - 1, power)
    return float(reach * spread / math.sqrt(n))


def plan(
    differences: Floats,
    ends: tuple[float, float],
    *,
    test: Test = "sign-flip",
    level: float = LEVEL,
    verdict_level: float = LEVEL,
    seed: int = SEED,
) -> QueryPlan | None:
    """Return how many similar queries to add, so that a share of `POWER` of all draws proves a
    change: p is at most 1 - level and the interval at `verdict_level` excludes 0.

    differences: (n,). ends: the interval of their mean at `verdict_level`. The existing queries
        stay; future ones are sampled from them with replacement. For another true change than the
        observed one, the sampling weights are tilted, so that zeros and steps are preserved.

    None for fewer than `FEWEST_PLANNED` differences, without an interval, or if they do not vary or
    add up to 0.
    """
    from scipy.special import ndtri

    n, mean = len(differences), float(np.mean(differences)) if len(differences) else 0.0
    unchanged = abs(mean) <= _ROUNDING or spread_of(differences) == 0
    if n < FEWEST_PLANNED or unchanged or math.isnan(ends[0]):
        return None
    sign = math.copysign(1.0, mean)
    # The true change is beyond either end of the middle half with a probability of 1/4 each.
    middle = float(ndtri(0.75) / ndtri((1 + verdict_level) / 2))
    near, far = sorted(sign * (mean + middle * (end - mean)) for end in ends)
    queries = _Queries(differences * sign, test, (level, verdict_level), seed)
    numbers = _two_digits(max(PRACTICAL, 10 * n))
    likely = queries.fewest(abs(mean), numbers)
    if likely is None:
        return QueryPlan(None, None, None, bool(near <= 0))
    # A larger change never needs more queries: with its weights, each sampled query gains at least
    # as much, and the p of sign flips and of signed ranks falls with each gain.
    least = queries.fewest(far, numbers[numbers <= likely])
    most = queries.fewest(near, numbers[numbers >= likely])
    return QueryPlan(likely, least or likely, most, bool(near <= 0))


class _Queries:
    """Differences of the existing queries (positive for a gain): distinct values with counts."""

    def __init__(
        self,
        differences: Floats,
        test: Test,
        levels: tuple[float, float],
        seed: int,
    ) -> None:
        """Group the differences by value. levels: of p and of the interval."""
        self.n, self._test, self._seed = len(differences), test, seed
        self._alpha, self._level = 1 - levels[0], levels[1]
        values, counts = _kinds(differences)
        self._step = _common_step(values)
        # Zeros come last: they count as queries but change no sum.
        self._values = np.append(values, 0.0)
        self._present = np.append(counts, self.n - counts.sum())

    def fewest(self, change: float, numbers: Integers) -> int | None:
        """Return the smallest number of additional queries with power `POWER` for a true change;
        None if all of the ascending `numbers` have less.

        Power grows with the number. The search first tries the numbers that the normal distribution
        predicts, corrected by each observed share of draws, and then bisects. The draws reach the
        power with the returned number, but not with the one before it.
        """
        from scipy.special import ndtri

        shares = self._tilted(change)
        if shares is None:
            return None
        foreseen, target = self._foreseen(numbers, shares), ndtri(POWER)
        low, high, adjusted, tried = -1, len(numbers), foreseen, 0
        while high - low > 1:
            place = (low + high) // 2
            if tried < _FORESEEN:
                place = min(max(int((adjusted < target).sum()), low + 1), high - 1)
            reached = self._proven(int(numbers[place]), shares)
            low, high = (low, place) if reached >= POWER else (place, high)
            # Clipped half a draw from 0 and 1, whose quantiles are infinite.
            shift = ndtri(np.clip(reached, 0.5 / _DRAWS, 1 - 0.5 / _DRAWS)) - foreseen[place]
            adjusted, tried = foreseen + shift, tried + 1
        return int(numbers[high]) if high < len(numbers) else None

    def _foreseen(self, numbers: Integers, shares: Floats) -> Floats:
        """Return the power for each number of additional queries in the normal approximation, as
        standard normal quantiles, shape (N,)."""
        from scipy.special import ndtri

        values = self._values
        change, square = float(shares @ values), float(shares @ values**2)
        total = self._present @ values - self._step + numbers * change
        needed = ndtri(1 - self._alpha / 2) * np.sqrt(self._present @ values**2 + numbers * square)
        spread = math.sqrt(max(square - change**2, _EXACT * square))
        return np.asarray((total - needed) / (spread * np.sqrt(numbers)))

    def _tilted(self, change: float) -> Floats | None:
        """Return the share of each distinct value, reweighted by exponential tilting so that the
        mean is `change`; None if no weights achieve it."""
        if change <= _ROUNDING:
            return None
        shares: Floats = self._present / self.n
        values = self._values
        # No weights make the mean equal to the largest value.
        change = min(change, _REACHED * float(values[shares > 0].max()))
        if abs(float(shares @ values) - change) <= _ROUNDING:
            return shares
        scale = float(np.abs(values).max())
        # Newton's method with bisection as a fallback: importing scipy.optimize would take a
        # hundred times as long.
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

    def _proven(self, more: int, shares: Floats) -> float:
        """Return the share of draws in which the additional and the existing queries prove a
        gain."""
        drawn = np.random.default_rng(self._seed).multinomial(more, shares, size=_DRAWS)
        counts = (self._present + drawn).astype(np.float64)
        above = self._above_zero(counts)
        proven = above & (self._p(counts) <= self._alpha + 1e-12) if above.any() else above
        return float(proven.mean())

    def _above_zero(self, counts: Floats) -> Flags:
        """Return whether the interval of the mean of each draw, widened for skewness, is above 0,
        (R,)."""
        from scipy.special import stdtrit

        values, n = self._values, float(counts[0].sum())
        mean, square, cube = (counts @ values**power / n for power in (1, 2, 3))
        variance = np.maximum(square - mean**2, 1e-300)
        third = cube - 3 * mean * square + 2 * mean**3
        skew = math.sqrt((n - 1) * n) / (n - 2) * third / variance**1.5 / math.sqrt(n)
        t = mean / np.sqrt(variance / (n - 1))
        lowest = self._values[self._present > 0].min()
        decides = t if lowest >= 0 else np.minimum(t, without_skewness(t, skew))
        return np.asarray(decides > stdtrit(n - 1, (1 + self._level) / 2))

    def _p(self, counts: Floats) -> Floats:
        """Return the p of each draw, (R,); counts: (R, kinds)."""
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
        signed = np.abs((counts * sizes * np.sign(values)).sum(axis=1))
        if self._test == "sign-flip":
            # Sums of flips are two steps apart; half of that is the continuity correction.
            signed = np.maximum(signed - self._step, 0.0)
        spread = np.sqrt((counts * sizes**2).sum(axis=1))
        return np.asarray(2 * ndtr(-signed / np.maximum(spread, 1e-300)))

    def _flipped(self, counts: Floats, most: int) -> Floats:
        alike, place = np.unique(counts, axis=0, return_inverse=True)
        columns = np.zeros((most, len(alike)))
        for column, each in enumerate(alike):
            drawn = np.repeat(self._values[:-1], each.astype(np.int64))
            columns[: len(drawn), column] = drawn
        return sign_flip_p(columns, flips=_FLIPS, seed=self._seed)[place.reshape(-1)]


def _two_digits(most: int) -> Integers:
    """Return all numbers up to `most` with at most two significant digits, the accuracy of a
    plan."""
    units = 10 ** np.arange(len(str(most)))
    numbers = np.unique(np.outer(units, np.arange(1, 100)))
    return numbers[numbers <= most].astype(np.int64)


def _common_step(values: Floats) -> float:
    """Return the largest step of which all values are multiples, such as 1 for hit; about 0 if the
    values have no common step."""
    step = 0.0
    for value in np.abs(values).tolist():
        while value > _SAME_STEP:
            step, value = value, abs(math.remainder(step, value))
    return step


def _kinds(differences: Floats) -> tuple[Floats, Integers]:
    """Return the values other than 0 and the number of queries with each; many values are grouped
    into about `_KINDS` neighbourhoods with their means."""
    values, counts = np.unique(np.round(differences[differences != 0], 9), return_counts=True)
    if len(values) <= _KINDS:
        return values, counts.astype(np.int64)
    group = (np.cumsum(counts) - counts) * _KINDS // counts.sum()
    group = np.unique(group * 2 + (values > 0), return_inverse=True)[1]
    sizes = np.bincount(group, counts)
    means = np.bincount(group, counts * values) / sizes
    return means, sizes.astype(np.int64)


def _ranks(counts: Floats, values: Floats) -> Floats:
    """Return the mean rank of each value by size among the changed queries, ties sharing theirs,
    (R, kinds)."""
    sizes, place = np.unique(np.abs(values[:-1]), return_inverse=True)
    alike = np.zeros((len(counts), len(sizes)))
    np.add.at(alike.T, place, counts[:, :-1].T)
    ranks = np.cumsum(alike, axis=1) - (alike - 1) / 2
    return np.hstack([ranks[:, place], np.zeros((len(counts), 1))])
