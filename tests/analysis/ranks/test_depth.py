"""A deep run re-cut: each depth is what a run of that depth would have been."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.analysis.ranks.depth import Cuts, depth_curve, depths_for, latency_at
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.errors import DataError
from rankdash.metrics import Conventions, evaluate, judge
from rankdash.ranking.ranking import Ranking


def lists(rng: np.random.Generator, queries: int, longest: int) -> dict[str, list[str]]:
    return {
        f"q{q}": [f"d{d}" for d in rng.permutation(30)[: rng.integers(1, longest + 1)]]
        for q in range(queries)
    }


def ranking(found: dict[str, list[str]], scores: dict[tuple[str, str], float]) -> Ranking:
    return Ranking.from_lists(
        (query, docs, [scores.get((query, doc), np.nan) for doc in docs])
        for query, docs in found.items()
    )


def in_order(found: dict[str, list[str]]) -> Ranking:
    scores = {(q, d): -float(i) for q, docs in found.items() for i, d in enumerate(docs)}
    return ranking(found, scores)


def reranked(
    found: dict[str, list[str]], scores: dict[tuple[str, str], float], depth: int
) -> dict[str, list[str]]:
    """What a run of this depth gives, written the long way."""
    return {
        query: sorted(docs[:depth], key=lambda doc: -scores[query, doc]) + docs[depth:]
        for query, docs in found.items()
    }


@given(st.integers(0, 10**6), st.integers(1, 15))
def test_every_depth_is_what_a_run_of_that_depth_gives(seed: int, depth: int):
    rng = np.random.default_rng(seed)
    found = lists(rng, 4, 12)
    scores = {
        (q, d): float(s)
        for q, docs in found.items()
        for d, s in zip(docs, rng.integers(0, 5, len(docs)), strict=True)
    }
    first = ranking(
        found, {(q, d): -float(i) for q, docs in found.items() for i, d in enumerate(docs)}
    )
    deep = ranking(dict(reversed(reranked(found, scores, 99).items())), scores)
    cut = Cuts(deep, first).at(depth)
    for query, docs in reranked(found, scores, depth).items():
        assert cut.documents_of(query)[0] == docs


def test_what_is_below_the_cut_has_no_score_and_so_no_tie():
    cuts = Cuts(
        Ranking.from_lists([("q", ["b", "c", "a"], [1.0, 1.0, 0.5])]),
        Ranking.from_lists([("q", ["a", "b", "c"], [3.0, 2.0, 1.0])]),
    )
    docs, scores = cuts.at(1).documents_of("q")
    assert docs == ["a", "b", "c"]
    np.testing.assert_array_equal(scores, [0.5, np.nan, np.nan])
    assert [cuts.at(depth).tied.tolist() for depth in (1, 2, 3)] == [[False], [False], [True]]


def test_a_run_over_other_documents_holds_no_shallower_runs():
    first = Ranking.from_lists([("q", ["a", "b"], [2.0, 1.0])])
    for docs in (["a", "c"], ["a"]):
        other = Ranking.from_lists([("q", docs, [1.0] * len(docs))])
        with pytest.raises(DataError, match="shallower"):
            Cuts(other, first)


def test_a_run_over_a_query_that_has_no_candidates_holds_no_shallower_runs():
    first = Ranking.from_lists([("q", ["a", "b"], [2.0, 1.0])])
    more = Ranking.from_lists([("q", ["b", "a"], [2.0, 1.0]), ("r", ["a", "b"], [2.0, 1.0])])
    for deep, candidates in ((more, first), (first, Ranking.from_lists([]))):
        with pytest.raises(DataError, match="shallower"):
            Cuts(deep, candidates)
    # A query that was left out of the run is in no shallower one either.
    assert Cuts(first, more).at(1).documents_of("r")[0] == []


def test_the_deepest_is_the_longest_list():
    lists = [("q", ["a"], [1.0]), ("r", ["a", "b", "c"], [3.0, 2.0, 1.0])]
    assert Cuts(Ranking.from_lists(lists), Ranking.from_lists(lists[::-1])).deepest == 3
    assert Cuts(Ranking.from_lists([]), Ranking.from_lists(lists)).deepest == 0


def test_a_curve_of_no_query_is_refused():
    first = Ranking.from_lists([("q", ["a", "b"], [2.0, 1.0])])
    qrels = pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "label": [1.0]})
    with pytest.raises(DataError, match="No query has a value at every depth"):
        depth_curve(
            Cuts(first, first), first, qrels, "mrr", Conventions(), (1, 2), {"q": "failed"},
            full_gain_proven=False,
        )  # fmt: skip


@pytest.fixture
def curve_parts():
    """A reranker that lifts the relevant document when it is among the first 20 and errs below."""
    rng = np.random.default_rng(3)
    found, scores, labels = {}, {}, []
    for q in range(80):
        docs = [f"d{d}" for d in rng.permutation(60)[:50]]
        found[f"q{q}"] = docs
        good = int(rng.integers(2, 20))
        labels.append((f"q{q}", docs[good], 1.0))
        for place, doc in enumerate(docs):
            scores[f"q{q}", doc] = 2.0 * (place == good) + rng.normal(0, 0.4) + (place > 25) * 0.8
    first = ranking(
        found, {(q, d): -float(i) for q, docs in found.items() for i, d in enumerate(docs)}
    )
    deep = ranking(reranked(found, scores, 50), scores)
    return Cuts(deep, first), first, pd.DataFrame(labels, columns=["query_id", "doc_id", "label"])


def test_the_curve_has_the_metric_of_each_depth_and_marks_what_is_enough(curve_parts):
    cuts, first, qrels = curve_parts
    depths = (5, 10, 20, 30, 50)
    curve = depth_curve(cuts, first, qrels, "ndcg@10", Conventions(), depths, full_gain_proven=True)
    for row in curve.table.itertuples():
        of = first if row.depth == 0 else cuts.at(row.depth)
        assert row.mean == pytest.approx(
            evaluate(judge(of, qrels), ["ndcg@10"]).mean("ndcg@10"), rel=1e-12
        )
    assert curve.best == 20
    assert curve.enough <= curve.best
    assert curve.most is not None and curve.most <= curve.best
    row = curve.table.set_index("depth").loc
    assert not row[curve.enough]["behind_proven"] and row[5]["behind_proven"]
    assert row[20]["behind"] == 0


def test_a_depth_that_chance_may_have_put_behind_is_enough():
    """Five queries profit from more depth: their interval is above 0, and their p is 0.06."""
    found = lists(np.random.default_rng(4), 60, 30)
    found = {query: [f"d{d}" for d in range(30)] for query in found}
    good = {query: f"d{7 if place < 5 else place % 4 + 1}" for place, query in enumerate(found)}
    qrels = pd.DataFrame([(q, doc, 1.0) for q, doc in good.items()])
    qrels.columns = ["query_id", "doc_id", "label"]
    scores = {(q, d): -float(i) for q, docs in found.items() for i, d in enumerate(docs)}
    lifted = {**scores, **{(q, doc): 5.0 for q, doc in good.items() if q != "q30"}}
    deep = ranking(reranked(found, lifted, 30), lifted)
    cuts = Cuts(deep, ranking(found, scores))
    curve = depth_curve(
        cuts, in_order(found), qrels, "mrr", Conventions(), (5, 10, 30), full_gain_proven=True
    )
    row = curve.table.set_index("depth").loc[5]
    assert row["behind"] > 0
    assert row["behind_low"] > 0 and not row["behind_proven"]
    assert curve.enough == 5


def test_where_nothing_is_gained_not_reranking_is_enough():
    found = lists(np.random.default_rng(0), 40, 30)
    first = in_order(found)
    qrels = pd.DataFrame([(q, docs[0], 1.0) for q, docs in found.items()])
    qrels.columns = ["query_id", "doc_id", "label"]
    deep = in_order({q: docs[::-1] for q, docs in found.items()})
    curve = depth_curve(
        Cuts(deep, first), first, qrels, "ndcg@10", Conventions(), (5, 30), full_gain_proven=False
    )
    assert (curve.best, curve.most, curve.enough) == (0, None, 0)


def _lifting(count: int, deeper: int = 0, queries: int = 40) -> tuple[Cuts, Ranking, pd.DataFrame]:
    """The documents of `count` of them rise to the top from the second place, and those
    of `deeper` more from the eighth; the others stay second."""
    found = {f"q{place}": [f"d{d}" for d in range(20)] for place in range(queries)}
    deep_ones = range(count, count + deeper)
    good = {f"q{place}": f"d{7 if place in deep_ones else 1}" for place in range(queries)}
    qrels = pd.DataFrame([(q, doc, 1.0) for q, doc in good.items()])
    qrels.columns = ["query_id", "doc_id", "label"]
    scores = {(q, d): -float(i) for q, docs in found.items() for i, d in enumerate(docs)}
    lifted = {(f"q{place}", good[f"q{place}"]): 5.0 for place in range(count + deeper)}
    deep = ranking(reranked(found, scores | lifted, 20), scores | lifted)
    return Cuts(deep, ranking(found, scores)), ranking(found, scores), qrels


def _enough(parts: tuple[Cuts, Ranking, pd.DataFrame], full: bool, **rules: object) -> int:
    cuts, first, qrels = parts
    curve = depth_curve(
        cuts, first, qrels, "hit@1", Conventions(), (5, 10, 20), None,
        StatisticsSettings(**rules), full_gain_proven=full,
    )  # fmt: skip
    return curve.enough


@pytest.mark.parametrize(
    ("count", "rules", "enough"),
    [
        # The p of k queries of which all are helped is 2 / 2^k, and three depths are compared.
        (5, {"correction": "none"}, 0),
        (6, {"correction": "none"}, 5),
        (6, {}, 0),
        (7, {}, 5),
        (7, {"level": 0.99}, 0),
        # A p of exactly what the level leaves is significant.
        (5, {"correction": "none", "level": 0.9375}, 5),
    ],
)
def test_a_depth_is_recommended_where_its_gain_is_proven_after_correction(count, rules, enough):
    assert _enough(_lifting(count), full=False, **rules) == enough


def test_the_full_depth_has_the_proof_of_its_verdict():
    # Of one challenger the p of six is 0.03: what a stricter correction says of it does not count,
    # nor of a shallower depth that does the same. One that does less has to prove it.
    assert _enough(_lifting(6), full=True) == 5
    assert _enough(_lifting(5, 1), full=True) == 10
    assert _enough(_lifting(0), full=False) == 0
    # And a correction for many systems counts, where the depths alone would ask for less.
    cuts, first, qrels = _lifting(8)
    for proven in (False, True):
        curve = depth_curve(
            cuts, first, qrels, "hit@1", Conventions(), (20,), full_gain_proven=proven
        )
        assert curve.enough == (20 if proven else 0)


def test_the_last_digits_of_a_sum_are_no_gain():
    """The same gain in another order: 0.7 + 0.4 / 2 + 1.6 / 3, and 0.4 + 1.6 / 2 + 0.7 / 3."""
    docs = [f"d{place}" for place in range(7)]
    found = {f"q{place}": docs for place in range(40)}
    moved = ["d2", "d1", "d6", "d3", "d4", "d5", "d0"]
    deep = Ranking.from_lists([(query, moved, list(range(7, 0, -1))) for query in found])
    grades = {"d0": 0.7, "d2": 0.4, "d6": 1.6}
    qrels = pd.DataFrame([(query, *each) for query in found for each in grades.items()])
    qrels.columns = ["query_id", "doc_id", "label"]
    curve = depth_curve(
        Cuts(deep, in_order(found)), in_order(found), qrels, "dcg@10", Conventions(), (7,),
        settings=StatisticsSettings(correction="none"), full_gain_proven=False,
    )  # fmt: skip
    assert curve.table["gain"].tolist() == pytest.approx([0, 0], abs=1e-12)
    assert curve.table[["gain_low", "gain_high"]].to_numpy().tolist() == [[0, 0], [0, 0]]


def test_a_loss_as_sure_as_the_gain_of_the_full_depth_is_no_gain():
    """Eight queries lose their first document at depth 5 and have another one from 10 on, where
    eight others gain."""
    found = {f"q{place}": [f"d{d}" for d in range(10)] for place in range(40)}
    base = {(q, d): -float(i) for q, docs in found.items() for i, d in enumerate(docs)}
    lifted = {(f"q{place}", "d2"): 3.0 for place in range(8)}
    lifted |= {(f"q{place}", "d7"): 5.0 for place in range(16)}
    deep = Cuts(ranking(reranked(found, base | lifted, 10), base | lifted), ranking(found, base))
    labels = [(f"q{place}", "d0", 1.0) for place in range(8)]
    labels += [(query, "d7", 1.0) for query in found]
    qrels = pd.DataFrame(labels, columns=["query_id", "doc_id", "label"])
    curve = depth_curve(
        deep, in_order(found), qrels, "hit@1", Conventions(), (5, 10), full_gain_proven=True
    )
    assert curve.table["gain"].tolist() == pytest.approx([0, -0.2, 0.2])
    assert curve.table["gain_proven"].tolist() == [False, False, True]


@pytest.mark.parametrize(("deeper", "enough"), [(5, 5), (8, 10)])
def test_a_shallower_depth_is_enough_unless_it_is_proven_to_be_behind(deeper, enough):
    assert _enough(_lifting(12, deeper), full=True) == enough


# Nine of 13 is less than nine tenths of ten of 13, by the last digit.
@pytest.mark.parametrize("queries", [40, 13])
@pytest.mark.parametrize(("deeper", "most"), [(1, 5), (2, 10)])
def test_nine_tenths_of_the_best_gain_are_most_of_it(deeper, most, queries):
    """Ten queries are gained, of which 9 or 8 already at depth 5."""
    cuts, first, qrels = _lifting(10 - deeper, deeper, queries)
    curve = depth_curve(
        cuts, first, qrels, "hit@1", Conventions(), (5, 10, 20), full_gain_proven=True
    )
    assert (curve.best, curve.most) == (10, most)


def test_where_nothing_was_reranked_no_depth_is_one():
    cuts, first, qrels = _lifting(0)
    curve = depth_curve(cuts, first, qrels, "mrr", Conventions(), (), full_gain_proven=False)
    assert curve.table["depth"].tolist() == [0]
    assert not curve.table["gain_proven"].any()
    assert (curve.best, curve.most, curve.enough, curve.queries) == (0, None, 0, 40)


def test_failed_queries_take_no_part(curve_parts):
    cuts, first, qrels = curve_parts
    curve = depth_curve(
        cuts,
        first,
        qrels,
        "ndcg@10",
        Conventions(),
        (5,),
        {"q0": "failed", "q1": "failed"},
        full_gain_proven=False,
    )
    assert curve.queries == 78


def test_depths_end_with_what_was_reranked():
    assert depths_for(50, None) == (5, 10, 20, 30, 50)
    assert depths_for(50, 25) == (5, 10, 20, 25)
    assert depths_for(12, 25) == (5, 10, 12)
    assert depths_for(3, None) == (3,)
    assert depths_for(0, None) == ()


def test_latency_shrinks_with_the_documents_and_is_unknown_where_unmeasured():
    rows = pd.DataFrame({"latency_ms": [100.0, 50.0, np.nan], "pairs": [100.0, 25.0, 100.0]})
    assert latency_at(rows, 50, 1.0) == 50.0
    assert latency_at(rows, 10, 1.0) == 20.0
    # A query without documents took its time with nothing that could shrink.
    nothing = pd.DataFrame({"latency_ms": [5.0], "pairs": [0.0]})
    assert latency_at(pd.concat([rows, nothing]), 50, 1.0) == 50.0
    assert np.isnan(latency_at(rows.iloc[2:], 50))
    hundred = pd.DataFrame({"latency_ms": np.arange(1.0, 102.0), "pairs": 10.0})
    assert latency_at(hundred, 10) == pytest.approx(96.0)
