"""Whatever the guess and the data, verdicts are right as often as they say: 150 robots each that
look after every label. Effort is measured by tests/benchmarks/labelling.py."""

import numpy as np
import pytest

from rankdash.analysis.labelling.additive import Additive
from rankdash.analysis.labelling.draws import LabelPlan
from rankdash.analysis.labelling.estimate import estimate
from rankdash.analysis.labelling.guess import Guess
from tests.analysis.labelling.robot import (
    favouring,
    judge,
    one_grade_off,
    real_pool,
    replay,
    without_difference,
)
from tests.sets import SAMPLE, SETS

SEEDS = 150
RERANKINGS = {SAMPLE.name: "by_title", "medquad": "minilm", "cmrc_zh": "minilm"}
NAMES = [name for name in RERANKINGS if name in SETS]


def _setting(name: str, spec: str = "dcg@10"):
    pool, labels = real_pool(name, RERANKINGS[name])
    return pool, labels, Additive.of(spec, top=float(labels.max()))


@pytest.mark.parametrize(
    ("name", "spec"),
    [*((name, "dcg@10") for name in NAMES), (SAMPLE.name, "precision@5"), (SAMPLE.name, "rbp@10")],
)
def test_people_alone_get_the_truth(name: str, spec: str) -> None:
    pool, labels, metric = _setting(name, spec)
    found = replay(pool, metric, labels, SEEDS)
    assert found.covered.mean() >= 0.93
    assert found.relative_covered.mean() >= 0.93
    assert found.wrong.mean() <= 0.01
    assert found.unbiased(0.002)
    # What was conclusive once stays so.
    said = found.verdicts[:, :-1]
    assert (said[:, 1:][said[:, :-1] != 0] == said[:, :-1][said[:, :-1] != 0]).all()


PAIRS = [(name, equal) for name in NAMES for equal in (False, True)]


@pytest.mark.parametrize(("name", "equal"), PAIRS)
def test_the_first_forecast_is_enough_in_at_least_nine_of_ten_cases(name: str, equal: bool) -> None:
    """Also for two systems without a difference, for which it is all that are left."""
    pool, labels, metric = _setting(name)
    if equal:
        pool = without_difference(pool, metric, labels)
    found = replay(pool, metric, labels, SEEDS)
    first, enough = found.path.looks.argmax(axis=1) + 1, []
    for plan, count, effort in zip(found.plans, first, found.effort, strict=True):
        given = np.full(len(labels), np.nan)
        given[plan.order[:count]] = labels[plan.order[:count]]
        (told,) = estimate(plan, given)
        assert told.needed_most is not None
        enough.append(told.settled or effort <= count + told.needed_most)
    assert np.mean(enough) >= 0.88


@pytest.mark.parametrize("name", NAMES)
def test_two_equal_systems_are_said_to_differ_rarely(name: str) -> None:
    pool, labels, metric = _setting(name)
    found = replay(without_difference(pool, metric, labels), metric, labels, SEEDS)
    assert abs(found.truth) < 1e-3
    said = found.verdicts != 0
    assert said.any(axis=1).mean() <= 0.075
    assert said[:, ::10].any(axis=1).mean() <= 0.075


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["even", "favouring", "reversed"])
def test_no_judge_makes_a_verdict_wrong(name: str, kind: str) -> None:
    pool, labels, metric = _setting(name)
    weights = LabelPlan.make(pool, metric, seed=0).weights[0]
    wrong = {
        "even": one_grade_off(labels, metric.top),
        "favouring": favouring(labels, weights),
        "reversed": metric.top - labels,
    }[kind]
    grades = judge(labels, -0.5 if kind == "reversed" else 0.5, metric.top, wrong)
    guess = Guess.from_gains(metric.gains(grades))
    found = replay(pool, metric, labels, SEEDS, guess)
    assert found.covered.mean() >= 0.93
    assert found.wrong.mean() <= 0.01
    assert found.unbiased(0.002)


@pytest.mark.skipif("medquad" not in SETS, reason="the real sets are not here")
def test_a_judge_that_alone_names_the_wrong_system_costs_at_most_a_tenth_more_labels() -> None:
    pool, labels, metric = _setting("cmrc_zh")
    weights = LabelPlan.make(pool, metric, seed=0).weights[0]
    grades = judge(labels, 0.41, metric.top, favouring(labels, weights))
    alone = replay(pool, metric, labels, SEEDS)
    assert alone.truth < 0 < (weights * metric.gains(grades)).sum()
    found = replay(pool, metric, labels, SEEDS, Guess.from_gains(metric.gains(grades)))
    assert not found.wrong.any()
    assert found.covered.mean() >= 0.93
    assert np.median(found.effort) <= 1.1 * np.median(alone.effort)


@pytest.mark.parametrize("name", NAMES)
def test_a_judge_that_favours_one_of_two_equal_systems_makes_no_verdict(name: str) -> None:
    pool, labels, metric = _setting(name)
    same = without_difference(pool, metric, labels)
    weights = LabelPlan.make(same, metric, seed=0).weights[0]
    grades = judge(labels, 0.5, metric.top, favouring(labels, weights))
    alone = (weights * metric.gains(grades)).sum()
    found = replay(same, metric, labels, SEEDS, Guess.from_gains(metric.gains(grades)))
    assert alone > 20 * abs(found.truth)
    assert (found.verdicts != 0).any(axis=1).mean() <= 0.075
    assert found.covered.mean() >= 0.93


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["random", "query"])
def test_other_ways_to_draw_are_as_sure(name: str, mode) -> None:
    pool, labels, metric = _setting(name)
    found = replay(pool, metric, labels, SEEDS, mode=mode)
    assert found.covered.mean() >= 0.93
    assert found.wrong.mean() <= 0.01
    assert found.unbiased(0.002)
    same = replay(without_difference(pool, metric, labels), metric, labels, SEEDS, mode=mode)
    assert (same.verdicts != 0).any(axis=1).mean() <= 0.075
