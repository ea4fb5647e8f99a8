"""Intervals of metrics of few values cover the truth as often as SciPy's BCa on the same draws, and
a verdict finds a change where there is none no more often than it says."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from rankdash.analysis.statistics.bootstrap import Columns, bootstrap_means
from rankdash.analysis.statistics.inference import intervals, p_values
from rankdash.analysis.statistics.settings import StatisticsSettings

SETS = 100
RULES = StatisticsSettings(interval="bca", resamples=2000)
STEPS = {"hit": 1, "precision": 5, "recall": 60, "mrr": 60}
"""How many steps make 1 at a cutoff of 5: all values are whole numbers of them."""


def drawn(metric: str, p: float, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Values of as many queries where each document is relevant, or found, with probability p."""
    if metric == "hit":
        return (rng.random(shape) < p).astype(float)
    if metric == "precision":
        return rng.binomial(5, p, shape) / 5
    if metric == "recall":
        relevant = rng.integers(1, 6, shape)
        return rng.binomial(relevant, p) / relevant
    first = rng.geometric(p, shape)
    return np.where(first <= 5, 1 / first, 0.0)


def expected(metric: str, p: float) -> float:
    return sum(p * (1 - p) ** (i - 1) / i for i in range(1, 6)) if metric == "mrr" else p


def scipy_intervals(columns: np.ndarray, steps: int) -> np.ndarray:
    """(2, C) in whole steps, so that equal means are equal; SciPy has none without spread."""
    ready, sign = Columns.oriented(columns)
    own = ready.values
    whole, n = np.rint(own * steps), len(own)
    means = np.rint(bootstrap_means(ready, resamples=RULES.resamples) * steps * n) / n
    ends = np.repeat(whole[:1], 2, axis=0)
    varies = np.flatnonzero(np.ptp(whole, axis=0))
    ends[:, varies] = stats.bootstrap(
        (whole[:, varies].T,), np.mean, axis=-1, n_resamples=0, batch=1, method="BCa",
        bootstrap_result=SimpleNamespace(bootstrap_distribution=means[:, varies].T),
    ).confidence_interval  # fmt: skip
    return np.sort(ends * sign / steps, axis=0)


def share_covering(ends: np.ndarray, value: float) -> float:
    return float(np.mean((ends[0] <= value + 1e-12) & (ends[1] >= value - 1e-12)))


@pytest.mark.parametrize(("n", "p"), [(30, 0.95), (40, 0.5), (74, 0.9)])
@pytest.mark.parametrize(("metric", "steps"), STEPS.items())
def test_they_cover_as_often_as_scipys_and_verdicts_err_as_seldom_as_said(metric, steps, n, p):
    rng = np.random.default_rng([n, steps])
    before, other = drawn(metric, p, rng, (n, SETS)), drawn(metric, p, rng, (n, SETS))
    # Of two systems that are as good, half of the queries get another value.
    changes = np.where(rng.random((n, SETS)) < 0.5, 0.0, other - before)
    for columns, value in ((before, expected(metric, p)), (changes, 0.0)):
        ours = np.stack(intervals(columns, RULES))
        assert share_covering(ours, value) == pytest.approx(
            share_covering(scipy_intervals(columns, steps), value), abs=0.02
        )
    found = (ours[0] > 0) | (ours[1] < 0)
    by_p = p_values(changes, RULES) <= 0.05
    # Three standard errors above 5 %. Of few queries the interval alone errs in up to one of six.
    assert np.mean(found & by_p) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / SETS)


@pytest.mark.parametrize(("metric", "steps"), STEPS.items())
def test_what_is_as_often_up_as_down_has_an_interval_as_wide_either_way(metric, steps):
    """But for chance, which moves an end from one possible mean to the next."""
    rng = np.random.default_rng(steps)
    up = drawn(metric, 0.5, rng, (20, SETS)) - drawn(metric, 0.5, rng, (20, SETS))
    low, high = intervals(np.vstack([up, -up]), StatisticsSettings())
    assert (np.abs(low + high) <= 0.1 * (high - low)).all()
