"""The history compares the same queries, and counts every look."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.metrics import Evaluation
from rankdash.core.statistics.inference import corrected
from rankdash.core.study.history import differing, p_of_any_pair, trend_of_points
from tests.lists import evaluation
from tests.results import results

QUERIES = [f"q{n}" for n in range(20)]
FAST = StatisticsSettings(resamples=500)


def made(values: dict[str, float | str]) -> Evaluation:
    return evaluation({query: (value,) for query, value in values.items()}, ["ndcg@10"])


def even(value: float, lacking: tuple[str, ...] = (), state: str = "failed") -> Evaluation:
    return made(
        {query: state if query in lacking else value + n / 100 for n, query in enumerate(QUERIES)}
    )


def told(found) -> tuple[object, ...]:
    names = ("queries", "fullest", "apart", "comparisons")
    shown = found.frame[["system", "answered", "on_line", "mean", "delta", "same", "verdict"]]
    return {name: getattr(found, name) for name in names}, shown


LOOK = even(0.5, tuple(QUERIES[5:]), "skipped")
DEAD = even(0.0, tuple(QUERIES))
STRAIGHT = {query: n / 100 for n, query in enumerate(QUERIES)}
HALVES = {"a": even(0.3, tuple(QUERIES[:10])), "b": even(0.3, tuple(QUERIES[10:]))}
T = StatisticsSettings(test="t")
TRENDS = {
    # It failed exactly on the queries with the highest values of the others.
    "one that failed": ({"a": even(0.1), "failing": even(0.1, ("q18", "q19"))}, False),
    "joined by id": ({"a": made({q: STRAIGHT[q] for q in QUERIES[::-1]}), "b": made(STRAIGHT)},
                     False),
    **{f"a quick look, every: {every}": ({"a": even(0.1), "look": LOOK, "whole": even(0.2)}, every)
       for every in (False, True)},
    # 18 of 20 are nine tenths, 17 are not.
    **{f"{lacking} of 20 lack": ({"a": even(0.1), "b": even(0.2, tuple(QUERIES[:lacking]))}, False)
       for lacking in (2, 3)},
    **{f"a dead run, every: {every}": ({"a": even(0.1), "dead": DEAD}, every)
       for every in (False, True)},
    **{f"only dead runs, every: {every}": ({"a": DEAD, "b": DEAD}, every)
       for every in (False, True)},
    "no query in common": (HALVES, False),
    "the baseline is on the line": (
        {"a": even(0.5, tuple(QUERIES[6:]), "skipped"), "whole": even(0.2)}, False
    ),
}  # fmt: skip


def test_the_line_rests_on_the_queries_that_all_of_its_systems_answered(approved):
    cases = {
        name: lambda case=case: told(trend_of_points(case[0], "a", "ndcg@10", T, every=case[1]))
        for name, case in TRENDS.items()
    }
    cases |= {
        "an unknown baseline": lambda: trend_of_points({"a": even(0.1)}, "b", "ndcg@10", T),
        "what differs": differing({"a": 1, "b": 2, "c": None}, {"b": 3, "a": 1, "d": "x"}),
    }
    # The p of a pair selected from many is corrected for all of them.
    for p, systems in ((0.01, 2), (0.01, 5), (0.2, 12), (math.nan, 5)):
        cases[f"p {p} of {systems} systems"] = p_of_any_pair(p, systems)
    approved("analysis/history", results(cases))


def test_every_run_that_is_compared_counts_as_a_look():
    rng = np.random.default_rng(3)
    noise = {
        f"r{n}": made({query: float(rng.normal(0.5, 0.1)) for query in QUERIES}) for n in range(9)
    }
    found = trend_of_points(noise, "r0", "ndcg@10", FAST)
    others = found.frame[found.frame["system"] != "r0"]
    assert found.comparisons == 8
    assert others["p_corrected"].tolist() == pytest.approx(corrected(others["p"].tolist(), "holm"))
    without = trend_of_points(
        noise, "r0", "ndcg@10", StatisticsSettings(resamples=500, correction="none")
    )
    assert without.frame["p_corrected"].equals(without.frame["p"])


@settings(max_examples=30)
@given(st.lists(st.lists(st.booleans(), min_size=12, max_size=12), min_size=2, max_size=6))
def test_no_mean_on_the_line_ever_rests_on_another_list_of_queries(failures):
    names = [f"q{n}" for n in range(12)]
    evaluations = {
        f"r{n}": made(
            {
                query: "failed" if bad else place / 12
                for place, (query, bad) in enumerate(zip(names, row, strict=True))
            }
        )
        for n, row in enumerate(failures)
    }
    found = trend_of_points(evaluations, "r0", "ndcg@10", StatisticsSettings(resamples=100))
    line = found.frame[found.frame["on_line"]]
    # Each query has the same value everywhere: on the same queries all means are the same.
    assert line["mean"].dropna().round(12).nunique() <= 1
    assert (line["answered"] >= found.queries).all()


def test_a_stopped_run_is_compared_over_its_own_queries_and_shortens_no_other():
    rng, few = np.random.default_rng(4), tuple(QUERIES[12:])
    values = {name: dict(zip(QUERIES, rng.uniform(0, 1, 20), strict=True)) for name in "abc"}
    whole = {name: made(each) for name, each in values.items()}
    stopped = replace(made(values["c"] | dict.fromkeys(few, "skipped")), stopped=True)
    usual = trend_of_points({"a": whole["a"], "b": whole["b"]}, "a", "ndcg@10", T).frame
    found = trend_of_points(whole | {"c": stopped}, "a", "ndcg@10", T)
    assert (found.queries, found.apart, found.stopped, found.comparisons) == (20, 0, 1, 2)
    assert found.tested == 1
    assert found.frame["on_line"].tolist() == [True, True, False]
    assert found.frame["delta_low"][1] == usual["delta_low"][1]
    row = found.frame.iloc[2]
    changes = [values["c"][query] - values["a"][query] for query in QUERIES[:12]]
    assert row["delta"] == pytest.approx(np.mean(changes))
    # Below 20 queries, there is no anytime-valid interval.
    assert np.isnan([row["delta_low"], row["p"]]).all()
    assert row["verdict"] == "unproven"
