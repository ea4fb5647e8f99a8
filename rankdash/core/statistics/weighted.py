"""Weighted means of a stratified sample of queries: values with the same ordinary mean and standard
error, and resamples within strata.

The mean is Σ w m / Σ w over the queries (Hájek 1971). Its variance is the variance of the
linearised residuals w (m - mean) / Σ w, each centred in its stratum, as in survey statistics
(Särndal, Swensson & Wretman 1992, 5.6–5.7). Sampling is treated as with replacement: an interval
applies to future searches of the same kind, and has a width even if all queries of a log are
sampled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankdash.core.base.errors import SpecError
from rankdash.core.base.rules import FEWEST_QUERIES, StatisticsSettings
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.data.weights import Weights
from rankdash.core.statistics.anytime import AnytimeSettings
from rankdash.core.statistics.bootstrap import Columns, multinomial_counts

_FEWEST = 2
_ROUNDING = 1e-9


def refuse_unweighted(
    settings: StatisticsSettings, weights: Weights, *, tested: bool = False
) -> None:
    """Raise SpecError for settings without a weighted version. tested: whether p is computed."""
    if isinstance(settings, AnytimeSettings):
        raise SpecError(
            "A run that was stopped by its result has no means per search.",
            remedy="Use the weights “per query”, or score all queries.",
        )
    if weights.equal:
        return
    if settings.interval == "bca":
        raise SpecError(
            "The BCa bootstrap is too narrow for means per search with uneven weights.",
            remedy="Use Student's t, or the weights “per query”.",
        )
    if tested and settings.test == "wilcoxon":
        raise SpecError(
            "The Wilcoxon signed-rank test compares ranks, so it has no version per search.",
            remedy="Use the permutation test or the paired t test, or the weights “per query”.",
        )


def has_few_effective(weights: Weights | None) -> bool:
    """Return whether the effective number of queries is below `FEWEST_QUERIES`: then a few queries
    carry most of the weight, and an interval would be far too narrow. weights: None: not
    weighted."""
    return weights is not None and is_few_effective(weights.effective)


def is_few_effective(number: float) -> bool:
    """Return whether an effective number of queries is below `FEWEST_QUERIES`; False for NaN."""
    return number < FEWEST_QUERIES - _ROUNDING


def pseudo_values(columns: Floats, weights: Weights) -> Floats:
    """Return (n, C) values whose ordinary mean is the weighted mean of each column, and whose
    standard error equals the standard error of the stratified mean; NaN if a column has no value
    for a query."""
    if weights.equal:
        return columns
    values = np.full(columns.shape, np.nan)
    for at, column in enumerate(columns.T):
        known = ~np.isnan(column)
        n = int(known.sum())
        if n:
            values[known, at] = _of_column(column[known], weights.taken(known))
    return values


def _of_column(column: Floats, weights: Weights) -> Floats:
    n, searches = len(column), weights.searches
    mean = weights.mean(column)
    strata = merged_strata(weights.strata)
    residuals = searches * (column - mean) / searches.sum()
    sizes = np.bincount(strata)
    centred = residuals - (np.bincount(strata, residuals) / np.maximum(sizes, 1))[strata]
    factor = np.sqrt(sizes / np.maximum(sizes - 1, 1) * ((n - 1) / n))
    values: Floats = mean + n * factor[strata] * centred
    return values


def merged_strata(strata: Integers) -> Integers:
    """Return the strata as codes from 0, with a stratum of one query merged with the next one, or
    the last with the one before it: a single query shows no variance."""
    codes = np.unique(strata, return_inverse=True)[1]
    sizes = np.bincount(codes)
    merged = np.zeros(len(sizes), dtype=np.int64)
    current, size = 0, 0
    for place, count in enumerate(sizes.tolist()):
        if size >= _FEWEST:
            current, size = current + 1, 0
        merged[place], size = current, size + count
    if size < _FEWEST and current:
        merged[merged == current] = current - 1
    result: Integers = merged[codes]
    return result


def resampled_means(columns: Floats, weights: Weights, *, resamples: int, seed: int) -> Floats:
    """Return weighted means over queries resampled with replacement within their strata,
    (resamples, C). The result of a column does not depend on the order of its rows."""
    means = np.full((resamples, columns.shape[1]), np.nan)
    for at, column in enumerate(columns.T):
        known = ~np.isnan(column)
        if known.any():
            means[:, at] = _means(column[known], weights.taken(known), resamples, seed)
    return means


def _means(column: Floats, weights: Weights, resamples: int, seed: int) -> Floats:
    strata = merged_strata(weights.strata)
    above, below = np.zeros(resamples), np.zeros(resamples)
    for place, rows in _members(strata, column, weights.searches):
        searches = weights.searches[rows]
        for draws, counts in multinomial_counts(len(rows), resamples, seed + place):
            times = counts.astype(np.float64)
            above[draws] += times @ (searches * column[rows])
            below[draws] += times @ searches
    result: Floats = above / below
    return result


def _members(strata: Integers, column: Floats, searches: Floats) -> Iterator[tuple[int, Integers]]:
    """Yield each stratum with its rows, by value and weight."""
    order = np.lexsort((searches, column))
    for place in range(int(strata.max()) + 1):
        yield place, order[strata[order] == place]


def weighted_columns(values: Floats) -> Columns:
    """Return pseudo-values prepared for intervals, each column sorted."""
    return Columns.of(np.sort(values, axis=0))
