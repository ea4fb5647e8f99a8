"""Gaps between neighbours in score, as shares of what a query's scores span."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.analysis.ranks.margins import by_margin, even, margins, near_ties
from rankdash.ranking.ranking import Ranking

score = st.integers(-50, 50).map(float)


def listed(*queries: list[float]) -> Ranking:
    return Ranking.from_lists(
        (f"q{place}", [f"d{n}" for n in range(len(scores))], scores)
        for place, scores in enumerate(queries)
    )


def test_a_gap_is_a_share_of_the_span():
    table = margins(listed([9.0, 7.0, 6.0, 4.0], [3.0, 3.0, 1.0]), 2)
    assert table["first"].tolist() == pytest.approx([2 / 5, 0])
    assert table["edge"].tolist() == pytest.approx([1 / 5, 1])


@given(
    st.lists(st.lists(score, min_size=1, max_size=8), min_size=1, max_size=5),
    st.integers(-6, 6),
    st.integers(-100, 100),
    st.integers(1, 6),
)
def test_trap_21_scores_of_models_meet_only_where_scale_and_shift_are_gone(lists, power, shift, k):
    lists = [sorted(each, reverse=True) for each in lists]
    other = [[2.0**power * value + shift for value in each] for each in lists]
    plain, moved = margins(listed(*lists), k), margins(listed(*other), k)
    for name in ("first", "edge"):
        np.testing.assert_allclose(plain[name], moved[name], atol=1e-9)
        known = plain[name].dropna()
        assert known.between(0, 1).all()


def test_a_list_that_is_too_short_has_no_margin():
    table = margins(listed([1.0], [2.0, 1.0], [3.0, 2.0, math.nan]), 2)
    # A document without a score is not there, so the span ends before it.
    np.testing.assert_array_equal(table["first"], [np.nan, 1.0, 1.0])
    assert table["edge"].isna().all()


def test_near_ties_are_counted_and_exact_ones_apart():
    table = margins(listed([100.0, 100.0, 0.0], [100.0, 99.5, 0.0], [100.0, 40.0, 0.0], [1.0]), 2)
    row = near_ties(table).set_index("margin").loc["first"]
    assert (row["n"], row["median"]) == (3, pytest.approx(0.005))
    assert (row["tied"], row["near"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    just = margins(listed([100.0, 99.0, 0.0], [100.0, 98.9, 0.0]), 2)
    assert near_ties(just).set_index("margin").loc["first", "near"] == 0.5
    nothing = near_ties(table.iloc[3:])
    assert nothing["near"].isna().all()
    assert nothing["n"].tolist() == [0, 0]


def test_each_gap_is_counted_for_itself_and_what_is_near_can_be_chosen():
    """Gaps behind the first: 0, 0.6 and 0.2; behind the second: 1, 0.4 and 0.8."""
    table = margins(listed([9.0, 9.0, 0.0], [10.0, 4.0, 0.0], [10.0, 8.0, 0.0], [2.0, 1.0]), 2)
    found = near_ties(table, near=0.4)
    assert found["margin"].tolist() == ["first", "edge"]
    assert found["n"].tolist() == [4, 3]
    assert found["median"].tolist() == pytest.approx([0.4, 0.8])
    assert found["tied"].tolist() == pytest.approx([1 / 4, 0])
    assert found["near"].tolist() == pytest.approx([2 / 4, 1 / 3])


def test_a_list_without_a_score_has_no_margin():
    table = margins(listed([5.0, 4.0], [math.nan, math.nan], [3.0, 1.0]), 1)
    np.testing.assert_array_equal(table["first"], [1.0, np.nan, 1.0])
    np.testing.assert_array_equal(table["edge"], [1.0, np.nan, 1.0])


def test_changes_are_grouped_by_margin_and_equal_margins_stay_together():
    pairs = pd.DataFrame(
        {"query_id": list("abcdef"), "delta": [1.0, 8.0, 2.0, 4.0, math.nan, 16.0]}
    )
    margin = pd.Series({"a": 0.1, "b": 0.9, "c": 0.2, "d": 0.2, "e": 0.3, "f": math.nan})
    found = by_margin(pairs, margin, groups=2)
    assert found["n"].tolist() == [3, 1]
    assert found["margin"].tolist() == pytest.approx([0.5 / 3, 0.9])
    assert found["delta"].tolist() == pytest.approx([7 / 3, 8])
    assert by_margin(pairs.iloc[4:], margin).empty


def test_there_are_ten_groups_of_about_the_same_size_the_least_decided_first():
    ids = [f"q{place}" for place in range(25)]
    pairs = pd.DataFrame({"query_id": ids, "delta": np.arange(25.0)})
    found = by_margin(pairs, pd.Series(np.arange(25.0, 0.0, -1.0), index=ids))
    assert found["n"].tolist() == [3, 2, 3, 2, 3, 2, 3, 2, 3, 2]
    assert found["margin"].is_monotonic_increasing
    assert found["delta"].iloc[[0, -1]].tolist() == [23.0, 0.5]


def test_ranks_in_place_of_scores_are_recognised():
    ranks = [float(-place) for place in range(1, 9)]
    assert even(margins(listed(ranks, ranks), 3)["first"])
    assert not even(margins(listed(ranks, [9.0, 1.0]), 3)["first"])
    assert even(pd.Series([math.nan]))
    assert even(pd.Series([0.25, 0.25 + 1e-13, math.nan]))
    assert not even(pd.Series([0.25, 0.25 + 1e-9]))
