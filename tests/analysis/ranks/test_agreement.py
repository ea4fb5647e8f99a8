"""Kendall's τ-b and rank-biased overlap against referees, hand-made values and their properties."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.ranking import Ranking
from rankdash.features.rank_shifts.agreement import agreement as agreement_of
from rankdash.features.rank_shifts.agreement import pairwise
from rankdash.features.rank_shifts.shifts import pair
from tests.results import results

DOCS = [f"d{place}" for place in range(12)]
Scored = dict[str, dict[str, float]]

scored = st.dictionaries(
    st.sampled_from("abc"),
    st.dictionaries(st.sampled_from(DOCS), st.integers(0, 6).map(float), min_size=1),
    min_size=1,
)


def made(scores: Scored) -> Ranking:
    rows = [(query, doc, value) for query, own in scores.items() for doc, value in own.items()]
    return Ranking.from_columns(*map(list, zip(*rows, strict=True)))


def listed(*docs: str) -> Ranking:
    return Ranking.from_lists([("q", docs, np.arange(len(docs), 0.0, -1.0))])


def agreement(before: Ranking, after: Ranking, **settings: float) -> pd.DataFrame:
    return agreement_of(pair(before, after), **settings)


def extrapolated(one: list[str], other: list[str], p: float) -> float:
    """Return rank-biased overlap by its definition, (1 − p) Σ p^(d−1) A_d, with the agreement
    extrapolated beyond the end of a list."""
    short, long = sorted((one, other), key=len)
    s, size = len(short), len(long)
    last = len(set(short) & set(long[:s])) / s
    agreed = [
        (len(set(short[:d]) & set(long[:d])) + max(d - s, 0) * last) / d for d in range(1, size + 1)
    ]
    return (1 - p) * sum(p**d * each for d, each in enumerate(agreed)) + p**size * agreed[-1]


@settings(max_examples=40)
@given(scored, scored)
def test_tau_is_scipys_for_every_query_with_ties_and_other_lengths(one, other):
    found = agreement(made(one), made(other)).set_index("query_id")
    assert set(found.index) == set(one) & set(other)
    for query in found.index:
        common = [doc for doc in one[query] if doc in other[query]]
        assert found.loc[query, "common"] == len(common)
        wanted = math.nan
        if len(common) > 1:
            sides = ([own[query][doc] for doc in common] for own in (one, other))
            wanted = kendalltau(*sides).statistic
        assert found.loc[query, "tau"] == pytest.approx(wanted, abs=1e-12, nan_ok=True)


def test_tau_is_scipys_on_long_lists_and_on_mixed_lengths():
    rng = np.random.default_rng(3)
    sizes = {"short": 2, "some": 90, "more": 100, "long": 700}
    sides = [
        {
            query: {f"d{n}": float(rng.integers(0, size)) for n in range(size)}
            for query, size in sizes.items()
        }
        for _ in range(2)
    ]
    found = agreement(*map(made, sides)).set_index("query_id")
    for query, size in sizes.items():
        values = ([own[query][f"d{n}"] for n in range(size)] for own in sides)
        wanted = kendalltau(*values).statistic
        assert found.loc[query, "tau"] == pytest.approx(wanted, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("times", [1, 5_600])
def test_queries_that_are_counted_in_several_portions_have_the_same_tau(times):
    """Nine lists of four documents: the last list is reversed, and each list above has one swapped
    pair fewer. Repeated 5,600 times, they are counted in portions of 50,000 queries."""
    orders = [place if place < 5 else 8 - place for place in range(9)]
    swaps = ["abcd", "bacd", "bcad", "bcda", "dcba"]
    queries = np.repeat([f"q{place}" for place in range(9 * times)], 4)
    scores = np.tile([4.0, 3.0, 2.0, 1.0], 9 * times)
    before, after = (
        Ranking.from_columns(queries, np.array(list("".join(lists) * times)), scores)
        for lists in (["abcd"] * 9, [swaps[order] for order in orders])
    )
    tau = [1.0, 2 / 3, 1 / 3, 0.0, -1.0, 0.0, 1 / 3, 2 / 3, 1.0]
    assert agreement(before, after)["tau"].tolist() == pytest.approx(tau * times)


@settings(max_examples=40)
@given(scored, scored, st.sampled_from([0.5, 0.9, 0.98]))
def test_overlap_is_that_of_its_definition_and_symmetric(one, other, p):
    before, after = made(one), made(other)
    found = agreement(before, after, p=p).set_index("query_id")["rbo"]
    back = agreement(after, before, p=p).set_index("query_id")["rbo"]
    for query in found.index:
        sides = (each.documents_of(query)[0] for each in (before, after))
        assert found[query] == pytest.approx(extrapolated(*sides, p), abs=1e-9)
        assert back[query] == pytest.approx(found[query], abs=1e-12)
        assert 0 <= found[query] <= 1


def test_pairs_of_systems_have_means_with_intervals():
    rng = np.random.default_rng(5)
    systems = {
        name: made({f"q{n}": {doc: float(rng.normal()) for doc in DOCS} for n in range(30)})
        for name in "xyz"
    }
    frames = {
        (one, other): agreement(systems[one], systems[other])
        for one, other in itertools.combinations(systems, 2)
    }
    frames["x", "again"] = agreement(systems["x"], systems["x"])
    table = pairwise(frames, StatisticsSettings(resamples=500)).set_index(["one", "other"])
    for both, frame in frames.items():
        row = table.loc[both]
        assert row["n"] == 30
        for name in ("tau", "rbo"):
            assert row[name] == pytest.approx(frame[name].mean())
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    assert table.loc["x", "again"]["tau"] == table.loc["x", "again"]["tau_low"] == 1
    empty = pairwise({("x", "none"): frames["x", "y"].iloc[:0]}, StatisticsSettings())
    assert empty["tau"].isna().all()


NAN = math.nan
EMPTY, LONG = Ranking.from_lists([("q", [], [])]), [f"d{place}" for place in range(257)]
ORDER = {"x": 3.0, "y": 2.0, "z": 1.0}
FIVE = dict(zip("stuvw", (5.0, 4.0, 3.0, 2.0, 1.0), strict=True))
FOUR = {doc: score for doc, score in FIVE.items() if doc != "w"}
DEEP = Ranking.from_lists([("q", list("abcd"), [2.0, 1.0, NAN, NAN])])
MEANS = pd.DataFrame({"query_id": list("abc"), "tau": [0.5, NAN, 1.0], "rbo": NAN})
PAIRS = {
    "256 turned round": lambda: (listed(*LONG[:256]), listed(*LONG[255::-1])),
    "257 turned round": lambda: (listed(*LONG), listed(*LONG[::-1])),
    # Two of three pairs agree, and one is tied on one side: 2 / √(3 · 2).
    "tied on one side": lambda: (listed(*"abc"), made({"q": {"a": 2.0, "b": 2.0, "c": 1.0}})),
    "in one query of one side": lambda: (
        made({"a": ORDER, "b": ORDER}), made({"a": ORDER, "b": {"x": 1.0, "y": 1.0, "z": 0.0}})
    ),
    "equal": lambda: (listed(*"abc"), listed(*"abc")),
    "nothing in common": lambda: (listed(*"abc"), listed(*"xyz")),
    # Overlap by hand. X = 1, 1, 3: (0.1/0.9)(0.9 + 0.81/2 + 0.729) + 0.729.
    "0.955": lambda: (listed(*"abc"), listed(*"acb")),
    # X = 0, 2: (0.1/0.9)(0.81) + 0.81.
    "0.9": lambda: (listed(*"ab"), listed(*"ba")),
    # s = 1, l = 2, X = 1, 1, X_s = 1: (0.1/0.9)(0.9 + 0.81/2 + 0.81/2) + 0.81.
    "1": lambda: (listed(*"a"), listed(*"ab")),
    # s = 1, X = 0, 1: (0.1/0.9)(0.81/2) + (1/2)(0.81).
    "0.45": lambda: (listed(*"b"), listed(*"ab")),
    "swapped at the top": lambda: (listed(*"abcdef"), listed(*"bacdef")),
    "swapped at the bottom": lambda: (listed(*"abcdef"), listed(*"abcdfe")),
    "without a score they are in order": lambda: (DEEP, listed(*"abcd")),
    "and not tied": lambda: (DEEP, listed(*"abdc")),
    "all tied": lambda: (made({"q": {"a": 1.0, "b": 1.0}}), listed(*"ab")),
    "one document": lambda: (listed("a"), listed("a")),
    "other queries": lambda: (made({"q": {"a": 1.0}}), made({"p": {"a": 1.0}})),
    "an empty list": lambda: (EMPTY, listed("a")),
    "no document in common beside several lengths": lambda: (
        made({"a": {"x": 1.0}, "b": FOUR, "c": FIVE}),
        made({"a": {"y": 1.0}} | {
            query: {doc: -score for doc, score in own.items()}
            for query, own in (("b", FOUR), ("c", FIVE))
        }),
    ),
}  # fmt: skip


def told(sides: tuple[Ranking, Ranking]) -> pd.DataFrame:
    there, back = agreement(*sides), agreement(*sides[::-1])
    pd.testing.assert_frame_equal(there[["tau", "rbo"]], back[["tau", "rbo"]])
    return there


def test_agreement_by_hand_and_where_there_is_none(approved):
    means = pairwise({("x", "y"): MEANS}, StatisticsSettings(test="t"))
    cases = results(PAIRS, told)
    approved("analysis/agreement", f"{cases}\n{results({'over those that have one': means})}")
