"""A deep run truncated to each depth equals a run of that depth."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge
from rankdash.core.value.depth import Cuts, depth_curve, depths_for, latency_at
from tests.results import results, several


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
    return ranking(found, by_place(found))


def reranked(
    found: dict[str, list[str]], scores: dict[tuple[str, str], float], depth: int
) -> dict[str, list[str]]:
    """Return the lists of a run of this depth, computed the long way."""
    return {
        query: sorted(docs[:depth], key=lambda doc: -scores[query, doc]) + docs[depth:]
        for query, docs in found.items()
    }


@given(st.integers(0, 10**6), st.integers(1, 15))
def test_every_depth_is_what_a_run_of_that_depth_gives(seed: int, depth: int):
    rng = np.random.default_rng(seed)
    found = lists(rng, 4, 12)
    scores = {pair: float(rng.integers(0, 5)) for pair in by_place(found)}
    deep = ranking(dict(reversed(reranked(found, scores, 99).items())), scores)
    cut = Cuts(deep, in_order(found)).at(depth)
    for query, docs in reranked(found, scores, depth).items():
        assert cut.documents_of(query)[0] == docs


def labelled(found: dict[str, str]) -> pd.DataFrame:
    """Return labels with one relevant document per query."""
    return pd.DataFrame(found.items(), columns=["query_id", "doc_id"]).assign(label=1.0)


def by_place(found: dict[str, list[str]]) -> dict[tuple[str, str], float]:
    return {(q, d): -float(i) for q, docs in found.items() for i, d in enumerate(docs)}


def cuts_of(
    found: dict[str, list[str]], lifted: dict[tuple[str, str], float]
) -> tuple[Cuts, Ranking]:
    """Return the cuts of a first stage and its reranking, with new scores of some documents."""
    scores = by_place(found) | lifted
    first = in_order(found)
    return Cuts(ranking(reranked(found, scores, 99), scores), first), first


def test_the_curve_has_the_metric_of_each_depth_and_marks_what_is_enough():
    """A reranker that lifts the relevant document if it is among the first 20 and errs below."""
    rng = np.random.default_rng(3)
    found = {f"q{q}": [f"d{d}" for d in rng.permutation(60)[:50]] for q in range(80)}
    good = {query: docs[rng.integers(2, 20)] for query, docs in found.items()}
    scores = {
        (query, doc): 2.0 * (doc == good[query]) + rng.normal(0, 0.4) + (place > 25) * 0.8
        for query, docs in found.items()
        for place, doc in enumerate(docs)
    }
    (cuts, first), qrels = cuts_of(found, scores), labelled(good)
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
    found = {f"q{place}": [f"d{d}" for d in range(30)] for place in range(60)}
    good = {query: f"d{7 if place < 5 else place % 4 + 1}" for place, query in enumerate(found)}
    cuts, first = cuts_of(found, {pair: 5.0 for pair in good.items() if pair[0] != "q30"})
    curve = depth_curve(
        cuts, first, labelled(good), "mrr", Conventions(), (5, 10, 30), full_gain_proven=True
    )
    row = curve.table.set_index("depth").loc[5]
    assert row["behind"] > 0
    assert row["behind_low"] > 0 and not row["behind_proven"]
    assert curve.enough == 5


def _lifting(count: int, deeper: int = 0, queries: int = 40) -> tuple[Cuts, Ranking, pd.DataFrame]:
    """In `count` queries the relevant document rises to the top from rank 2, and in `deeper` more
    queries from rank 8; in the others it stays at rank 2."""
    found = {f"q{place}": [f"d{d}" for d in range(20)] for place in range(queries)}
    deep_ones = range(count, count + deeper)
    good = {f"q{place}": f"d{7 if place in deep_ones else 1}" for place in range(queries)}
    lifted = {(f"q{place}", good[f"q{place}"]): 5.0 for place in range(count + deeper)}
    return *cuts_of(found, lifted), labelled(good)


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
    """Eight queries lose their first document at depth 5. At depths of 10 or more they gain
    another, and eight others gain."""
    found = {f"q{place}": [f"d{d}" for d in range(10)] for place in range(40)}
    lifted = {(f"q{place}", "d2"): 3.0 for place in range(8)}
    cuts, first = cuts_of(found, lifted | {(f"q{place}", "d7"): 5.0 for place in range(16)})
    both = [dict.fromkeys(list(found)[:8], "d0"), dict.fromkeys(found, "d7")]
    qrels = pd.concat(map(labelled, both), ignore_index=True)
    curve = depth_curve(cuts, first, qrels, "hit@1", Conventions(), (5, 10), full_gain_proven=True)
    assert curve.table["gain"].tolist() == pytest.approx([0, -0.2, 0.2])
    assert curve.table["gain_proven"].tolist() == [False, False, True]


def _curve(
    count: int, deeper: int = 0, queries: int = 40, depths=(5, 10, 20), spec="hit@1", failed=None,
    *, full: bool = True, **rules: object,
) -> dict[str, object]:  # fmt: skip
    cuts, first, qrels = _lifting(count, deeper, queries)
    found = depth_curve(
        cuts, first, qrels, spec, Conventions(), depths, failed, StatisticsSettings(**rules),
        full_gain_proven=full,
    )  # fmt: skip
    proven = found.table["gain_proven"].tolist()
    names = ("queries", "best", "most", "enough")
    return {name: getattr(found, name) for name in names} | {"gains proven": proven}


def _lists(**lists: str) -> Ranking:
    return in_order({query: list(docs) for query, docs in lists.items()})


def _cut(deep: Ranking, first: Ranking, depth: int = 1):
    cuts = Cuts(deep, first)
    cut = cuts.at(depth)
    return cuts.deepest, {query: cut.documents_of(query) for query in first.query_ids}, cut.tied


NONE, TIED = Ranking.from_lists([]), Ranking.from_lists([("q", ["b", "c", "a"], [1.0, 1.0, 0.5])])
AB, ALSO_R = _lists(q="ab"), _lists(q="ba", r="ab")
ROWS = pd.DataFrame({"latency_ms": [100.0, 50.0, np.nan], "pairs": [100.0, 25.0, 100.0]})
NOTHING = pd.DataFrame({"latency_ms": [5.0], "pairs": [0.0]})
HUNDRED = pd.DataFrame({"latency_ms": np.arange(1.0, 102.0), "pairs": 10.0})
CASES = {
    # Documents below the cutoff have no score and so no tie.
    **several("cut at {}", lambda depth: _cut(TIED, _lists(q="abc"), depth), (1, 2, 3)),
    "other documents": lambda: _cut(_lists(q="ac"), AB),
    "fewer documents": lambda: _cut(_lists(q="a"), AB),
    "a query without candidates": lambda: _cut(ALSO_R, AB),
    "no candidates": lambda: _cut(AB, NONE),
    "a query that was left out is in no shallower run": lambda: _cut(AB, ALSO_R),
    "the longest list": lambda: _cut(_lists(q="a", r="abc"), _lists(r="abc", q="a")),
    "an empty run": lambda: _cut(NONE, AB),
    # The p of k queries that all gain is 2 / 2^k, and three depths are compared. A p exactly at the
    # level is significant.
    **several(
        "{} are helped, {}", lambda count, rules: _curve(count, full=False, **rules),
        ((5, {"correction": "none"}), (6, {"correction": "none"}), (6, {}),
        (7, {}), (7, {"level": 0.99}),
        (5, {"correction": "none", "level": 0.9375})),
    ),
    # With one challenger the p of six is 0.03: a stricter correction does not apply to it, nor to a
    # shallower depth with the same gains. A depth with smaller gains has to prove them.
    "the full depth has the proof of its verdict": lambda: _curve(6),
    "a shallower one that does less": lambda: _curve(5, 1),
    "nobody is helped": lambda: _curve(0, full=False),
    # A correction for many systems applies, even if a weaker one suffices for the depths.
    **{f"eight are helped, full: {full}": lambda full=full: _curve(8, depths=(20,), full=full)
       for full in (False, True)},
    **several("twelve, and {} deeper", lambda deeper: _curve(12, deeper), (5, 8)),
    # Nine of 13 is less than nine tenths of ten of 13, by a rounding error.
    **{
        f"ten of {n}, {deeper} of them deeper": lambda n=n, d=deeper: _curve(10 - d, d, n)
        for n in (40, 13) for deeper in (1, 2)
    },
    "nothing was reranked": lambda: _curve(0, depths=(), spec="mrr", full=False),
    "two failed": lambda: _curve(9, failed={"q0": "failed", "q1": "failed"}),
    "all failed": lambda: _curve(9, failed={f"q{n}": "failed" for n in range(40)}),
    **{
        f"depths of {longest}, reranked {to}": depths_for(longest, to)
        for longest, to in ((50, None), (50, 25), (12, 25), (3, None), (0, None))
    },
    "the time of 50": lambda: latency_at(ROWS, 50, 1.0),
    "the time of 10": lambda: latency_at(ROWS, 10, 1.0),
    # The latency of a query without documents does not depend on the depth.
    "beside a query without documents": lambda: latency_at(pd.concat([ROWS, NOTHING]), 50, 1.0),
    "unmeasured": lambda: latency_at(ROWS.iloc[2:], 50),
    "the 95th of a hundred": lambda: latency_at(HUNDRED, 10),
}  # fmt: skip


def test_each_depth_what_is_enough_and_how_long_it_takes(approved):
    approved("analysis/depth", results(CASES))
