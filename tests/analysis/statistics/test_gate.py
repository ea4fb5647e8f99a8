"""Conditions: parsed or refused, and decided by the right number."""

import math

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.labelling.estimate import Estimate
from rankdash.analysis.statistics.comparison import compare
from rankdash.analysis.statistics.gate import (
    Condition,
    confidence_of,
    decide,
    measures_of,
    parse_conditions,
    settings_at,
)
from rankdash.errors import SpecError
from rankdash.metrics import evaluate, judge
from rankdash.ranking.ranking import Ranking


def compared(base: list[int], up: list[int], left_out: dict[str, str] | None = None, **settings):
    """Each query has one relevant document, at the place given; mrr@10 is 1 over it."""
    qrels = pd.DataFrame(
        {"query_id": [f"q{i}" for i in range(len(base))], "doc_id": "good", "label": 1.0}
    )

    def evaluation(places: list[int], out: dict[str, str]):
        ranking = Ranking.from_lists(
            (
                f"q{i}",
                [*(f"bad{j}" for j in range(1, place)), "good"],
                list(range(place, 0, -1)),
            )
            for i, place in enumerate(places)
            if f"q{i}" not in out
        )
        return evaluate(judge(ranking, qrels), ["mrr@10"], None, out)

    systems = {"base": evaluation(base, {}), "up": evaluation(up, left_out or {})}
    return compare(systems, "base", settings_at(settings.pop("confidence", 0.95), **settings))


def outcome(kind: str, limit: float, comparison, timings=None, subject: str = "mrr@10"):
    return decide([Condition(kind, subject, limit)], comparison, "up", timings)[0]


def timed(latencies: list[float], failed: int = 0) -> pd.DataFrame:
    states = ["done"] * len(latencies) + ["failed"] * failed
    return pd.DataFrame(
        {
            "query_id": [f"q{i}" for i in range(len(states))],
            "state": states,
            "latency_ms": [*latencies, *[math.nan] * failed],
        }
    )


def test_conditions_are_parsed_and_a_bare_share_holds_for_every_metric_named():
    found = parse_conditions(["ndcg@10=0.8"], ["MRR@10=-.01"], ["0.2"], ["p95_ms=500"])
    assert found == (
        Condition("min", "ndcg@10", 0.8),
        Condition("min-gain", "mrr@10", -0.01),
        Condition("max-hurt", "ndcg@10", 0.2),
        Condition("max-hurt", "mrr@10", 0.2),
        Condition("max", "p95_ms", 500.0),
    )
    assert list(measures_of(found)) == ["ndcg@10", "mrr@10"]
    assert parse_conditions(hurt=["0.1"]) == (Condition("max-hurt", "ndcg@10", 0.1),)
    assert list(measures_of(parse_conditions(maxima=["failed=0"]))) == ["ndcg@10"]


def test_a_bare_number_holds_for_each_metric_that_is_given():
    found = parse_conditions(["0.8"], ["map=0"], ["0.2"], metrics=["ndcg@5,10", "P(rel=2)@5"])
    specs = ["ndcg@5", "ndcg@10", "precision@5"]
    assert found == (
        *(Condition("min", spec, 0.8, 2.0) for spec in specs),
        Condition("min-gain", "map", 0.0),
        *(Condition("max-hurt", spec, 0.2, 2.0) for spec in specs),
    )
    assert parse_conditions(["ndcg@5,10=0.8", "P(rel=2)@5=.1"]) == (
        Condition("min", "ndcg@5", 0.8),
        Condition("min", "ndcg@10", 0.8),
        Condition("min", "precision@5", 0.1, 2.0),
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "no condition"),
        ({"minima": ["ndcg@10"]}, "name=number"),
        ({"minima": ["=0.5"]}, "name=number"),
        ({"minima": ["ndcg@10=high"]}, "'high' in 'ndcg@10=high' is not a number"),
        ({"minima": ["ndcg@10=nan"]}, "is not a number"),
        ({"minima": ["ndgc@10=0.5"]}, "ndcg"),
        ({"minima": ["ndcg@10=0.5", "ndcg@10=0.6"]}, "stated twice for ndcg@10"),
        ({"hurt": ["20"]}, "between 0 and 1, not 20"),
        ({"maxima": ["p99_ms=5"]}, "It knows: p50_ms, p90_ms, p95_ms, failed"),
        ({"maxima": ["p95_ms"]}, "--max p95_ms=500"),
    ],
)
def test_what_cannot_be_a_condition_is_refused_with_a_remedy(given, told):
    with pytest.raises(SpecError) as refused:
        parse_conditions(**given)
    assert told in str(refused.value)
    assert refused.value.remedy


