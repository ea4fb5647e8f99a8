"""Means of outcomes, and their changes between arms, with intervals by the unit of randomisation.

The mean of an arm is the sum of the outcomes over the number of searches. Outcomes of a unit, such
as a session, depend on each other, so the variance is computed from the linearised residuals of
units, with the factor G / (G - 1) of a cluster-robust sandwich (CR1). Welch and Satterthwaite give
the degrees of freedom of a change.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.statistics.anytime import half_width

FEWEST_UNITS = 20
"""Minimum number of units of an arm for an interval."""

_ROUNDING = 1e-15


class Mean(NamedTuple):
    """The mean outcome of a search of an arm. variance: of the mean; NaN for fewer than two
    units. effective: the number of units with equal numbers of searches that are as reliable
    (Kish), at most `units`."""

    value: float
    variance: float
    units: int
    searches: int
    effective: float


class Change(NamedTuple):
    """The change of a mean between two arms. low, high: its interval at a planned end. p: its
    two-sided p. always_low, always_high: the anytime-valid interval. relative…: as a share of the
    mean before; NaN if it is not above 0. Intervals and p are NaN for fewer than `FEWEST_UNITS`
    effective units, or without spread."""

    delta: float
    low: float
    high: float
    p: float
    always_low: float
    always_high: float
    relative: float
    relative_low: float
    relative_high: float


def mean_of(searches: Integers, totals: Floats) -> Mean:
    """Return the mean outcome. searches, totals: (G,) the searches of each unit, above 0, and the
    sum of their outcomes."""
    units, count = len(searches), int(searches.sum())
    if not units:
        return Mean(math.nan, math.nan, 0, 0, 0.0)
    value = float(totals.sum()) / count
    residuals = (totals - value * searches) / count
    variance = math.nan
    if units > 1:
        variance = float(residuals @ residuals) * units / (units - 1)
        if variance <= (_ROUNDING * max(abs(value), 1.0)) ** 2:
            variance = 0.0
    return Mean(value, variance, units, count, effective_units(searches))


def effective_units(sizes: Integers | Floats) -> float:
    """Return the effective number of units: if a few units have most searches or wins, they decide
    the mean, and its variance cannot be estimated. sizes: (G,), not all 0."""
    shares = sizes / sizes.sum()
    return float(1 / (shares @ shares))


def change_of(before: Mean, after: Mean, level: float, comparisons: int = 1) -> Change:
    """Return the change from one arm to another; the units of the arms differ. comparisons: the
    number of changes of one family (Bonferroni)."""
    from scipy.special import stdtr, stdtrit

    delta = after.value - before.value
    relative = delta / before.value if before.value > 0 else math.nan
    variance = before.variance + after.variance
    if min(before.effective, after.effective) < FEWEST_UNITS or not variance > 0:
        return Change(delta, *(math.nan,) * 5, relative, math.nan, math.nan)
    error = math.sqrt(variance)
    freedom = variance**2 / sum(each.variance**2 / (each.units - 1) for each in (before, after))
    reach = float(stdtrit(freedom, (1 + level) / 2))
    p = 2 * float(stdtr(freedom, -abs(delta) / error))
    units = before.units + after.units
    always = _anytime(units, (1 - level) / comparisons) * error
    low = high = math.nan
    if before.value > 0 and after.value > 0:
        # The delta method on the logarithm of the ratio.
        spread = math.sqrt(sum(each.variance / each.value**2 for each in (before, after)))
        ratio = after.value / before.value
        low, high = (ratio * math.exp(sign * reach * spread) - 1 for sign in (-1, 1))
    return Change(
        delta, delta - reach * error, delta + reach * error, p,
        delta - always, delta + always, relative, low, high,
    )  # fmt: skip


def preference_of(first: Floats, second: Floats, level: float) -> Change:
    """Return the preference for the second of two interleaved rankings as a change: (wins of the
    second - wins of the first) / wins, from -1 to 1.

    first, second: (G,) the outcomes, not negative, that each unit credits to a team. Units without
    any are excluded.
    """
    from scipy.special import stdtr, stdtrit

    wins = first + second
    present = wins > 0
    units = int(present.sum())
    if not units:
        return Change(*(math.nan,) * 9)
    total = float(wins.sum())
    value = float((second - first).sum()) / total
    residuals = ((second - first) - value * wins)[present] / total
    error = math.sqrt(float(residuals @ residuals) * units / max(units - 1, 1))
    if effective_units(wins) < FEWEST_UNITS or not error > _ROUNDING:
        return Change(value, *(math.nan,) * 8)
    reach = float(stdtrit(units - 1, (1 + level) / 2)) * error
    p = 2 * float(stdtr(units - 1, -abs(value) / error))
    always = _anytime(units, 1 - level) * error
    ends = (value - reach, value + reach, value - always, value + always)
    low, high, always_low, always_high = (min(max(each, -1.0), 1.0) for each in ends)
    return Change(value, low, high, p, always_low, always_high, *(math.nan,) * 3)


def _anytime(units: int, alpha: float) -> float:
    """Return half the width of an anytime-valid interval, in standard errors."""
    half = half_width(np.array([units], dtype=np.float64), alpha)
    return float(half[0]) * math.sqrt(units)


def mismatch_p(units: Integers, shares: Floats) -> float:
    """Return the p of the sample-ratio test (χ²). units: (A,) the units of each arm; shares: (A,)
    the planned shares, which sum to 1. NaN without units."""
    from scipy.special import chdtrc

    total = int(units.sum())
    if not total:
        return math.nan
    expected = total * shares
    return float(chdtrc(len(units) - 1, float(((units - expected) ** 2 / expected).sum())))
