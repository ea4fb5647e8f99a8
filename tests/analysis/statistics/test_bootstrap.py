"""Coverage of intervals, error rates of tests, reproducible seeds."""

import itertools

import numpy as np
import pytest
from scipy import stats

from rankdash.core.statistics import bootstrap
from rankdash.core.statistics.bootstrap import POISSON_FROM, Columns, percentile_interval
from rankdash.core.statistics.inference import sign_flip_p


def bootstrap_means(values: np.ndarray, **settings: int) -> np.ndarray:
    return bootstrap.bootstrap_means(Columns.of(values), **settings)


def bca_interval(values: np.ndarray, means: np.ndarray, **settings: float):
    return bootstrap.bca_interval(Columns.of(values), means, **settings)


def test_intervals_cover_the_true_mean_as_often_as_they_say():
    """600 sets: two and a half standard errors around 95 % are 92.8 % to 97.2 %. The differences
    are like those in per-query NDCG: a third zero, most gains small, a few large losses."""
    rng = np.random.default_rng(5)
    sign = np.where(rng.random((60, 600)) < 0.25, -0.6, 1.0)
    changed = rng.beta(1, 4, size=(60, 600)) * sign
    sets, truth = np.where(rng.random((60, 600)) < 0.3, 0.0, changed), 0.7 * 0.2 * 0.6
    means = bootstrap_means(sets, resamples=1000)
    for low, high in (percentile_interval(means), bca_interval(sets, means)):
        assert 0.928 <= np.mean((low <= truth) & (high >= truth)) <= 0.972


def test_without_spread_or_values_nothing_is_made_up():
    assert sign_flip_p(np.full((40, 1), 0.5), flips=999)[0] == pytest.approx(1 / 1000)
    assert sign_flip_p(np.zeros((20, 1)), flips=500)[0] == 1.0
    values = np.random.default_rng(13).random((30, 3))
    values[:, 1], values[:, 2] = np.nan, 0.25
    means = bootstrap_means(values, resamples=200)
    low, high = bca_interval(values, means)
    assert np.isnan([means[0, 1], low[1], high[1]]).all() and np.isfinite(means[:, 0]).all()
    assert low[2] == high[2] == 0.25
    assert np.isnan(sign_flip_p(values, flips=200)).tolist() == [False, True, False]
    nothing = np.empty((0, 2))
    assert np.isnan(bootstrap_means(nothing, resamples=5)).all()
    assert np.isnan(sign_flip_p(nothing, flips=5)).all()
    skewed = np.eye(6)[:, :1]
    low, high = bca_interval(skewed, bootstrap_means(skewed), level=0.9999)
    assert 0 <= low[0] <= skewed.mean() <= high[0] <= 1


@pytest.mark.parametrize("changed", [1, 7, 10, 11])
def test_where_few_queries_changed_every_flip_is_counted(changed):
    """With 1,000 flips: all combinations for up to ten queries; random ones for eleven."""
    rng = np.random.default_rng(changed)
    differences = np.append(rng.choice([0.5, 0.25, -0.125, 0.75], changed), [0.0] * 9)
    flips = np.array(list(itertools.product([-1, 1], repeat=changed)))
    sums = np.abs(flips @ differences[:changed])
    exact = np.mean(sums >= abs(differences.sum()) - 1e-12)
    found = sign_flip_p(differences[:, None], flips=1_000)[0]
    assert (found == exact) == (changed <= 10)
    assert found == pytest.approx(exact, abs=0.03)


def test_queries_without_a_value_change_no_flip():
    rng = np.random.default_rng(2)
    values = rng.normal(0.02, 0.2, 40)
    holed = np.full((70, 1), np.nan)
    holed[rng.choice(70, 40, replace=False), 0] = values
    assert sign_flip_p(holed)[0] == sign_flip_p(values[:, None])[0]


