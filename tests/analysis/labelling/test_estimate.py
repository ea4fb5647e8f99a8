from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rankdash.analysis.labelling.additive import Additive
from rankdash.analysis.labelling.draws import MODES, VALUE_SHARE, LabelPlan
from rankdash.analysis.labelling.estimate import estimate, next_draw
from rankdash.analysis.labelling.guess import Guess
from rankdash.analysis.labelling.label_pool import LabelPool
from rankdash.errors import DataError
from tests.analysis.labelling.robot import judge, one_grade_off, real_pool, replay
from tests.sets import SAMPLE

METRIC = Additive.of("dcg@10", top=3)


@pytest.fixture(scope="module")
def sample():
    return real_pool(SAMPLE.name, "by_title")


def _some(plan: LabelPlan, labels, n: int):
    """The labels of the first n draws."""
    given = np.full(len(labels), np.nan)
    given[plan.order[:n]] = labels[plan.order[:n]]
    return given


@pytest.mark.parametrize("n", [1, 49, 120, 400])
def test_an_estimate_is_what_the_robot_sees_at_that_label(sample, n: int) -> None:
    pool, labels = sample
    path = replay(pool, METRIC, labels, 3).path
    for seed in range(3):
        plan = LabelPlan.make(pool, METRIC, seed=seed, share=VALUE_SHARE)
        (found,) = estimate(plan, _some(plan, labels, n))
        assert found.labels == n
        assert found.difference == pytest.approx(path.mean[seed, n - 1], abs=1e-12)
        if path.looks[seed, n - 1]:
            half = path.half[seed, n - 1]
            assert found.difference - half - 1e-12 <= found.low == path.low[seed, n - 1]
            assert found.difference + half + 1e-12 >= found.high == path.high[seed, n - 1]
        else:
            assert found.state == "too_early"
            assert np.isnan(found.low)


