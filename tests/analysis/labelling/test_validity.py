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


def _guess(kind: str, pool, labels, metric: Additive) -> Guess | None:
    """Of a judge; None for people alone."""
    weights = LabelPlan.make(pool, metric, seed=0).weights[0]
    wrong = {
        "even": lambda: one_grade_off(labels, metric.top),
        "favouring": lambda: favouring(labels, weights),
        "reversed": lambda: metric.top - labels,
    }
    if kind not in wrong:
        return None
    grades = judge(labels, -0.5 if kind == "reversed" else 0.5, metric.top, wrong[kind]())
    return Guess.from_gains(metric.gains(grades))


WAYS = [(name, "dcg@10", kind) for name in NAMES for kind in (
    "alone", "even", "favouring", "reversed", "random", "query",
)]  # fmt: skip
WAYS += [(SAMPLE.name, spec, "alone") for spec in ("precision@5", "rbp@10")]


@pytest.mark.parametrize(("name", "spec", "kind"), WAYS)
def test_a_verdict_is_right_and_what_was_conclusive_once_stays_so(name, spec, kind) -> None:
    """People alone, with judges that err in three ways, and drawn in other ways."""
    pool, labels, metric = _setting(name, spec)
    mode = kind if kind in ("random", "query") else "weight"
    found = replay(pool, metric, labels, SEEDS, _guess(kind, pool, labels, metric), mode)
    assert found.covered.mean() >= 0.92
    assert found.wrong.mean() <= 0.015
    assert found.unbiased(0.002)
    if kind == "alone":
        assert found.relative_covered.mean() >= 0.92
        said = found.verdicts[:, :-1]
        assert (said[:, 1:][said[:, :-1] != 0] == said[:, :-1][said[:, :-1] != 0]).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["alone", "favouring", "random", "query"])
def test_two_equal_systems_are_said_to_differ_rarely(name: str, kind: str) -> None:
    """Also with a judge that favours one of them."""
    pool, labels, metric = _setting(name)
    same = without_difference(pool, metric, labels)
    guess = _guess(kind, same, labels, metric)
    mode = kind if kind in ("random", "query") else "weight"
    found = replay(same, metric, labels, SEEDS, guess, mode)
    assert abs(found.truth) < 1e-3
    # 150 robots of 5 %: two standard errors are 3.6 points.
    assert (found.verdicts != 0).any(axis=1).mean() <= 0.085
    if kind == "favouring":
        assert found.covered.mean() >= 0.92


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
