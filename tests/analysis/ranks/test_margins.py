"""Gaps between neighbours in score, as shares of the range of a query's scores."""

import math

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.data.ranking import Ranking
from rankdash.features.policy.skipping import by_margin, even, near_ties
from rankdash.features.policy.skipping import margins_of as margins
from tests.results import results

score = st.integers(-50, 50).map(float)


def listed(*queries: list[float]) -> Ranking:
    return Ranking.from_lists(
        (f"q{place}", [f"d{n}" for n in range(len(scores))], scores)
        for place, scores in enumerate(queries)
    )


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


NAN = math.nan
RANKS = [float(-place) for place in range(1, 9)]
NEAR = listed([100.0, 100.0, 0.0], [100.0, 99.5, 0.0], [100.0, 40.0, 0.0], [1.0])
JUST = listed([100.0, 99.0, 0.0], [100.0, 98.9, 0.0])
# Gaps after rank 1: 0, 0.6 and 0.2; after rank 2: 1, 0.4 and 0.8.
GAPS = listed([9.0, 9.0, 0.0], [10.0, 4.0, 0.0], [10.0, 8.0, 0.0], [2.0, 1.0])
PAIRS = pd.DataFrame({"query_id": list("abcdef"), "delta": [1.0, 8.0, 2.0, 4.0, NAN, 16.0]})
MARGIN = pd.Series({"a": 0.1, "b": 0.9, "c": 0.2, "d": 0.2, "e": 0.3, "f": NAN})
IDS = [f"q{place}" for place in range(25)]
MANY = pd.DataFrame({"query_id": IDS, "delta": np.arange(25.0)})
CASES = {
    "a gap is a share of the span": lambda: margins(listed([9.0, 7.0, 6.0, 4.0], [3, 3, 1]), 2),
    # A document without a score does not count, so the range ends before it.
    "too short": lambda: margins(listed([1.0], [2.0, 1.0], [3.0, 2.0, NAN]), 2),
    "without a score": lambda: margins(listed([5.0, 4.0], [NAN, NAN], [3.0, 1.0]), 1),
    "near ties, and exact ones apart": lambda: near_ties(margins(NEAR, 2)),
    "a hundredth is near": lambda: near_ties(margins(JUST, 2)),
    "nothing is near": lambda: near_ties(margins(NEAR, 2).iloc[3:]),
    "what is near is chosen": lambda: near_ties(margins(GAPS, 2), near=0.4),
    "equal margins stay together": lambda: by_margin(PAIRS, MARGIN, groups=2),
    "no groups": lambda: by_margin(PAIRS.iloc[4:], MARGIN),
    "ten groups, the least decided first": lambda: by_margin(
        MANY, pd.Series(np.arange(25.0, 0.0, -1.0), index=IDS)
    ),
    **{
        f"ranks in disguise: {name}": lambda first=first: even(first)
        for name, first in {
            "two lists": margins(listed(RANKS, RANKS), 3)["first"],
            "one of two": margins(listed(RANKS, [9.0, 1.0]), 3)["first"],
            "unknown": pd.Series([NAN]),
            "to rounding": pd.Series([0.25, 0.25 + 1e-13, NAN]),
            "not": pd.Series([0.25, 0.25 + 1e-9]),
        }.items()
    },
}


def test_margins_of_lists_and_changes_by_them(approved):
    approved("analysis/margins", results(CASES))