@pytest.mark.parametrize("confidence", [0.5, 1.0, math.nan])
def test_a_confidence_out_of_range_is_refused(confidence):
    with pytest.raises(SpecError, match=r"between 0\.75 and"):
        settings_at(confidence)


@pytest.mark.parametrize("confidence", [0.75, 0.9999])
def test_the_ends_of_the_range_are_within_it(confidence):
    assert confidence_of(settings_at(confidence)) == pytest.approx(confidence)
    for beyond in (0.7499, 0.99991):
        with pytest.raises(SpecError, match="confidence must be between"):
            settings_at(beyond)


def test_a_share_may_be_nothing_or_everything():
    found = parse_conditions(hurt=["mrr=0", "map=1"])
    assert [each.limit for each in found] == [0.0, 1.0]
    for beyond in ("-0.001", "1.001"):
        with pytest.raises(SpecError, match="between 0 and 1"):
            parse_conditions(hurt=[beyond])


def test_the_limits_are_one_sided():
    settings = settings_at(0.95)
    assert settings.level == pytest.approx(0.9)
    assert confidence_of(settings) == pytest.approx(0.95)
    rng = np.random.default_rng(1)
    base = [int(place) for place in rng.integers(1, 6, 200)]
    low = outcome("min", 0.0, compared(base, base)).low
    values = 1 / np.array(base)
    # The one-sided t limit, which the bootstrap comes near to with so many queries.
    assert low == pytest.approx(values.mean() - 1.653 * values.std(ddof=1) / 200**0.5, abs=0.003)


def test_the_lower_limit_and_not_the_mean_decides():
    comparison = compared([2] * 40, [1, 2] * 20)
    seen = outcome("min", 0.0, comparison)
    assert seen.value == pytest.approx(0.75)
    assert seen.passed
    assert outcome("min", seen.low, comparison).passed
    between = outcome("min", (seen.low + seen.value) / 2, comparison)
    assert (between.passed, between.reason) == (False, "unproven")
    above = outcome("min", 0.76, comparison)
    assert (above.passed, above.reason) == (False, "missed")
    gain = outcome("min-gain", 0.0, comparison)
    assert gain.value == pytest.approx(0.25)
    assert gain.passed
    assert outcome("min-gain", 0.24, comparison).reason == "unproven"


def test_more_confidence_asks_for_more():
    base, up = [2] * 40, [1] * 8 + [2] * 28 + [3] * 4
    lows = [
        outcome("min-gain", 0.0, compared(base, up, confidence=level)).low
        for level in (0.8, 0.95, 0.999)
    ]
    assert lows[0] > lows[1] > lows[2]


def test_a_value_that_is_the_limit_passes():
    same = compared([2] * 10, [2] * 10)
    assert outcome("min", 0.5, same).passed
    assert outcome("min-gain", 0.0, same).passed
    assert outcome("max-hurt", 0.0, same).passed
    thirds = compared([3] * 9, [3] * 9)
    assert outcome("min", 1 / 3, thirds).passed
    hurt = compared([1] * 10, [1] * 8 + [2] * 2)
    assert outcome("max-hurt", 0.2, hurt).passed
    assert not outcome("max-hurt", 0.19, hurt).passed
    assert outcome("max", 7.0, same, timed([7.0] * 6), "p95_ms").passed


def test_the_share_of_hurt_queries_has_the_limits_of_clopper_and_pearson():
    comparison = compared([1] * 20, [2] * 3 + [1] * 17)
    found = outcome("max-hurt", 0.2, comparison)
    assert found.value == pytest.approx(0.15)
    # From tables of the two-sided 90 % interval for 3 of 20.
    assert [found.low, found.high] == pytest.approx([0.0422, 0.3437], abs=5e-4)
    none = outcome("max-hurt", 0.2, compared([1] * 20, [1] * 20))
    assert [none.low, none.high] == pytest.approx([0.0, 1 - 0.05 ** (1 / 20)])
    banded = compared([1] * 20, [2] * 3 + [1] * 17, tie_band=0.6)
    assert outcome("max-hurt", 0.0, banded).passed


