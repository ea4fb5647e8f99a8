"""What is promised of more queries is kept, whatever the shape of the differences."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from rankdash.analysis.statistics import planning
from rankdash.analysis.statistics.inference import intervals, p_values
from rankdash.analysis.statistics.planning import (
    FEWEST_PLANNED,
    POWER,
    plan,
    smallest_detectable,
)
from rankdash.analysis.statistics.settings import StatisticsSettings

SETTINGS = StatisticsSettings(resamples=1_000)


def _with_zeros(n, *kinds):
    """n differences: of each (value, count), the rest 0."""
    values = np.repeat([value for value, _ in kinds], [count for _, count in kinds])
    return np.append(values, np.zeros(n - len(values)))


def _normal(n, mean, spread):
    return mean + spread * stats.norm.ppf((np.arange(n) + 0.5) / n)


SHAPES = {
    "every query changes": _normal(60, 0.03, 0.2),
    "hit: nine gained, five lost of 60": _with_zeros(60, (1.0, 9), (-1.0, 5)),
    "one query of 40 changed": _with_zeros(40, (0.4, 1)),
    "half of 100 changed, ndcg": _with_zeros(100, *((x, 1) for x in _normal(45, 0.05, 0.25))),
    "many small losses, few large gains": _with_zeros(80, (-0.02, 60), (0.5, 6)),
    "hit: 11 gained, three lost of 183": _with_zeros(183, (1.0, 11), (-1.0, 3)),
    "hit: 50 gained, 34 lost of 500": _with_zeros(500, (1.0, 50), (-1.0, 34)),
    "precision@10": _with_zeros(60, (0.1, 14), (0.2, 6), (-0.1, 10), (-0.3, 2)),
    "reciprocal ranks": _with_zeros(60, *((1 / 2 - 1 / x, 2) for x in (1, 1, 3, 4, 5)), (0.5, 4)),
}


def planned(differences, settings=SETTINGS, **changes):
    low, high = intervals(differences[:, None], settings)
    return plan(
        differences,
        (low[0], high[0]),
        **{"test": settings.test, "verdict_level": settings.level, **changes},
    )


@pytest.mark.parametrize("test", ["t", "sign-flip", "wilcoxon"])
def test_more_queries_than_are_anybodys_plan_are_not_told(monkeypatch, test):
    """Also where only the rounding to two digits takes the number beyond."""
    differences = _normal(20, 0.025, 0.15)
    needed = planned(differences, test=test).likely
    assert 200 < needed < planning.PRACTICAL
    for most, told in ((2 * needed, needed), (needed - 1, None), (200, None)):
        monkeypatch.setattr(planning, "PRACTICAL", most)
        found = planned(differences, test=test)
        # The true change may be smaller, but hardly none.
        assert (found.likely, found.none_within) == (told, False)


def tilted(present, change):
    """Probabilities of the present differences, weighted exponentially so that their mean is
    `change`."""

    def shares(tilt):
        weights = np.exp(tilt * present - np.max(tilt * present))
        return weights / weights.sum()

    return shares(optimize.brentq(lambda tilt: shares(tilt) @ present - change, -500, 500))


def proven(present, change, more, draws=600, settings=SETTINGS):
    """The share of draws that the verdict's own rule proves: the interval excludes 0, and p is
    significant."""
    rng = np.random.default_rng(11)
    drawn = rng.choice(present, (more, draws), p=tilted(present, change))
    joined = np.vstack([np.tile(present[:, None], draws), drawn])
    low, _ = intervals(joined, settings)
    return np.mean((low > 0) & (p_values(joined, settings) <= 0.05))


def true_changes(present, settings=SETTINGS):
    """The true change that each number of a plan is for."""
    mean, ends = present.mean(), np.concatenate(intervals(present[:, None], settings))
    middle = stats.norm.ppf(0.75) / stats.norm.ppf(0.975)
    low, high = mean + middle * (ends - mean)
    return {"least": high, "likely": mean, "most": low}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", ["least", "likely", "most"])
def test_each_number_proves_its_change_as_often_as_promised(shape, number):
    present = SHAPES[shape]
    more, change = getattr(planned(present), number), true_changes(present)[number]
    # 600 draws, and 1,000 of the plan: two standard errors of both are 4 points.
    assert proven(present, change, more) >= POWER - 0.045
    assert proven(present, change, int(0.8 * more)) <= POWER + 0.045


@pytest.mark.parametrize(("n", "gained"), [(40, 5), (60, 4), (60, 5), (100, 5), (200, 5)])
@pytest.mark.parametrize("number", ["least", "likely", "most"])
def test_hits_alone_need_the_numbers_of_the_binomial_distribution(n, gained, number):
    """Gains without a loss are proven from six of them on."""
    present = _with_zeros(n, (1.0, gained))
    more, change = getattr(planned(present), number), true_changes(present)[number]
    least, most = (stats.binom.sf(5 - gained, each, change) for each in (more - 1, more))
    # 1,000 draws: two standard errors are 2.5 points.
    assert least <= POWER + 0.03
    assert most >= POWER - 0.03


@given(
    st.lists(st.sampled_from([1.0, 1.0, 1.0, -1.0, 0.5, 1 / 3]), min_size=3, max_size=16),
    st.integers(20, 200),
)
def test_a_larger_true_change_never_needs_more_queries(changes, n):
    found = planned(_with_zeros(n, *((change, 1) for change in changes)))
    if found is not None and found.likely is not None:
        assert found.least <= found.likely
        assert found.most is None or found.likely <= found.most


FEW_TIES = SHAPES["half of 100 changed, ndcg"]
TIES = _with_zeros(60, (-0.1, 20), (0.3, 14))
RARE_GAINS = _with_zeros(306, (-0.002, 300), (0.1, 3), (1.0, 3))


@pytest.mark.parametrize(
    ("test", "present"),
    [("t", FEW_TIES), ("t", RARE_GAINS), ("wilcoxon", FEW_TIES), ("wilcoxon", TIES)],
)
def test_the_promise_is_that_of_the_chosen_test(test, present):
    settings = dataclasses.replace(SETTINGS, test=test)
    more = planned(present, settings).likely
    rng = np.random.default_rng(12)
    joined = np.vstack([np.tile(present[:, None], 600), rng.choice(present, (more, 600))])
    assert np.mean(p_values(joined, settings) <= 0.05) == pytest.approx(POWER, abs=0.05)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_smaller_true_change_needs_more_queries_and_a_loss_as_many_as_a_gain(shape):
    gain, loss = planned(SHAPES[shape]), planned(-SHAPES[shape])
    assert gain == loss
    assert gain.least <= gain.likely
    assert gain.most is None or gain.likely <= gain.most


def test_a_stricter_level_needs_more_queries():
    present = SHAPES["half of 100 changed, ndcg"]
    assert planned(present, level=0.99).likely > 1.3 * planned(present, level=0.95).likely


def test_no_more_than_two_digits_are_promised():
    for shape in SHAPES.values():
        found = planned(shape)
        for number in (found.likely, found.least, found.most):
            assert number is None or len(str(number).rstrip("0")) <= 2


def test_below_20_queries_nothing_is_promised():
    present = _normal(FEWEST_PLANNED, 0.05, 0.2)
    assert planned(present) is not None
    assert planned(present[1:]) is None


def test_where_nothing_varies_or_nothing_is_gained_nothing_is_promised():
    assert planned(np.full(30, 0.1)) is None
    assert planned(np.zeros(30)) is None
    assert planned(np.tile([0.1, -0.1], 15)) is None


@given(st.permutations([0.1, 0.2, -0.3] * 10), st.sampled_from([1.0, -1.0, 1 / 3]))
def test_differences_that_add_up_to_0_are_not_planned_in_any_order(values, scale):
    differences = np.array(values) * scale
    assert plan(differences, (-0.1, 0.1)) is None


def test_a_change_near_none_takes_more_queries_than_anyone_labels():
    assert planned(_normal(60, 0.0001, 0.2)).likely is None
    assert planned(_normal(60, 0.0001, 0.2)).none_within


def test_the_middle_half_of_the_interval_tells_whether_none_is_within():
    """0.67 standard errors from 0."""
    error = 0.2 / math.sqrt(60)
    assert planned(_normal(60, 0.60 * error, 0.2)).none_within
    assert not planned(_normal(60, 0.75 * error, 0.2)).none_within
    # The interval is that of the verdict, whatever level several comparisons ask of a p.
    assert planned(_normal(60, 0.60 * error, 0.2), level=0.995).none_within


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.3, 1.0]), min_size=20, max_size=60))
def test_a_plan_is_whole_numbers_of_queries_whatever_the_differences(values):
    found = planned(np.array(values), StatisticsSettings(resamples=100))
    if found is not None:
        numbers = [found.likely, found.least, found.most]
        assert all(number is None or 1 <= number <= 100_000 for number in numbers)


def test_trap_18_the_spread_is_that_of_the_pairs():
    """Two systems that differ by the same little on each query need few queries, however much
    the queries themselves differ: a binomial variance of the means would ask for thousands."""
    rng = np.random.default_rng(1)
    assert smallest_detectable(0.02 + rng.normal(0, 0.01, 50)) < 0.005


def test_the_smallest_detectable_difference_is_found_at_the_stated_power():
    rng = np.random.default_rng(2)
    spread, n = 0.2, 60
    reach = smallest_detectable(np.array([spread, -spread] * (n // 2)) * math.sqrt((n - 1) / n))
    found = stats.ttest_1samp(rng.normal(reach, spread, (n, 4000)), 0).pvalue <= 0.05
    assert found.mean() == pytest.approx(0.80, abs=0.03)


def test_without_spread_no_change_is_said_to_be_detectable():
    assert math.isnan(smallest_detectable(np.full(30, 0.1)))
    assert math.isnan(smallest_detectable(np.array([0.1])))


@pytest.mark.parametrize(
    ("queries", "gained", "more"),
    [
        (20_000, 10_064, 180_000),
        (20_000, 10_062, 190_000),
        (20_000, 10_060, None),
        (10_000, 5_044, 95_000),
        (10_000, 5_042, None),
    ],
)
def test_a_hundred_thousand_more_or_ten_times_as_many_are_a_plan(queries, gained, more):
    differences = np.repeat([1.0, -1.0], [gained, queries - gained])
    mean = float(differences.mean())
    assert plan(differences, (mean - 0.01, mean + 0.01), test="t").likely == more


@pytest.mark.parametrize(("level", "power"), [(0.95, 0.8), (0.9, 0.5)])
@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_smallest_detectable_difference_of_few_queries_is_that_of_the_t_distribution(
    n, level, power
):
    differences = np.arange(n) / 10
    reach = stats.t.ppf((1 + level) / 2, n - 1) + stats.t.ppf(power, n - 1)
    expected = reach * np.std(differences, ddof=1) / math.sqrt(n)
    found = smallest_detectable(differences, level=level, power=power)
    assert found == pytest.approx(expected)
    assert math.isnan(smallest_detectable(differences[:1], level=level, power=power))


def test_one_comparison_alone_is_not_corrected():
    settings = StatisticsSettings()
    assert [settings.corrects(comparisons) for comparisons in (1, 2)] == [False, True]
    assert not StatisticsSettings(correction="none").corrects(2)
