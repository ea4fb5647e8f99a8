"""Is a paired difference more than chance, and how large is it?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Test = Literal["sign-flip", "t", "wilcoxon"]
Correction = Literal["holm", "bh", "none"]

LEVEL = 0.95
_ROUNDING = 1e-12


def paired_t_p(differences: FloatArray) -> float:
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


def spread_of(differences: FloatArray) -> float:
    """Standard deviation, n - 1 in the divisor; 0 where only rounding errors differ, or for one."""
    if len(differences) < 2 or np.ptp(differences) <= _ROUNDING:
        return 0.0
    return float(np.std(differences, ddof=1))


def wilcoxon_p(differences: FloatArray) -> float:
    """Two-sided p of the Wilcoxon signed-rank test on (n,) differences; 1.0 when all are zero.

    Zeros are dropped, as Wilcoxon did; ties make SciPy use the normal approximation.
    """
    from scipy.stats import wilcoxon

    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    return float(wilcoxon(moved).pvalue)


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


def effect_size(differences: FloatArray) -> float:
    """Cohen's d of paired differences (d_z): mean over standard deviation; NaN without spread."""
    spread = spread_of(differences)
    return float(np.mean(differences)) / spread if spread > 0 else math.nan
