"""What columns of numbers prove: an interval and a p for each, and p corrected for their number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rankdash.analysis.statistics.bootstrap import (
    bca_interval,
    bootstrap_means,
    oriented,
    percentile_interval,
    sign_flip_p,
)
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.analysis.statistics.tests import corrected, paired_t_p, wilcoxon_p
from rankdash.analysis.statistics.verdict import FEWEST_QUERIES

FloatArray = npt.NDArray[np.float64]


def intervals(columns: FloatArray, settings: StatisticsSettings) -> tuple[FloatArray, FloatArray]:
    """(low, high), each (C,), of the mean of each column (n, C); NaN for too few values.

    A column's interval is its own: the other columns and the order of the rows change nothing, and
    that of a column times -1 is its mirror image.
    """
    low, high = np.full((2, columns.shape[1]), np.nan)
    enough = (~np.isnan(columns)).sum(axis=0) >= FEWEST_QUERIES
    if enough.any():
        chosen, sign = oriented(columns[:, enough])
        means = bootstrap_means(chosen, resamples=settings.resamples, seed=settings.seed)
        if settings.interval == "bca":
            ends = bca_interval(chosen, means, settings.level)
        else:
            ends = percentile_interval(means, settings.level)
        # The lower end of a column that was turned upside down is the upper one of the column.
        low[enough], high[enough] = np.sort(np.stack(ends) * sign, axis=0)
    return low, high


def p_values(columns: FloatArray, settings: StatisticsSettings) -> FloatArray:
    """(C,) the p of each column (n, C) of differences; NaN where there are too few."""
    p = np.full(columns.shape[1], np.nan)
    enough = np.flatnonzero((~np.isnan(columns)).sum(axis=0) >= FEWEST_QUERIES)
    if not len(enough):
        return p
    if settings.test == "sign-flip":
        chosen = columns[:, enough]
        p[enough] = sign_flip_p(chosen, flips=settings.resamples, seed=settings.seed)
        return p
    test = paired_t_p if settings.test == "t" else wilcoxon_p
    p[enough] = [test(_without_nan(columns[:, place])) for place in enough]
    return p


def _without_nan(values: FloatArray) -> FloatArray:
    return values[~np.isnan(values)]


def corrected_by_family(
    p: FloatArray, settings: StatisticsSettings
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """(challengers, M) corrected p values, and over how many comparisons each."""
    made = ~np.isnan(p)
    if settings.family == "all":
        together = corrected(p.reshape(-1).tolist(), settings.correction)
        return np.array(together).reshape(p.shape), np.full(p.shape, made.sum())
    apart = [corrected(column.tolist(), settings.correction) for column in p.T]
    return np.array(apart).reshape(p.T.shape).T, np.broadcast_to(made.sum(axis=0), p.shape)
