from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rankdash.core.base.errors import DataError
from rankdash.core.sampling.estimate import estimate, next_draw
from rankdash.core.sampling.label_plan import (
    MODES,
    VALUE_SHARE,
    Additive,
    Guess,
    LabelPlan,
    LabelPool,
)
from tests.analysis.labelling.pools import real_pool, without_difference
from tests.sets import SAMPLE, SETS

METRIC = Additive.of("dcg@10", top=3)


@pytest.fixture(scope="module")
def sample():
    return real_pool(SAMPLE.name)


def judged(kind: str, labels, weights):
    """Return grades of which two in five are wrong: one too high or too low at random; one too high
    if the challenger gains by it, else too low; or upside down. None: without a judge."""
    rng, top = np.random.default_rng(3), labels.max()
    wrong = {
        "even": labels + rng.choice([-1.0, 1.0], len(labels)),
        "favouring": labels + np.where(weights > 0, 1.0, -1.0),
        "reversed": top - labels,
    }
    if kind in wrong:
        return np.where(rng.random(len(labels)) < 0.4, np.clip(wrong[kind], 0, top), labels)
    return None


def effort(plan: LabelPlan, labels, guess: Guess | None = None) -> int:
    """Return the number of labels until the first verdict; all if there is none."""
    return estimate(plan, labels, guess)[0].conclusive_at or len(plan.order)


def _some(plan: LabelPlan, labels, n: int, but: int = 0):
    """Return the labels of the first n draws, without the last `but`."""
    given, order = np.full(len(labels), np.nan), plan.order[: min(n, len(plan.order) - but)]
    given[order] = labels[order]
    return given


def _in_full(plan: LabelPlan, labels, queries: int):
    return _some(plan, labels, int((plan.draw < queries).sum()))


