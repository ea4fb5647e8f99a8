"""Bootstrap and sign-flip distributions of means, for many columns in one pass.

A column is a metric of a system, or its difference from another system's; NaN marks a query that
it has no value for, and such a query takes no part in it. The same random numbers serve every
column they can, and both distributions are matrix products over chunks of them, so that memory
stays bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, pdtr
from threadpoolctl import ThreadpoolController

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
_Weights = npt.NDArray[np.float32]

RESAMPLES = 10_000
SEED = 20_261_121
POISSON_FROM = 1_000
"""From so many queries on, a query's weights are drawn on their own: the number of queries in a
resample then varies, which widens an interval by less than one part in a thousand."""

_CHUNK_CELLS = 1_000_000
# A byte each: six kept sets of weights take 144 MB at the most.
_KEPT_CELLS = 24_000_000
_ALONE = threading.Lock()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products in one thread. They are so small that a second thread mostly spins while it waits,
    and on a busy machine each waits until the other is scheduled: ten times slower. The limit is
    the process's, hence the lock."""
    with _ALONE, _libraries().limit(limits=1, user_api="blas"):
        yield


def bootstrap_means(
    values: FloatArray, *, resamples: int = RESAMPLES, seed: int = SEED
) -> FloatArray:
    """Means over queries drawn with replacement.

    values: (n, C); NaN where a column lacks a query. Returns (resamples, C); NaN for a column
    without any value. What a column gets depends on its own queries and not on the other columns,
    as long as it has fewer than `POISSON_FROM`; the larger ones share one set of weights.

    Sources: Efron, B. (1979), Bootstrap methods; with Poisson weights: Hanley & MacGibbon (2006).
    """
    known = ~np.isnan(values)
    sizes = known.sum(axis=0)
    # Column means are subtracted first, so that single precision loses nothing that matters.
    centre = _means(values, known)
    centred = np.where(known, values - centre, 0.0).astype(np.float32)
    means = np.full((resamples, values.shape[1]), np.nan)
    large = np.flatnonzero(sizes >= POISSON_FROM)
    if len(large):
        groups = list(_by_queries(known, large))
        order = np.concatenate([columns for _, columns in groups])
        sets = np.stack([known[:, columns[0]] for _, columns in groups], axis=1)
        of_column = np.repeat(np.arange(len(groups)), [len(columns) for _, columns in groups])
        both = np.hstack([centred[:, order], sets.astype(np.float32)])
        with _one_thread():
            for rows, weights in _poisson_weights(len(values), resamples, seed):
                sums = weights @ both
                means[rows, order] = sums[:, : len(order)] / sums[:, len(order) + of_column]
    for members, columns in _by_queries(
        known, np.flatnonzero((sizes > 0) & (sizes < POISSON_FROM))
    ):
        own = centred[np.ix_(members, columns)]
        with _one_thread():
            for rows, weights in _multinomial_weights(len(members), resamples, seed):
                means[rows, columns] = weights @ own / len(members)
    return _without_rounding_errors(means + centre, values, known)


def _without_rounding_errors(means: FloatArray, values: FloatArray, known: Flags) -> FloatArray:
    """A mean lies within its values, and one of 0, on which a verdict turns, is exactly 0."""
    lowest = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
    highest = np.where(known, values, -np.inf).max(axis=0, initial=-np.inf)
    means[np.abs(means) <= 1e-7 * np.maximum(np.abs(lowest), np.abs(highest))] = 0.0
    within: FloatArray = np.clip(means, lowest, highest)
    return within


def _means(values: FloatArray, known: Flags) -> FloatArray:
    """(C,) means over what is known; NaN where nothing is."""
    sizes = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan)


