"""Student's t interval of a mean, alone and widened if the values are skewed.

Student's t covers a mean of few values well if their distribution is symmetric. Changes of a metric
often are not: most queries do not change, and a few change much. Hall's transformation removes the
skewness of t. It covers such means, but it is too narrow if the skewness of the sample is chance.
Each end of the interval is therefore the wider of both, but the transformation moves no end beyond
the values seen.

Sources: Student (1908); Hall, P. (1992), On the removal of skewness by transformation, Journal of
the Royal Statistical Society B 54, 221–228.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from rankdash.core.data.arrays import Floats
from rankdash.core.statistics.bootstrap import TIE, Columns, moments

Numbers = TypeVar("Numbers", float, Floats)

_ROUNDING = 1e-12
# Below this skewness over √n both ends are those of t, to the last digit.
_NOT_SKEWED = 1e-9


def t_interval(columns: Columns, level: float, *, skewed: bool) -> Floats:
    """Return (2, C), the ends of the interval of the mean of each column.

    skewed: whether an end moves outwards if Hall's transformation is wider there. A column without
    spread gives its value twice.
    """
    from scipy.special import stdtrit

    mean, error, skew = _moments(columns)
    reach = stdtrit(columns.known.sum(axis=0) - 1, (1 + level) / 2)
    low, high = mean - error * reach, mean + error * reach
    if skewed:
        lowest = np.fmin.reduce(columns.values, axis=0)
        highest = np.fmax.reduce(columns.values, axis=0)
        low = np.minimum(low, np.maximum(mean - error * _back(reach, skew), lowest))
        high = np.maximum(high, np.minimum(mean - error * _back(-reach, skew), highest))
    return np.stack([low, high])


def p_below(values: Floats, limit: float) -> float:
    """Return the one-sided p of a true mean below `limit`, for (n,) values.

    It is at most 1 - c if, and only if, the lower end at the one-sided confidence c is at least the
    limit. NaN if the values have no spread.
    """
    from scipy.special import stdtr

    mean, error, skew = (float(each[0]) for each in _moments(Columns.of(np.sort(values)[:, None])))
    if not error > 0:
        return math.nan
    t = (mean - limit) / error
    # No end of the interval lies beyond the values because of the skewness.
    decides = t if limit <= values.min() + _ROUNDING else min(t, without_skewness(t, skew))
    return float(stdtr(len(values) - 1, -decides))


def without_skewness(t: Numbers, skew: Numbers) -> Numbers:
    """Return t after Hall's transformation; skew: the skewness over √n."""
    return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6


def _moments(columns: Columns) -> tuple[Floats, Floats, Floats]:
    """Return the mean, its standard error and the skewness over √n, each (C,)."""
    mean, squares, cubes = moments(columns)
    n = columns.known.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(squares / (n - 1) / n)
        # The adjusted Fisher–Pearson coefficient, G₁, over √n.
        skew = np.sqrt(n * (n - 1.0)) / (n - 2) * cubes / squares**1.5
    largest = np.abs(columns.steps).max(axis=0, initial=0.0) * columns.step
    varies = squares > (TIE * largest) ** 2
    return mean, np.where(varies, error, 0.0), np.where(varies, skew, 0.0)


def _back(x: Floats, skew: Floats) -> Floats:
    """Return the t that Hall's transformation turns into x."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1)
    return np.where(np.abs(skew) < _NOT_SKEWED, x, found)
