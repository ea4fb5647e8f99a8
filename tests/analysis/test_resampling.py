"""Intervals cover what they promise, tests err as often as they promise, seeds repeat."""

import itertools

import numpy as np
import pytest
from scipy import stats

from rankdash.analysis.resampling import (
    bca_interval,
    bootstrap_means,
    percentile_interval,
    sign_flip_p,
)

SETS, QUERIES = 1000, 60


def skewed_differences(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """As per-query NDCG differences look: a third zero, most gains small, a few large losses."""
    size = rng.beta(1, 4, size=shape)
    sign = np.where(rng.random(shape) < 0.25, -0.6, 1.0)
    return np.where(rng.random(shape) < 0.3, 0.0, size * sign)


TRUE_MEAN = 0.7 * 0.2 * (0.75 - 0.25 * 0.6)


@pytest.fixture(scope="module")
def simulated() -> np.ndarray:
    return skewed_differences(np.random.default_rng(5), (QUERIES, SETS))


def test_intervals_cover_the_true_mean_as_often_as_they_say(simulated):
    means = bootstrap_means(simulated, resamples=2000)
    for low, high in (percentile_interval(means), bca_interval(simulated, means)):
        coverage = np.mean((low <= TRUE_MEAN) & (high >= TRUE_MEAN))
        assert 0.93 <= coverage <= 0.97


def test_the_randomisation_test_rejects_a_true_null_as_often_as_it_says():
    rng = np.random.default_rng(6)
    signs = rng.choice([-1.0, 1.0], size=(QUERIES, SETS))
    differences = signs * np.abs(skewed_differences(rng, (QUERIES, SETS)))
    rejected = np.mean(sign_flip_p(differences, flips=2000) <= 0.05)
    # 1,000 sets: three standard errors around 5 % are 2.9 % to 7.1 %.
    assert 0.029 <= rejected <= 0.071


def test_sign_flip_agrees_with_every_flip_counted():
    differences = np.array([0.5, 0.25, -0.125, 0.75, 0.0, 0.375, -0.25, 0.5])
    flips = np.array(list(itertools.product([-1, 1], repeat=len(differences))))
    exact = np.mean(np.abs(flips @ differences) >= abs(differences.sum()) - 1e-12)
    estimated = sign_flip_p(differences[:, None], flips=40_000)[0]
    assert estimated == pytest.approx(exact, abs=0.01)


def test_sign_flip_agrees_with_scipy_on_the_same_differences(simulated):
    sample = simulated[:, 3]
    reference = stats.permutation_test(
        (sample,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1
    ).pvalue
    assert sign_flip_p(sample[:, None])[0] == pytest.approx(reference, abs=0.012)


def test_a_p_value_is_never_zero():
    assert sign_flip_p(np.full((40, 1), 0.5), flips=999)[0] == pytest.approx(1 / 1000)


def test_differences_of_zero_are_no_evidence():
    assert sign_flip_p(np.zeros((20, 1)), flips=500)[0] == 1.0


def test_the_same_seed_gives_the_same_interval_and_another_seed_another(simulated):
    one = bootstrap_means(simulated[:, :2], resamples=200, seed=1)
    assert np.array_equal(one, bootstrap_means(simulated[:, :2], resamples=200, seed=1))
    assert not np.array_equal(one, bootstrap_means(simulated[:, :2], resamples=200, seed=2))


def test_bootstrap_means_centre_on_the_mean_and_spread_like_its_standard_error(simulated):
    sample = simulated[:, :1]
    means = bootstrap_means(sample)[:, 0]
    error = sample.std() / np.sqrt(QUERIES)
    assert means.mean() == pytest.approx(sample.mean(), abs=4 * error / np.sqrt(len(means)))
    assert means.std() == pytest.approx(error, rel=0.05)


def test_bca_agrees_with_scipy(simulated):
    sample = simulated[:, 0]
    reference = stats.bootstrap(
        (sample,), np.mean, method="BCa", n_resamples=20_000, rng=3
    ).confidence_interval
    low, high = bca_interval(sample[:, None], bootstrap_means(sample[:, None], resamples=20_000))
    assert low[0] == pytest.approx(reference.low, abs=0.003)
    assert high[0] == pytest.approx(reference.high, abs=0.003)


def test_an_interval_without_spread_is_the_value_itself():
    values = np.full((30, 1), 0.25)
    low, high = bca_interval(values, bootstrap_means(values, resamples=100))
    assert low[0] == high[0] == 0.25