def test_no_interval_before_enough_draws_and_enough_gains(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    states = {n: estimate(plan, _some(plan, labels, n))[0].state for n in (0, 1, 49, 50, 200)}
    assert [states[n] for n in (0, 1, 49)] == ["too_early"] * 3
    assert states[200] != "too_early"
    nothing = estimate(plan, _some(plan, np.zeros_like(labels), 200))[0]
    assert (nothing.state, nothing.needed) == ("too_early", None)


def test_nothing_is_said_without_a_label(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    (found,) = estimate(plan, np.full(len(labels), np.nan))
    assert np.isnan([found.difference, found.low, found.high, found.like_these_low]).all()
    assert (found.labels, found.waiting, found.known) == (0, 0, 0)
    assert found.pairs == len(plan.order)
    assert not found.settled


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
    assert next_draw(plan, labels) is None


def test_a_verdict_that_is_settled_says_so(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    found = [estimate(plan, _some(plan, labels, n))[0] for n in range(0, len(plan.order), 25)]
    settled = [each for each in found if each.state == "settled"]
    assert settled
    for each in found:
        assert each.settled == (each.state == "settled")
        if each.state in ("settled", "open"):
            assert each.settled == (each.low > 0 or each.high < 0)
            assert (each.needed == 0) == each.settled


def test_about_as_many_labels_are_needed_as_it_says(sample) -> None:
    """Planned from 150 labels, over many seeds: right in the median within a half."""
    pool, labels = sample
    effort = replay(pool, METRIC, labels, 60).effort
    ratios = []
    for seed in range(60):
        plan = LabelPlan.make(pool, METRIC, seed=seed)
        (found,) = estimate(plan, _some(plan, labels, 150))
        if found.needed:
            assert found.needed <= len(plan.order) - 150
            ratios.append((found.needed + 150) / effort[seed])
    assert 0.6 < np.median(ratios) < 1.5


def test_about_as_many_labels_are_saved_by_a_judge_as_it_says(sample) -> None:
    """At the verdict with a judge, over many seeds: the labels so far and those saved are in the
    median what people alone take, within a quarter."""
    pool, labels = sample
    grades = judge(labels, 0.6, METRIC.top, one_grade_off(labels, METRIC.top))
    guess = Guess.from_gains(METRIC.gains(grades))
    alone = replay(pool, METRIC, labels, 40).effort
    helped = replay(pool, METRIC, labels, 40, guess).effort
    assert np.median(helped) < 0.6 * np.median(alone)
    said = []
    for seed in range(40):
        plan = LabelPlan.make(pool, METRIC, seed=seed, share=VALUE_SHARE)
        given = _some(plan, labels, helped[seed])
        (found,) = estimate(plan, given, guess)
        assert found.settled
        assert estimate(plan, given)[0].saved is None
        said.append(found.labels + found.saved)
    assert np.median(said) == pytest.approx(np.median(alone), rel=0.25)


def test_a_judge_that_says_nothing_saves_nothing(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    rng = np.random.default_rng(1)
    guessed = Guess.from_gains(METRIC.gains(rng.permutation(labels)))
    (found,) = estimate(plan, _some(plan, labels, 200), guessed)
    assert abs(found.saved) < 60
    good = Guess.from_gains(METRIC.gains(labels))
    # Nothing is saved before an interval, where all is labelled, or where nothing is guessed.
    assert estimate(plan, _some(plan, labels, 30), good)[0].saved is None
    assert estimate(plan, labels, good)[0].saved == 0
    whole = LabelPlan.make(pool, METRIC, seed=1, mode="query")
    given = _some(whole, labels, len(whole.order) // 2)
    assert estimate(whole, given, good)[0].state in ("open", "settled")
    assert estimate(whole, given, good)[0].saved is None


def test_known_labels_count_in_full(sample) -> None:
    pool, labels = sample
    known = np.where(np.arange(len(pool)) % 2, labels, np.nan)
    plan = LabelPlan.make(pool, METRIC, seed=1, known=known)
    every = LabelPlan.make(pool, METRIC, seed=1)
    truth = float((every.weights[0] * METRIC.gains(labels)).sum())
    errors = []
    for seed in range(200):
        again = LabelPlan.make(pool, METRIC, seed=seed, known=known)
        errors.append(estimate(again, _some(again, labels, 60))[0].difference - truth)
    assert np.mean(errors) == pytest.approx(0, abs=3 * np.std(errors) / 200**0.5)
    (found,) = estimate(plan, _some(plan, labels, len(plan.order)))
    assert found.state == "complete"
    assert found.difference == pytest.approx(truth, abs=1e-12)
    assert found.known + found.labels == found.pairs == len(every.order)


@pytest.mark.parametrize("kind", ["ranks", "right", "wrong", "missing"])
def test_an_estimate_is_right_on_average_whatever_the_guess(sample, kind: str) -> None:
    pool, labels = sample
    gains = METRIC.gains(labels)
    guess = {
        "ranks": Guess.from_ranks(pool),
        "right": Guess.from_gains(gains),
        "wrong": Guess.from_gains(1 - gains),
        "missing": Guess.from_gains(np.where(np.arange(len(gains)) % 3, np.nan, gains)),
    }[kind]
    found = replay(pool, METRIC, labels, 400, guess)
    for n in (1, 5, 30, 200):
        seen = found.path.mean[:, n - 1]
        assert seen.mean() == pytest.approx(found.truth, abs=4 * seen.std() / 400**0.5 + 1e-12)


def test_a_good_guess_narrows_the_interval_and_a_perfect_one_does_not_close_it(sample) -> None:
    pool, labels = sample
    perfect = Guess.from_gains(METRIC.gains(labels))
    plain, guessed = (replay(pool, METRIC, labels, 20, each).path for each in (None, perfect))
    assert (guessed.half[:, 200] < 0.7 * plain.half[:, 200]).all()
    assert (guessed.half[:, 200] > 0).all()


def test_verdicts_on_several_systems_hold_together(sample) -> None:
    """Three systems; the two contrasts of 100 robots, at a look every 20 labels."""
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
        failed = False
        for n in range(50, 800, 150):
            for found, true in zip(estimate(plan, _some(plan, labels, n)), truth, strict=True):
                failed |= not np.isnan(found.low) and not found.low <= true <= found.high
        missed += failed
    assert missed <= 7
    complete = estimate(plan, labels)
    assert [each.difference for each in complete] == pytest.approx(truth)
    assert [each.challenger for each in complete] == [pool.systems[1], "random"]


def test_for_queries_like_these_the_spread_between_queries_comes_on_top(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    queries = len(pool.query_ids)
    own = np.bincount(pool.query, plan.weights[0] * METRIC.gains(labels), queries) * queries
    classic = stats.t.interval(0.95, queries - 1, own.mean(), own.std(ddof=1) / queries**0.5)
    (complete,) = estimate(plan, labels)
    assert (complete.like_these_low, complete.like_these_high) == pytest.approx(classic)
    widths = []
    for n in (100, 300, 600):
        (found,) = estimate(plan, _some(plan, labels, n))
        widths.append(found.like_these_high - found.like_these_low)
    assert all(width > 0.95 * (classic[1] - classic[0]) for width in widths)
    assert widths[0] > widths[2]


def test_a_label_above_the_scale_is_refused(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    with pytest.raises(DataError, match="A label is 7"):
        estimate(plan, np.full(len(labels), 7.0))


def test_changing_a_label_back_gives_the_same_estimate(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1)
    given = _some(plan, labels, 120)
    changed = given.copy()
    changed[plan.order[3]] = 3 - given[plan.order[3]]
    assert estimate(plan, changed) != estimate(plan, given)
    changed[plan.order[3]] = given[plan.order[3]]
    assert estimate(plan, changed) == estimate(plan, given)


def _in_full(plan: LabelPlan, labels, queries: int):
    return _some(plan, labels, int((plan.draw < queries).sum()))


def test_a_query_counts_once_all_of_its_documents_have_a_label(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1, mode="query", share=VALUE_SHARE)
    (whole,) = estimate(plan, _in_full(plan, labels, 30))
    for extra in (1, 3):
        given = _some(plan, labels, whole.labels + extra)
        assert estimate(plan, given)[0] == replace(whole, waiting=extra)
    # By hand: the mean of the queries so far stands for the rest, by what they weigh.
    path = replay(pool, METRIC, labels, 2, mode="query").path
    assert whole.difference == pytest.approx(path.mean[1, 29], abs=1e-12)
    assert (whole.low, whole.high) == (path.low[1, 29], path.high[1, 29])
    assert estimate(plan, _in_full(plan, labels, 19))[0].state == "too_early"
    assert whole.state in ("open", "settled")


@pytest.mark.parametrize("mode", ["random", "query"])
def test_with_all_labels_every_mode_is_exact(sample, mode) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1, mode=mode)
    (weighed,) = estimate(LabelPlan.make(pool, METRIC, seed=1), labels)
    (found,) = estimate(plan, labels)
    assert found == replace(weighed, conclusive_at=found.conclusive_at)


@pytest.mark.parametrize("mode", ["random", "query"])
def test_known_labels_count_in_full_in_every_mode(sample, mode) -> None:
    """Half of the labels were there before; over 200 seeds the estimate is right on average."""
    pool, labels = sample
    known = np.where(np.arange(len(pool)) % 2, labels, np.nan)
    truth = float((LabelPlan.make(pool, METRIC, seed=1).weights[0] * METRIC.gains(labels)).sum())
    errors = []
    for seed in range(200):
        plan = LabelPlan.make(pool, METRIC, seed=seed, known=known, mode=mode)
        given = _in_full(plan, labels, 40 if mode == "random" else 8)
        errors.append(estimate(plan, given)[0].difference - truth)
    assert np.mean(errors) == pytest.approx(0, abs=3.5 * np.std(errors) / 200**0.5)


def test_about_as_many_labels_are_needed_as_it_says_where_queries_are_drawn(sample) -> None:
    pool, labels = sample
    effort = replay(pool, METRIC, labels, 40, mode="query").effort
    ratios = []
    for seed in range(40):
        plan = LabelPlan.make(pool, METRIC, seed=seed, mode="query")
        (found,) = estimate(plan, _in_full(plan, labels, 50))
        if found.needed:
            assert found.needed <= len(plan.order) - found.labels
            until = int((plan.draw < effort[seed]).sum())
            ratios.append((found.needed + found.labels) / until)
    assert 0.6 < np.median(ratios) < 1.5


def test_for_queries_like_these_a_draw_of_queries_has_the_spread_of_queries(sample) -> None:
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=1, mode="query")
    (complete,) = estimate(plan, labels)
    (found,) = estimate(plan, _in_full(plan, labels, 80))
    classic = complete.like_these_high - complete.like_these_low
    # Of half of the queries it is about the root of two wider.
    width = found.like_these_high - found.like_these_low
    assert 1.0 < width / classic < 2.0


@pytest.mark.parametrize("kappa", [None, 0.7])
def test_most_forecasts_are_enough_also_where_few_labels_are_left(sample, kappa) -> None:
    """Without a judge and with one: in at least nine of ten looks, at whatever distance."""
    pool, labels = sample
    guess = None
    if kappa is not None:
        grades = judge(labels, kappa, METRIC.top, one_grade_off(labels, METRIC.top))
        guess = Guess.from_gains(METRIC.gains(grades))
    enough, low, near = [], [], []
    for seed in range(12):
        plan = LabelPlan.make(pool, METRIC, seed=seed)
        looks = []
        for count in range(60, len(plan.order), 20):
            (found,) = estimate(plan, _some(plan, labels, count), guess)
            if found.settled:
                break
            if found.needed is not None:
                looks.append((count, found.needed, found.needed_most))
        for at, needed, most in looks:
            assert needed <= most <= len(plan.order) - at
            enough.append(count - at <= most + 20)
            low.append(count - at <= needed + 20)
            near.append(needed < 60)
    enough, low, near = map(np.array, (enough, low, near))
    assert near.sum() > 15
    assert enough.mean() > 0.9
    assert enough[near].mean() > 0.8
    # The number itself is the middle.
    assert low.mean() < enough.mean()


def test_a_conclusive_result_is_never_taken_back(sample) -> None:
    """A look after each label: the interval only gets narrower, contains the estimate, and the
    number of labels at the first conclusive look stays."""
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=3, share=VALUE_SHARE)
    first, before = None, (-np.inf, np.inf)
    for count in range(50, len(plan.order), 7):
        (found,) = estimate(plan, _some(plan, labels, count))
        if found.state == "too_early":
            continue
        assert before[0] <= found.low <= found.difference <= found.high <= before[1]
        before = found.low, found.high
        if first is None and found.conclusive_at is not None:
            first = found.conclusive_at
            assert count - 7 < first <= count
        assert found.conclusive_at == first
        assert found.settled == (first is not None)
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
            assert conclusive <= found.settled
    assert seen > 3


def test_without_draws_at_equal_ranks_no_relative_change_is_stated(sample) -> None:
    """As in plans of earlier versions: what both systems rank alike has no label."""
    pool, labels = sample
    plan = LabelPlan.make(pool, METRIC, seed=3)
    (found,) = estimate(plan, _some(plan, labels, 900))
    assert found.settled
    assert np.isnan([found.relative, found.relative_low, found.relative_high]).all()
    # With their labels known before, it can be.
    known = np.where(plan.weighs, np.nan, labels)
    helped = LabelPlan.make(pool, METRIC, seed=3, known=known)
    (found,) = estimate(helped, _some(helped, labels, 900))
    assert found.relative_low < found.relative < found.relative_high < 0
