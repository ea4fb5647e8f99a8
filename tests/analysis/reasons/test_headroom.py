"""The perfect value splits without a remainder, and the ceiling is what no reranker passes."""

import gc
import itertools
import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.analysis.reasons.headroom import SHARES, best_order, headroom, limits, shares
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, evaluate, judge, registry
from rankdash.ranking.ranking import Ranking

DOCS = "abcde"
QUALITY = [name for name, metric in registry.items() if metric.measures_quality]


def ranking(**lists: str) -> Ranking:
    return Ranking.from_lists(
        (query, list(docs), [float(-place) for place in range(len(docs))])
        for query, docs in lists.items()
    )


def qrels(**labels: dict[str, float]) -> pd.DataFrame:
    rows = [(query, doc, label) for query, own in labels.items() for doc, label in own.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def split(first, before, after, labels, spec, depth=None, **conventions):
    rules = Conventions(**conventions)
    ours, theirs = (evaluate(judge(each, labels, rules), [spec], rules) for each in (before, after))
    return headroom(ours, theirs, limits(judge(first, labels, rules), spec, rules, depth))


def test_a_loss_is_split_between_retriever_and_reranker():
    labels = qrels(q={"a": 1, "x": 1, "b": 0})
    found = split(ranking(q="bca"), ranking(q="bca"), ranking(q="bac"), labels, "map")
    row = found.queries.iloc[0]
    assert row["baseline"] == pytest.approx(1 / 6)
    assert row["challenger"] == pytest.approx(1 / 4)
    assert row["ceiling"] == pytest.approx(1 / 2), "x is not among the candidates"
    assert row["retriever"] == pytest.approx(1 / 2)
    assert row["to_win"] == pytest.approx(1 / 4)
    assert row["won"] == pytest.approx(1 / 12)
    assert found.share_won == pytest.approx((1 / 12) / (1 / 2 - 1 / 6))
    assert found.recall_ceiling == pytest.approx(1 / 2)


def test_what_is_found_is_no_share_of_nothing():
    """A query without a relevant document counts 0 in a mean when asked, and finds no share."""
    labels = qrels(q={"a": 1, "x": 1}, none={"a": 0})
    lists = ranking(q="ab", none="ab")
    for rule in ("skip", "count"):
        found = split(lists, lists, lists, labels, "ndcg@5", no_relevant=rule)
        assert found.recall_ceiling == pytest.approx(1 / 2)


def test_the_retriever_is_not_blamed_for_a_metric_that_cannot_reach_one():
    labels = qrels(q={"a": 1, "b": 0})
    found = split(ranking(q="ba"), ranking(q="ba"), ranking(q="ab"), labels, "precision@5")
    assert found.perfect == pytest.approx(0.2)
    assert found.retriever == 0
    assert found.to_win == 0


def test_a_depth_limits_what_the_ceiling_may_reorder():
    labels = qrels(q={"c": 1})
    lists = ranking(q="abc")
    assert split(lists, lists, lists, labels, "mrr").ceiling == 1
    assert split(lists, lists, lists, labels, "mrr", depth=2).ceiling == pytest.approx(1 / 3)
    assert split(lists, lists, lists, labels, "mrr", depth=3).ceiling == 1


def test_limits_are_laid_beside_their_queries_in_whatever_order_they_come():
    labels = qrels(q={"a": 1}, r={"b": 1, "x": 1}, s={"a": 1})
    lists = ranking(q="ab", r="ab", s="ba")
    values = evaluate(judge(lists, labels), ["recall"])
    for queries in (["s", "q", "r"], ["r", "q"]):
        own = pd.concat([labels[labels["query_id"] == query] for query in queries])
        found = headroom(values, values, limits(judge(lists, own), "recall", Conventions()))
        rows = found.queries.set_index("query_id")
        told = {"q": 1.0, "r": 0.5, "s": 1.0}
        assert rows["baseline"].to_dict() == told
        told["s"] = 1.0 if "s" in queries else np.nan
        np.testing.assert_array_equal(rows["ceiling"], [told[query] for query in rows.index])


def test_the_shares_are_of_each_system_that_has_paired_queries_in_their_order():
    labels = qrels(q={"a": 1, "b": 0})
    lists = ranking(q="ba")
    won = split(lists, lists, ranking(q="ab"), labels, "mrr")
    none = split(lists, lists, lists, qrels(q={"a": 0}), "mrr")
    still = split(lists, lists, lists, labels, "mrr")
    still = replace(still, own=True)
    table = shares({"won": won, "none": none, "gone": None, "again": still})
    assert list(table.columns) == ["system", "baseline", "won", "to_win", "retriever", "own"]
    assert table["system"].tolist() == ["won", "again"]
    assert table["won"].tolist() == [0.5, 0]
    assert table["to_win"].tolist() == [0, 0.5]
    assert table["own"].tolist() == [False, True]
    assert list(shares({}).columns) == list(table.columns)


def test_the_best_order_is_kept_with_its_lists_and_not_longer():
    judged = judge(ranking(q="abc"), qrels(q={"c": 1}), Conventions())
    assert best_order(judged) is best_order(judged)
    assert best_order(judged, 2) is not best_order(judged)
    kept = weakref.ref(best_order(judged))
    del judged
    gc.collect()
    assert kept() is None


def test_a_query_that_failed_has_no_split_and_is_counted():
    labels = qrels(q={"a": 1}, r={"a": 1})
    lists = ranking(q="ab", r="ba")
    rules = Conventions()
    judged = judge(lists, labels, rules)
    before = evaluate(judged, ["mrr"], rules)
    after = evaluate(judged, ["mrr"], rules, {"r": "failed"})
    found = headroom(before, after, limits(judged, "mrr", rules))
    assert (found.n, found.left_out, found.ceiling) == (1, {"failed": 1}, 1)
    row = found.queries.set_index("query_id").loc["r"]
    assert row["state"] == "failed"
    assert row[[*SHARES, "ceiling", "perfect"]].isna().all()


@pytest.mark.parametrize(
    "rules", [{}, {"mrr_none": "skip"}, {"missing": "skip"}, {"queries": "both"}]
)
def test_the_ceiling_is_of_every_labelled_query_whatever_counts_in_a_mean(rules):
    """The candidates of "none" hold nothing relevant, and "gone" has none."""
    labels = qrels(q={"b": 1}, none={"x": 1}, gone={"a": 1})
    conventions = Conventions(**rules)
    found = limits(judge(ranking(q="ab", none="ab"), labels, conventions), "mrr", conventions)
    assert dict(zip(found.query_ids, found.ceiling, strict=True)) == {"q": 1, "none": 0, "gone": 0}
    assert (found.perfect == 1).all()


def test_there_is_no_share_where_there_was_nothing_to_win():
    labels = qrels(q={"a": 1})
    lists = ranking(q="ab")
    found = split(lists, lists, ranking(q="ba"), labels, "mrr")
    assert found.won == pytest.approx(-1 / 2)
    assert found.share_won is None


def test_a_relevant_document_that_only_the_baseline_ranks_is_lost_by_retrieval():
    labels = qrels(q={"a": 1, "c": 1, "x": 1})
    sides = ranking(q="ca"), ranking(q="ab")
    rules = Conventions()
    ours, theirs = (evaluate(judge(each, labels, rules), ["recall"], rules) for each in sides)
    own = limits(judge(sides[1], labels, rules), "recall", rules, own=True)
    found = headroom(ours, theirs, own)
    assert found.own
    assert (found.ceiling, found.to_win, found.won) == pytest.approx((1 / 3, 0, -1 / 3))
    assert found.retriever == pytest.approx(2 / 3), "its list has neither c nor x"
    assert found.recall_ceiling == pytest.approx(1 / 3)
    assert found.share_won is None


@pytest.mark.parametrize(("after", "to_win"), [("a", 0), ("abc", 0), ("bc", 1 / 3)])
def test_a_shorter_list_of_the_candidates_does_not_pass_the_ceiling_of_whole_lists(after, to_win):
    labels = qrels(q={"a": 1})
    found = split(ranking(q="abc"), ranking(q="abc"), ranking(q=after), labels, "precision")
    row = found.queries.iloc[0]
    assert (row["to_win"], row["retriever"]) == pytest.approx((to_win, 0))


def test_a_shorter_list_of_the_baseline_is_no_order_of_the_whole_list():
    labels = qrels(q={"a": 1})
    found = split(ranking(q="abc"), ranking(q="a"), ranking(q="abc"), labels, "precision")
    row = found.queries.iloc[0]
    assert (row["ceiling"], row["to_win"], row["won"]) == pytest.approx((1 / 3, 0, -2 / 3))


def test_no_list_is_more_precise_than_one_of_relevant_documents_alone():
    """Three are relevant, of which the list of two holds one."""
    labels = qrels(q={"a": 1, "x": 1, "y": 1})
    lists = ranking(q="ab")
    found = split(lists, lists, lists, labels, "precision")
    assert (found.ceiling, found.perfect, found.retriever) == pytest.approx((0.5, 1, 0.5))


@pytest.mark.parametrize(
    ("depth", "said", "recall"), [(1, 1, 0), (2, 2, 1 / 2), (3, None, 1), (4, None, 1)]
)
def test_what_may_be_reordered_ends_at_the_depth_unless_no_list_is_longer(depth, said, recall):
    labels = qrels(q={"b": 1, "c": 1})
    lists = ranking(q="abc")
    found = split(lists, lists, lists, labels, "mrr", depth=depth)
    assert (found.depth, found.recall_ceiling, found.own) == (said, recall, False)


def test_without_queries_nothing_is_claimed():
    labels = qrels(q={"a": 0})
    lists = ranking(q="ab")
    found = split(lists, lists, lists, labels, "mrr")
    assert (found.n, found.share_won, found.recall_ceiling) == (0, None, None)


def test_a_measure_of_the_labels_has_no_headroom():
    labels = qrels(q={"a": 1})
    with pytest.raises(SpecError, match="no potential gain"):
        split(ranking(q="a"), ranking(q="a"), ranking(q="a"), labels, "judged@10")


labels_of_a_query = st.dictionaries(
    st.sampled_from((*DOCS, "x", "y")), st.sampled_from((-1.0, 0.0, 0.5, 1.0, 2.0)), max_size=6
)


@given(
    first=st.permutations(DOCS).flatmap(
        lambda docs: st.integers(1, len(docs)).map(lambda n: docs[:n])
    ),
    labels=labels_of_a_query,
    name=st.sampled_from(QUALITY),
    k=st.sampled_from((None, 1, 2, 3, 10)),
    depth=st.sampled_from((None, 1, 2, 3)),
    judged_only=st.booleans(),
    data=st.data(),
)
@settings(max_examples=300)
def test_the_split_adds_up_and_no_reranking_of_the_candidates_passes_the_ceiling(
    first, labels, name, k, depth, judged_only, data
):
    spec = name if k is None or not registry[name].has_cutoff else f"{name}@{k}"
    orders = data.draw(st.lists(st.permutations(first[:depth]), min_size=1, max_size=6))
    queries = [f"q{number}" for number in range(len(orders))]
    rest = first[len(orders[0]) :]
    result = split(
        ranking(**dict.fromkeys(queries, first)),
        ranking(**dict.fromkeys(queries, first)),
        ranking(**{query: [*own, *rest] for query, own in zip(queries, orders, strict=True)}),
        qrels(**{query: {**labels, "unranked": 1.0} for query in queries}),
        spec,
        depth,
        judged_only=judged_only,
        no_relevant="count",
    )
    rows = result.queries
    assert rows[list(SHARES)].sum(axis=1).to_numpy() == pytest.approx(rows["perfect"], abs=1e-9)
    assert (rows["retriever"] >= -1e-9).all()
    assert (rows["challenger"] <= rows["ceiling"] + 1e-9).all()
    assert list(shares({"A": result})["own"]) == [False]


@given(
    lists=st.lists(
        st.lists(st.sampled_from(DOCS), min_size=1, unique=True), min_size=2, max_size=4
    ),
    labels=labels_of_a_query,
    name=st.sampled_from(QUALITY),
    k=st.sampled_from((None, 1, 2, 3, 10)),
    judged_only=st.booleans(),
)
@settings(max_examples=300)
def test_no_system_passes_the_ceiling_of_its_own_list(lists, labels, name, k, judged_only):
    spec = name if k is None or not registry[name].has_cutoff else f"{name}@{k}"
    rules = Conventions(judged_only=judged_only, no_relevant="count")
    own = qrels(q={**labels, "unranked": 1.0})
    rankings = [ranking(q="".join(docs)) for docs in lists]
    before, *others = (evaluate(judge(each, own, rules), [spec], rules) for each in rankings)
    for each, after in zip(rankings[1:], others, strict=True):
        best = limits(judge(each, own, rules), spec, rules, own=True)
        row = headroom(before, after, best).queries.iloc[0]
        assert row["challenger"] <= row["ceiling"] + 1e-9
        assert row["baseline"] <= row["perfect"] + 1e-9
        assert row["ceiling"] <= row["perfect"] + 1e-9
        assert row[list(SHARES)].sum() == pytest.approx(row["perfect"], abs=1e-9)


@pytest.mark.parametrize("name", QUALITY)
def test_some_order_of_the_candidates_reaches_the_ceiling(name):
    rng = np.random.default_rng(5)
    spec = f"{name}@3" if registry[name].has_cutoff else name
    orders = ["".join(order) for order in itertools.permutations(DOCS)]
    for _ in range(5):
        grades = rng.integers(0, 3, size=len(DOCS))
        own = {**dict(zip(DOCS, map(float, grades), strict=True)), "unranked": 1.0}
        found = qrels(**dict.fromkeys(orders, own))
        every = ranking(**{order: order for order in orders})
        result = split(every, every, every, found, spec)
        assert result.queries["ceiling"].nunique() == 1
        assert result.ceiling == pytest.approx(result.queries["challenger"].max())
