"""What columns of numbers prove: an interval and a p for each, and p corrected for their number."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from rankdash.core.base.rules import FEWEST_QUERIES, StatisticsSettings
from rankdash.core.data.arrays import Floats
from rankdash.core.statistics.bootstrap import (
    Columns,
    bca_interval,
    bca_shares,
    bootstrap_means,
    ends,
    percentile_interval,
    percentile_shares,
)
from rankdash.core.statistics.significance import corrected, paired_t_p, sign_flip_p, wilcoxon_p
from rankdash.core.statistics.skewed_t import t_interval

Ends = float | Floats
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
            found = {key: self._found[key] for key in keys if key in self._found}
        new = [at for at, key in enumerate(keys) if key not in found]
        if new:
            for at, values in zip(new, make(columns[:, new], settings).T, strict=True):
                found[keys[at]] = values if signs[at] > 0 else self._mirrored(values)
        with self._lock:
            for key, values in found.items():
                self._found[key] = values
                self._found.move_to_end(key)
            while len(self._found) > _MOST_KNOWN:
                self._found.popitem(last=False)
        each = zip(keys, signs, strict=True)
        return np.stack(
            [found[key] if sign > 0 else self._mirrored(found[key]) for key, sign in each], axis=1
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
    possible: tuple[Ends, Ends] = (-math.inf, math.inf),
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
    return t_interval(columns, settings.level, skewed=settings.interval == "skew-t")


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


def _agreeing(found: Floats, plain: Floats) -> tuple[float, float]:
    """Return the ends found, or the plain one if an end is on the other side of 0."""
    agree = (np.sign(found) == np.sign(plain)) & (np.abs(found) < _MOST)
    low, high = np.where(agree, found, plain).tolist()
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


def corrected_by_family(
    p: Floats, settings: StatisticsSettings
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """(challengers, M) corrected p values, and over how many comparisons each."""
    made = ~np.isnan(p)
    if settings.family == "all":
        together = corrected(p.reshape(-1).tolist(), settings.correction)
        return np.array(together).reshape(p.shape), np.full(p.shape, made.sum())
    apart = [corrected(column.tolist(), settings.correction) for column in p.T]
    return np.array(apart).reshape(p.T.shape).T, np.broadcast_to(made.sum(axis=0), p.shape)
