"""Weighted means, their intervals and p, against independent computations and known populations."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.weights import Weights, is_number_column, weights_of
from rankdash.core.statistics.anytime import AnytimeSettings
from rankdash.core.statistics.inference import intervals, p_values, relative_interval
from rankdash.core.statistics.weighted import merged_strata, pseudo_values, resampled_means

T = StatisticsSettings(interval="t", test="t")
RNG = np.random.default_rng(44)


def sample(n=60, strata=3):
    values = RNG.normal(0.3, 0.2, n)
    searches = RNG.uniform(1, 6, n)
    return values, Weights(searches, RNG.integers(0, strata, n))


def variance(values, weights):
    """Return the textbook variance of a stratified weighted mean, query by query."""
    total = sum(weights.searches)
    mean = sum(w * v for w, v in zip(weights.searches, values, strict=True)) / total
    summed = 0.0
    for stratum in sorted(set(weights.strata.tolist())):
        rows = [at for at in range(len(values)) if weights.strata[at] == stratum]
        residuals = [weights.searches[at] * (values[at] - mean) / total for at in rows]
        centre = sum(residuals) / len(rows)
        squares = sum((each - centre) ** 2 for each in residuals)
        summed += len(rows) / (len(rows) - 1) * squares
    return mean, summed


def test_pseudo_values_have_the_mean_and_the_standard_error_of_the_stratified_mean():
    for _ in range(20):
        values, weights = sample()
        made = pseudo_values(values[:, None], weights)[:, 0]
        mean, expected = variance(values, weights)
        assert made.mean() == pytest.approx(mean, abs=1e-12)
        assert made.mean() == pytest.approx(np.average(values, weights=weights.searches))
        assert made.var(ddof=1) / len(made) == pytest.approx(expected, rel=1e-9)


def test_the_t_interval_is_the_textbook_interval_and_p_agrees_with_it():
    values, weights = sample()
    mean, squared = variance(values, weights)
    reach = stats.t.ppf(0.975, len(values) - 1) * np.sqrt(squared)
    low, high = intervals(values[:, None], T, weights=weights)
    assert (low[0], high[0]) == pytest.approx((mean - reach, mean + reach))
    p = p_values(values[:, None], T, weights=weights)[0]
    assert p == pytest.approx(2 * stats.t.sf(abs(mean) / np.sqrt(squared), len(values) - 1))


def test_missing_values_are_left_out_with_their_weights():
    values, weights = sample()
    holes = values.copy()
    holes[::7] = np.nan
    known = ~np.isnan(holes)
    for settings in (
        T,
        StatisticsSettings(),
        StatisticsSettings(interval="percentile", resamples=500),
    ):
        whole = intervals(holes[:, None], settings, weights=weights)
        rest = intervals(values[known][:, None], settings, weights=weights.taken(known))
        assert np.allclose(whole, rest)
    assert weights.mean(holes) == pytest.approx(
        np.average(values[known], weights=weights.searches[known])
    )


@pytest.mark.parametrize("interval", ["skew-t", "t", "bca", "percentile"])
@pytest.mark.parametrize("test", ["sign-flip", "t", "wilcoxon"])
def test_equal_weights_give_exactly_the_results_per_query(interval, test):
    settings = StatisticsSettings(interval=interval, test=test, resamples=500)
    columns = RNG.normal(0.02, 0.1, (80, 3))
    columns[5, 1] = np.nan
    weights = Weights(np.full(80, 7.3), np.zeros(80, dtype=np.int64))
    assert np.array_equal(
        intervals(columns, settings, weights=weights), intervals(columns, settings)
    )
    p = p_values(columns, settings, weights=weights)
    assert np.array_equal(p, p_values(columns, settings))
    before, change = np.abs(columns[:, 0]) + 0.5, columns[:, 2]
    assert relative_interval(before, change, settings, weights) == relative_interval(
        before, change, settings
    )


@pytest.mark.parametrize(
    ("searches", "expected"),
    [
        *(([], 0), ([7], 1), ([3] * 6, 6), ([1, 3], 1.6), ([1e300, 1e300], 2)),
        ([200] * 3 + [1] * 77, 3.82),
    ],
)
def test_the_effective_number_of_queries(searches, expected):
    weights = Weights(np.array(searches, dtype=float), np.zeros(len(searches), dtype=np.int64))
    assert weights.effective == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("interval", ["skew-t", "t", "percentile"])
@pytest.mark.parametrize("test", ["sign-flip", "t"])
def test_a_small_effective_number_gives_no_interval_and_no_p(interval, test):
    settings = StatisticsSettings(interval=interval, test=test, resamples=200)
    values = RNG.normal(0.3, 0.2, (80, 2))
    # Without the light queries, the second column has an effective number of 6.
    values[6:, 1] = np.nan
    weights = Weights(np.array([200.0] * 6 + [1.0] * 74), np.zeros(80, dtype=np.int64))
    assert np.isfinite(intervals(values, settings, weights=weights)).all()
    assert np.isfinite(p_values(values, settings, weights=weights)).all()
    values[0] = np.nan
    assert np.isnan(intervals(values, settings, weights=weights)[0]).tolist() == [True, True]
    assert np.isnan(p_values(values, settings, weights=weights)).all()
    assert np.isfinite(intervals(values[:, :1], settings)).all()
    before = np.full(79, 0.5)
    relative = relative_interval(before, values[1:, 0], settings, weights.taken(np.arange(1, 80)))
    assert np.isnan(relative).all()


def test_few_heavy_queries_do_not_give_intervals_that_are_too_narrow():
    rng, weights = (
        np.random.default_rng(5),
        Weights(np.array([200.0] * 3 + [1.0] * 77), np.zeros(80)),
    )
    gains = rng.exponential(1.0, (80, 300))
    low, high = intervals(gains, StatisticsSettings(), weights=weights)
    shown = ~np.isnan(low)
    missed = shown & ((low > 1) | (high < 1))
    # With intervals, about 20 % of them would miss the mean.
    assert missed.sum() <= 0.08 * 300


@pytest.mark.parametrize("interval", ["skew-t", "t", "percentile"])
def test_order_of_queries_and_units_of_weights_change_nothing(interval):
    settings = StatisticsSettings(interval=interval, resamples=500)
    values, weights = sample()
    order = RNG.permutation(len(values))
    shuffled = Weights(1_000 * weights.searches[order], 2 - weights.strata[order])
    one = intervals(values[:, None], settings, weights=weights)
    if interval == "percentile":
        shuffled = Weights(shuffled.searches, weights.strata[order])
    assert np.allclose(one, intervals(values[order][:, None], settings, weights=shuffled))
    low, high = intervals(-values[:, None], settings, weights=weights)
    if interval in ("skew-t", "t"):
        assert np.allclose((-high, -low), one)


def test_a_bootstrap_resamples_within_strata():
    values, weights = sample(200)
    # All of the variance is between strata, so resampling within them changes nothing.
    between = weights.strata.astype(float)
    equal = Weights(np.ones(200), weights.strata)
    assert np.ptp(resampled_means(between[:, None], equal, resamples=200, seed=1)) < 1e-12
    draws = resampled_means(values[:, None], weights, resamples=4_000, seed=1)[:, 0]
    mean, squared = variance(values, weights)
    assert draws.mean() == pytest.approx(mean, abs=3 * np.sqrt(squared / 4_000))
    assert draws.std() == pytest.approx(np.sqrt(squared), rel=0.08)


def test_strata_of_one_query_are_merged():
    assert merged_strata(np.array([5, 5, 7, 9, 9])).tolist() == [0, 0, 1, 1, 1]
    assert merged_strata(np.array([5, 5, 7])).tolist() == [0, 0, 0]
    assert merged_strata(np.array([3])).tolist() == [0]


def test_the_relative_interval_is_the_interval_of_the_ratio():
    values, weights = sample(400)
    before = np.abs(values) + 0.2
    change = 0.1 * before + RNG.normal(0, 0.1, 400)
    low, high = relative_interval(before, change, StatisticsSettings(), weights)
    draws = resampled_means(np.column_stack([change, before]), weights, resamples=4_000, seed=2)
    # Both columns have their own draws, so the ratio is resampled from joint values instead.
    ratio = weights.mean(change) / weights.mean(before)
    joint = [
        np.average(change[rows], weights=weights.searches[rows])
        / np.average(before[rows], weights=weights.searches[rows])
        for rows in (RNG.integers(0, 400, 400) for _ in range(2_000))
    ]
    assert low < ratio < high
    assert (high - low) / (2 * 1.96) == pytest.approx(np.std(joint), rel=0.15)
    assert draws.shape == (4_000, 2)


def test_settings_without_a_weighted_version_are_refused_in_words():
    values, weights = sample()
    with pytest.raises(SpecError, match="stopped by its result"):
        intervals(values[:, None], AnytimeSettings(), weights=weights)
    with pytest.raises(SpecError, match="BCa"):
        intervals(values[:, None], StatisticsSettings(interval="bca"), weights=weights)
    with pytest.raises(SpecError, match="Wilcoxon"):
        p_values(values[:, None], StatisticsSettings(test="wilcoxon"), weights=weights)


# Known populations: a log of queries, a stratified sample with probability proportional to
# frequency, and another with equal probabilities within strata.


def coverage(n, runs, settings, design, seed=7):
    """Return the share of intervals that contain the mean per search of a known population."""
    rng = np.random.default_rng(seed)
    size = 30_000
    frequency = np.maximum(np.round(size / np.arange(1, size + 1) ** 0.8), 1)
    # Frequent queries are easier, and most changes are 0.
    gain = np.where(rng.random(size) < 0.5, 0, rng.normal(0.05, 0.25, size))
    gain += 0.04 * np.log(frequency) / np.log(frequency).max()
    truth = np.average(gain, weights=frequency)
    strata = np.minimum((np.cumsum(frequency) / frequency.sum() * 3).astype(int), 2)
    members = [np.flatnonzero(strata == each) for each in range(3)]
    hits = 0
    for _ in range(runs):
        rows, probability = [], []
        for each in members:
            share = np.full(len(each), 1 / len(each))
            if design == "frequency":
                share = frequency[each] / frequency[each].sum()
            chosen = rng.choice(len(each), n // 3, replace=True, p=share)
            rows.append(each[chosen])
            probability.append(share[chosen] * (n // 3))
        at = np.concatenate(rows)
        weights = Weights(frequency[at] / np.concatenate(probability), strata[at])
        (low,), (high,) = intervals(gain[at][:, None], settings, weights=weights)
        hits += low <= truth <= high
    return hits / runs


def test_intervals_cover_the_mean_of_a_known_population():
    # Three standard errors of 600 runs around 95 %.
    assert 0.923 <= coverage(150, 600, StatisticsSettings(), "frequency") <= 0.977


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "interval"),
    [
        *(("frequency", each) for each in ("skew-t", "t", "percentile")),
        # With equal probabilities, weights differ much, and percentiles are too narrow: 92 %.
        *(("equal", each) for each in ("skew-t", "t")),
    ],
)
def test_coverage_is_94_to_96_percent(design, interval):
    settings = StatisticsSettings(interval=interval, resamples=1_000)
    assert 0.94 <= coverage(300, 4_000, settings, design) <= 0.96


# The columns of a table of queries.


def table(**columns):
    return pd.DataFrame({"query_id": ["a", "b", "c"], "text": "", **columns}).astype("str")


def test_weights_are_frequency_over_probability():
    queries = table(
        frequency=["10", "4", "2"],
        probability=["1", "0.5", "0.1"],
        stratum=["head", "tail", "tail"],
    )
    weights = weights_of(queries, np.array(["c", "a"], dtype=object))
    assert weights.searches.tolist() == [20.0, 10.0]
    assert weights.strata.tolist() == [1, 0]
    assert weights_of(queries[["query_id", "frequency"]], np.array(["b"])).searches.tolist() == [
        4.0
    ]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({}, "no column frequency"),
        ({"frequency": ["1", "0", "2"]}, "1 of 3, such as 'b'"),
        ({"frequency": ["1", "many", "2"]}, "valid frequency"),
        ({"frequency": ["1", "2", "3"], "probability": ["1", "1.5", "1"]}, "valid probability"),
    ],
)
def test_missing_or_invalid_numbers_are_refused_in_words(columns, reason):
    with pytest.raises(DataError, match=reason):
        weights_of(table(**columns), np.array(["a", "b", "c"]))


def test_a_query_without_a_row_is_refused():
    with pytest.raises(DataError, match="1 of 2, such as 'z'"):
        weights_of(table(frequency=["1", "2", "3"]), np.array(["a", "z"]))


def test_only_numbers_make_a_number_column():
    assert is_number_column(table(frequency=["1", "", "2"]), "frequency")
    assert not is_number_column(table(frequency=["high", "low", "low"]), "frequency")
    assert not is_number_column(table(stratum=["1", "2", "3"]), "stratum")