def test_labels_after_the_first_open_draw_wait(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    given = _some(plan, labels, 200)
    assert next_draw(plan, given) == 200
    given[plan.order[150]] = np.nan
    assert next_draw(plan, given) == 150
    (found,) = estimate(plan, given)
    (before,) = estimate(plan, _some(plan, labels, 150))
    assert found == replace(before, waiting=49)
    # This early, all remaining labels may be needed.
    assert found.needed < found.needed_most == len(plan.order) - 150
    assert next_draw(plan, labels) is None


def test_about_as_many_labels_are_saved_by_a_judge_as_it_says(sample) -> None:
    """The labels at the verdict plus those reported as saved are, in the median over many seeds,
    within a quarter of the labels needed without a judge."""
    pool, labels = sample
    guess = Guess.from_gains(METRIC.gains(judged("even", labels, labels)))
    alone, helped, said = [], [], []
    for seed in range(30):
        plan = LabelPlan.make(pool, METRIC, seed=seed, share=VALUE_SHARE)
        alone.append(effort(plan, labels))
        helped.append(effort(plan, labels, guess))
        given = _some(plan, labels, helped[-1])
        (found,) = estimate(plan, given, guess)
        assert found.conclusive
        assert estimate(plan, given)[0].saved is None
        said.append(found.labels + found.saved)
    assert np.median(helped) < 0.6 * np.median(alone)
    assert np.median(said) == pytest.approx(np.median(alone), rel=0.25)


def test_a_judge_that_says_nothing_saves_nothing(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    rng = np.random.default_rng(1)
    guessed = Guess.from_gains(METRIC.gains(rng.permutation(labels)))
    (found,) = estimate(plan, _some(plan, labels, 200), guessed)
    assert abs(found.saved) < 60
    good = Guess.from_gains(METRIC.gains(labels))
    # Nothing is saved before an interval, if all is labelled, or without grades.
    assert estimate(plan, _some(plan, labels, 30), good)[0].saved is None
    assert estimate(plan, labels, good)[0].saved == 0
    whole = LabelPlan.make(pool, METRIC, seed=1, mode="query")
    given = _some(whole, labels, len(whole.order) // 2)
    assert estimate(whole, given, good)[0].state in ("open", "settled")
    assert estimate(whole, given, good)[0].saved is None


def test_verdicts_on_several_systems_hold_together(sample) -> None:
    """Three systems, two contrasts; the interval is the intersection of all earlier intervals."""
    pool, labels = sample
    rng = np.random.default_rng(3)
    third = np.argsort(rng.random(len(pool)))[None] + 1.0
    three = LabelPool(
        (*pool.systems, "random"),
        pool.query_ids,
        pool.query,
        pool.doc_ids,
        np.vstack([pool.ranks, np.minimum(third % 40 + 1, 11)]),
    )
    missed = 0
    for seed in range(100):
        plan = LabelPlan.make(three, METRIC, seed=seed)
        truth = plan.weights @ METRIC.gains(labels)
        both = zip(estimate(plan, _some(plan, labels, 800)), truth, strict=True)
        missed += not all(found.low <= true <= found.high for found, true in both)
    assert missed <= 7
    complete = estimate(plan, labels)
    assert [each.difference for each in complete] == pytest.approx(truth)
    assert [each.challenger for each in complete] == [pool.systems[1], "random"]


def test_a_query_counts_once_all_of_its_documents_have_a_label(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1, mode="query", share=VALUE_SHARE)
    (whole,) = estimate(plan, _in_full(plan, labels, 30))
    for extra in (1, 3):
        given = _some(plan, labels, whole.labels + extra)
        assert estimate(plan, given)[0] == replace(whole, waiting=extra)
    assert estimate(plan, _in_full(plan, labels, 19))[0].state == "too_early"
    assert whole.state in ("open", "settled")


def test_a_conclusive_result_is_never_taken_back(sample) -> None:
    """A look after each label: the interval only gets narrower, contains the estimate, and the
    number of labels at the first conclusive look stays."""
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=3, share=VALUE_SHARE)
    first, before = None, (-np.inf, np.inf)
    for count in range(50, len(plan.order), 20):
        (found,) = estimate(plan, _some(plan, labels, count))
        if found.state == "too_early":
            continue
        assert before[0] <= found.low <= found.difference <= found.high <= before[1]
        before = found.low, found.high
        if first is None and found.conclusive_at is not None:
            first = found.conclusive_at
            assert count - 20 < first <= count
        assert found.conclusive_at == first
        assert found.conclusive == (first is not None) == (found.state == "settled")
        assert found.conclusive == (found.low > 0 or found.high < 0) == (found.needed == 0)
    assert first is not None
    (complete,) = estimate(plan, labels)
    assert complete.conclusive_at == first


@pytest.mark.parametrize("mode", MODES)
def test_the_relative_change_is_the_difference_over_the_value_of_the_baseline(sample, mode) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=3, mode=mode, share=VALUE_SHARE)
    gains = METRIC.gains(labels)
    truth = (plan.weights[0] * gains).sum() / (plan.baselines[0] * gains).sum()
    (complete,) = estimate(plan, labels)
    exact = [complete.relative, complete.relative_low, complete.relative_high]
    assert exact == [pytest.approx(truth)] * 3
    seen = 0
    for count in range(100, len(plan.order), 150):
        (found,) = estimate(plan, _some(plan, labels, count))
        if np.isfinite(found.relative):
            seen += 1
            assert found.relative_low <= found.relative <= found.relative_high
            assert found.relative_low <= truth <= found.relative_high
            conclusive = found.relative_low > 0 or found.relative_high < 0
            assert conclusive <= found.conclusive
    assert seen > 3


def test_without_draws_at_equal_ranks_no_relative_change_is_stated(sample) -> None:
    """In plans of earlier versions, documents at equal ranks in both systems have no label."""
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=3)
    (found,) = estimate(plan, _some(plan, labels, 900))
    assert found.conclusive
    assert np.isnan([found.relative, found.relative_low, found.relative_high]).all()
    # If their labels are known from before, a relative change is stated.
    known = np.where(plan.weighs, np.nan, labels)
    helped = LabelPlan.make(pool, METRIC, seed=3, known=known)
    (found,) = estimate(helped, _some(helped, labels, 900))
    assert found.relative_low < found.relative < found.relative_high < 0


def test_what_is_said_before_there_is_enough(sample) -> None:
    """No number without a label, no interval below 50 labels or with few gains, and the same
    estimate after a label was changed back."""
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    found = {n: estimate(plan, _some(plan, labels, n))[0] for n in (0, 1, 49, 50, 200)}
    assert [found[n].state for n in (0, 1, 49)] == ["too_early"] * 3
    assert found[200].state != "too_early"
    (nothing,) = estimate(plan, _some(plan, np.zeros_like(labels), 200))
    assert (nothing.state, nothing.needed) == ("too_early", None)
    none = found[0]
    assert np.isnan([none.difference, none.low, none.high, none.like_these_low]).all()
    assert (none.labels, none.waiting, none.known, none.conclusive) == (0, 0, 0, False)
    assert none.pairs == len(plan.order)
    with pytest.raises(DataError, match="A label is 7"):
        estimate(plan, np.full(len(labels), 7.0))
    given = _some(plan, labels, 200)
    given[plan.order[3]] = 3 - given[plan.order[3]]
    assert estimate(plan, given) != (found[200],)
    given[plan.order[3]] = labels[plan.order[3]]
    assert estimate(plan, given) == (found[200],)


