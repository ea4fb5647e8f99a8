"""Intervals and tests of means and of paired differences, alone and for many columns at once."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import TypeVar

import numpy as np

from rankdash.core.base.rules import FEWEST_QUERIES, RESAMPLES, SEED, Correction, StatisticsSettings
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.statistics.bootstrap import (
    TIE,
    Columns,
    Tile,
    bca_interval,
    bca_shares,
    bootstrap_means,
    ends,
    moments,
    percentile_interval,
    percentile_shares,
    random_bits,
    weighted_sums,
)

_Ends = float | Floats
_Content = tuple[bytes, StatisticsSettings]
ROUNDING = 1e-12
"""The last digits of two sums must not make a change out of none."""
FEWEST_CHANGED, MANY_VALUES = 3, 30
"""Of fewer than `MANY_VALUES` values, at least so many must not be 0: how large a change can be is
not known from one or two."""
# Of a few hundred bytes each.
_MOST_KNOWN = 4_000
# Beyond the ratio of any two means of a metric.
_MOST = 1e15


class _Known:
    """What was worked out for single columns: it depends on the values of a column alone, and the
    same ones come again, or their mirror images, as for the same systems against another baseline.

    mirrored: the values of a column → those of the column times -1.
    """

    def __init__(self, mirrored: Callable[[Floats], Floats]) -> None:
        self._mirrored = mirrored
        self._found: OrderedDict[_Content, Floats] = OrderedDict()
        self._lock = threading.Lock()

    def of(
        self,
        columns: Floats,
        settings: StatisticsSettings,
        make: Callable[[Floats, StatisticsSettings], Floats],
    ) -> Floats:
        """(V, C) the values of (n, C) columns. make: (V, c) of some of them."""
        # One of the two mirror images is kept.
        signs = [_first_sign(column) for column in columns.T]
        keys = [
            _content(column * sign, settings) for column, sign in zip(columns.T, signs, strict=True)
        ]
        with self._lock:
            cached = {key: self._found[key] for key in keys if key in self._found}
        new = [at for at, key in enumerate(keys) if key not in cached]
        if new:
            for at, values in zip(new, make(columns[:, new], settings).T, strict=True):
                cached[keys[at]] = values if signs[at] > 0 else self._mirrored(values)
        with self._lock:
            for key, values in cached.items():
                self._found[key] = values
                self._found.move_to_end(key)
            while len(self._found) > _MOST_KNOWN:
                self._found.popitem(last=False)
        each = zip(keys, signs, strict=True)
        return np.stack(
            [cached[key] if sign > 0 else self._mirrored(cached[key]) for key, sign in each], axis=1
        )


def _first_sign(column: Floats) -> float:
    """-1 where the first value that is not 0 is below it, else 1."""
    counts = (column > 0) | (column < 0)
    return -1.0 if column[counts.argmax()] < 0 else 1.0


def _content(column: Floats, settings: StatisticsSettings) -> _Content:
    # Adding 0 turns -0.0 into 0.0, and of what is no number there are several too.
    plain = np.where(np.isnan(column), np.nan, column + 0.0)
    return sha256(plain.data).digest(), settings


_ENDS = _Known(lambda ends: -ends[::-1])
_CHANCES = _Known(lambda p: p)


def intervals(
    columns: Floats,
    settings: StatisticsSettings,
    *,
    again: bool = False,
    possible: tuple[_Ends, _Ends] = (-math.inf, math.inf),
) -> tuple[Floats, Floats]:
    """(low, high), each (C,), of the mean of each column (n, C); NaN for too few values, and for
    too few that are not 0, unless all are the same.

    A column's interval is its own: the other columns and the order of the rows change nothing, and
    that of a column times -1 is its mirror image. again: whether the same columns may come again.
    possible: the lowest and the highest mean, of all or of each; no end lies beyond.
    """
    low, high = np.full((2, columns.shape[1]), np.nan)
    known = ~np.isnan(columns)
    sizes, changed = known.sum(axis=0), (known & (np.abs(columns) > ROUNDING)).sum(axis=0)
    few = (changed > 0) & (changed < FEWEST_CHANGED) & (sizes < MANY_VALUES)
    enough = (sizes >= FEWEST_QUERIES) & ~few
    if enough.any():
        chosen = columns[:, enough]
        low[enough], high[enough] = (
            _ENDS.of(chosen, settings, _intervals) if again else _intervals(chosen, settings)
        )
    return np.clip(low, *possible), np.clip(high, *possible)


def _intervals(columns: Floats, settings: StatisticsSettings) -> Floats:
    """(2, C) the ends of each."""
    chosen, sign = Columns.oriented(columns)
    if settings.interval in ("skew-t", "t"):
        return np.sort(_t(chosen, settings) * sign, axis=0)
    means = bootstrap_means(chosen, resamples=settings.resamples, seed=settings.seed)
    if settings.interval == "bca":
        both = bca_interval(chosen, means, settings.level)
    else:
        both = percentile_interval(means, settings.level)
    # The lower end of a column that was turned upside down is the upper one of the column.
    ends: Floats = np.sort(np.stack(both) * sign, axis=0)
    return ends


def _t(columns: Columns, settings: StatisticsSettings) -> Floats:
    return _t_interval(columns, settings.level, skewed=settings.interval == "skew-t")


def relative_interval(
    before: Floats, change: Floats, settings: StatisticsSettings
) -> tuple[float, float]:
    """(low, high) of the mean change over the mean before, whose own uncertainty is in it.

    before, change: (n,) of the same queries, without NaN, the mean of `before` above 0. A bootstrap
    uses the draws of the interval of the change, and its ends lie at the same shares of them. A t
    interval is that of what remains of each change when the baseline's own share of it is taken
    out, over the baseline's mean (delta method). Both intervals exclude 0 or neither does. NaN for
    too few queries.
    """
    change = np.where(np.abs(change) <= ROUNDING, 0.0, change)
    low, high = (float(end[0]) for end in intervals(change[:, None], settings))
    if math.isnan(low):
        return low, high
    plain = np.array([low, high]) / before.mean()
    if settings.interval in ("skew-t", "t"):
        ratio = change.mean() / before.mean()
        rest = ratio + (change - ratio * before) / before.mean()
        return _agreeing(_intervals(rest[:, None], settings)[:, 0], plain)
    turned, sign = Columns.oriented(change[:, None])
    order = np.argsort(change * sign[0], kind="stable")
    means = bootstrap_means(
        Columns.of(np.column_stack([turned.values[:, 0], before[order]])),
        resamples=settings.resamples,
        seed=settings.seed,
    )
    changes, bases = means[:, :1], means[:, 1]
    if settings.interval == "bca":
        shares = bca_shares(turned, changes, settings.level)
    else:
        shares = percentile_shares(1, settings.level)
    # A draw in which the baseline finds nothing has a change without bounds, or none.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(changes[:, 0] / bases, nan=0.0, posinf=_MOST, neginf=-_MOST)
    drawn = np.sort(ends(ratios[:, None], shares)[:, 0] * sign[0])
    return _agreeing(drawn, plain)


def _agreeing(bootstrapped: Floats, plain: Floats) -> tuple[float, float]:
    """Return the ends found, or the plain one if an end is on the other side of 0."""
    agree = (np.sign(bootstrapped) == np.sign(plain)) & (np.abs(bootstrapped) < _MOST)
    low, high = np.where(agree, bootstrapped, plain).tolist()
    return min(low, high), max(low, high)


def p_values(columns: Floats, settings: StatisticsSettings, *, again: bool = False) -> Floats:
    """(C,) the p of each column (n, C) of differences; NaN where there are too few. again: as for
    `intervals`."""
    p = np.full(columns.shape[1], np.nan)
    enough = np.flatnonzero((~np.isnan(columns)).sum(axis=0) >= FEWEST_QUERIES)
    if not len(enough):
        return p
    if settings.test == "sign-flip":
        chosen = columns[:, enough]
        p[enough] = (
            _CHANCES.of(chosen, settings, _chances) if again else _chances(chosen, settings)
        )[0]
        return p
    test = paired_t_p if settings.test == "t" else wilcoxon_p
    p[enough] = [test(_without_nan(columns[:, place])) for place in enough]
    return p


def _chances(columns: Floats, settings: StatisticsSettings) -> Floats:
    """(1, C) the p of the permutation test."""
    return sign_flip_p(columns, flips=settings.resamples, seed=settings.seed)[None]


def _without_nan(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def corrected_by_family(p: Floats, settings: StatisticsSettings) -> tuple[Floats, Integers]:
    """(challengers, M) corrected p values, and over how many comparisons each."""
    made = ~np.isnan(p)
    if settings.family == "all":
        together = corrected(p.reshape(-1).tolist(), settings.correction)
        return np.array(together).reshape(p.shape), np.full(p.shape, made.sum())
    apart = [corrected(column.tolist(), settings.correction) for column in p.T]
    return np.array(apart).reshape(p.T.shape).T, np.broadcast_to(made.sum(axis=0), p.shape)


# Is a paired difference more than chance, and how large is it?

_ROUNDING = 1e-12


def sign_flip_p(differences: Floats, *, flips: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Two-sided p of the paired randomisation test for each column.

    differences: (n, C), NaN where a column lacks a pair; NaN comes back for a column without any.
    Under the null hypothesis each query's difference is as likely to have the other sign.
    p = (b + 1) / (m + 1) for b of m flips at least as far from 0 as what was seen, so it is never
    0. Where so few queries changed that all their flips are no more than `flips`, p is the exact
    share of these. Source: Fisher (1935); Smucker, Allan & Carterette (2007).
    """
    steps = Columns.of(differences).steps
    # Only sizes matter, as either sign is as likely. Sorted, they meet the same flips whatever the
    # order of the queries and the other columns, and a query without a pair comes last.
    sizes = -np.sort(-np.abs(steps), axis=0)
    largest = sizes.sum(axis=0)
    seen = np.abs(steps.sum(axis=0)) - TIE * largest
    changed = (sizes > 0).sum(axis=0)
    # The sign of one may stay: the other half of the flips mirrors this one.
    exact = changed <= int(np.log2(flips)) + 1
    p = np.full(len(seen), np.nan)
    for column in np.flatnonzero(exact).tolist():
        every = _all_sums(sizes[: changed[column], column])
        p[column] = np.mean(np.abs(every) >= seen[column])
    drawn = np.flatnonzero(~exact)
    flipped = sizes[: changed[drawn].max(initial=0), drawn]
    unflipped = weighted_sums(flipped, _signs(len(flipped), flips, seed), flips)
    # What is kept less what is flipped is twice what is kept, less everything.
    extreme = (np.abs(2 * unflipped.T - largest[drawn]) >= seen[drawn]).sum(axis=0)
    p[drawn] = (extreme + 1.0) / (flips + 1.0)
    return np.where(np.isnan(differences).all(axis=0), np.nan, p).astype(np.float64)


