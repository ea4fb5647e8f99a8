import math

import numpy as np
import pytest
from scipy import stats

from rankdash.core.sampling.bias_corrected import FEWEST_PEOPLE, correct

NAN = float("nan")


def sample(n: int, others: int, seed: int = 1, noise: float = 0.5, slope: float = 0.8):
    """Return human changes of the first n queries, and a judge's changes of all queries."""
    rng = np.random.default_rng(seed)
    judge = rng.normal(0.1, 0.4, n + others)
    people = slope * judge - 0.05 + noise * rng.normal(0, 0.4, n + others)
    people[n:] = NAN
    return people, judge


def ppi(h, f, others, weight: float) -> tuple[float, float, float]:
    """Return the estimate of PPI++ and the two parts of its standard error, as published."""
    estimate = weight * others.mean() + (h - weight * f).mean()
    return (
        estimate,
        weight * others.std() / len(others) ** 0.5,
        (h - weight * f).std() / len(h) ** 0.5,
    )


def error_of(imputed: float, rectified: float, h, others: int) -> float:
    """Return our standard error of both parts: unbiased variances, and two unseen queries."""
    n = len(h)
    residual = (n * n * rectified**2 + 2 * h.var(ddof=1)) / n
    return math.sqrt(residual / n + imputed**2 * others / (others - 1))


@pytest.mark.parametrize(("n", "others"), [(10, 3), (20, 40), (60, 140), (200, 5_000)])
def test_estimate_and_error_are_those_of_ppi(n: int, others: int) -> None:
    people, judge = sample(n, others)
    found = correct(people, judge, level=0.95)
    h, f, rest = people[:n], judge[:n], judge[n:]
    weight = np.cov(h, f, ddof=0)[0, 1] / f.var() / (1 + n / others)
    assert found.weight == pytest.approx(weight, abs=1e-12)
    assert 0 < weight < 1
    estimate, imputed, rectified = ppi(h, f, rest, weight)
    assert found.corrected.mean == pytest.approx(estimate, abs=1e-12)
    error = error_of(imputed, rectified, h, others)
    assert found.corrected.error == pytest.approx(error, abs=1e-12)
    reach = stats.t.ppf(0.975, n - 1) * error
    assert (found.corrected.low, found.corrected.high) == pytest.approx(
        (estimate - reach, estimate + reach), abs=1e-12
    )
    assert found.corrected.p == pytest.approx(2 * stats.t.sf(abs(estimate) / error, n - 1))


def test_only_what_the_judge_graded_elsewhere_counts() -> None:
    """A cancelled judge that graded the labelled queries is corrected by its other queries only."""
    people, judge = sample(20, 400)
    part = correct(people[:50], judge[:50], level=0.95)
    judge[50:] = NAN
    found = correct(people, judge, level=0.95)
    assert (found.corrected, found.weight, found.others) == (part.corrected, part.weight, 30)


@pytest.mark.parametrize("change", [0.0, 0.1, -0.3])
def test_equal_changes_have_no_spread(change: float) -> None:
    judge = np.random.default_rng(1).normal(size=50)
    people = np.full(50, change + 0.2) - 0.2
    people[15:] = NAN
    found = correct(people, judge, level=0.95)
    assert found.people == found.corrected
    assert found.people.error == 0
    assert found.people.low == found.people.high == pytest.approx(change)
    assert math.isnan(found.people.p)
    assert math.isnan(found.worth)
    perfect = correct(people, np.full(50, change), level=0.95)
    assert perfect.judge.error == 0
    assert perfect.corrected.error == 0


def test_a_perfect_judge_counts_in_full_but_for_what_is_not_seen() -> None:
    _, judge = sample(20, 100_000)
    people = judge.copy()
    people[20:] = NAN
    found = correct(people, judge, level=0.95)
    assert found.weight == pytest.approx(1, abs=1e-3)
    assert found.corrected.mean == pytest.approx(judge.mean(), abs=1e-3)
    # With two of twenty queries unseen, a tenth of the variance remains.
    assert found.worth == pytest.approx(10, rel=0.01)
    assert found.saved == pytest.approx(180, rel=0.01)


def test_labelled_queries_without_a_value_take_no_part_in_the_mean() -> None:
    people, judge = sample(20, 60)
    labelled = np.arange(80) < 24
    people[20:24] = NAN
    found = correct(people, judge, labelled=labelled, level=0.95)
    assert found.people.mean == pytest.approx(people[:20].mean())
    assert found.people.error == pytest.approx(stats.sem(people[:20]))
    assert found.people.n == found.corrected.n == 20
    assert found.others == 56
    # By hand: a query without a value equals the mean, so sums over 24 queries are over 20.
    share = 20 / 24
    change = np.nan_to_num(people[:24] - people[:20].mean())
    spread = judge[:24] - judge[:24].mean()
    weight = (change * spread).sum() / (spread**2).sum() / (1 + 24 / 56)
    moved = weight * (judge[24:].mean() - judge[:24].mean()) / share
    assert found.corrected.mean == pytest.approx(people[:20].mean() + moved)
    rest, unseen = ((change - weight * spread) ** 2).sum(), 2 * (change**2).sum() / 19
    tail = weight**2 * judge[24:].var(ddof=1) / 56 / share**2
    assert found.corrected.error == pytest.approx(math.sqrt((rest + unseen) / 20 / 20 + tail))