@pytest.mark.parametrize(("mode", "seen"), [("weight", 150), ("query", 50)])
def test_about_as_many_labels_are_needed_as_it_says(sample, mode, seen) -> None:
    """Planned from 150 labels or 50 queries, over 40 seeds: the median is right within a half."""
    pool, labels = sample
    ratios = []
    for seed in range(40):
        plan = LabelPlan.make(pool, METRIC, seed=seed, mode=mode)
        (found,) = estimate(plan, _in_full(plan, labels, seen))
        if found.needed:
            assert found.needed <= len(plan.order) - found.labels
            ratios.append((found.needed + found.labels) / effort(plan, labels))
    assert 0.6 < np.median(ratios) < 1.5


@pytest.mark.parametrize("equal", [False, True])
def test_the_first_forecast_is_enough_in_at_least_nine_of_ten_cases(sample, equal) -> None:
    """Also for two systems without a difference: the forecast is all remaining labels."""
    pool, labels = sample
    pool = without_difference(pool, METRIC, labels) if equal else pool
    enough = []
    for seed in range(80):
        plan = LabelPlan.make(pool, METRIC, seed=seed, share=VALUE_SHARE)
        looks = (estimate(plan, _some(plan, labels, n))[0] for n in range(50, 400, 10))
        first = next(each for each in looks if each.state != "too_early")
        until = effort(plan, labels)
        enough.append(first.conclusive or until <= first.labels + first.needed_most)
    assert np.mean(enough) >= 0.88


@pytest.mark.parametrize(("mode", "seen"), [("weight", 60), ("random", 40), ("query", 8)])
def test_known_labels_count_in_full_and_with_all_labels_every_mode_is_exact(
    sample, mode, seen
) -> None:
    """Half of the labels existed before; over 100 seeds the estimate is right on average."""
    pool, labels = sample
    known = np.where(np.arange(len(pool)) % 2, labels, np.nan)
    whole = LabelPlan.make(pool, METRIC, seed=1)
    truth = float((whole.weights[0] * METRIC.gains(labels)).sum())
    errors = []
    for seed in range(100):
        plan = LabelPlan.make(pool, METRIC, seed=seed, known=known, mode=mode)
        errors.append(estimate(plan, _in_full(plan, labels, seen))[0].difference - truth)
    assert np.mean(errors) == pytest.approx(0, abs=3.5 * np.std(errors) / 100**0.5)
    (found,) = estimate(plan, _some(plan, labels, len(plan.order)))
    assert found.state == "complete"
    assert found.difference == pytest.approx(truth, abs=1e-12)
    assert found.known + found.labels == found.pairs == len(whole.order)
    (exact,) = estimate(LabelPlan.make(pool, METRIC, seed=1, mode=mode), labels)
    assert exact == replace(estimate(whole, labels)[0], conclusive_at=exact.conclusive_at)


def test_an_estimate_is_right_on_average_whatever_the_guess(sample) -> None:
    """A perfect prediction narrows the interval to more than 0."""
    pool, labels = sample
    gains = METRIC.gains(labels)
    guesses = {
        "ranks": None,
        "right": Guess.from_gains(gains),
        "wrong": Guess.from_gains(1 - gains),
        "missing": Guess.from_gains(np.where(np.arange(len(gains)) % 3, np.nan, gains)),
    }
    plans = [LabelPlan.make(pool, METRIC, seed=seed, share=VALUE_SHARE) for seed in range(60)]
    widths = {}
    for kind, guess in guesses.items():
        for n in (1, 200):
            found = [estimate(plan, _some(plan, labels, n), guess)[0] for plan in plans]
            seen = np.array([each.difference for each in found])
            error = 4 * seen.std() / len(seen) ** 0.5 + 1e-12
            assert seen.mean() == pytest.approx(float(plans[0].weights[0] @ gains), abs=error), kind
        widths[kind] = np.array([each.high - each.low for each in found])
    assert (widths["right"] < 0.7 * widths["ranks"]).all() and (widths["right"] > 0).all()