def _all_sums(sizes: Floats) -> Floats:
    """(2^(m - 1),) the sums of (m,) sizes with every choice of signs but that of the first."""
    sums = sizes[:1] if len(sizes) else np.zeros(1)
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _signs(n: int, flips: int, seed: int) -> Iterator[Tile]:
    """1 where the sign of one of n differences stays as it is, 0 where it is flipped."""
    for draws, rows, words in random_bits(n, flips, 1, seed):
        bits = np.unpackbits(words.view(np.uint8), axis=1)
        yield draws, rows, bits[:, : draws.stop - draws.start]


def paired_t_p(differences: Floats) -> float:
    """Two-sided p of the paired t test on (n,) differences, n at least 2; 1.0 when all are zero."""
    from scipy.special import stdtr

    if not np.any(differences):
        return 1.0
    spread = spread_of(differences)
    if spread == 0:
        return 0.0
    n = len(differences)
    t = float(np.mean(differences)) / (spread / math.sqrt(n))
    return float(2 * stdtr(n - 1, -abs(t)))


def spread_of(differences: Floats) -> float:
    """Standard deviation, n - 1 in the divisor; 0 where only rounding errors differ, or for one."""
    if len(differences) < 2 or np.ptp(differences) <= _ROUNDING:
        return 0.0
    return float(np.std(differences, ddof=1))


