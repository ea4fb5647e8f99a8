"""Bootstrap distributions of means, for many columns in one pass, and code shared with
`inference.sign_flip_p`: exact sums and random bits.

A column is a metric of a system, or its difference from another system; NaN marks a query without a
value, which is not part of the column. The columns share random numbers as far as possible, and
both distributions are matrix products over chunks of them, which limits memory.

Per-query metrics have few distinct values, and many resamples have exactly the observed mean, and a
verdict depends on recognizing these ties. Values are therefore counted in integer steps, whose sums
are exact for any order of addition, processor or set of other columns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from rankdash.core.base.rules import RESAMPLES, SEED
from rankdash.core.data.arrays import Flags, Floats

_Words = npt.NDArray[np.uint64]

POISSON_FROM = 1_000
"""Least number of queries with independently sampled weights: the number of queries in a resample
then varies, which widens an interval by less than one part in a thousand."""

TIE = 1e-9
"""Relative tolerance: means that differ by less than this share of a column's largest value are
equal, because the last digits of 1/3 + 1/6 and of 1/2 differ."""

_CHUNK_CELLS = 1_000_000
# A tile of this many draws by this many queries fits in a processor's cache.
TILE = 500
# One byte each: six cached sets of weights take at most 144 MB, and six sets for fewer queries 60
# MB.
_KEPT_CELLS = 24_000_000
_ALONE = threading.Lock()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run matrix products in one thread. They are small, so a second thread mostly spins while it
    waits, and on a busy machine each waits until the other is scheduled: ten times slower. The
    limit applies to the whole process, hence the lock."""
    with _ALONE, _libraries().limit(limits=1, user_api="blas"):
        yield


@dataclass(frozen=True, eq=False)
class Columns:
    """Values of n queries in C columns, prepared for the bootstrap of the column means.

    values: (n, C), NaN if a column lacks a query. known: (n, C) whether a value exists.
    steps: the values as whole numbers of steps, 0 if unknown. step: (C,) the size of a step: a
        power of two, small enough that a column's rounded values are accurate to 15 digits minus
        the digits of n, and large enough that sums of resampled values stay below 2^53 and are
        exact.
    """

    values: Floats
    known: Flags
    steps: Floats
    step: Floats

    @classmethod
    def of(cls, values: Floats) -> Columns:
        # Column by column: each fits in a processor's cache and needs no additional memory.
        step = np.array([_step(column) for column in values.T])
        steps = np.empty_like(values, order="F")
        for at, column in enumerate(values.T):
            steps[:, at] = _in_steps(column, step[at])
        return cls(values, ~np.isnan(values), steps, step)

    @classmethod
    def oriented(cls, values: Floats) -> tuple[Columns, Floats]:
        """Return the columns in ascending order, negated if their mean is below 0; and (C,) signs:
        -1 for a negated column, else 1.

        The resamples of a column then depend neither on the order of the queries nor on the queries
        that other columns lack, and a loss and an equal gain have mirrored resamples.
        """
        turned = np.empty_like(values, order="F")
        for at, column in enumerate(values.T):
            turned[:, at] = np.sort(column)
        columns = cls.of(turned)
        sign = np.where(columns.steps.sum(axis=0) < 0, -1.0, 1.0)
        for at in np.flatnonzero(sign < 0).tolist():
            # NaN is last either way.
            last = int(columns.known[:, at].sum())
            for each in (columns.values, columns.steps):
                each[:last, at] = -each[:last, at][::-1]
        return columns, sign

    def without_rounding_errors(self, means: Floats) -> Floats:
        """Return the means (…, C) of the columns, clipped to their values; a mean next to 0 becomes
        exactly 0, because a verdict depends on it."""
        lowest, highest = self._ends
        means[np.abs(means) <= TIE * np.maximum(np.abs(lowest), np.abs(highest))] = 0.0
        within: Floats = np.clip(means, lowest, highest)
        return within

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        lowest = np.fmin.reduce(self.values, axis=0, initial=np.inf)
        return lowest, np.fmax.reduce(self.values, axis=0, initial=-np.inf)


def _step(column: Floats) -> float:
    largest = np.fmax.reduce(np.abs(column), initial=0.0)
    count = len(column) - np.count_nonzero(np.isnan(column))
    # Poisson weights may add up to more than n, but never to four times n.
    return float(np.ldexp(1.0, max(np.frexp(largest * count)[1] - 51, -1000)))


def _in_steps(column: Floats, step: float) -> Floats:
    return np.rint(np.where(np.isnan(column), 0.0, column) / step)


