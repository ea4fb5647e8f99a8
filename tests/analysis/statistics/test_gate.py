"""Conditions: parsed or refused, and decided by the right number."""

import math

import numpy as np
import pandas as pd

from rankdash.core.metrics import evaluate, judge
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.statistics.comparison import compare
from rankdash.features.gate import gate
from tests.lists import ranking
from tests.results import results, several


def compared(base: list[int], up: list[int], left_out: dict[str, str] | None = None, **settings):
    """Each query has one relevant document, at the place given; mrr@10 is 1 over it."""
    ids = [f"q{i}" for i in range(len(base))]
    qrels = pd.DataFrame({"query_id": ids, "doc_id": "good", "label": 1.0})

    def evaluation(places: list[int], out: dict[str, str]):
        lists = {
            query: [*(f"bad{j}" for j in range(1, place)), "good"]
            for query, place in zip(ids, places, strict=True)
            if query not in out
        }
        return evaluate(judge(ranking(**lists), qrels), ["mrr@10"], None, out)

    systems = {"base": evaluation(base, {}), "up": evaluation(up, left_out or {})}
    return compare(systems, "base", gate.settings_at(settings.pop("confidence", 0.95), **settings))


def outcome(kind: str, limit: float, comparison, timings=None, subject: str = "mrr@10"):
    return gate.decide([gate.Condition(kind, subject, limit)], comparison, "up", timings)[0]


def timed(latencies: list[float], failed: int = 0) -> pd.DataFrame:
    states = ["done"] * len(latencies) + ["failed"] * failed
    frame = pd.DataFrame({"state": states, "latency_ms": [*latencies, *[math.nan] * failed]})
    return frame.assign(query_id=[f"q{i}" for i in range(len(states))])


def drawn(state: str, difference: float, low: float, high: float) -> Estimate:
    return Estimate(
        "base", "up", "dcg@10", state, difference, low, high, low, high, level=0.95, queries=9,
        labels=60, waiting=0, known=0, pairs=100, needed=10, saved=None,
    )  # fmt: skip


def parsed(*minima, gains=(), hurt=(), maxima=(), **more):
    found = gate.parse_conditions(minima, gains, hurt, maxima, **more)
    return *found, "of", *gate.measures_of(found)


PROFILE = [gate.Condition("min", "ndcg@10", 0.5, of_profile=True)]
PARSED = {
    "one of each": lambda: parsed(
        "ndcg@10=0.8", gains=["MRR@10=-.01"], hurt=["0.2"], maxima=["p95_ms=500"]
    ),
    "a bare share without a metric": lambda: parsed(hurt=["0.1"]),
    "margins": lambda: parsed("ndcg@5=0.5", margins=["mrr=0.1"]),
    "a bare margin": lambda: parsed(margins=["0.02"]),
    "a share of a metric and a bare one": lambda: parsed("ndcg@5=0.5", hurt=["mrr=0.1", "0.2"]),
    "only failures": lambda: parsed(maxima=["failed=0"]),
    "blanks": lambda: parsed(maxima=[" failed = 0"]),
    "bare numbers for metrics that are given": lambda: parsed(
        "0.8", gains=["map=0"], hurt=["0.2"], metrics=["ndcg@5,10", "P(rel=2)@5"]
    ),
    "several cutoffs": lambda: parsed("ndcg@5,10=0.8", "P(rel=2)@5=.1"),
    "a profile beside another kind": lambda: parsed(gains=["ndcg@10=0"], profile=PROFILE),
    "a profile gives way": lambda: parsed("ndcg@10=0.4", profile=PROFILE),
    "all": lambda: parsed(hurt=["mrr=0", "map=1"]),
    "no condition": lambda: gate.parse_conditions(),
    **{
        f"{kind} {text}": lambda kind=kind, text=text: gate.parse_conditions(**{kind: text.split()})
        for kind, text in (
            ("minima", "ndcg@10"), ("minima", "=0.5"), ("minima", "ndcg@10=high"),
            ("minima", "ndcg@10=nan"), ("minima", "ndgc@10=0.5"),
            ("minima", "ndcg@10=0.5 ndcg@10=0.6"), ("hurt", "20"), ("hurt", "-0.001"),
            ("hurt", "1.001"), ("maxima", "p99_ms=5"), ("maxima", "p95_ms"), ("maxima", "=0.5"),
            ("margins", "0"), ("margins", "ndcg@10=-0.1"), ("margins", "ndcg@10"),
        )
    },
    **several(
        "a confidence of {}",
        lambda confidence: (gate.confidence_of(at := gate.settings_at(confidence)), at.level),
        (0.5, 0.7499, 0.75, 0.95, 0.9999, 0.99991, 1.0, math.nan),
    ),
    "other rules": lambda: gate.settings_at(0.9, 100, seed=7, resamples=1000),
}  # fmt: skip
ONE, HALVES, THIRD = [1] * 10, [2] * 40, [3] * 9
GAIN = [1, 2] * 20
LOST = {f"q{i}": "failed" for i in range(5)}


