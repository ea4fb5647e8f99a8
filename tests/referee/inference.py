"""Intervals, p values and their corrections, from the formulas.

Random numbers differ from rankdash's. Two estimates from B samples each differ by the sampling
error of both, so that a figure is compared within `SIGMAS` times that error: one of a million
comparisons would fail by chance.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import norm, skew, t, ttest_1samp

from tests.referee.rules import RESAMPLES, Rules

Floats = npt.NDArray[np.float64]
SIGMAS = 5.0
FEWEST = 6
MANY, FEWEST_CHANGED = 30, 3
"""The minimum number of queries with a change, if there are fewer than `MANY` queries."""
_SEED = 977
_COUNTS: dict[int, Floats] = {}
_MEANS: dict[bytes, Floats] = {}


Range = tuple[float, float]


def drawn_means(values: Floats) -> Floats:
    """Return (RESAMPLES,) means of resamples, with the same resamples for equal sizes."""
    n = len(values)
    if n not in _COUNTS:
        picked = np.random.default_rng(_SEED + n).multinomial(n, np.full(n, 1 / n), RESAMPLES)
        _COUNTS[n] = picked.astype(np.float64)
    asked = values.tobytes()
    if asked not in _MEANS:
        # Means that differ only in their last digits are set equal.
        _MEANS[asked] = np.round(_COUNTS[n] @ values / n, 12)
    return _MEANS[asked]


def interval(values: Floats, rules: Rules) -> list[Range]:
    """Return the range (from, to) of the lower and of the upper end of the interval of the mean,
    NaN if there is no interval.

    Student's t, widened by Hall's transformation (1992); percentiles of the resampled means (Efron
    1979), or percentiles shifted by bias and acceleration (Efron 1987, equations 2.3 and 6.6).
    """
    n, changed = len(values), int((np.abs(values) > 1e-12).sum())
    if n < FEWEST or (n < MANY and 0 < changed < FEWEST_CHANGED):
        return [(math.nan, math.nan)] * 2
    mean = round(float(values.mean()), 12)
    if np.ptp(values) < 1e-12:
        return [(mean, mean)] * 2
    if rules.interval == "skew-t":
        return [(end, end) for end in _skewed_t(values, rules.level)]
    return _read_off(drawn_means(values), _shares(values, rules))


def _skewed_t(values: Floats, level: float) -> tuple[float, float]:
    n, mean = len(values), float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(n)
    k = float(skew(values, bias=False)) / math.sqrt(n)

    def turned(at: float, reach: float) -> float:
        return at + k * at**2 / 3 + k**2 * at**3 / 27 + k / 6 - reach

    reach = float(t.ppf((1 + level) / 2, n - 1))
    below, above = (
        mean - error * brentq(turned, -1e6, 1e6, (each,), xtol=1e-13) for each in (reach, -reach)
    )
    return (
        min(mean - error * reach, max(below, float(values.min()))),
        max(mean + error * reach, min(above, float(values.max()))),
    )


def relative_interval(before: Floats, changes: Floats, rules: Rules) -> list[Range]:
    """Return the same for the mean change over the mean before: by the delta method, or from the
    ratio in each resample, at the shares of resamples of the ends of the change's interval.

    Both intervals are on the same side of 0: if a ratio on this side may be missing, the end of the
    change over the mean before is a possible end.
    """
    plain = [(low / before.mean(), high / before.mean())
             for low, high in interval(changes, rules)]  # fmt: skip
    if np.ptp(changes) < 1e-12 and not changes.any():
        return plain
    if rules.interval == "skew-t":
        ratio = changes.mean() / before.mean()
        found = interval(ratio + (changes - ratio * before) / before.mean(), rules)
    else:
        ratios = drawn_means(changes) / drawn_means(before)
        found = _read_off(ratios, _shares(changes, rules))
    return [
        (min(own[0], other[0]), max(own[1], other[1])) if own[0] <= 0 <= own[1] else
        other if all(own[0] * end < 0 for end in other) else own
        for own, other in zip(found, plain, strict=True)
    ]  # fmt: skip


def _read_off(draws: Floats, shares: Sequence[Range]) -> list[Range]:
    return [tuple(np.quantile(draws, each).tolist()) for each in shares]


def _shares(values: Floats, rules: Rules) -> list[Range]:
    """Return the range of shares of the resamples for each end of the interval of the mean."""
    mean = round(float(values.mean()), 12)
    means = drawn_means(values)
    bias = acceleration = unsure = 0.0
    if rules.interval == "bca":
        below = ((means < mean).mean() + (means <= mean).mean()) / 2
        bias = float(norm.ppf(below))
        unsure = math.sqrt(below * (1 - below) / RESAMPLES) / norm.pdf(bias)
        parts = values - values.mean()
        acceleration = float((parts**3).sum() / (6 * (parts**2).sum() ** 1.5))
    found = []
    for share in ((1 - rules.level) / 2, (1 + rules.level) / 2):
        reach = bias + norm.ppf(share)
        at = norm.cdf(bias + reach / (1 - acceleration * reach))
        error = math.hypot(
            math.sqrt(at * (1 - at) / RESAMPLES), 2 * unsure * norm.pdf(norm.ppf(at))
        )
        wide = SIGMAS * math.sqrt(2) * error
        low, high = np.clip([at - wide, at + wide], 0, 1).tolist()
        found.append((low, high))
    return found


def p_value(values: Floats, *, flips: bool) -> tuple[float, float]:
    """Return p and its sampling error, two-sided: of sign flips, or of the paired t test. If few
    queries changed, every choice of signs is counted."""
    if not flips:
        return (float(ttest_1samp(values, 0).pvalue) if np.any(values) else 1.0), 1e-9
    changed = values[values != 0]
    if 2 ** (len(changed) - 1) <= RESAMPLES:
        every = np.array(list(itertools.product((-1.0, 1.0), repeat=len(changed))))
        sums = np.abs(every @ changed)
        return float((sums >= abs(changed.sum()) - 1e-9).mean()), 1e-9
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), (RESAMPLES, len(values)))
    sums = np.abs(signs @ values)
    p = (1 + int((sums >= abs(values.sum()) - 1e-9).sum())) / (1 + RESAMPLES)
    return p, SIGMAS * math.sqrt(2 * p * (1 - p) / RESAMPLES) + 2 / RESAMPLES


def detectable(values: Floats, level: float) -> float:
    """Return (t₁ + t₂) · s / √n, the minimum detectable change at 80 % power, or NaN."""
    n, spread = len(values), float(values.std(ddof=1))
    if np.ptp(values) < 1e-12:
        return math.nan
    return float(t.ppf((1 + level) / 2, n - 1) + t.ppf(0.8, n - 1)) * spread / math.sqrt(n)


def corrected(raw: Sequence[float], *, holm: bool) -> list[float]:
    """Return p values corrected by Holm (1979), or by Benjamini and Hochberg (1995)."""
    order = sorted(range(len(raw)), key=raw.__getitem__)
    found = [0.0] * len(raw)
    if holm:
        highest = 0.0
        for place, at in enumerate(order):
            highest = max(highest, min(1.0, raw[at] * (len(raw) - place)))
            found[at] = highest
        return found
    lowest = 1.0
    for place, at in reversed(list(enumerate(order, start=1))):
        lowest = min(lowest, raw[at] * len(raw) / place)
        found[at] = lowest
    return found