@pytest.mark.parametrize("kind", ["min", "min-gain", "max-hurt"])
def test_under_six_queries_nothing_passes(kind):
    few = outcome(kind, 0.0 if kind != "max-hurt" else 1.0, compared([2] * 5, [1] * 5))
    assert (few.passed, few.reason, few.n) == (False, "too_few", 5)
    lost = {f"q{i}": "failed" for i in range(6)}
    none = outcome(kind, 0.0, compared([2] * 6, [1] * 6, lost))
    assert (none.passed, none.reason, none.n) == (False, "no_values", 0)


def test_failed_queries_leave_both_sides_and_are_no_zeros():
    comparison = compared([1] * 5 + [2] * 20, [1] * 25, {f"q{i}": "failed" for i in range(5)})
    assert outcome("min", 1.0, comparison).passed
    gain = outcome("min-gain", 0.5, comparison)
    assert gain.n == 20
    assert gain.passed
    assert outcome("max-hurt", 0.0, comparison).passed


def test_latencies_that_were_not_measured_are_in_no_quantile():
    comparison = compared([1] * 10, [1] * 10)
    found = outcome("max", 50.0, comparison, timed([10.0] * 19 + [math.nan] * 5, 3), "p95_ms")
    assert (found.value, found.n, found.passed) == (10.0, 19, True)
    failed = outcome("max", 2, comparison, timed([10.0] * 19, 3), "failed")
    assert (failed.value, failed.n, failed.passed) == (3.0, 22, False)
    assert outcome("max", 3, comparison, timed([10.0] * 19, 3), "failed").passed
    for latencies, reason in (
        ([math.nan] * 9, "no_values"),
        ([1.0] * 4, "too_few"),
        ([], "no_values"),
    ):
        unknown = outcome("max", 500.0, comparison, timed(latencies), "p95_ms")
        assert (unknown.passed, unknown.reason) == (False, reason)
    assert outcome("max", 0, comparison, timed([]), "failed").reason == "no_values"


def test_limits_of_a_quantile_are_order_statistics_that_hold_it_as_often_as_stated():
    rng = np.random.default_rng(3)
    comparison = compared([1] * 10, [1] * 10)
    draws = [
        outcome("max", 1.0, comparison, timed(rng.uniform(0, 1, 80).tolist()), "p50_ms")
        for _ in range(400)
    ]
    assert 0.93 <= np.mean([draw.high >= 0.5 for draw in draws]) <= 1
    assert 0.93 <= np.mean([draw.low <= 0.5 for draw in draws]) <= 1
    few = outcome("max", 1.0, comparison, timed([1.0] * 20), "p95_ms")
    # 0.95 to the power of 20 is more than 5 %: all may be below the quantile.
    assert math.isnan(few.high)


def test_a_latency_without_timings_is_refused():
    with pytest.raises(SpecError, match="Give the file that `rerank --timings` wrote"):
        outcome("max", 500.0, compared([1] * 9, [1] * 9), None, "p95_ms")


@pytest.mark.parametrize(
    ("hurt", "low", "high"),
    [
        (1, 1 - 0.95 ** (1 / 20), None),
        (19, None, 0.95 ** (1 / 20)),
        (20, 0.05 ** (1 / 20), 1.0),
    ],
)
def test_the_limits_of_a_share_near_its_ends(hurt, low, high):
    """Of one query of n the lower limit is 1 - 0.95^(1/n), of all but one the upper mirrors it."""
    found = outcome("max-hurt", 1.0, compared([1] * 20, [2] * hurt + [1] * (20 - hurt)))
    for limit, expected in ((found.low, low), (found.high, high)):
        assert expected is None or limit == pytest.approx(expected)


def test_the_limits_of_a_quantile_by_hand():
    """Of 20 tosses 6 to 14 heads are the middle 90 %: the 6th and the 15th latency."""
    comparison = compared([1] * 10, [1] * 10)
    found = outcome("max", 11.0, comparison, timed([float(n) for n in range(1, 21)]), "p50_ms")
    assert (found.value, found.low, found.high) == (10.5, 6.0, 15.0)


def test_the_time_of_a_failed_query_is_no_latency():
    timings = timed([10.0] * 9 + [900.0])
    timings.loc[9, "state"] = "failed"
    found = outcome("max", 50.0, compared([1] * 10, [1] * 10), timings, "p95_ms")
    assert (found.value, found.n) == (10.0, 9)


def test_a_bare_share_holds_for_the_metrics_of_means_and_gains_alone():
    found = parse_conditions(["ndcg@5=0.5"], hurt=["mrr=0.1", "0.2"])
    assert found == (
        Condition("min", "ndcg@5", 0.5),
        Condition("max-hurt", "mrr", 0.1),
        Condition("max-hurt", "ndcg@5", 0.2),
    )