def hurting(hurt: int, limit: float = 0.2, n: int = 20, **settings):
    found = compared([1] * n, [2] * hurt + [1] * (n - hurt), **settings)
    return outcome("max-hurt", limit, found)


def late(limit: float, timings: pd.DataFrame | None, subject: str = "p95_ms"):
    return outcome("max", limit, compared(ONE, ONE), timings, subject)


def held_to(kind: str, limit: float, base, up, left_out=None, **settings):
    return outcome(kind, limit, compared(base, up, left_out, **settings))


def of_profile(most: float, *, is_target: bool = True):
    condition = gate.Condition("min", "mrr@10", 0.5, of_profile=is_target)
    return gate.decide([condition], compared([2] * 9, [2] * 9), "up", most={"mrr@10": most})[0]


def estimated(state: str, difference: float, low: float):
    found = drawn(state, difference, low, difference + 0.08)
    condition = gate.Condition("min-gain", "dcg@10", 0.02)
    return gate.decide([condition], compared([2] * 9, [2] * 9), "up", sampled={"dcg@10": found})[0]


def not_estimated(kind: str):
    known = {} if kind == "min-gain" else {"mrr@10": drawn("settled", 0.9, 0.8, 1.0)}
    return gate.decide(
        [gate.Condition(kind, "mrr@10", 0.5)], compared([2] * 9, [1] * 9), "up", sampled=known
    )[0]


def reached_by_all(kind: str, limit: float, base: list[int], up: list[int]):
    """With Student's t alone the true value could be lower."""
    after = 1 / np.array(up)
    values = after, after - 1 / np.array(base)
    return gate.decide(
        [gate.Condition(kind, "mrr@10", limit)], compared(base, up), "up", values=lambda _: values
    )[0]


def one_failed() -> pd.DataFrame:
    timings = timed([10.0] * 9 + [900.0])
    timings.loc[9, "state"] = "failed"
    return timings