def _by_queries(
    known: Flags, columns: npt.NDArray[np.intp]
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """(positions of queries, columns that have exactly these), for the columns given."""
    sharing: dict[bytes, list[int]] = {}
    for column in columns.tolist():
        sharing.setdefault(known[:, column].tobytes(), []).append(column)
    for alike in sharing.values():
        yield np.flatnonzero(known[:, alike[0]]), np.array(alike, dtype=np.intp)


def _chunks(n: int, resamples: int) -> Iterator[slice]:
    step = max(1, _CHUNK_CELLS // max(n, 1))
    for start in range(0, resamples, step):
        yield slice(start, min(start + step, resamples))


def _multinomial_weights(n: int, resamples: int, seed: int) -> Iterator[tuple[slice, _Weights]]:
    """How often each of n queries is drawn in n draws, a row for each resample."""
    rng = np.random.default_rng(seed)
    for chunk in _chunks(n, resamples):
        rows = chunk.stop - chunk.start
        draws = rng.integers(0, n, size=(rows, n))
        draws += np.arange(rows)[:, None] * n
        counts = np.bincount(draws.reshape(-1), minlength=rows * n)
        yield chunk, counts.reshape(rows, n).astype(np.float32)


def _poisson_weights(n: int, resamples: int, seed: int) -> Iterator[tuple[slice, _Weights]]:
    """Independent Poisson(1) weights of n queries, a row for each resample, to 2^-16 exact."""
    few_enough = n * resamples <= _KEPT_CELLS
    drawn = _kept_weights if few_enough else _drawn_weights
    for chunk, weights in drawn(n, resamples, seed):
        yield chunk, weights.astype(np.float32)


@lru_cache(maxsize=6)
def _kept_weights(
    n: int, resamples: int, seed: int
) -> tuple[tuple[slice, npt.NDArray[np.uint8]], ...]:
    """Drawing costs more than the product that uses it, and a slider asks for the same again."""
    return tuple(_drawn_weights(n, resamples, seed))


def _drawn_weights(
    n: int, resamples: int, seed: int
) -> Iterator[tuple[slice, npt.NDArray[np.uint8]]]:
    source = np.random.PCG64(seed)
    edges = np.round(pdtr(np.arange(12), 1.0) * 2**16)
    weight_of = np.searchsorted(edges, np.arange(2**16), side="right").astype(np.uint8)
    for chunk in _chunks(n, resamples):
        rows = chunk.stop - chunk.start
        uniform = _random_bits(source, 16 * rows * n).view("<u2")[: rows * n]
        yield chunk, weight_of.take(uniform).reshape(rows, n)


def _random_bits(source: np.random.PCG64, bits: int) -> npt.NDArray[np.uint64]:
    """At least so many, in whole words; several times faster than `Generator.bytes`."""
    words: npt.NDArray[np.uint64] = source.random_raw(-(-bits // 64))
    return words.astype("<u8", copy=False)


def percentile_interval(means: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """(low, high) of shape (C,) from bootstrap means (B, C)."""
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


def bca_interval(
    values: FloatArray, means: FloatArray, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Bias-corrected and accelerated interval of the mean of each column.

    values: (n, C), NaN where a column lacks a query; means: its bootstrap means (B, C). Returns
    (low, high), each (C,); a column without spread gives its value twice, one without values NaN.
    Source: Efron, B. (1987), Better bootstrap confidence intervals; the acceleration of a mean is
    its skewness over 6 √n.
    """
    known = ~np.isnan(values)
    centre = _means(values, known)
    deviations = np.where(known, values - centre, 0.0)
    squares = deviations * deviations
    spread = squares.sum(axis=0)
    # Draws equal to the estimate count half: per-query metrics have few distinct values.
    below = (means < centre).mean(axis=0) + 0.5 * (means == centre).mean(axis=0)
    draws = len(means)
    bias = ndtri(np.clip(below, 0.5 / draws, 1 - 0.5 / draws))
    # A product, because a power of three is forty times slower.
    skew = (squares * deviations).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        acceleration = np.where(spread > 0, skew / (6 * spread**1.5), 0.0)
    edges = ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))[:, None] + bias
    # Past the pole of the formula, which only extreme skew reaches, the interval is one-sided.
    shares = ndtr(bias + edges / np.maximum(1 - acceleration * edges, 1e-9))
    ordered = np.sort(means, axis=0)
    positions = np.clip(shares * (draws - 1), 0, draws - 1)
    lower = np.floor(positions).astype(np.intp)
    upper = np.minimum(lower + 1, draws - 1)
    columns = np.arange(values.shape[1])
    weight = positions - lower
    bounds = (1 - weight) * ordered[lower, columns] + weight * ordered[upper, columns]
    bounds[:, spread == 0] = centre[spread == 0]
    return bounds[0], bounds[1]


def sign_flip_p(differences: FloatArray, *, flips: int = RESAMPLES, seed: int = SEED) -> FloatArray:
    """Two-sided p of the paired randomisation test for each column.

    differences: (n, C), NaN where a column lacks a pair; NaN comes back for a column without any.
    Under the null hypothesis each query's difference is as likely to have the other sign.
    p = (b + 1) / (m + 1) for b of m flips at least as far from 0 as what was seen, so it is never
    0. Source: Fisher (1935); Smucker, Allan & Carterette (2007).
    """
    known = ~np.isnan(differences)
    # A flip of nothing changes no sum: columns with other queries can share the signs.
    filled = np.where(known, differences, 0.0)
    totals = filled.sum(axis=0)
    # Equal sums must count as equal whatever the order of addition made of their last digits.
    seen = np.abs(totals) - 1e-6 * np.abs(filled).sum(axis=0)
    narrow, halves = filled.astype(np.float32), totals.astype(np.float32) / 2
    source = np.random.PCG64(seed)
    n = len(differences)
    extreme = np.zeros(differences.shape[1], dtype=np.int64)
    with _one_thread():
        for chunk in _chunks(n, flips):
            rows = chunk.stop - chunk.start
            bits = np.unpackbits(_random_bits(source, rows * n).view(np.uint8))
            kept = bits[: rows * n].reshape(rows, n).astype(np.float32) @ narrow
            # What is kept less what is flipped is twice what is kept, less everything.
            extreme += (2 * np.abs(kept - halves) >= seen).sum(axis=0)
    p = (extreme + 1.0) / (flips + 1.0)
    return np.where(known.any(axis=0), p, np.nan).astype(np.float64)