def test_a_target_of_a_profile_gives_way_to_what_was_typed_of_its_kind_only():
    target = Condition("min", "ndcg@10", 0.5, of_profile=True)
    assert parse_conditions(gains=["ndcg@10=0"], profile=[target])[1:] == (target,)
    assert parse_conditions(["ndcg@10=0.4"], profile=[target]) == (
        Condition("min", "ndcg@10", 0.4),
    )


@pytest.mark.parametrize(
    ("of_profile", "most", "reason"),
    [
        (True, 0.5, "met"),
        (True, 0.5 - 1e-13, "met"),
        (True, 0.499, "unreachable"),
        (False, 0.499, "met"),
    ],
)
def test_a_target_of_a_profile_that_no_order_reaches_does_not_count(of_profile, most, reason):
    condition = Condition("min", "mrr@10", 0.5, of_profile=of_profile)
    (found,) = decide([condition], compared([2] * 9, [2] * 9), "up", most={"mrr@10": most})
    assert (found.passed, found.reason) == (True, reason)


@pytest.mark.parametrize(("kind", "limit"), [("min", 0.9), ("min-gain", 0.4), ("max-hurt", 0.0)])
def test_six_queries_are_enough(kind, limit):
    assert outcome(kind, limit, compared([2] * 6, [1] * 6)).reason == "met"
    assert outcome(kind, limit, compared([2] * 5, [1] * 5)).reason == "too_few"


def test_a_condition_without_a_name_is_none():
    for text in ("=0.5", " =0.5"):
        with pytest.raises(SpecError, match="written name=number"):
            parse_conditions(maxima=[text])
    assert parse_conditions(maxima=[" failed = 0"])[0].subject == "failed"


def test_other_rules_of_a_gate_are_those_asked_for():
    found = settings_at(0.9, 100, seed=7, resamples=1000)
    assert (found.seed, found.resamples) == (7, 1000)
    assert found.level == pytest.approx(0.8)


def drawn(state: str, difference: float, low: float, high: float) -> Estimate:
    counts = {
        "queries": 9,
        "labels": 60,
        "waiting": 0,
        "known": 0,
        "pairs": 100,
        "needed": 10,
        "saved": None,
    }
    ends = {"low": low, "high": high, "like_these_low": low, "like_these_high": high}
    return Estimate("base", "up", "dcg@10", state, difference, level=0.95, **ends, **counts)


@pytest.mark.parametrize(
    ("state", "difference", "low", "reason"),
    [
        ("settled", 0.1, 0.02, "met"),
        ("settled", 0.1, 0.0199, "unproven"),
        ("open", 0.1, -0.01, "unproven"),
        ("complete", 0.02, 0.02, "met"),
        ("complete", 0.0199, 0.0199, "missed"),
        ("too_early", 0.1, math.nan, "too_early"),
    ],
)
def test_an_estimate_from_draws_is_held_to_its_lower_end(state, difference, low, reason):
    condition = Condition("min-gain", "dcg@10", 0.02)
    estimate = drawn(state, difference, low, difference + 0.08)
    (found,) = decide([condition], compared([2] * 9, [2] * 9), "up", drawn={"dcg@10": estimate})
    assert (found.reason, found.passed) == (reason, reason == "met")
    assert (found.value, found.n, found.estimated) == (difference, 9, True)


@pytest.mark.parametrize("kind", ["min", "min-gain", "max-hurt"])
def test_what_draws_do_not_say_passes_nothing(kind):
    known = {} if kind == "min-gain" else {"mrr@10": drawn("settled", 0.9, 0.8, 1.0)}
    condition = Condition(kind, "mrr@10", 0.5)
    (found,) = decide([condition], compared([2] * 9, [1] * 9), "up", drawn=known)
    assert (found.reason, found.passed) == ("drawn", False)


@pytest.mark.parametrize(
    ("kind", "limit", "base", "up"),
    [("min", 0.0, [9] * 6, [1, 9, 9, 9, 9, 9]), ("min-gain", -1.0, [1] * 6, [9, 9, 9, 9, 9, 1])],
)
def test_a_limit_that_every_value_reaches_is_met_with_a_p_of_0(kind, limit, base, up):
    """With Student's t alone the true value could be lower."""
    after = 1 / np.array(up)
    values = after, after - 1 / np.array(base)
    [found] = decide(
        [Condition(kind, "mrr@10", limit)], compared(base, up), "up", values=lambda _spec: values
    )
    assert (found.passed, found.low, found.p) == (True, limit, 0.0)
