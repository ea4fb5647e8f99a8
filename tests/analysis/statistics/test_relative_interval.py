"""The interval of a relative change agrees with the change's interval, and covers the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.statistics.inference import intervals, relative_interval

T, BCA = StatisticsSettings(), StatisticsSettings(interval="bca", resamples=500)
BOTH = pytest.mark.parametrize("rules", [T, BCA], ids=["skew-t", "bca"])
hits = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=6, max_size=40
).filter(lambda pairs: any(before for before, _ in pairs))


def side(low: float, high: float) -> int:
    """Return 1 for an interval above 0, -1 for one below, 0 for an interval that contains 0."""
    return int(low > 0) - int(high < 0)


@given(hits, st.sampled_from(["skew-t", "t", "bca", "percentile"]))
def test_both_exclude_zero_or_neither_does(pairs, interval):
    before, after = np.array(pairs).T
    settings = StatisticsSettings(resamples=500, interval=interval)
    low, high = (end[0] for end in intervals((after - before)[:, None], settings))
    found = relative_interval(before, after - before, settings)
    assert side(*found) == side(low, high)
    assert found[0] <= found[1] or np.isnan([low, high, *found]).all()


@BOTH
def test_of_a_baseline_that_is_the_same_everywhere_it_is_the_interval_over_its_value(rules):
    change = np.random.default_rng(1).normal(0.05, 0.2, 60)
    low, high = (end[0] for end in intervals(change[:, None], rules))
    found = relative_interval(np.full(60, 0.4), change, rules)
    assert found == (pytest.approx(low / 0.4), pytest.approx(high / 0.4))


@BOTH
def test_a_loss_mirrors_a_gain_the_order_changes_nothing_and_too_few_have_none(rules):
    rng = np.random.default_rng(2)
    before, change = rng.random(50), rng.choice([-0.2, 0.0, 0.3], 50)
    low, high = relative_interval(before, change, rules)
    assert relative_interval(before, -change, rules) == (-high, -low)
    order = np.lexsort([before, change])[::-1]
    shuffled = relative_interval(before[order], change[order], rules)
    assert shuffled == pytest.approx((low, high), rel=0.1)
    assert np.isnan(relative_interval(np.ones(4), np.ones(4), rules)).all()


@BOTH
def test_it_covers_the_true_relative_change_of_a_rare_hit(rules):
    """40 queries, of which the baseline answers one in ten: the interval divided by the baseline's
    mean covers the truth in only 77 % of samples."""
    rng = np.random.default_rng(4)
    inside = made = 0
    for _ in range(200):
        before = (rng.random(40) < 0.1).astype(float)
        if before.sum() == 0:
            continue
        after = np.where(before > 0, before, rng.random(40) < 0.1 / 0.9)
        low, high = relative_interval(before, after - before, rules)
        made += 1
        inside += low <= 1.0 <= high
    assert inside / made > 0.87


def test_where_a_draw_finds_nothing_before_the_end_is_that_of_the_change():
    """The baseline answers one query of 20: a third of the resamples do not contain it."""
    before, change = np.repeat([1.0, 0.0], [1, 19]), np.repeat([0.0, 1.0], [10, 10])
    low, high = (end[0] for end in intervals(change[:, None], BCA))
    found = relative_interval(before, change, BCA)
    assert found[1] == pytest.approx(high / 0.05)
    assert low > 0 and 0 < found[0] < found[1]


def test_between_draws_on_either_side_of_zero_the_end_is_that_of_the_change():
    """The end of the change, -0.0024, lies between two draws; the quotient's draws end above 0."""
    before = np.array([0, 1, 2, 2, 1, 1, 0, 1, 1, 0, 0, 2, 1]) / 2
    after = np.array([2, 1, 1, 2, 1, 2, 1, 2, 1, 2, 2, 1, 1]) / 2
    few = StatisticsSettings(interval="bca", resamples=100)
    low = intervals((after - before)[:, None], few)[0][0]
    found = relative_interval(before, after - before, few)
    assert low < 0
    assert found[0] == pytest.approx(low / before.mean())
