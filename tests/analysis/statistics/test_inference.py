"""A bootstrap interval equals SciPy's on the same samples; columns do not affect each other."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rankdash.core.base.rules import FEWEST_QUERIES, StatisticsSettings
from rankdash.core.statistics import inference
from rankdash.core.statistics.bootstrap import POISSON_FROM, Columns, bootstrap_means
from rankdash.core.statistics.inference import (
    corrected_by_family,
    intervals,
    p_values,
    relative_interval,
)

BCA = StatisticsSettings(interval="bca")
RRS = [0, *(1 / rank for rank in range(1, 11))]
INTERVALS = ["skew-t", "t", "bca", "percentile"]
STEPS = {"hit": 1, "precision@5": 5, "mrr@10": 2520}
"""Steps per 1: the values and sums of each metric are multiples of one step."""


def measured(metric: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return differences of two systems; the second is a little better."""
    hits = rng.random((2, n, 5)) < np.array([0.3, 0.45])[:, None, None]
    if metric == "hit":
        before, after = hits[:, :, 0].astype(float)
    elif metric == "precision@5":
        before, after = hits.mean(axis=2)
    else:
        before, after = rng.choice(RRS, n), rng.choice(RRS[:7], n)
    return after - before


def scipy_interval(column: np.ndarray, steps: int, level: float) -> list[float]:
    """Return SciPy's BCa on our resamples, in whole steps, so that equal means are equal."""
    columns, (sign,) = Columns.oriented(column[:, None])
    own = columns.values[:, 0]
    draws = np.rint(bootstrap_means(columns)[:, 0] * steps * len(own)) / len(own)
    values = (np.rint(own * steps),)
    given = stats.bootstrap(values, np.mean, n_resamples=9, method="basic")
    given.bootstrap_distribution = draws
    low, high = stats.bootstrap(
        values, np.mean, n_resamples=0, bootstrap_result=given, method="BCa", confidence_level=level
    ).confidence_interval
    return sorted([sign * low / steps, sign * high / steps])


@pytest.mark.parametrize(("n", "level"), [(30, 0.95), (40, 0.9), (74, 0.95)])
def test_the_interval_is_scipys_on_the_same_draws(n, level):
    """Queries that rise, fall or stay; and metrics with few distinct values."""
    columns = [
        (np.repeat([1.0, -1.0, 0.0], [up, down, n - up - down]), 1)
        for up in range(0, n + 1, n // 5)
        for down in range(1, n - up + 1, n // 4)
    ]
    columns += [
        (measured(metric, n, np.random.default_rng(seed)), steps)
        for metric, steps in STEPS.items()
        for seed in range(2)
    ]
    for column, steps in columns:
        if np.ptp(column):
            low, high = intervals(column[:, None], replace(BCA, level=level))
            expected = scipy_interval(column, steps, level)
            assert [low[0], high[0]] == pytest.approx(expected, abs=1e-9)


def everything(columns: np.ndarray, **settings: str) -> np.ndarray:
    """Return rows low, high and p."""
    chosen = StatisticsSettings(**settings)
    return np.stack([*intervals(columns, chosen), p_values(columns, chosen)])


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("n", [12, 40, POISSON_FROM + 40])
def test_other_columns_and_the_order_of_the_queries_change_nothing(n, interval):
    rng = np.random.default_rng(2)
    own = np.stack([measured(metric, n, rng) for metric in STEPS], axis=1)
    own[: n // 50 + 1, 1] = np.nan
    alone = np.hstack([everything(own[:, [at]], interval=interval) for at in range(3)])
    others = rng.random((n + 7, 6))
    others[rng.random(others.shape) < 0.1] = np.nan
    # The other columns have values of queries that these columns lack.
    padded = np.vstack([own, np.full((7, 3), np.nan)])
    beside = np.hstack([others[:, :2], padded, others[:, 2:]])[rng.permutation(n + 7)]
    assert np.array_equal(everything(beside, interval=interval)[:, 2:5], alone)


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("n", [12, 40, POISSON_FROM + 40])
def test_the_interval_of_a_loss_mirrors_that_of_the_gain_and_p_is_the_same(n, interval):
    gain = measured("mrr@10", n, np.random.default_rng(3))[:, None]
    low, high, p = everything(gain, interval=interval)
    assert np.array_equal(everything(-gain, interval=interval), [-high, -low, p])


def test_a_column_of_too_few_values_has_no_interval_and_no_p_beside_one_that_has():
    columns = np.random.default_rng(4).normal(size=(FEWEST_QUERIES, 2))
    columns[0, 1] = np.nan
    low, high, p = everything(columns)
    assert np.isfinite([low[0], high[0], p[0]]).all()
    assert np.isnan([low[1], high[1], p[1]]).all()
    assert np.isnan(everything(columns[:, [1]])).all()
    few = np.ones(FEWEST_QUERIES - 1)
    assert np.isnan(relative_interval(few, few, StatisticsSettings())).all()


def test_the_seed_and_the_number_of_draws_are_those_of_the_settings():
    columns = np.random.default_rng(5).normal(0.2, 1, size=(60, 1))
    usual = replace(BCA, resamples=1000)
    found = [
        np.stack([*intervals(columns, each), p_values(columns, each)])
        for each in (usual, replace(usual, seed=usual.seed + 1), replace(usual, resamples=2000))
    ]
    assert (found[0] != found[1]).all() and (found[0] != found[2]).all()


@pytest.mark.parametrize(
    ("family", "corrected", "made"),
    [
        ("all", [[0.08, 0.03], [np.nan, 0.12]], [[3, 3], [3, 3]]),
        ("metric", [[0.04, 0.02], [np.nan, 0.12]], [[1, 2], [1, 2]]),
    ],
)
def test_comparisons_are_corrected_over_all_or_within_their_metric(family, corrected, made):
    """Holm's rule for two challengers and two metrics, with one pair that was not compared."""
    p = np.array([[0.04, 0.01], [np.nan, 0.12]])
    settings = StatisticsSettings(family=family, correction="holm")
    found, counts = corrected_by_family(p, settings)
    assert np.allclose(found, corrected, equal_nan=True)
    assert counts.tolist() == made


def test_columns_that_come_again_have_what_they_had_and_are_not_drawn_for_again(monkeypatch):
    rng = np.random.default_rng(7)
    columns = np.column_stack([measured("mrr@10", 60, rng), measured("hit", 60, rng), np.zeros(60)])
    columns[5, 1] = np.nan
    settings = replace(BCA, resamples=400, seed=811)
    low, high = intervals(columns, settings)
    p = p_values(columns, settings)
    drawn = []
    for name in ("bootstrap_means", "sign_flip_p"):
        made = getattr(inference, name)
        monkeypatch.setattr(
            inference,
            name,
            lambda given, made=made, **more: drawn.append(1) or made(given, **more),
        )
    for again in range(2):
        for order in ([0, 1, 2], [2, 0], [1]):
            chosen = columns[:, order]
            for sign, ends in ((1.0, (low, high)), (-1.0, (-high, -low))):
                found = intervals(sign * chosen, settings, again=True)
                assert np.array_equal(found, [ends[0][order], ends[1][order]])
                assert np.array_equal(p_values(sign * chosen, settings, again=True), p[order])
        assert len(drawn) == 2, again
    other = replace(settings, seed=812)
    assert np.array_equal(intervals(columns, other, again=True), intervals(columns, other)), (
        "of other settings"
    )
    assert not np.array_equal(intervals(columns, other)[0], low)