WAYS = [(SAMPLE.name, "dcg@10", kind) for kind in (
    "alone", "even", "favouring", "reversed", "random", "query",
)]  # fmt: skip
WAYS += [(SAMPLE.name, spec, "alone") for spec in ("precision@5", "rbp@10")]
WAYS += [(name, "dcg@10", kind) for name in SETS if name != SAMPLE.name
         for kind in ("alone", "favouring")]  # fmt: skip


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize(("name", "spec", "kind"), WAYS)
def test_verdicts_are_right_as_often_as_they_say_whatever_the_guess(name, spec, kind, equal):
    """Before the last label, with the intersection of the intervals after each. Two equal systems
    rarely get a verdict, also with a judge that favours one of them. Effort is measured by
    tests/benchmarks/labelling.py."""
    pool, labels = real_pool(name)
    metric = Additive.of(spec, top=float(labels.max()))
    pool = without_difference(pool, metric, labels) if equal else pool
    mode = kind if kind in ("random", "query") else "weight"
    plans = [
        LabelPlan.make(pool, metric, seed=seed, mode=mode, share=VALUE_SHARE) for seed in range(50)
    ]
    gains, (weights,), (values,) = metric.gains(labels), plans[0].weights, plans[0].baselines
    truth = float(weights @ gains)
    grades = judged(kind, labels, weights)
    guess = None if grades is None else Guess.from_gains(metric.gains(grades))
    found = [estimate(plan, _some(plan, labels, len(labels), 1), guess)[0] for plan in plans]
    assert np.mean([each.low <= truth <= each.high for each in found]) >= 0.92
    said = np.array([int(each.low > 0) - int(each.high < 0) for each in found])
    if equal:
        assert abs(truth) < 1e-3
        assert np.mean(said != 0) <= 0.085
    else:
        assert not (said * truth < 0).any()
    if kind == "alone":
        share = truth / float(values @ gains)
        assert np.mean([each.relative_low <= share <= each.relative_high for each in found]) >= 0.92


def test_for_queries_like_these_the_spread_between_queries_comes_on_top(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    queries = len(pool.query_ids)
    own = np.bincount(pool.query, plan.weights[0] * METRIC.gains(labels), queries) * queries
    classic = stats.t.interval(0.95, queries - 1, own.mean(), own.std(ddof=1) / queries**0.5)
    (complete,) = estimate(plan, labels)
    assert (complete.like_these_low, complete.like_these_high) == pytest.approx(classic)
    drawn = LabelPlan.make(pool, METRIC, seed=1, mode="query")
    looks = [(plan, _some(plan, labels, n)) for n in (100, 300, 600)]
    looks.append((drawn, _in_full(drawn, labels, 80)))
    found = [estimate(*look)[0] for look in looks]
    widths = [each.like_these_high - each.like_these_low for each in found]
    whole = classic[1] - classic[0]
    assert all(width > 0.95 * whole for width in widths)
    assert widths[0] > widths[2]
    # With half of the queries the interval is wider by about the root of two.
    assert 1.0 < widths[3] / whole < 2.0


@pytest.mark.parametrize("worse", [False, True])
def test_a_conclusive_result_has_a_relative_change_if_the_baseline_may_be_worth_0(worse) -> None:
    queries, depth = 60, 5
    query = np.repeat(np.arange(queries), 2 * depth)
    place = np.tile(np.arange(2 * depth), queries)
    ranks = (
        np.where(place < depth, place + 1.0, np.inf),
        np.where(place < depth, np.inf, place - 4.0),
    )
    names = np.array([f"q{n}" for n in range(queries)], dtype=object)
    docs = np.array([f"d{n}" for n in place], dtype=object)
    pool = LabelPool(("a", "b"), names, query, docs, np.array(ranks[::-1] if worse else ranks))
    few, many = (place == 0) & (query % 6 == 0), (place == 5) & (query % 2 == 0)
    labels = (few | many).astype(float)
    metric, seen = Additive.of("dcg@5", top=1), 0
    for seed in range(5):
        plan = LabelPlan.make(pool, metric, seed=seed, share=VALUE_SHARE)
        truth = plan.weights[0] @ labels / (plan.baselines[0] @ labels)
        at = effort(plan, labels)
        (before,) = estimate(plan, _some(plan, labels, at - 1))
        (found,) = estimate(plan, _some(plan, labels, at))
        assert found.conclusive and not before.conclusive
        seen += np.isnan(before.relative)
        assert found.relative_low <= found.relative <= found.relative_high
        assert found.relative_low <= truth <= found.relative_high
        assert (found.relative_high < 0) if worse else (found.relative_low > 0)
    assert worse or seen
