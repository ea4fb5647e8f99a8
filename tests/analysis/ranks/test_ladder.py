"""The ladder: ranks as the metrics count them, the ideal order, which documents are telling."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from rankdash.analysis.ranks.ladder import FAR, Ladder, ladder
from rankdash.analysis.reasons.headroom import limits
from rankdash.metrics import Conventions, evaluate, judge
from rankdash.ranking.ranking import Ranking

LABELS = {"a": 3.0, "b": 1.0, "x": 0.0}


def ranking(docs: str, scores: list[float] | None = None, query: str = "q") -> Ranking:
    own = scores or [float(-place) for place in range(len(docs))]
    return Ranking.from_lists([("other", ["z", "a"], [2.0, 1.0]), (query, list(docs), own)])


def made(before: str, *after: str, k: int = 2, labels=LABELS, **conventions) -> Ladder:
    rankings = {str(place): ranking(docs) for place, docs in enumerate((before, *after))}
    return ladder(rankings, ranking(before), labels, "q", k, Conventions(**conventions))


def row(found: Ladder, doc: str) -> int:
    return list(found.doc_ids).index(doc)


def test_it_tells_where_each_document_stands_in_every_system():
    found = made("xab", "bzax", "ab")
    assert list(found.doc_ids) == ["b", "z", "a", "x"]
    np.testing.assert_array_equal(found.ranks[row(found, "b")], [3, 1, 2])
    np.testing.assert_array_equal(found.ranks[row(found, "z")], [np.nan, 2, np.nan])
    assert np.isnan(found.label[row(found, "z")])
    assert dict(zip(found.doc_ids, found.relevant, strict=True)) == {
        "b": True,
        "z": False,
        "a": True,
        "x": False,
    }


def test_crossing_is_told_against_the_baseline():
    found = made("xab", "bzax")
    crosses, inside = found.crosses[:, 1], found.inside[:, 1]
    assert {doc for doc in "abxz" if (crosses & inside)[row(found, doc)]} == {"b", "z"}
    assert {doc for doc in "abxz" if (crosses & ~inside)[row(found, doc)]} == {"a", "x"}


def test_telling_is_what_the_second_system_did_whatever_a_third_one_does():
    found = made("xab", "xab", "bax", labels={})
    assert found.in_focus == 1
    assert not found.telling.any()
    assert found.crosses.any(axis=0).tolist() == [False, False, True]
    assert found.inside.sum(axis=0).tolist() == [2, 2, 2]
    assert found.near.all(), "among the first two of some system"
    assert found.column("2").tolist() == [3, 2, 1]
    alone = made("xab", labels={})
    assert (alone.in_focus, alone.telling.any()) == (0, False)


def test_the_ideal_holds_candidates_with_a_label_above_zero_highest_first():
    found = made("xbac", "zabc", labels={**LABELS, "z": 2.0, "c": 3.0})
    ideal = dict(zip(found.doc_ids, found.ideal, strict=True))
    assert [ideal["a"], ideal["c"], ideal["b"]] == [1, 2, 3]
    assert np.isnan(ideal["x"])
    assert np.isnan(ideal["z"]), "a document that is no candidate"


def test_a_query_that_nobody_ranked_is_empty():
    one = ranking("ab")
    found = ladder({"one": one, "two": one}, one, {}, "nobody", 10)
    assert len(found) == 0
    assert not found.telling.any()


def test_ties_are_settled_as_the_metrics_settle_them():
    tied = ranking("abx", [1.0, 1.0, 1.0])
    as_ranked = ladder({"one": tied}, tied, LABELS, "q", 2)
    assert list(as_ranked.doc_ids) == ["a", "b", "x"]
    trec = ladder({"one": tied}, tied, LABELS, "q", 2, Conventions(ties="trec"))
    assert list(trec.doc_ids) == ["x", "b", "a"]
    close = ranking("abx", [1.0, 1.0 - 1e-9, 0.0])
    for precision, order in (("float64", "abx"), ("float32", "bax")):
        rules = Conventions(ties="trec", score_precision=precision)
        assert "".join(ladder({"one": close}, close, LABELS, "q", 2, rules).doc_ids) == order


def test_a_negative_label_can_stand_for_none():
    assert made("ab", "ab", labels={"a": -1.0}).label[0] == -1
    found = made("ab", "ab", labels={"a": -1.0, "b": 0.0}, negative="unjudged").label
    np.testing.assert_array_equal(found, [np.nan, 0.0])


def test_three_ranks_are_far():
    found = made("cdefgh", "cgdefh", k=5, labels={})
    assert found.telling[row(found, "g")], "from 5 to 2"
    found = made("cdefgh", "cdgefh", k=5, labels={})
    assert not found.telling.any(), "from 5 to 3"


docs = st.permutations(list("abcdefghij")).map("".join)


@given(docs, docs, st.integers(1, 6))
def test_telling_documents_are_relevant_cross_k_or_move_far_near_the_top(before, after, k):
    found = made(before, after, k=k)
    for place, doc in enumerate(found.doc_ids):
        was, now = before.index(doc) + 1, after.index(doc) + 1
        crosses = (was <= k) != (now <= k)
        far = abs(was - now) >= FAR and now <= k
        assert found.telling[place] == (LABELS.get(doc, 0) >= 1 or crosses or far)
        assert found.near[place] == (LABELS.get(doc, 0) >= 1 or min(was, now) <= k)


@given(docs, st.dictionaries(st.sampled_from("abcdefghijyz"), st.integers(-1, 3), min_size=1))
def test_the_ideal_column_reaches_the_ceiling_of_the_headroom(before, labels):
    found = made(before, before, labels=labels)
    order = found.doc_ids[np.argsort(found.ideal)][: int((~np.isnan(found.ideal)).sum())]
    qrels = pd.DataFrame(
        [("q", doc, float(label)) for doc, label in labels.items()],
        columns=["query_id", "doc_id", "label"],
    )

    ceiling = limits(judge(ranking(before), qrels), "ndcg@5", Conventions()).ceiling[0]
    if len(order):
        rest = [doc for doc in before if doc not in set(order)]
        best = evaluate(judge(ranking("".join([*order, *rest])), qrels), ["ndcg@5"])
        assert abs(best.values[0, 0] - ceiling) < 1e-12
