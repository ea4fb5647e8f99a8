"""The history compares like with like: one list of queries, every look counted."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.analysis.statistics.history import Made, differing, p_of_any_pair, repeated, trend
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.analysis.statistics.significance import corrected
from rankdash.errors import SpecError
from rankdash.metrics import STATES, Conventions, Evaluation, parse_measure

QUERIES = [f"q{n}" for n in range(20)]
MEASURE = parse_measure("ndcg@10")
FAST = StatisticsSettings(resamples=500)


def made(values: dict[str, float | str]) -> Evaluation:
    """query id → a value, or a state that has none."""
    given = [math.nan if isinstance(each, str) else each for each in values.values()]
    states = [each if isinstance(each, str) else "scored" for each in values.values()]
    codes = np.array([[STATES.index(state)] for state in states], dtype=np.int8)
    return Evaluation(
        query_ids=np.array(list(values), dtype=object),
        values=np.array(given, dtype=np.float64)[:, None],
        states=np.array(states, dtype=object),
        cell_states=codes,
        measures=(MEASURE,),
        conventions=Conventions(),
        counts={},
    )


def even(value: float, lacking: tuple[str, ...] = (), state: str = "failed") -> Evaluation:
    return made(
        {query: state if query in lacking else value + n / 100 for n, query in enumerate(QUERIES)}
    )


def rows(found) -> dict[str, pd.Series]:
    return {row["system"]: row for _, row in found.frame.iterrows()}


def test_the_line_rests_on_the_queries_that_all_of_its_systems_answered():
    first = even(0.1)
    # It failed exactly where the others find most.
    failing = even(0.1, ("q18", "q19"))
    found = trend({"first": first, "failing": failing}, "first", "ndcg@10", FAST)
    assert (found.queries, found.fullest, found.apart, found.comparisons) == (18, 20, 0, 1)
    said = rows(found)
    assert said["failing"]["mean"] == pytest.approx(said["first"]["mean"])
    assert said["failing"]["delta"] == 0
    assert (said["first"]["answered"], said["failing"]["answered"]) == (20, 18)


def test_systems_are_joined_by_query_id_and_not_by_place():
    order = QUERIES[::-1]
    turned = made({query: QUERIES.index(query) / 100 for query in order})
    straight = made({query: n / 100 for n, query in enumerate(QUERIES)})
    found = trend({"a": straight, "b": turned}, "a", "ndcg@10", FAST)
    assert rows(found)["b"]["same"] == 20
    assert rows(found)["b"]["verdict"] == "identical"


def test_a_quick_look_stands_apart_and_shrinks_nothing_until_it_is_asked_for():
    look = even(0.5, tuple(QUERIES[5:]), "skipped")
    evaluations = {"first": even(0.1), "look": look, "whole": even(0.2)}
    found = trend(evaluations, "first", "ndcg@10", FAST)
    said = rows(found)
    assert (found.queries, found.apart, found.comparisons) == (20, 1, 1)
    assert not said["look"]["on_line"]
    assert said["look"]["mean"] == pytest.approx(0.52)
    assert said["look"]["verdict"] == "apart"
    assert math.isnan(said["look"]["delta"])
    whole = trend(evaluations, "first", "ndcg@10", FAST, every=True)
    assert (whole.queries, whole.apart, whole.comparisons) == (5, 0, 2)
    assert rows(whole)["first"]["mean"] == pytest.approx(0.12)


@pytest.mark.parametrize(("lacking", "on_line"), [(2, True), (3, False)])
def test_nine_tenths_of_the_queries_are_enough_for_the_line(lacking, on_line):
    """18 of 20, or 17."""
    fewer = even(0.2, tuple(QUERIES[:lacking]))
    found = trend({"first": even(0.1), "fewer": fewer}, "first", "ndcg@10", FAST)
    assert rows(found)["fewer"]["on_line"] == on_line
    assert found.queries == (20 - lacking if on_line else 20)


def test_a_run_whose_every_query_failed_is_never_on_the_line():
    evaluations = {"first": even(0.1), "dead": even(0.0, tuple(QUERIES))}
    for every in (False, True):
        found = trend(evaluations, "first", "ndcg@10", FAST, every=every)
        assert (found.queries, found.apart, found.comparisons) == (20, 1, 0)
        assert math.isnan(rows(found)["dead"]["mean"])


def test_runs_without_a_query_in_common_have_no_line():
    halves = {"a": even(0.3, tuple(QUERIES[:10])), "b": even(0.3, tuple(QUERIES[10:]))}
    found = trend(halves, "a", "ndcg@10", FAST)
    assert (found.queries, found.fullest) == (0, 10)
    assert rows(found)["b"]["verdict"] in ("no_values", "nothing_common")
    assert found.frame["mean"].isna().all()


def test_the_baseline_is_on_the_line_however_few_queries_it_has():
    look = even(0.5, tuple(QUERIES[6:]), "skipped")
    found = trend({"look": look, "whole": even(0.2)}, "look", "ndcg@10", FAST)
    assert (found.queries, found.apart) == (6, 0)


def test_every_run_that_is_compared_counts_as_a_look():
    rng = np.random.default_rng(3)
    noise = {
        f"r{n}": made({query: float(rng.normal(0.5, 0.1)) for query in QUERIES}) for n in range(9)
    }
    found = trend(noise, "r0", "ndcg@10", FAST)
    others = found.frame[found.frame["system"] != "r0"]
    assert found.comparisons == 8
    assert others["p_corrected"].tolist() == pytest.approx(corrected(others["p"].tolist(), "holm"))
    without = trend(noise, "r0", "ndcg@10", StatisticsSettings(resamples=500, correction="none"))
    assert without.frame["p_corrected"].equals(without.frame["p"])


def test_an_unknown_baseline_is_refused():
    with pytest.raises(SpecError, match="not among the systems"):
        trend({"a": even(0.1)}, "b", "ndcg@10", FAST)


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
    found = trend(evaluations, "r0", "ndcg@10", StatisticsSettings(resamples=100))
    line = found.frame[found.frame["on_line"]]
    # The same value for a query everywhere: on the same queries all means are the same.
    assert line["mean"].dropna().round(12).nunique() <= 1
    assert (line["answered"] >= found.queries).all()


def test_runs_made_alike_are_one_series_whatever_the_order_of_their_settings():
    runs = [
        Made("a", "bm25", {"k1": 1.5, "b": 0.75}, None),
        Made("b", "bm25", {"k1": 1.2, "b": 0.75}, None),
        Made("c", "bm25", {"b": 0.75, "k1": 1.5}, None),
        Made("d", "bm25", {"k1": 1.5, "b": 0.75}, 10),
        Made("e", "bi-encoder", {"k1": 1.5, "b": 0.75}, None),
        Made("f", "bm25", {"k1": 1.5, "b": 0.75}, None),
    ]
    assert repeated(runs) == [("a", "c", "f")]


def test_a_pair_picked_among_many_pays_for_all_of_them():
    assert p_of_any_pair(0.01, 2) == 0.01
    assert p_of_any_pair(0.01, 5) == pytest.approx(0.1)
    assert p_of_any_pair(0.2, 12) == 1.0
    assert math.isnan(p_of_any_pair(math.nan, 5))


def test_only_what_differs_is_told_and_what_one_side_lacks():
    assert differing({"a": 1, "b": 2, "c": None}, {"b": 3, "a": 1, "d": "x"}) == [
        ("b", 2, 3),
        ("d", None, "x"),
    ]


def test_two_runs_made_alike_are_a_series():
    runs = [Made(name, "bm25", {"k1": k1}, None) for name, k1 in zip("abc", (1, 2, 1), strict=True)]
    assert repeated(runs) == [("a", "c")]
    assert repeated(runs[:2]) == []


def test_where_no_run_has_a_value_the_baseline_stands_alone():
    dead = {name: even(0.0, tuple(QUERIES)) for name in ("a", "b")}
    for every in (False, True):
        found = trend(dead, "a", "ndcg@10", FAST, every=every)
        assert (found.queries, found.apart, found.comparisons) == (0, 1, 0)
        assert rows(found)["b"]["verdict"] == "apart"