@pytest.mark.parametrize("queries", [40, POISSON_FROM + 40])
def test_a_query_without_a_value_takes_no_part(queries):
    rng = np.random.default_rng(11)
    whole = rng.random((queries, 3)) - 0.4
    holed = whole.copy()
    holed[: queries // 50 + 1, 1] = np.nan
    kept = holed[~np.isnan(holed[:, 1]), 1:2]
    means = bootstrap_means(holed)
    error = kept.std() / np.sqrt(len(kept))
    assert means[:, 1].mean() == pytest.approx(kept.mean(), abs=0.05 * error)
    assert means[:, 1].std() == pytest.approx(error, rel=0.03)
    # The order in which a product adds up depends on its shape, and that on the processor.
    assert means[:, 0] == pytest.approx(bootstrap_means(whole)[:, 0], abs=1e-5 * error)
    low, high = bca_interval(holed, means)
    expected = stats.bootstrap((kept[:, 0],), np.mean, rng=2).confidence_interval
    assert low[1] == pytest.approx(expected.low, abs=0.15 * error)
    assert high[1] == pytest.approx(expected.high, abs=0.15 * error)
    assert sign_flip_p(holed)[1] == pytest.approx(sign_flip_p(kept)[0], abs=0.015)


def test_a_resample_of_zeros_has_a_mean_of_exactly_zero():
    """Otherwise an interval that ends at 0 would seem to exclude it."""
    values = np.zeros((60, 1))
    values[:3] = 0.7
    means = bootstrap_means(values)
    low, _ = percentile_interval(means)
    assert low[0] == 0.0
    assert means.min() == 0.0
    assert means.max() <= 0.7


@pytest.mark.parametrize(("queries", "whole"), [(POISSON_FROM - 1, True), (POISSON_FROM, False)])
def test_from_a_thousand_queries_on_the_number_in_a_resample_varies(queries, whole):
    """One query has the value 1: a mean is its weight over the size of the resample."""
    assert POISSON_FROM == 1_000
    values = np.zeros((queries, 1))
    values[0] = 1.0
    weights = bootstrap_means(values, resamples=200) * queries
    assert np.allclose(weights, np.rint(weights)) == whole


def test_a_mean_of_rounding_errors_is_0_and_none_lies_beyond_its_values():
    """The largest absolute value determines the size of a rounding error."""
    for values in ([-0.5, 1000.0], [-1000.0, 0.5]):
        columns = Columns.of(np.array(values)[:, None])
        limit = bootstrap.TIE * 1000.0
        means = np.array([[limit], [-limit], [1.01 * limit], [-1.01 * limit]])
        found = columns.without_rounding_errors(means)[:, 0]
        assert found.tolist() == [0.0, 0.0, 1.01 * limit, -1.01 * limit]
        beyond = columns.without_rounding_errors(np.array([[-2000.0], [2000.0]]))[:, 0]
        assert beyond.tolist() == values


def test_columns_on_either_side_of_a_thousand_queries_get_what_they_get_alone():
    values = np.random.default_rng(2).normal(size=(POISSON_FROM, 2))
    values[0, 1] = np.nan
    together = bootstrap_means(values, resamples=20)
    assert np.isfinite(together).all()
    assert np.array_equal(together[:, [0]], bootstrap_means(values[:, [0]], resamples=20))
    assert np.array_equal(together[:, [1]], bootstrap_means(values[:, [1]], resamples=20))


def test_a_column_is_turned_to_a_gain_unless_it_has_neither_gain_nor_loss():
    """Otherwise the interval of a zero change would be a loss's."""
    turned, signs = Columns.oriented(np.array([[-2.0, 1.0, 0.5], [1.0, -1.0, 2.0]]))
    assert signs.tolist() == [-1.0, 1.0, 1.0]
    assert turned.values.tolist() == [[-1.0, -1.0, 0.5], [2.0, 1.0, 2.0]]
    columns = np.array([[0.5, -0.5, 0.4], [-0.25, 0.25, -0.3], [-0.25, 0.25, -0.2]])
    turned, signs = Columns.oriented(columns)
    assert signs.tolist() == [1.0, 1.0, -1.0]
    assert turned.values.T.tolist() == [[-0.25, -0.25, 0.5], [-0.5, 0.25, 0.25], [-0.4, 0.2, 0.3]]
