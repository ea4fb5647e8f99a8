"""The sequence over nights: the chance of a false alarm in a year, and the nights to an alarm."""

import math

import numpy as np
import pytest

from rankdash.core.statistics.nights import (
    RATES,
    Night,
    NightRule,
    Noise,
    added,
    compared,
    margin,
    noise,
    without_alarms,
)
from tests.benchmarks import nightly as simulated
from tests.sets import SAMPLE

RULE = NightRule()
QUERIES = 150


@pytest.fixture(scope="module")
def pool():
    """Fifty variants of the values of queries, a tenth of which differ by up to .3."""
    rng = np.random.default_rng(1)
    values = np.tile(rng.random(QUERIES), (50, 1))
    changed = rng.random(values.shape) < 0.1
    return np.where(changed, values + rng.uniform(-0.3, 0.3, values.shape), values)


def test_the_mean_evidence_after_n_nights_without_a_drop_is_at_most_n():
    """At the border of the null hypothesis, with independent normal nights."""
    rng, nights = np.random.default_rng(0), 20
    sums = np.zeros((2000, len(RATES)))
    for place, series in enumerate(rng.normal(-RULE.smallest, 0.004, (len(sums), nights))):
        evidence = ()
        for change in series:
            evidence = added(RULE, evidence, Night(QUERIES, float(change)), Noise(0.004, 0.0))
        sums[place] = evidence
    # The largest rate has its mean from few series.
    assert (sums.mean(axis=0)[:3] < 1.1 * nights).all()


def test_p_is_alpha_at_the_evidence_of_an_alarm():
    assert math.isclose(RULE.p(RULE.threshold), RULE.alpha)
    assert RULE.p(0.0) == 1.0
    assert RULE.threshold == 365 / (0.05 / 2)


def test_the_margin_grows_with_the_churn_and_the_number_of_pinned_runs():
    assert margin(RULE, 0.0, 1) == RULE.smallest
    margins = [margin(RULE, 0.004, count) for count in (1, 2, 12)]
    assert RULE.smallest < margins[0] < margins[1] < margins[2] < 0.03
    # The parts of all pinned runs of a year are half of alpha.
    parts = sum(RULE.alpha / 2 / (count * (count + 1)) for count in range(1, 10_000))
    assert parts < RULE.alpha / 2


def test_a_comparison_uses_the_queries_with_a_value_in_both():
    pinned = np.array([[0.5, 0.5, np.nan, 1.0]])
    night = np.array([[0.5, 0.3, 1.0, np.nan], [0.5, 0.1, 1.0, np.nan]])
    measured = compared(pinned, night)
    assert measured == Night(2, pytest.approx(-0.15), pytest.approx(0.02 / 9), measured.step, 2, 1)
    assert compared(pinned, night, night).step == 0.0
    nothing = compared(pinned, np.full((1, 4), np.nan))
    assert nothing.queries == 0 and math.isnan(nothing.change)
    assert added(RULE, (1.0,) * len(RATES), nothing, Noise(0.001, 0.0)) == (1.0,) * len(RATES)


def test_the_noise_is_that_of_churn_and_of_earlier_steps_without_the_largest():
    night = Night(QUERIES, 0.0, churn=8e-6, step=1.0, fetches=2, pinned=1)
    assert noise([night], night).night == pytest.approx(1.0)
    quiet = Night(QUERIES, 0.0, churn=8e-6, step=4e-6, fetches=2, pinned=1)
    assert noise([quiet, night, quiet], night) == Noise(0.002, pytest.approx(math.sqrt(8e-6)))
    assert noise([], Night(QUERIES, 0.0)).night == pytest.approx(0.25 / QUERIES)


def test_steps_to_and_from_an_alarm_are_no_noise():
    steps = [1e-6, 4e-2, 4e-2, 1e-6, 4e-2]
    nights = [Night(QUERIES, 0.0, step=step) for step in steps]
    alarmed = [False, True, False, False, False]
    usable = without_alarms(nights, alarmed)
    assert [each.step for each in usable] == [1e-6, None, None, 1e-6, 4e-2]
    night = Night(QUERIES, 0.0)
    assert noise(usable[:4], night).night < 0.002 < 0.1 < noise(nights[:4], night).night
    # A long alarm does not remove the older steps.
    long = without_alarms([nights[0]] * 3 + [nights[1]] * 90, [False] * 3 + [True] * 90)
    assert noise(long, night).pinned == pytest.approx(1e-3)


def series(pool, change, count, **settings):
    for seed in range(count):
        rng = np.random.default_rng(seed)
        yield simulated.alarm(pool, change(rng), rng, **settings)


@pytest.mark.parametrize("shared", [False, True], ids=["two answers", "cached answers"])
def test_churn_and_changes_with_the_sum_0_raise_no_alarm(pool, shared):
    change = np.random.default_rng(2).normal(0, 0.2, QUERIES)
    found = series(pool, lambda rng: simulated.swaps(change, rng, 20), 8, nights=60, shared=shared)
    assert [*found] == [None] * 8


@pytest.mark.parametrize("kind", ["even", "real", "some"])
@pytest.mark.parametrize("start", [1, 31])
def test_a_drop_is_detected_within_three_nights(pool, kind, start):
    change = np.random.default_rng(2).normal(0, 0.15, QUERIES)
    found = series(
        pool, lambda rng: simulated.drop(change, rng, start, kind), 15, nights=60, pinned=3
    )
    waits = [math.inf if each is None else each - start + 1 for each in found]
    assert 1 <= np.median(waits) <= 3


def test_a_drop_below_the_smallest_is_no_news(pool):
    found = series(pool[:1], lambda _rng: lambda _night: -0.009, 1, nights=365)
    assert [*found] == [None]


@pytest.mark.slow
@pytest.mark.thorough
def test_the_sample_has_at_most_seven_of_a_hundred_years_with_an_alarm():
    """`python -m tests.benchmarks.nightly` simulates 300 years of each case, also of other sets."""
    data = simulated.read(SAMPLE, simulated.other_of_sample())
    for case, share in simulated.rates(data, 40, 365):
        assert share <= 0.07, case
    for case, median, _late in simulated.delays(data, 40):
        assert case.startswith("heavy") or median <= 4, case