def wilcoxon_p(differences: Floats) -> float:
    """Two-sided p of the Wilcoxon signed-rank test on (n,) differences; 1.0 when all are zero.

    Zeros are dropped, as Wilcoxon did; ties make SciPy use the normal approximation. Sizes that
    differ by rounding only are ties: 0.3 - 0.2 and 0.2 - 0.1 are one step of precision@10.
    """
    from scipy.stats import wilcoxon

    exact = _without_rounding(differences)
    moved = exact[exact != 0]
    if not len(moved):
        return 1.0
    return float(wilcoxon(moved).pvalue)


def _without_rounding(differences: Floats) -> Floats:
    """Return (n,) differences with the same number for sizes less than `TIE` of the largest apart,
    and 0 for those next to 0."""
    sizes = np.abs(differences)
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    larger = np.diff(ordered, prepend=0.0) > TIE * ordered.max(initial=0.0)
    same = np.empty_like(ordered)
    same[order] = np.append(0.0, ordered[larger])[np.cumsum(larger)]
    return np.copysign(same, differences)


def corrected(p_values: Sequence[float], method: Correction = "holm") -> list[float]:
    """p values corrected for the number of comparisons, in the order given.

    A NaN (a comparison that could not be made) stays NaN and does not count as a comparison.
    Sources: Holm (1979); Benjamini & Hochberg (1995).
    """
    raw = np.asarray(p_values, dtype=np.float64)
    result = raw.copy()
    known = np.flatnonzero(~np.isnan(raw))
    if not len(known) or method == "none":
        return [float(p) for p in result]
    if method == "bh":
        # Loading all of scipy.stats takes half a second.
        from scipy.stats import false_discovery_control

        result[known] = false_discovery_control(raw[known], method="bh")
    else:
        order = known[np.argsort(raw[known], kind="stable")]
        factors = np.arange(len(order), 0, -1)
        result[order] = np.minimum(1.0, np.maximum.accumulate(raw[order] * factors))
    return [float(p) for p in result]


def effect_size(differences: Floats) -> float:
    """Cohen's d of paired differences (d_z): mean over standard deviation; NaN without spread."""
    spread = spread_of(differences)
    return float(np.mean(differences)) / spread if spread > 0 else math.nan


# Student's t interval of a mean, alone and widened if the values are skewed.
#
# Student's t covers a mean of few values well if their distribution is symmetric. Changes of a
# metric often are not: most queries do not change, and a few change much. Hall's transformation
# removes the skewness of t. It covers such means, but it is too narrow if the skewness of the
# sample is chance. Each end of the interval is therefore the wider of both, but the transformation
# moves no end beyond the values seen.
#
# Sources: Student (1908); Hall, P. (1992), On the removal of skewness by transformation, Journal of
# the Royal Statistical Society B 54, 221–228.

_Numbers = TypeVar("_Numbers", float, Floats)

# Below this skewness over √n both ends are those of t, to the last digit.
_NOT_SKEWED = 1e-9


def _t_interval(columns: Columns, level: float, *, skewed: bool) -> Floats:
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


def without_skewness(t: _Numbers, skew: _Numbers) -> _Numbers:
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
        inverse = 3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1)
    return np.where(np.abs(skew) < _NOT_SKEWED, x, inverse)
