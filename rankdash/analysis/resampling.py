"""Bootstrap and sign-flip distributions of means, for many columns in one pass.

Every column is resampled with the same draws, so that columns can be compared and the random
numbers are paid once. Both are matrix products over chunks of draws: memory stays bounded.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

FloatArray = npt.NDArray[np.float64]

RESAMPLES = 10_000
SEED = 20_261_121
_CHUNK_CELLS = 4_000_000


def bootstrap_means(
    values: FloatArray, *, resamples: int = RESAMPLES, seed: int = SEED
) -> FloatArray:
    """Means over queries drawn with replacement.

    values: (n, C), no NaN. Returns (resamples, C). Source: Efron, B. (1979), Bootstrap methods.
    """
    n = len(values)
    rng = np.random.default_rng(seed)
    # Column means are subtracted first, so that single precision loses nothing that matters.
    centre = values.mean(axis=0)
    centred = (values - centre).astype(np.float32)
    means = np.empty((resamples, values.shape[1]))
    step = max(1, _CHUNK_CELLS // n)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        draws = rng.integers(0, n, size=(rows, n), dtype=np.int32)
        draws += np.arange(rows, dtype=np.int32)[:, None] * n
        counts = np.bincount(draws.ravel(), minlength=rows * n).reshape(rows, n)
        means[start : start + rows] = counts.astype(np.float32) @ centred / n
    shifted: FloatArray = means + centre
    return shifted


def percentile_interval(means: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """(low, high) of shape (C,) from bootstrap means (B, C)."""
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


def bca_interval(
    values: FloatArray, means: FloatArray, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Bias-corrected and accelerated interval of the mean of each column.

    values: (n, C); means: its bootstrap means (B, C). Returns (low, high), each (C,); a column
    without spread gives its value twice. Source: Efron, B. (1987), Better bootstrap confidence
    intervals; the acceleration of a mean is its skewness over 6 √n.
    """
    centre = values.mean(axis=0)
    deviations = values - centre
    spread = (deviations**2).sum(axis=0)
    # Draws equal to the estimate count half: per-query metrics have few distinct values.
    below = (means < centre).mean(axis=0) + 0.5 * (means == centre).mean(axis=0)
    draws = len(means)
    bias = ndtri(np.clip(below, 0.5 / draws, 1 - 0.5 / draws))
    with np.errstate(invalid="ignore", divide="ignore"):
        acceleration = np.where(spread > 0, (deviations**3).sum(axis=0) / (6 * spread**1.5), 0.0)
    edges = ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))[:, None] + bias
    shares = ndtr(bias + edges / (1 - acceleration * edges))
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

    differences: (n, C), no NaN. Under the null hypothesis each query's difference is as likely to
    have the other sign. p = (b + 1) / (m + 1) for b of m flips at least as far from 0 as what was
    seen, so it is never 0. Source: Fisher (1935); Smucker, Allan & Carterette (2007).
    """
    n = len(differences)
    rng = np.random.default_rng(seed)
    observed = np.abs(differences.sum(axis=0))
    # Equal sums must count as equal whatever the order of addition made of their last digits.
    slack = 1e-6 * np.abs(differences).sum(axis=0)
    narrow = differences.astype(np.float32)
    extreme = np.zeros(differences.shape[1], dtype=np.int64)
    step = max(1, _CHUNK_CELLS // n)
    for start in range(0, flips, step):
        rows = min(step, flips - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes((rows * n + 7) // 8), dtype=np.uint8))
        signs = bits[: rows * n].reshape(rows, n).astype(np.float32) * 2 - 1
        extreme += (np.abs(signs @ narrow) >= observed - slack).sum(axis=0)
    return ((extreme + 1.0) / (flips + 1.0)).astype(np.float64)