# The judge's changes from the human ones, in a set of 4,000 queries.
JUDGES = {
    "even errors": lambda people, rng: 0.8 * people + rng.normal(0, 0.1, len(people)),
    "favours the challenger": lambda people, rng: people + 0.3 + rng.normal(0, 0.1, len(people)),
    "guesses": lambda people, rng: rng.permutation(people),
    # A third of the queries have nothing relevant, which the judge mostly detects too.
    "some have no value": lambda people, rng: 0.8 * people + rng.normal(0, 0.1, len(people)),
}


@pytest.mark.parametrize("kind", JUDGES)
def test_the_interval_holds_the_truth_whatever_the_judge(kind: str) -> None:
    """The same on real labels: tests/benchmarks/judging.py."""
    rng = np.random.default_rng(2)
    people = np.where(rng.random(4_000) < 0.4, 0.0, rng.normal(0.1, 0.4, 4_000))
    judge = JUDGES[kind](people, rng)
    if kind == "some have no value":
        people[rng.random(4_000) < 0.3] = NAN
        judge[np.isnan(people) & (rng.random(4_000) < 0.8)] = NAN
    truth = np.nanmean(people)
    found = []
    for _ in range(250):
        rows, own = rng.integers(0, 4_000, 240), np.arange(240) < 40
        seen = np.where(own, people[rows], NAN)
        found.append(correct(seen, judge[rows], labelled=own, level=0.95))
    # 250 samples at 95 %: three standard errors are 4 points.
    held = {
        way: np.mean([getattr(each, way).low <= truth <= getattr(each, way).high for each in found])
        for way in ("people", "corrected", "judge")
    }
    assert min(held["people"], held["corrected"]) >= 0.91
    assert held["judge"] < 0.1 or kind != "favours the challenger"
    assert np.mean([each.corrected.mean for each in found]) == pytest.approx(truth, abs=0.01)
    ours, theirs = (
        sum(getattr(each, way).error for each in found) for way in ("corrected", "people")
    )
    assert ours <= (1.02 if kind == "guesses" else 0.8) * theirs


def test_the_curve_starts_at_what_there_is_and_ends_at_all() -> None:
    people, judge = sample(20, 180)
    found = correct(people, judge, level=0.95)
    curve = found.curve()
    counts, alone, both = (list(each) for each in zip(*curve, strict=True))
    assert counts[0] == 20
    assert counts[-1] == 200
    assert counts == sorted(set(counts))
    assert alone[0] == pytest.approx(found.people.high - found.people.mean)
    assert both[0] == pytest.approx(found.corrected.high - found.corrected.mean)
    assert alone == sorted(alone, reverse=True)
    assert both == sorted(both, reverse=True)
    assert both[0] < 0.9 * alone[0]
    assert all(ours <= theirs for ours, theirs in zip(both, alone, strict=True))
    # If all queries are labelled, the judge adds nothing.
    assert both[-1] == alone[-1]


def test_people_and_the_judge_alone_have_the_t_interval() -> None:
    """The interval needs six queries; the correction needs ten queries with human labels."""
    people, judge = sample(12, 30)
    judge[[3, 20]] = NAN
    found = correct(people, judge, level=0.9)
    for side, way, n in ((people, found.people, 12), (judge, found.judge, 40)):
        known = side[~np.isnan(side)]
        expected = stats.ttest_1samp(known, 0)
        low, high = expected.confidence_interval(0.9)
        assert (way.low, way.high, way.p) == pytest.approx((low, high, expected.pvalue))
        assert (way.mean, way.error, way.n) == pytest.approx((known.mean(), stats.sem(known), n))
    for n in (0, 1, 2, 5, 6, FEWEST_PEOPLE - 1):
        few = correct(*sample(n, 50), level=0.95)
        assert not few.enough and few.curve() == []
        assert np.isnan([few.corrected.mean, few.worth, few.saved]).all()
        assert (few.judge.n, few.people.n) == (50 + n, n)
        ends = [few.people.low, few.people.high, few.people.p, few.people.error]
        assert np.isfinite(ends).all() == (n >= 6)


UNHELPFUL = {
    "nothing graded": lambda people, judge: (people, judge * NAN),
    "all the same": lambda people, judge: (people, judge * 0 + 0.3),
    "the other way round": lambda people, judge: (people, -judge),
    "no other queries": lambda people, judge: (people[:20], judge[:20]),
    "one other query": lambda people, judge: (people[:21], judge[:21]),
    "of others one is graded": lambda people, judge: (
        people,
        np.where(np.arange(60) < 21, judge, NAN),
    ),
}


@pytest.mark.parametrize("kind", UNHELPFUL)
def test_a_judge_that_is_no_help_leaves_what_people_say(kind: str) -> None:
    found = correct(*UNHELPFUL[kind](*sample(20, 40)), level=0.95)
    assert (found.weight, found.worth, found.saved) == (0, 1, 0)
    assert found.corrected == found.people
    assert all(both == alone for _, alone, both in found.curve())


def test_a_constant_error_the_sign_and_the_order_of_queries_change_nothing_else() -> None:
    people, judge = sample(15, 60)
    order = np.random.default_rng(3).permutation(75)
    found, moved, mirrored, shuffled = (
        correct(*each, level=0.95)
        for each in ((people, judge), (people, judge + 0.7), (-people, -judge),
                     (people[order], judge[order]))
    )  # fmt: skip
    assert moved.judge.mean == pytest.approx(found.judge.mean + 0.7)
    for other, sign in ((moved, 1), (shuffled, 1), (mirrored, -1)):
        assert other.corrected.mean == pytest.approx(sign * found.corrected.mean, abs=1e-12)
        assert other.corrected.error == pytest.approx(found.corrected.error, abs=1e-12)
    assert mirrored.corrected.low == pytest.approx(-found.corrected.high)
