"""Anytime-valid intervals and p values: valid at all sample sizes together, so that a measurement
may stop at any time, also by its result.

They are asymptotic confidence sequences. Source: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas
2024, Time-uniform central limit theory and asymptotic confidence sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import Flags, Floats

FEWEST_SCORED, FEWEST_CHANGED = 20, 10
"""Minimum number of values, and of values other than 0, for an interval: with fewer, a normal
approximation is too inaccurate."""

# Relative to the interval for a single look, the width is smallest for some 400 values.
_RHO = 0.15
_ROUNDING = 1e-12


@dataclass(frozen=True)
class AnytimeSettings(StatisticsSettings):
    """The settings of a comparison with a run that was stopped by its result: intervals and p
    values are anytime-valid, whatever `interval` and `test` are."""

    @classmethod
    def of(cls, settings: StatisticsSettings) -> Self:
        """Return the settings of a comparison, with anytime-valid intervals."""
        return cls(**settings.as_dict())


def half_width(n: Floats, alpha: float) -> Floats:
    """Return half the width of the interval of a mean of (…) `n` values, in standard deviations of
    a value. alpha: the probability that the interval of any n misses the true mean."""
    rate = n * _RHO**2
    width: Floats = np.sqrt(2 * (rate + 1) / (n * rate) * np.log(np.sqrt(rate + 1) / alpha))
    return width


def running_intersection(low: Floats, high: Floats, looks: Flags) -> tuple[Floats, Floats]:
    """Return the running intersection of the intervals at the looks; the last non-empty one."""
    lows = np.maximum.accumulate(np.where(looks, low, -np.inf), axis=-1)
    highs = np.minimum.accumulate(np.where(looks, high, np.inf), axis=-1)
    nonempty = (lows <= highs).sum(axis=-1, keepdims=True)
    last = np.minimum(np.arange(lows.shape[-1]), nonempty - 1)
    return np.take_along_axis(lows, last, axis=-1), np.take_along_axis(highs, last, axis=-1)


def ratio_interval(
    mean: Floats, whole: Floats, square: Floats, both: Floats, whole_square: Floats, looks: Flags
) -> tuple[Floats, Floats, Floats]:
    """Return the ratio, and the numbers r with (mean - r × whole)² at most square - 2 r × both +
    r² × whole_square: between the two roots, if the interval of the whole is above 0."""
    least = whole**2 - whole_square
    bounded = looks & (whole > 0) & (least > 0)
    scale = np.where(bounded, least, 1.0)
    middle = (mean * whole - both) / scale
    away = np.sqrt(np.maximum(middle**2 - (mean**2 - square) / scale, 0.0))
    low, high = running_intersection(middle - away, middle + away, bounded)
    defined = np.isfinite(low) & (whole > 0)
    value = np.divide(mean, whole, out=np.full(mean.shape, np.nan), where=defined)
    return np.clip(value, low, high), low, high


def anytime_interval(columns: Floats, level: float) -> Floats:
    """Return the ends of the interval of the mean of each column (n, C), (2, C); NaN for too few
    values, and for too few other than 0."""
    n, mean, deviation, enough = _moments(columns)
    half = np.where(enough, deviation * half_width(n, 1 - level), np.nan)
    return np.stack([mean - half, mean + half])


def anytime_p(columns: Floats) -> Floats:
    """Return the two-sided p of each column (n, C) of differences, (C,): the smallest alpha whose
    interval excludes 0; NaN as `anytime_interval`."""
    n, mean, deviation, enough = _moments(columns)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = mean / deviation
    rate = n * _RHO**2
    # `half_width` solved for alpha.
    log_p = np.log(rate + 1) / 2 - distance**2 * n * rate / (2 * (rate + 1))
    p: Floats = np.where(enough, np.exp(np.minimum(log_p, 0.0)), np.nan)
    return p


def _moments(columns: Floats) -> tuple[Floats, Floats, Floats, Flags]:
    """Return the number of values of each column, their mean and standard deviation, and whether
    they are enough."""
    known = ~np.isnan(columns)
    n = np.maximum(known.sum(axis=0), 1).astype(np.float64)
    mean = np.where(known, columns, 0.0).sum(axis=0) / n
    away = np.where(known, columns - mean, 0.0)
    deviation = np.sqrt((away**2).sum(axis=0) / np.maximum(n - 1, 1))
    deviation[deviation <= _ROUNDING] = 0.0
    changed = (known & (np.abs(columns) > _ROUNDING)).sum(axis=0)
    return n, mean, deviation, (n >= FEWEST_SCORED) & (changed >= FEWEST_CHANGED)
