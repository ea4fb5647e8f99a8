"""Intervals and tests of means and of paired differences, for one or many columns."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import TypeVar

import numpy as np

from rankdash.core.base.rules import FEWEST_QUERIES, RESAMPLES, SEED, Correction, StatisticsSettings
from rankdash.core.data.arrays import Flags, Floats, Integers
from rankdash.core.data.weights import Weights
from rankdash.core.statistics.anytime import AnytimeSettings, anytime_interval, anytime_p
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
from rankdash.core.statistics.weighted import (
    has_few_effective,
    pseudo_values,
    refuse_unweighted,
    resampled_means,
    weighted_columns,
)

_Ends = float | Floats
_Content = tuple[bytes, StatisticsSettings]
ROUNDING = 1e-12
"""Tolerance: rounding errors of two sums must not count as a change."""
FEWEST_CHANGED, MANY_VALUES = 3, 30
"""Minimum number of values other than 0 among fewer than `MANY_VALUES` values: one or two do not
show how large a change can be."""
# Entries of a few hundred bytes each.
_MOST_KNOWN = 4_000
# Larger than the ratio of any two means of a metric.
_MOST = 1e15


class _Known:
    """Cache of results for single columns. A result depends only on the values of its column, and
    the same columns or their mirror images recur, for example if another baseline is chosen.

    mirrored: the result for a column → the result for the column times -1.
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
        """Return the results for (n, C) columns, (V, C). make: computes (V, c) for some of them."""
        # Only one of the two mirror images is cached.
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
    """Return -1 if the first value other than 0 is negative, else 1."""
    counts = (column > 0) | (column < 0)
    return -1.0 if column[counts.argmax()] < 0 else 1.0


def _content(column: Floats, settings: StatisticsSettings) -> _Content:
    # Adding 0 turns -0.0 into 0.0; NaN has several representations too.
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
    weights: Weights | None = None,
) -> tuple[Floats, Floats]:
    """Return (low, high), each (C,), of the mean of each column (n, C); NaN for too few values,
    for too small an effective number of them, and for too few values other than 0, unless all are
    equal.

    A column's interval does not depend on the other columns or the order of the rows, and the
    interval of a column times -1 is its mirror image. again: whether to cache the results.
    possible: the lowest and the highest possible mean, of all or of each; ends are clipped to them.
    weights: of the n queries, for weighted means; raises SpecError for settings without a weighted
    version.
    """
    if weights is not None:
        refuse_unweighted(settings, weights)
        weights = None if weights.equal else weights
    if isinstance(settings, AnytimeSettings):
        low, high = anytime_interval(columns, settings.level)
        return np.clip(low, *possible), np.clip(high, *possible)
    low, high = np.full((2, columns.shape[1]), np.nan)
    known = ~np.isnan(columns)
    sizes, changed = known.sum(axis=0), (known & (np.abs(columns) > ROUNDING)).sum(axis=0)
    few = (changed > 0) & (changed < FEWEST_CHANGED) & (sizes < MANY_VALUES)
    enough = _enough(known, weights) & ~few
    if enough.any():
        chosen = columns[:, enough]
        if weights is not None:
            low[enough], high[enough] = _weighted_intervals(chosen, weights, settings)
        else:
            low[enough], high[enough] = (
                _ENDS.of(chosen, settings, _intervals) if again else _intervals(chosen, settings)
            )
    return np.clip(low, *possible), np.clip(high, *possible)


def _enough(known: Flags, weights: Weights | None) -> Flags:
    """Return (C,) whether each column has enough values. known: (n, C)."""
    enough: Flags = known.sum(axis=0) >= FEWEST_QUERIES
    if weights is not None:
        for place in np.flatnonzero(enough).tolist():
            enough[place] = not has_few_effective(weights.taken(known[:, place]))
    return enough


def _intervals(columns: Floats, settings: StatisticsSettings) -> Floats:
    """Return the ends of the interval of each column, shape (2, C)."""
    chosen, sign = Columns.oriented(columns)
    if settings.interval in ("skew-t", "t"):
        return np.sort(_t(chosen, settings) * sign, axis=0)
    means = bootstrap_means(chosen, resamples=settings.resamples, seed=settings.seed)
    if settings.interval == "bca":
        both = bca_interval(chosen, means, settings.level)
    else:
        both = percentile_interval(means, settings.level)
    # The lower end of a column multiplied by -1 is the upper end of the column.
    ends: Floats = np.sort(np.stack(both) * sign, axis=0)
    return ends


