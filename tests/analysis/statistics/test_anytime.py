"""The anytime-valid interval of the change of a run: a run may stop at any look because of it, and
a run that does is reported with it."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.base.shipped import runs_of
from rankdash.core.metrics import Conventions, evaluate, judge
from rankdash.core.statistics.anytime import (
    FEWEST_CHANGED,
    FEWEST_SCORED,
    AnytimeSettings,
    half_width,
)
from rankdash.core.statistics.inference import intervals, p_values, relative_interval
from rankdash.core.workspace.workspace_file.import_workspace import bring_in
from tests.sets import SAMPLE, SETS, loaded

RULES = AnytimeSettings()
SEEDS = 300
SCHEDULES = {
    "every query": lambda n: range(1, n + 1),
    "every 10": lambda n: range(10, n + 1, 10),
    "doubling": lambda n: [20 * 2**times for times in range(6) if 20 * 2**times <= n],
}


def ends(values, rules=RULES):
    low, high = intervals(np.asarray(values, dtype=float)[:, None], rules)
    return float(low[0]), float(high[0])


def p_of(values, rules=RULES):
    return float(p_values(np.asarray(values, dtype=float)[:, None], rules)[0])


@functools.cache
def changes(name, ranking, spec):
    """Return the change of each query of a set, its first stage against a reranking."""
    found = loaded(name)
    data, rules = found.dataset, Conventions()
    before, after = (
        evaluate(judge(each, data.labels, rules), [spec], rules).values[:, 0]
        for each in (data.candidates, found.rankings[ranking])
    )
    return (after - before)[~np.isnan(after - before)]


def stop(values, schedule="every query"):
    """Return at which look, in number of queries, the interval first excludes 0; None at none."""
    looks = np.array(SCHEDULES[schedule](len(values)))
    seen = np.arange(len(values))[:, None] < looks
    low, high = intervals(np.where(seen, values[:, None], np.nan), RULES)
    found = (low > 0) | (high < 0)
    return int(looks[found.argmax()]) if found.any() else None


def test_the_interval_is_that_of_the_formula():
    values = np.random.default_rng(1).normal(0.1, 1, 80)
    n, rho, alpha = len(values), 0.15, 0.05
    inner = math.sqrt(n * rho**2 + 1)
    half = math.sqrt(2 * (n * rho**2 + 1) / (n**2 * rho**2) * math.log(inner / alpha))
    assert half_width(np.array(80.0), alpha) == pytest.approx(half)
    reach = half * values.std(ddof=1)
    assert ends(values) == pytest.approx((values.mean() - reach, values.mean() + reach))
    assert ends(-values) == pytest.approx(tuple(-end for end in ends(values)[::-1]))
    assert ends(values, StatisticsSettings()) > ends(values)


def test_the_interval_excludes_0_if_and_only_if_p_is_below_alpha():
    rng = np.random.default_rng(2)
    for size in (20, 50, 200):
        for shift in np.linspace(0, 0.8, 9):
            values = rng.normal(shift, 1, size)
            p = p_of(values)
            for alpha in (0.5, 0.1, 0.05, 0.01):
                low, high = ends(values, replace(RULES, level=1 - alpha))
                assert (low > 0 or high < 0) == (p < alpha)


def test_too_few_queries_or_too_few_changes_have_no_interval():
    few = np.ones(FEWEST_SCORED - 1)
    sparse = np.array([1.0] * (FEWEST_CHANGED - 1) + [0.0] * 200)
    for values in (few, sparse, []):
        assert np.isnan([*ends(values), p_of(values)]).all()
    assert ends(np.ones(FEWEST_SCORED)) == (1, 1)
    assert p_of(np.ones(FEWEST_SCORED)) == 0
    assert not np.isnan(ends([*sparse, 1.0])).any()


def test_the_relative_interval_excludes_0_together_with_the_other():
    rng = np.random.default_rng(3)
    for shift in (-0.2, 0.0, 0.05, 0.2):
        before = rng.uniform(0.2, 1, 100)
        change = rng.normal(shift, 0.3, 100)
        low, high = relative_interval(before, change, RULES)
        assert low <= change.mean() / before.mean() <= high
        assert [low > 0, high < 0] == [ends(change)[0] > 0, ends(change)[1] < 0]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("name", "ranking", "spec"),
    [
        ("helpcentre", "rerank_by_title", "ndcg@10"),
        ("helpcentre", "rerank_by_title", "mrr@10"),
        ("medquad", "rerank_minilm", "ndcg@10"),
        ("medquad", "rerank_minilm", "hit@10"),
        ("cmrc_zh", "rerank_minilm", "hit@10"),
    ],
)
def test_without_a_difference_looks_at_any_time_seldom_find_one(name, ranking, spec, schedule):
    if name not in SETS:
        pytest.skip("the real sets are not here")
    real = changes(name, ranking, spec)
    wrong = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        # More queries than the set has: the more looks, the more chances to be wrong.
        values = rng.choice(real, 300) * rng.choice([-1.0, 1.0], 300)
        wrong += stop(values, schedule) is not None
    assert wrong / SEEDS <= 0.05


def test_a_usual_interval_would_find_one_in_many_runs():
    real = changes("helpcentre", "rerank_by_title", "ndcg@10")
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        values = rng.choice(real, 300) * rng.choice([-1.0, 1.0], 300)
        looks = (ends(values[:n], StatisticsSettings()) for n in range(20, 301, 10))
        wrong += any(low > 0 or high < 0 for low, high in looks)
    assert wrong > 20


def unscored(real):
    """Return the mean share of queries that are not scored before the stop, and how often its sign
    is wrong, of 100 random orders."""
    stops, wrong = [], 0
    for seed in range(100):
        values = np.random.default_rng(seed).permutation(real)
        n = stop(values) or len(values)
        stops.append(1 - n / len(values))
        wrong += np.sign(values[:n].mean()) != np.sign(real.mean())
    return np.mean(stops), wrong


@pytest.mark.parametrize("ranking", ["rerank_minilm", "rerank_bm25_title"])
def test_a_proven_pair_of_a_real_set_leaves_two_fifths_of_the_pairs_unscored(ranking):
    if "cmrc_zh" not in SETS:
        pytest.skip("the real sets are not here")
    share, wrong = unscored(changes("cmrc_zh", ranking, "ndcg@10"))
    assert share >= 0.4
    assert wrong == 0


def test_the_proven_pair_of_the_sample_leaves_two_fifths_of_the_pairs_unscored(workspace):
    with runs_of(SAMPLE).open("rb") as file:
        bring_in(workspace, file, "helpcentre.rankdash.zip")
    [found] = workspace.datasets()
    data, rules = workspace.dataset(found.id), Conventions()
    run = next(each for each in workspace.runs() if "MiniLM" in each.name)
    before, after = (
        evaluate(judge(each, data.labels, rules), ["ndcg@10"], rules).values[:, 0]
        for each in (data.candidates, workspace.run(run.id).ranking)
    )
    share, wrong = unscored((after - before)[~np.isnan(after - before)])
    assert share >= 0.4
    assert wrong == 0
