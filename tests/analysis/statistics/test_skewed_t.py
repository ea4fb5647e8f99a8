"""The usual interval is Student's t, wider on the side of rare large values. With few queries it
covers the truth too, and the p of the gate agrees with it."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.statistics.inference import intervals, p_below, p_values, wilcoxon_p

USUAL = StatisticsSettings()
SKEWED = np.array([0.0] * 9 + [0.05, 0.1, 0.1, 0.7, 1.0])


def ends(values, settings=USUAL):
    low, high = intervals(np.asarray(values, dtype=float)[:, None], settings)
    return low[0], high[0]


def removed(values, truth):
    """Return Hall's transformation of Student's t, by SciPy's mean, error and skewness."""
    n, skew = len(values), stats.skew(values, bias=False) / math.sqrt(len(values))
    t = (np.mean(values) - truth) / stats.sem(values)
    return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6 if n else t


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("sign", [1, -1])
def test_each_end_is_the_wider_of_t_and_of_t_without_skewness(level, sign):
    values = sign * SKEWED
    reach = stats.t.ppf((1 + level) / 2, len(values) - 1)
    plain = stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))
    hall = [
        optimize.brentq(lambda truth, x=x: removed(values, truth) - x, -9, 9)
        for x in (reach, -reach)
    ]
    expected = min(plain[0], hall[0]), max(plain[1], hall[1])
    assert ends(values, StatisticsSettings(level=level)) == pytest.approx(expected, abs=1e-9)
    assert expected[1] > plain[1] if sign > 0 else expected[0] < plain[0]
    plain_settings = StatisticsSettings(level=level, interval="t")
    assert ends(values, plain_settings) == pytest.approx(plain, abs=1e-12)


def test_skewness_moves_no_end_beyond_the_values_seen():
    """Six of eight queries gain and none loses: the plain t interval is +0.36 … +1.14."""
    low, high = ends([1.0] * 6 + [0.0] * 2)
    assert low == 0.0
    assert high == pytest.approx(0.75 + stats.t.ppf(0.975, 7) * math.sqrt(0.75 * 0.25 / 7))
    values = np.repeat([1.0, 0.0], [6, 2])
    expected = stats.ttest_1samp(values, 0.0, alternative="greater").pvalue
    assert p_below(values, 0.0) == pytest.approx(expected)


@pytest.mark.parametrize("n", [6, 12, 20, 29])
def test_one_or_two_changes_of_few_queries_have_no_interval(n):
    for changed in (1, 2):
        few = [0.4] * changed + [0.0] * (n - changed)
        assert np.isnan(ends(few)).all()
        assert np.isfinite(ends([0.4] * 3 + [0.0] * (n - 3))).all()
        assert np.isfinite(ends([*few, *[0.0] * (30 - n)])).all()
    assert ends([0.0] * n) == (0.0, 0.0)
    assert ends([0.4] * n) == (0.4, 0.4)


# The true mean, the highest allowed coverage, and a function that samples changes.
SHAPES = {
    "most change": (0.05, 0.985, lambda rng, size: rng.normal(0.05, 0.2, size).round(2)),
    "a few change much": (0.05, 1.0, lambda rng, size: np.where(
        rng.random(size) < 0.5, 0.0, rng.exponential(0.1, size))),
    "in steps": (0.1, 0.985, lambda rng, size: (
        rng.binomial(10, 0.3, size) - rng.binomial(10, 0.2, size)) / 10),
}  # fmt: skip


@pytest.mark.parametrize("n", [6, 12, 40])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_covers_the_truth_of_few_queries(n, shape):
    """The bootstrap covers as few as 71 % here."""
    truth, most, drawn = SHAPES[shape]
    low, high = intervals(drawn(np.random.default_rng([36, n]), (n, 3_000)), USUAL)
    made = ~np.isnan(low)
    assert made.mean() > 0.6
    # 3,000 sets: two standard errors are 1 point.
    assert 0.92 <= ((low <= truth) & (high >= truth))[made].mean() <= most


def test_the_p_of_a_gate_is_at_most_5_percent_exactly_if_its_lower_limit_is_met():
    rng = np.random.default_rng(37)
    one_sided = StatisticsSettings(level=0.9)
    for turn in range(200):
        # Hall's transformation decides if the values are skewed to the left.
        values = rng.choice([0.0, 0.0, -0.1, 0.2, 0.9], int(rng.integers(6, 40))) * (-1) ** turn
        low, _ = ends(values, one_sided)
        if np.isfinite(low) and np.ptp(values):
            for limit in (0.0, low - 1e-6, low + 1e-6, 0.1, -0.3):
                assert (p_below(values, limit) <= 0.05) == (low >= limit)
    assert math.isnan(p_below(np.full(9, 0.3), 0.1))


STEPS = np.array([3, -1, 2, 1, 1, -1, 1, 2, 1, -2, 1, 1, 0, 0, 4, 1, -3, 2, 1, 1])


def apart(steps):
    """Return differences of precision@10 as computed: equal steps differ in the last bits."""
    before = np.arange(len(steps)) % 4 + 3
    found = (before + steps) / 10 - before / 10
    assert len(np.unique(np.abs(found))) > len(np.unique(np.abs(steps)))
    return found


def test_the_wilcoxon_test_takes_equal_steps_as_ties():
    expected = stats.wilcoxon(STEPS[STEPS != 0]).pvalue
    assert wilcoxon_p(apart(STEPS)) == pytest.approx(expected, abs=1e-12)
    assert wilcoxon_p(np.array([0.3 - 0.2 - 0.1, 0.1 + 0.2 - 0.3])) == 1.0


@pytest.mark.parametrize("test", ["sign-flip", "wilcoxon", "t"])
def test_no_test_goes_by_the_last_digits_of_a_difference(test):
    settings = StatisticsSettings(test=test)
    exact = p_values(STEPS[:, None] / 10.0, settings)
    assert p_values(apart(STEPS)[:, None], settings) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("rules", "comparisons", "fewest"),
    [
        ({}, 1, 6),
        ({}, 3, 7),
        ({}, 8, 9),
        ({"test": "wilcoxon"}, 8, 9),
        ({"correction": "none"}, 8, 6),
        ({"correction": "bh"}, 8, 6),
        ({"level": 0.99}, 1, 8),
        ({"level": 0.8}, 1, 6),
        ({"test": "t"}, 8, 6),
    ],
)
def test_the_fewest_queries_are_those_that_can_prove_a_change(rules, comparisons, fewest):
    settings = StatisticsSettings(**rules)
    assert settings.fewest_queries(comparisons) == fewest
    if settings.test != "t" and fewest > 6:
        alpha = (1 - settings.level) / (comparisons if settings.correction == "holm" else 1)
        for n, proven in ((fewest, True), (fewest - 1, False)):
            p = p_values(np.arange(1.0, n + 1)[:, None], settings)[0]
            assert (p <= alpha + 1e-12) == proven
