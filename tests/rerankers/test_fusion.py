"""Fusion against values computed by hand and a plain implementation with dicts."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.fusion import FUSION_SETTINGS, Fusion, fuse

nan = math.nan
A = Ranking.from_lists([("q", ["a", "b", "c"], [9.0, 5.0, 1.0])])
B = Ranking.from_lists([("q", ["c", "d", "a"], [0.4, 0.3, 0.2])])


def of(ranking, query="q"):
    return dict(zip(*ranking.documents_of(query), strict=True))


WIDE, NARROW = math.sqrt(32 / 3), math.sqrt(0.02 / 3)


@pytest.mark.parametrize(
    ("fusion", "sums", "tied"),
    [
        # Equal sums are in the order of the first ranking, then documents of the second only.
        (Fusion(), {"a": 1 / 61 + 1 / 63, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 62}, True),
        (Fusion(k=0, weights=(1, 3)), {"c": 1 / 3 + 3, "a": 1 + 1, "d": 1.5, "b": 0.5}, False),
        (Fusion("minmax", (2, 1)), {"a": 2.0, "b": 1.0, "c": 1.0, "d": 0.5}, True),
        (Fusion("z"), {"a": 8 / WIDE, "c": 0.2 / NARROW, "b": 4 / WIDE, "d": 0.1 / NARROW}, True),
    ],
    ids=str,
)
def test_sums_by_hand(fusion, sums, tied):
    fused = fuse([A, B], fusion)
    assert of(fused) == pytest.approx(sums)
    assert list(of(fused)) == list(sums)
    assert fused.tied.tolist() == [tied]


def test_sums_are_told_apart_by_what_they_differ_in_relative_to_their_size():
    fused = fuse([A, A], Fusion(k=1e7))
    assert (list(of(fused)), fused.tied.tolist()) == (["a", "b", "c"], [False])
    # 0.1 + 0.2 and 0.3 differ by rounding only.
    flat = [Ranking.from_lists([("q", list(docs), [1.0, 0.0])]) for docs in ("bz", "ax", "ay")]
    assert list(of(fuse(flat, Fusion("minmax", (0.3, 0.1, 0.2)))))[:2] == ["b", "a"]


# --- the same by a plain implementation -----------------------------------------------------------


def plain(rankings, method, weights, k):
    """Return query → document → sum, with dicts and loops."""
    result = {}
    for query in rankings[0].query_ids:
        if not all(query in ranking.positions for ranking in rankings):
            continue
        sums = {}
        for ranking, weight in zip(rankings, weights, strict=True):
            docs, scores = ranking.documents_of(query)
            known = [float(score) for score in scores if not math.isnan(score)]
            low, high = (min(known), max(known)) if known else (0.0, 0.0)
            mean = sum(known) / len(known) if known else 0.0
            spread = {
                "minmax": high - low,
                "z": math.sqrt(sum((s - mean) ** 2 for s in known) / max(len(known), 1)),
            }
            for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), start=1):
                if method == "rrf":
                    points = 1 / (k + rank)
                else:
                    told = not math.isnan(score) and high > low
                    points = (score - low) / spread[method] if told else 0.0
                sums[doc] = sums.get(doc, 0.0) + weight * points
        result[query] = sums
    return result


@st.composite
def rankings(draw):
    made = []
    for _ in range(draw(st.integers(2, 4))):
        lists = []
        for query in draw(st.lists(st.sampled_from("pqrs"), min_size=1, max_size=4, unique=True)):
            docs = draw(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=7, unique=True))
            scores = sorted((draw(st.integers(-9, 9)) / 4 for _ in docs), reverse=True)
            unscored = draw(st.integers(0, len(docs)))
            scores[len(docs) - unscored :] = [nan] * unscored
            lists.append((query, docs, scores))
        made.append(Ranking.from_lists(lists))
    return made


@settings(max_examples=50)
@given(
    rankings(),
    st.sampled_from([*FUSION_SETTINGS[0].choices]),
    st.sampled_from([0.0, 1.0, 60.0]),
    st.data(),
)
def test_equals_a_plain_implementation(made, method, k, data):
    weights = tuple(data.draw(st.sampled_from([0.5, 1.0, 3.0])) for _ in made)
    fused = fuse(made, Fusion(method, weights, k))
    expected = plain(made, method, weights, k)
    assert list(fused.query_ids) == list(expected)
    for query, sums in expected.items():
        assert of(fused, query) == pytest.approx(sums)
        # Best first, ties in the order of first occurrence.
        order = sorted(sums, key=lambda doc: -round(sums[doc], 10))
        assert list(of(fused, query)) == order
    settled = fused.with_ties("trec").with_ties("stable")
    np.testing.assert_array_equal(settled.docs, fused.docs)