def _weighted_intervals(columns: Floats, weights: Weights, settings: StatisticsSettings) -> Floats:
    """Return the ends of the interval of the weighted mean of each column, shape (2, C)."""
    linear = weighted_columns(pseudo_values(columns, weights))
    if settings.interval in ("skew-t", "t"):
        return _t(linear, settings)
    means = resampled_means(columns, weights, resamples=settings.resamples, seed=settings.seed)
    return np.stack(percentile_interval(means, settings.level))


def _t(columns: Columns, settings: StatisticsSettings) -> Floats:
    return _t_interval(columns, settings.level, skewed=settings.interval == "skew-t")


def relative_interval(
    before: Floats,
    change: Floats,
    settings: StatisticsSettings,
    weights: Weights | None = None,
) -> tuple[float, float]:
    """Return (low, high) of the mean change divided by the mean before, including the uncertainty
    of the latter.

    before, change: (n,) of the same queries, without NaN, the mean of `before` above 0. A bootstrap
        uses the same draws as the interval of the change, and the same shares for its ends. A t
        interval uses the delta method: the residual of each change after subtracting its expected
        share of the baseline, divided by the baseline's mean. Both intervals exclude 0 or neither
        does. NaN for too few queries. Weighted intervals always use the delta method.
    """
    change = np.where(np.abs(change) <= ROUNDING, 0.0, change)
    if weights is not None and not weights.equal:
        return _weighted_relative_interval(before, change, settings, weights)
    low, high = (float(end[0]) for end in intervals(change[:, None], settings))
    if math.isnan(low):
        return low, high
    plain = np.array([low, high]) / before.mean()
    anytime = isinstance(settings, AnytimeSettings)
    if anytime or settings.interval in ("skew-t", "t"):
        ratio = change.mean() / before.mean()
        rest = (ratio + (change - ratio * before) / before.mean())[:, None]
        drawn = anytime_interval(rest, settings.level) if anytime else _intervals(rest, settings)
        return _agreeing(drawn[:, 0], plain)
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
    # A draw with a baseline mean of 0 has an infinite or undefined relative change.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(changes[:, 0] / bases, nan=0.0, posinf=_MOST, neginf=-_MOST)
    drawn = np.sort(ends(ratios[:, None], shares)[:, 0] * sign[0])
    return _agreeing(drawn, plain)


def _weighted_relative_interval(
    before: Floats, change: Floats, settings: StatisticsSettings, weights: Weights
) -> tuple[float, float]:
    low, high = (float(end[0]) for end in intervals(change[:, None], settings, weights=weights))
    if math.isnan(low):
        return low, high
    base = weights.mean(before)
    ratio = weights.mean(change) / base
    rest = (ratio + (change - ratio * before) / base)[:, None]
    ends = _weighted_intervals(rest, weights, settings)[:, 0]
    return _agreeing(ends, np.array([low, high]) / base)


def _agreeing(bootstrapped: Floats, plain: Floats) -> tuple[float, float]:
    """Return the bootstrapped ends of an interval; the plain end instead of a bootstrapped end
    with another sign or a too large value."""
    agree = (np.sign(bootstrapped) == np.sign(plain)) & (np.abs(bootstrapped) < _MOST)
    low, high = np.where(agree, bootstrapped, plain).tolist()
    return min(low, high), max(low, high)


def p_values(
    columns: Floats,
    settings: StatisticsSettings,
    *,
    again: bool = False,
    weights: Weights | None = None,
) -> Floats:
    """Return the (C,) p values of columns (n, C) of differences; NaN for too few. again, weights:
    as for `intervals`."""
    if weights is not None:
        refuse_unweighted(settings, weights, tested=True)
        if not weights.equal:
            return _weighted_p(columns, weights, settings)
    if isinstance(settings, AnytimeSettings):
        return anytime_p(columns)
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


