"""Is a paired difference more than chance, and how large is it?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from rankdash.core.base.rules import RESAMPLES, SEED, Correction
from rankdash.core.data.arrays import Floats
from rankdash.core.statistics.bootstrap import (
    TIE,
    Columns,
    Tile,
    random_bits,
    weighted_sums,
)

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
    kept = weighted_sums(flipped, _signs(len(flipped), flips, seed), flips)
    # What is kept less what is flipped is twice what is kept, less everything.
    extreme = (np.abs(2 * kept.T - largest[drawn]) >= seen[drawn]).sum(axis=0)
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
    given = np.asarray(p_values, dtype=np.float64)
    result = given.copy()
    known = np.flatnonzero(~np.isnan(given))
    if not len(known) or method == "none":
        return [float(p) for p in result]
    if method == "bh":
        # Loading all of scipy.stats takes half a second.
        from scipy.stats import false_discovery_control

        result[known] = false_discovery_control(given[known], method="bh")
    else:
        order = known[np.argsort(given[known], kind="stable")]
        factors = np.arange(len(order), 0, -1)
        result[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * factors))
    return [float(p) for p in result]


def effect_size(differences: Floats) -> float:
    """Cohen's d of paired differences (d_z): mean over standard deviation; NaN without spread."""
    spread = spread_of(differences)
    return float(np.mean(differences)) / spread if spread > 0 else math.nan