TEN, NANS = [10.0] * 19, [math.nan]
DECIDED = {
    **{
        f"a mean of 0.75 at least {limit}": lambda limit=limit: held_to("min", limit, HALVES, GAIN)
        for limit in (0.0, 0.7, 0.76)
    },
    **several(
        "a gain of 0.25 at least {}", lambda limit: held_to("min-gain", limit, HALVES, GAIN),
        (0.0, 0.24),
    ),
    **{
        f"with {confidence} confidence": lambda confidence=confidence: held_to(
            "min-gain", 0.0, HALVES, [1] * 8 + [2] * 28 + [3] * 4, confidence=confidence
        )
        for confidence in (0.8, 0.95, 0.999)
    },
    "a mean that is the limit": lambda: held_to("min", 0.5, [2] * 10, [2] * 10),
    "a mean that is, to rounding": lambda: held_to("min", 1 / 3, THIRD, THIRD),
    "no gain": lambda: held_to("min-gain", 0.0, [2] * 10, [2] * 10),
    "nobody is hurt": lambda: hurting(0, 0.0, 10),
    "two of ten are": lambda: hurting(2, 0.2, 10),
    "two of ten are too many": lambda: hurting(2, 0.19, 10),
    # From tables of the two-sided 90 % interval: 0.0422 to 0.3437 for 3 of 20. Of one query of n
    # the lower limit is 1 - 0.95^(1/n), of all but one the upper mirrors it.
    **{f"{hurt} of 20 are hurt": lambda hurt=hurt: hurting(hurt) for hurt in (0, 1, 3, 19, 20)},
    "within the band nobody is": lambda: hurting(3, 0.0, tie_band=0.6),
    **{
        f"{kind} of {n}": lambda kind=kind, limit=limit, n=n: held_to(kind, limit, [2] * n, [1] * n)
        for kind, limit in (("min", 0.9), ("min-gain", 0.4), ("max-hurt", 0.0))
        for n in (5, 6)
    },
    **several(
        "{} of none", lambda kind: held_to(kind, 0.0, [2] * 6, [1] * 6, LOST | {"q5": "failed"}),
        ("min", "min-gain", "max-hurt"),
    ),
    **several(
        "failed ones are no zeros: {}",
        lambda kind, limit: held_to(kind, limit, [1] * 5 + [2] * 20, [1] * 25, LOST),
        (("min", 1.0), ("min-gain", 0.5), ("max-hurt", 0.0)),
    ),
    "a latency that is the limit": lambda: late(7.0, timed([7.0] * 6)),
    "not measured is in no quantile": lambda: late(50.0, timed(TEN + NANS * 5, 3)),
    "three failed of two": lambda: late(2, timed(TEN, 3), "failed"),
    "three failed of three": lambda: late(3, timed(TEN, 3), "failed"),
    "none measured": lambda: late(500.0, timed(NANS * 9)),
    "four measured": lambda: late(500.0, timed([1.0] * 4)),
    "no queries": lambda: late(500.0, timed([])),
    "no queries that could fail": lambda: late(0, timed([]), "failed"),
    "the time of a failed query is no latency": lambda: late(50.0, one_failed()),
    "without timings": lambda: late(500.0, None),
    # 0.95 to the power of 20 is more than 5 %: all may be below the quantile.
    "20 may all be below": lambda: late(1.0, timed([1.0] * 20)),
    # Of 20 tosses 6 to 14 heads are the middle 90 %: the 6th and the 15th latency.
    "the median of 20": lambda: late(11.0, timed([float(n) for n in range(1, 21)]), "p50_ms"),
    **{
        f"a target, of which {most} can be reached": lambda most=most: of_profile(most)
        for most in (0.5, 0.5 - 1e-13, 0.499)
    },
    "a typed one": lambda: of_profile(0.499, is_target=False),
    **{
        f"estimated: {state} {difference} from {low}": lambda each=(state, difference, low): (
            estimated(*each)
        )
        for state, difference, low in (
            ("settled", 0.1, 0.02), ("settled", 0.1, 0.0199), ("open", 0.1, -0.01),
            ("complete", 0.02, 0.02), ("complete", 0.0199, 0.0199), ("too_early", 0.1, math.nan),
        )
    },
    **{
        f"draws say nothing of {kind}": lambda kind=kind: not_estimated(kind)
        for kind in ("min", "min-gain", "max-hurt")
    },
    "no mean is lower": lambda: reached_by_all("min", 0.0, [9] * 6, [1, 9, 9, 9, 9, 9]),
    "no gain is lower": lambda: reached_by_all("min-gain", -1.0, [1] * 6, [9, 9, 9, 9, 9, 1]),
}  # fmt: skip


def told(found) -> dict[str, object]:
    names = ("passed", "reason", "value", "low", "high", "n", "p", "estimated")
    return {name: getattr(found, name) for name in names}


def test_conditions_are_parsed_or_refused_and_decided_by_the_right_number(approved):
    approved("analysis/conditions", results(PARSED))
    approved("analysis/gate", results(DECIDED, told))
