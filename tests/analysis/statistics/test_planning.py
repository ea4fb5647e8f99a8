"""Planned numbers of queries reach the stated power for any shape of the differences."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.statistics import planning
from rankdash.core.statistics.inference import intervals, p_values
from rankdash.core.statistics.planning import FEWEST_PLANNED, POWER, plan, smallest_detectable
from tests.results import results, several

SETTINGS = StatisticsSettings(resamples=1_000)


def _with_zeros(n, *kinds):
    """Return n differences: `count` of each value, the rest 0."""
    values = np.repeat([value for value, _ in kinds], [count for _, count in kinds])
    return np.append(values, np.zeros(n - len(values)))


def _normal(n, mean, spread):
    return mean + spread * stats.norm.ppf((np.arange(n) + 0.5) / n)


SHAPES = {
    "every query changes": _normal(60, 0.03, 0.2),
    "hit: nine gained, five lost of 60": _with_zeros(60, (1.0, 9), (-1.0, 5)),
    "half of 100 changed, ndcg": _with_zeros(100, *((x, 1) for x in _normal(45, 0.05, 0.25))),
    "many small losses, few large gains": _with_zeros(80, (-0.02, 60), (0.5, 6)),
    "hit: 50 gained, 34 lost of 500": _with_zeros(500, (1.0, 50), (-1.0, 34)),
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
    """Also if only the rounding to two digits raises the number above the limit."""
    differences = _normal(20, 0.025, 0.15)
    needed = planned(differences, test=test).likely
    assert 200 < needed < planning.PRACTICAL
    for most, told in ((2 * needed, needed), (needed - 1, None), (200, None)):
        monkeypatch.setattr(planning, "PRACTICAL", most)
        found = planned(differences, test=test)
        # The true change may be smaller, but hardly zero.
        assert (found.likely, found.none_within) == (told, False)


def tilted(present, change):
    """Return probabilities of the present differences, weighted exponentially so that their mean is
    `change`."""

    def shares(tilt):
        weights = np.exp(tilt * present - np.max(tilt * present))
        return weights / weights.sum()

    return shares(optimize.brentq(lambda tilt: shares(tilt) @ present - change, -500, 500))


def proven(present, change, more, draws=600, settings=SETTINGS):
    """Return the share of samples that the verdict's rule proves: the interval excludes 0, and p is
    significant."""
    rng = np.random.default_rng(11)
    drawn = rng.choice(present, (more, draws), p=tilted(present, change))
    joined = np.vstack([np.tile(present[:, None], draws), drawn])
    low, _ = intervals(joined, settings)
    return np.mean((low > 0) & (p_values(joined, settings) <= 0.05))


def true_changes(present, settings=SETTINGS):
    """Return the true change for each number of a plan."""
    mean, ends = present.mean(), np.concatenate(intervals(present[:, None], settings))
    middle = stats.norm.ppf(0.75) / stats.norm.ppf(0.975)
    low, high = mean + middle * (ends - mean)
    return {"least": high, "likely": mean, "most": low}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", ["least", "likely", "most"])
def test_each_number_proves_its_change_as_often_as_promised(shape, number):
    present = SHAPES[shape]
    more, change = getattr(planned(present), number), true_changes(present)[number]
    # 600 samples, and 1,000 of the plan: two standard errors of both are 4 points.
    assert proven(present, change, more) >= POWER - 0.045
    assert proven(present, change, int(0.8 * more)) <= POWER + 0.045


@pytest.mark.parametrize(("n", "gained"), [(60, 4), (60, 5), (200, 5)])
@pytest.mark.parametrize("number", ["least", "likely", "most"])
def test_hits_alone_need_the_numbers_of_the_binomial_distribution(n, gained, number):
    """Six or more gains without a loss are proven."""
    present = _with_zeros(n, (1.0, gained))
    more, change = getattr(planned(present), number), true_changes(present)[number]
    least, most = (stats.binom.sf(5 - gained, each, change) for each in (more - 1, more))
    # 1,000 samples: two standard errors are 2.5 points.
    assert least <= POWER + 0.03
    assert most >= POWER - 0.03


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


@given(st.permutations([0.1, 0.2, -0.3] * 10), st.sampled_from([1.0, -1.0, 1 / 3]))
def test_differences_that_add_up_to_0_are_not_planned_in_any_order(values, scale):
    differences = np.array(values) * scale
    assert plan(differences, (-0.1, 0.1)) is None


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


def shares(queries: int, gained: int, level: float = 0.95):
    differences = np.repeat([1.0, -1.0], [gained, queries - gained])
    mean = float(differences.mean())
    return plan(differences, (mean - 0.01, mean + 0.01), test="t", level=level)


ERROR = 0.2 / math.sqrt(60)
LEAST = _normal(FEWEST_PLANNED, 0.05, 0.2)
PLANS = {
    # The middle half of the interval is ±0.67 standard errors. The interval has the verdict's
    # level, also if a p is corrected for several comparisons.
    **several(
        "{} standard errors from 0 at {}",
        lambda errors, level: planned(_normal(60, errors * ERROR, 0.2), level=level).none_within,
        ((0.60, 0.95), (0.75, 0.95), (0.60, 0.995), (0.0004, 0.95)),
    ),
    "20 queries are planned for": lambda: planned(LEAST) is not None,
    "fewer are not": lambda: planned(LEAST[1:]),
    "nothing varies": lambda: planned(np.full(30, 0.1)),
    "nothing changes": lambda: planned(np.zeros(30)),
    "nothing is gained": lambda: planned(np.tile([0.1, -0.1], 15)),
    "hardly anything is gained": lambda: planned(_normal(60, 0.0001, 0.2)).likely,
    # The maximum of a plan is 100,000 more queries, or ten times as many.
    **several(
        "{1} gains of {0}", lambda queries, gained: shares(queries, gained).likely,
        ((20_000, 10_064), (20_000, 10_062), (20_000, 10_060), (10_000, 5_044), (10_000, 5_042)),
    ),
    **several(
        "{} compared, by {}",
        lambda comparisons, rule: StatisticsSettings(correction=rule).corrects(comparisons),
        ((1, "holm"), (2, "holm"), (2, "none")),
    ),
    "without spread nothing is detectable": lambda: smallest_detectable(np.full(30, 0.1)),
    "nor of one query": lambda: smallest_detectable(np.array([0.1])),
}  # fmt: skip


def test_where_nothing_is_promised(approved):
    approved("analysis/planning", results(PLANS))


CHANGES = st.lists(st.sampled_from([1.0, 1.0, 1.0, -1.0, 0.5, 1 / 3]), min_size=3, max_size=16)


@settings(max_examples=10)
@given(CHANGES, st.integers(20, 200))
def test_a_larger_true_change_or_a_laxer_level_never_needs_more_queries(changes, n):
    """A loss needs as many queries as a gain, in whole numbers of two digits."""
    present = _with_zeros(n, *((change, 1) for change in changes))
    few = StatisticsSettings(resamples=100)
    found = planned(present, few)
    assert planned(-present, few) == found
    if found is not None:
        numbers = [each for each in (found.least, found.likely, found.most) if each is not None]
        assert numbers == sorted(numbers)
        assert all(1 <= each <= max(100_000, 10 * n) for each in numbers)
        assert all(len(str(each).rstrip("0")) <= 2 for each in numbers)
        strict = planned(present, few, level=0.99)
        if found.likely is not None and strict is not None and strict.likely is not None:
            assert strict.likely >= found.likely