def _weighted_p(columns: Floats, weights: Weights, settings: StatisticsSettings) -> Floats:
    """Return the (C,) p values of weighted means: a permutation test flips the signs of the
    weighted differences; a t test uses the standard error of the stratified mean."""
    enough = _enough(~np.isnan(columns), weights)
    if settings.test == "sign-flip":
        weighted = columns * (weights.searches / weights.searches.max())[:, None]
        p = _chances(weighted, settings)[0]
    else:
        linear = pseudo_values(columns, weights)
        changed = np.abs(np.nan_to_num(columns)).max(axis=0, initial=0.0) > ROUNDING
        p = np.array(
            [
                paired_t_p(_without_nan(column)) if varies else 1.0
                for column, varies in zip(linear.T, changed, strict=True)
            ]
        )
    return np.where(enough, p, np.nan)


def _chances(columns: Floats, settings: StatisticsSettings) -> Floats:
    """Return the p of the permutation test, shape (1, C)."""
    return sign_flip_p(columns, flips=settings.resamples, seed=settings.seed)[None]


def _without_nan(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def corrected_by_family(p: Floats, settings: StatisticsSettings) -> tuple[Floats, Integers]:
    """Return corrected p values, (challengers, M), and the number of comparisons behind each."""
    compared = ~np.isnan(p)
    if settings.family == "all":
        together = corrected(p.reshape(-1).tolist(), settings.correction)
        return np.array(together).reshape(p.shape), np.full(p.shape, compared.sum())
    apart = [corrected(column.tolist(), settings.correction) for column in p.T]
    return np.array(apart).reshape(p.T.shape).T, np.broadcast_to(compared.sum(axis=0), p.shape)


# Tests of paired differences, and their effect size.

_ROUNDING = 1e-12


def sign_flip_p(differences: Floats, *, flips: int = RESAMPLES, seed: int = SEED) -> Floats:
    """Return the two-sided p of the paired permutation (sign-flip) test for each column.

    differences: (n, C), NaN if a column lacks a pair; NaN for a column without any pair. Under the
        null hypothesis, both signs of each query's difference are equally likely. p = (b + 1) / (m
        + 1) for b of m flips at least as far from 0 as the observed sum, so it is never 0. If few
        queries changed, so that all possible flips are no more than `flips`, p is their exact
        share. Source: Fisher (1935); Smucker, Allan & Carterette (2007).
    """
    steps = Columns.of(differences).steps
    # Only absolute values matter, because both signs are equally likely. Sorted, they get the same
    # flips for any order of the queries and any other columns, and queries without a pair come
    # last.
    sizes = -np.sort(-np.abs(steps), axis=0)
    largest = sizes.sum(axis=0)
    seen = np.abs(steps.sum(axis=0)) - TIE * largest
    changed = (sizes > 0).sum(axis=0)
    # One sign can be fixed: the other half of the flips mirrors this one.
    exact = changed <= int(np.log2(flips)) + 1
    p = np.full(len(seen), np.nan)
    for column in np.flatnonzero(exact).tolist():
        every = _all_sums(sizes[: changed[column], column])
        p[column] = np.mean(np.abs(every) >= seen[column])
    drawn = np.flatnonzero(~exact)
    flipped = sizes[: changed[drawn].max(initial=0), drawn]
    unflipped = weighted_sums(flipped, _signs(len(flipped), flips, seed), flips)
    # The signed sum is twice the unflipped sum minus the total.
    extreme = (np.abs(2 * unflipped.T - largest[drawn]) >= seen[drawn]).sum(axis=0)
    p[drawn] = (extreme + 1.0) / (flips + 1.0)
    return np.where(np.isnan(differences).all(axis=0), np.nan, p).astype(np.float64)


def _all_sums(sizes: Floats) -> Floats:
    """Return the sums of (m,) sizes with every choice of signs except for the first size, (2^(m -
    1),)."""
    sums = sizes[:1] if len(sizes) else np.zeros(1)
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _signs(n: int, flips: int, seed: int) -> Iterator[Tile]:
    """Yield tiles with 1 if the sign of one of n differences is unchanged, 0 if it is flipped."""
    for draws, rows, words in random_bits(n, flips, 1, seed):
        bits = np.unpackbits(words.view(np.uint8), axis=1)
        yield draws, rows, bits[:, : draws.stop - draws.start]


def paired_t_p(differences: Floats) -> float:
    """Return the two-sided p of the paired t test on (n,) differences, n at least 2; 1.0 if all are
    zero."""
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
    """Return the standard deviation with divisor n - 1; 0 for one value, or for differences equal
    up to rounding."""
    if len(differences) < 2 or np.ptp(differences) <= _ROUNDING:
        return 0.0
    return float(np.std(differences, ddof=1))


def wilcoxon_p(differences: Floats) -> float:
    """Return the two-sided p of the Wilcoxon signed-rank test on (n,) differences; 1.0 if all are
    zero.

    Zeros are dropped, as in Wilcoxon's paper; with ties, SciPy uses the normal approximation. Sizes
    that differ only by rounding are ties: 0.3 - 0.2 and 0.2 - 0.1 are one step of precision@10.
    """
    from scipy.stats import wilcoxon

    exact = _without_rounding(differences)
    moved = exact[exact != 0]
    if not len(moved):
        return 1.0
    return float(wilcoxon(moved).pvalue)


def _without_rounding(differences: Floats) -> Floats:
    """Return the (n,) differences, with equal numbers for sizes closer than `TIE` of the largest,
    and 0 for sizes that close to 0."""
    sizes = np.abs(differences)
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    larger = np.diff(ordered, prepend=0.0) > TIE * ordered.max(initial=0.0)
    same = np.empty_like(ordered)
    same[order] = np.append(0.0, ordered[larger])[np.cumsum(larger)]
    return np.copysign(same, differences)


def corrected(p_values: Sequence[float], method: Correction = "holm") -> list[float]:
    """Return p values corrected for the number of comparisons, in input order.

    A NaN (an impossible comparison) stays NaN and does not count as a comparison. Sources: Holm
    (1979); Benjamini & Hochberg (1995).
    """
    raw = np.asarray(p_values, dtype=np.float64)
    result = raw.copy()
    compared = np.flatnonzero(~np.isnan(raw))
    if not len(compared) or method == "none":
        return [float(p) for p in result]
    if method == "bh":
        # Loading all of scipy.stats takes half a second.
        from scipy.stats import false_discovery_control

        result[compared] = false_discovery_control(raw[compared], method="bh")
    else:
        order = compared[np.argsort(raw[compared], kind="stable")]
        factors = np.arange(len(order), 0, -1)
        result[order] = np.minimum(1.0, np.maximum.accumulate(raw[order] * factors))
    return [float(p) for p in result]


def effect_size(differences: Floats) -> float:
    """Return Cohen's d of paired differences (d_z): mean over standard deviation; NaN without
    spread."""
    spread = spread_of(differences)
    return float(np.mean(differences)) / spread if spread > 0 else math.nan


# Student's t interval of a mean, and its version for skewed values.
# Student's t covers a mean of few values well if their distribution is symmetric. Changes of a
# metric often are not: most queries do not change, and a few change much. Hall's transformation
# removes the skewness of t. It covers such means, but it is too narrow if the skewness of the
# sample is chance. Each end of the interval is therefore the wider of both, but the transformation
# moves no end beyond the observed values.
# Sources: Student (1908); Hall, P. (1992), On the removal of skewness by transformation, Journal of
# the Royal Statistical Society B 54, 221–228.

_Numbers = TypeVar("_Numbers", float, Floats)

# For a skewness over √n below this, both ends exactly equal those without correction.
_NOT_SKEWED = 1e-9


def _t_interval(columns: Columns, level: float, *, skewed: bool) -> Floats:
    """Return the ends of the interval of the mean of each column, (2, C).

    skewed: whether an end moves outwards if Hall's transformation is wider there. Both ends equal
        the value of a column without spread.
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
    # Skewness moves no end of the interval beyond the values.
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
        # Adjusted Fisher–Pearson coefficient, G₁, over √n.
        skew = np.sqrt(n * (n - 1.0)) / (n - 2) * cubes / squares**1.5
    largest = np.abs(columns.steps).max(axis=0, initial=0.0) * columns.step
    varies = squares > (TIE * largest) ** 2
    return mean, np.where(varies, error, 0.0), np.where(varies, skew, 0.0)


def _back(x: Floats, skew: Floats) -> Floats:
    """Return the t that Hall's transformation maps to x."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = 3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1)
    return np.where(np.abs(skew) < _NOT_SKEWED, x, inverse)
