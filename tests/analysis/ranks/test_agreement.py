"""Kendall's τ-b and rank-biased overlap against referees, hand-made values and their properties."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from rankdash.analysis.ranks.agreement import agreement as agreement_of
from rankdash.analysis.ranks.agreement import pairwise
from rankdash.analysis.ranks.shifts import pair
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.ranking.ranking import Ranking

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


def extrapolated(one: list[str], other: list[str], p: float, depth: int = 2000) -> float:
    """Rank-biased overlap by its definition, (1 − p) Σ p^(d−1) A_d, where agreement beyond a list's
    end is assumed to go on."""
    short, long = sorted((one, other), key=len)
    s, size = len(short), len(long)
    total = 0.0
    last = len(set(short) & set(long[:s])) / s
    agreed = 0.0
    for d in range(1, depth + 1):
        if d <= size:
            common = len(set(short[:d]) & set(long[:d]))
            agreed = (common + max(d - s, 0) * last) / d
        total += (1 - p) * p ** (d - 1) * agreed
    return total


@pytest.mark.parametrize("length", [256, 257])
def test_a_reversed_list_of_any_length_agrees_in_no_pair(length):
    docs = [f"d{place}" for place in range(length)]
    assert agreement(listed(*docs), listed(*docs[::-1]))["tau"].tolist() == [-1.0]


@pytest.mark.parametrize("swapped", [False, True])
def test_ties_of_one_side_alone_are_ties(swapped):
    """Two of three pairs agree, and one is tied on one side: 2 / √(3 · 2)."""
    sides = listed("a", "b", "c"), made({"q": {"a": 2.0, "b": 2.0, "c": 1.0}})
    assert agreement(*sides[:: -1 if swapped else 1])["tau"].tolist() == pytest.approx([2 / 6**0.5])


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
    """Nine lists of four documents; the pairs of the last turned round, one in each further up. So
    many times over, they are counted in portions of 50,000 queries."""
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


def test_overlap_of_equal_and_of_disjoint_lists():
    assert agreement(listed(*"abc"), listed(*"abc"))["rbo"].item() == pytest.approx(1)
    assert agreement(listed(*"abc"), listed(*"xyz"))["rbo"].item() == 0


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        # X = 1, 1, 3: (0.1/0.9)(0.9 + 0.81/2 + 0.729) + 0.729.
        ("abc", "acb", 0.955),
        # X = 0, 2: (0.1/0.9)(0.81) + 0.81.
        ("ab", "ba", 0.9),
        # s = 1, l = 2, X = 1, 1, X_s = 1: (0.1/0.9)(0.9 + 0.81/2 + 0.81/2) + 0.81.
        ("a", "ab", 1.0),
        # s = 1, X = 0, 1: (0.1/0.9)(0.81/2) + (1/2)(0.81).
        ("b", "ab", 0.45),
    ],
)
def test_overlap_worked_out_by_hand(one, other, wanted):
    assert agreement(listed(*one), listed(*other))["rbo"].item() == pytest.approx(wanted)


def test_overlap_weighs_the_top_more():
    top = agreement(listed(*"abcdef"), listed(*"bacdef"))["rbo"].item()
    bottom = agreement(listed(*"abcdef"), listed(*"abcdfe"))["rbo"].item()
    assert top < bottom < 1


def test_trap_19_agreement_is_of_ranks_and_not_of_raw_scores():
    """1 − 6 Σ d² / (n³ − n) is made for ranks; on scores it leaves [−1, 1] and changes with their
    scale."""
    rng = np.random.default_rng(0)
    first = {"q": {doc: float(rng.normal()) for doc in DOCS}}
    second = {"q": {doc: float(rng.normal()) for doc in DOCS}}
    stretched = {"q": {doc: 1e6 * math.exp(value) for doc, value in second["q"].items()}}
    plain, other = (agreement(made(first), made(each)) for each in (second, stretched))
    pd.testing.assert_frame_equal(plain, other)
    assert -1 <= plain["tau"].item() <= 1


def test_documents_without_a_score_are_in_order_and_not_tied():
    deep = Ranking.from_lists([("q", list("abcd"), [2.0, 1.0, math.nan, math.nan])])
    assert agreement(deep, listed(*"abcd"))["tau"].item() == 1
    assert agreement(deep, listed(*"abdc"))["tau"].item() == pytest.approx(4 / 6)


def test_where_nothing_can_be_said_there_is_no_number():
    tied = made({"q": {"a": 1.0, "b": 1.0}})
    assert math.isnan(agreement(tied, listed("a", "b"))["tau"].item())
    assert math.isnan(agreement(listed("a"), listed("a"))["tau"].item())
    assert agreement(made({"q": {"a": 1.0}}), made({"p": {"a": 1.0}})).empty


def test_an_empty_list_overlaps_with_nothing_that_could_be_told():
    empty = Ranking.from_lists([("q", [], [])])
    assert math.isnan(agreement(empty, listed("a"))["rbo"].item())
    assert math.isnan(agreement(listed("a"), empty)["rbo"].item())


def test_the_mean_agreement_is_over_the_queries_that_have_one():
    frame = pd.DataFrame({"query_id": list("abc"), "tau": [0.5, math.nan, 1.0], "rbo": math.nan})
    (row,) = pairwise({("x", "y"): frame}, StatisticsSettings()).to_dict("records")
    assert (row["n"], row["tau"]) == (3, 0.75)
    assert math.isnan(row["rbo"])


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


def test_ties_of_one_query_in_one_ranking_count():
    orders = {"a": {"x": 3.0, "y": 2.0, "z": 1.0}, "b": {"x": 3.0, "y": 2.0, "z": 1.0}}
    tied = {"a": orders["a"], "b": {"x": 1.0, "y": 1.0, "z": 0.0}}
    for one, other in ((orders, tied), (tied, orders)):
        found = agreement(made(one), made(other)).set_index("query_id")["tau"]
        assert found["a"] == 1.0
        assert found["b"] == pytest.approx(kendalltau([3, 2, 1], [1, 1, 0]).statistic)


def test_a_query_without_a_common_document_has_no_tau_beside_lists_of_several_lengths():
    one = {
        "a": dict.fromkeys("x", 1.0),
        **{q: dict(zip("stuvw", (5.0, 4.0, 3.0, 2.0, 1.0), strict=True)) for q in "bc"},
    }
    del one["b"]["w"]
    other = {"a": {"y": 1.0}, "b": {d: -v for d, v in one["b"].items()}}
    other["c"] = {d: -v for d, v in one["c"].items()}
    found = agreement(made(one), made(other))
    assert found["tau"].tolist() == pytest.approx([np.nan, -1.0, -1.0], nan_ok=True)
    assert found["common"].tolist() == [0, 4, 5]
    assert found["rbo"][0] == 0.0