def bootstrap_means(columns: Columns, *, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return means over queries sampled with replacement, (resamples, C).

    NaN for a column without any value. Columns with values for the same queries share the
    resamples, so their means can be compared draw by draw. The result of a column depends on its
    own values and, for at least `POISSON_FROM` values, on their rows; never on the other columns.

    Sources: Efron, B. (1979), Bootstrap methods; with Poisson weights: Hanley & MacGibbon (2006).
    """
    known, steps = columns.known, columns.steps
    sizes = known.sum(axis=0)
    means = np.full((len(sizes), resamples), np.nan)
    large = sizes >= POISSON_FROM
    if large.any():
        groups = list(_by_queries(known, np.flatnonzero(large)))
        sets = np.stack([known[:, alike[0]] for _, alike in groups], axis=1)
        added = weighted_sums(
            np.hstack([steps[:, large], sets]),
            _poisson_weights(len(known), resamples, seed),
            resamples,
        )
        sums = np.zeros_like(means)
        sums[large], counts = np.split(added, [np.count_nonzero(large)])
        for count, (_, alike) in zip(counts, groups, strict=True):
            means[alike] = sums[alike] / count
    for members, alike in _by_queries(known, np.flatnonzero((sizes > 0) & ~large)):
        block = steps[np.ix_(members, alike)].T
        with _one_thread():
            for draws, counted in multinomial_counts(len(members), resamples, seed):
                means[alike, draws] = block @ counted.T.astype(np.float64) / len(members)
    return columns.without_rounding_errors(means.T * columns.step)


def weighted_sums(columns: Floats, tiles: Iterable[Tile], draws: int) -> Floats:
    """Return the sums of (n, C) integers, each multiplied by its weight in each draw, (C,
    draws)."""
    sums = np.zeros((columns.shape[1], draws))
    starts = np.arange(0, len(columns), TILE)
    lowest, highest = (each.reduceat(columns, starts) for each in (np.minimum, np.maximum))
    # Allocating memory for each tile costs more than the product.
    buffer = np.empty((TILE, TILE))
    with _one_thread():
        for drawn, rows, times in tiles:
            weights = buffer[: times.shape[0], : times.shape[1]]
            np.copyto(weights, times)
            # A sorted metric with few values has a single value in most tiles: one sum is enough.
            least = lowest[rows.start // TILE]
            single = least == highest[rows.start // TILE]
            several, single = np.flatnonzero(~single), np.flatnonzero(single & (least != 0))
            added = np.vstack([np.ones(len(weights)), columns[rows, several].T]) @ weights
            sums[several, drawn] += added[1:]
            sums[single, drawn] += least[single, None] * added[0]
    return sums


def _added(values: Floats) -> float:
    """Return the sum, added from first to last; the order of `np.sum` depends on the number."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def _by_queries(
    known: Flags, columns: npt.NDArray[np.intp]
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Group columns that have values for the same queries. Yield (queries, columns) as indices."""
    sharing: dict[bytes, list[int]] = {}
    for column in columns.tolist():
        sharing.setdefault(known[:, column].tobytes(), []).append(column)
    for alike in sharing.values():
        yield np.flatnonzero(known[:, alike[0]]), np.array(alike, dtype=np.intp)


def _slices(count: int, step: int) -> Iterator[slice]:
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


Resamples = tuple[slice, npt.NDArray[np.unsignedinteger]]
"""Resamples, and the count of each query in them: one row per resample."""


def multinomial_counts(n: int, resamples: int, seed: int) -> Iterable[Resamples]:
    """Return how often each of n queries occurs in resamples of n draws."""
    few_enough = n * resamples <= _KEPT_CELLS
    return (_kept_counts if few_enough else _drawn_counts)(n, resamples, seed)


@lru_cache(maxsize=6)
def _kept_counts(n: int, resamples: int, seed: int) -> tuple[Resamples, ...]:
    """Return the counts of `multinomial_counts`, cached: all figures about the same queries use
    them, and sampling costs more than the product."""
    return tuple(_drawn_counts(n, resamples, seed))


def _drawn_counts(n: int, resamples: int, seed: int) -> Iterator[Resamples]:
    rng = np.random.default_rng(seed)
    for chunk in _slices(resamples, max(1, _CHUNK_CELLS // n)):
        rows = chunk.stop - chunk.start
        draws = rng.integers(0, n, size=(rows, n))
        draws += np.arange(rows)[:, None] * n
        counts = np.bincount(draws.reshape(-1), minlength=rows * n)
        yield chunk, counts.astype(np.min_scalar_type(counts.max())).reshape(rows, n)


Tile = tuple[slice, slice, npt.NDArray[np.uint8]]
"""Draws, queries, and weights: one row per query, one column per draw."""


def _poisson_weights(n: int, resamples: int, seed: int) -> Iterable[Tile]:
    """Return independent Poisson(1) weights of n queries, accurate to 2^-16."""
    few_enough = n * resamples <= _KEPT_CELLS
    return (_kept_weights if few_enough else _drawn_weights)(n, resamples, seed)


@lru_cache(maxsize=6)
def _kept_weights(n: int, resamples: int, seed: int) -> tuple[Tile, ...]:
    """Return the weights of `_poisson_weights`, cached: sampling costs more than the product, and
    moving a slider repeats the request."""
    return tuple(_drawn_weights(n, resamples, seed))


def _drawn_weights(n: int, resamples: int, seed: int) -> Iterator[Tile]:
    from scipy.special import pdtr

    edges = np.round(pdtr(np.arange(12), 1.0) * 2**16)
    weight_of = np.searchsorted(edges, np.arange(2**16), side="right").astype(np.uint8)
    for draws, rows, words in random_bits(n, resamples, 16, seed):
        yield draws, rows, weight_of.take(words.view("<u2")[:, : draws.stop - draws.start])


def random_bits(n: int, draws: int, bits: int, seed: int) -> Iterator[tuple[slice, slice, _Words]]:
    """Yield (slice of draws, slice of queries, random words of 64 bits), with at least `bits` bits
    for each draw of a query. The bits of the first queries do not depend on `n`."""
    for columns in _slices(draws, TILE):
        source = np.random.PCG64([seed, columns.start])
        words = -(-bits * (columns.stop - columns.start) // 64)
        for rows in _slices(n, TILE):
            # Several times faster than `Generator.bytes`.
            drawn = source.random_raw((rows.stop - rows.start, words))
            yield columns, rows, drawn.astype("<u8", copy=False)


def percentile_interval(means: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return (low, high), each (C,), from bootstrap means (B, C)."""
    low, high = ends(means, percentile_shares(means.shape[1], level))
    return low, high


def percentile_shares(columns: int, level: float = 0.95) -> Floats:
    """Return the quantiles at the ends of a percentile interval: (2, C), between 0 and 1."""
    tail = (1 - level) / 2
    return np.repeat([[tail], [1 - tail]], columns, axis=1)


def bca_interval(columns: Columns, means: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return the bias-corrected and accelerated interval of the mean of each column.

    means: their bootstrap means (B, C). Returns (low, high), each (C,); both ends equal the value
        of a column without spread, and are NaN without values.
    """
    low, high = ends(means, bca_shares(columns, means, level))
    return low, high


def bca_shares(columns: Columns, means: Floats, level: float = 0.95) -> Floats:
    """Return the quantiles at the ends of a bias-corrected and accelerated interval of the means of
    columns: (2, C), between 0 and 1.

    means: their bootstrap means (B, C).

    Source: Efron, B. (1987), Better bootstrap confidence intervals; the acceleration of a mean is
    its skewness over 6 √n.
    """
    from scipy.special import ndtr, ndtri

    steps, step = columns.steps, columns.step
    centre, spread, skew = moments(columns)
    # Draws equal to the estimate count half: per-query metrics have few distinct values.
    largest = np.maximum(steps.max(axis=0, initial=0.0), -steps.min(axis=0, initial=0.0))
    tie = TIE * largest * step
    draws = len(means)
    counted = (means < centre - tie).sum(axis=0) + (means <= centre + tie).sum(axis=0)
    bias = ndtri(np.clip(counted / 2, 0.5, draws - 0.5) / draws)
    with np.errstate(invalid="ignore", divide="ignore"):
        acceleration = np.where(spread > 0, skew / (6 * spread**1.5), 0.0)
    edges = ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))[:, None] + bias
    # Beyond the pole of the formula, which only extreme skew reaches, the interval is one-sided.
    return np.asarray(ndtr(bias + edges / np.maximum(1 - acceleration * edges, 1e-9)))


def moments(columns: Columns) -> tuple[Floats, Floats, Floats]:
    """Return the mean of each column, the sum of its squared deviations, and the sum of its cubed
    deviations, each (C,)."""
    known = columns.known
    with np.errstate(invalid="ignore"):
        mean = columns.steps.sum(axis=0) / known.sum(axis=0) * columns.step
    centre = columns.without_rounding_errors(mean[None])[0]
    spread, skew = np.zeros((2, len(centre)))
    for at, column in enumerate(columns.values.T):
        deviations = column[known[:, at]] - centre[at]
        squares = deviations * deviations
        # A product, because a power of three is forty times slower.
        spread[at], skew[at] = _added(squares), _added(squares * deviations)
    return centre, spread, skew


def ends(draws: Floats, shares: Floats) -> Floats:
    """Return (2, C) quantiles of the draws (B, C) by column. shares: (2, C), between 0 and 1."""
    ordered = np.sort(draws, axis=0)
    last = len(draws) - 1
    positions = np.clip(shares * last, 0, last)
    lower = np.floor(positions).astype(np.intp)
    upper = np.minimum(lower + 1, last)
    columns = np.arange(draws.shape[1])
    weight = positions - lower
    bounds: Floats = (1 - weight) * ordered[lower, columns] + weight * ordered[upper, columns]
    return bounds
