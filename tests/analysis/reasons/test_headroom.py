"""The perfect value splits without a remainder, and the ceiling is the maximum of any reranker."""

import gc
import itertools
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.metrics import Conventions, evaluate, judge, registry
from rankdash.core.study.headroom import SHARES, best_order, headroom, limits, shares
from tests.lists import qrels, ranking
from tests.results import results, several, shown

DOCS = "abcde"
QUALITY = [name for name, metric in registry.items() if metric.measures_quality]


def split(first, before, after, labels, spec, depth=None, left_out=None, own=False, **conventions):
    rules = Conventions(**conventions)
    ours, theirs = (judge(each, labels, rules) for each in (before, after))
    best = limits(judge(first, labels, rules), spec, rules, depth, own_list=own)
    values = evaluate(ours, [spec], rules), evaluate(theirs, [spec], rules, left_out or {})
    return headroom(*values, best)


def told(first, before, after, labels, spec, *rest, **rules):
    """Return the means, and below them the queries. Lists and labels of query q, or of several."""
    lists = (ranking(**({"q": each} if isinstance(each, str) else each))
             for each in (first, before, after))  # fmt: skip
    many = labels if isinstance(next(iter(labels.values())), dict) else {"q": labels}
    found = split(*lists, qrels(**many), spec, *rest, **rules)
    means = {name: getattr(found, name) for name in (
        "n", "left_out", "depth", "own", "share_won", "recall_ceiling", "ceiling", "perfect",
        "retriever", "to_win", "won",
    )}  # fmt: skip
    rows = "".join(f"\n  {shown(row.dropna())}" for _, row in found.queries.iterrows())
    return shown(means) + rows


A, AX, BC = {"a": 1}, {"a": 1, "x": 1}, {"b": 1, "c": 1}
TWO_LISTS = {"q": "ab", "r": "ba"}
CASES = {
    "a loss split between both, x is no candidate": lambda: told(
        "bca", "bca", "bac", {"a": 1, "x": 1, "b": 0}, "map"
    ),
    # A query without a relevant document can count 0 in a mean, and has no share.
    **{
        f"recall of nothing, {rule}": lambda rule=rule: told(
            *[{"q": "ab", "none": "ab"}] * 3, {"q": AX, "none": {"a": 0}}, "ndcg@5",
            no_relevant=rule,
        )
        for rule in ("skip", "count")
    },
    "a metric that cannot reach 1": lambda: told("ba", "ba", "ab", {"a": 1, "b": 0}, "precision@5"),
    **several(
        "reordered to depth {}", lambda depth: told("abc", "abc", "abc", {"c": 1}, "mrr", depth),
        (None, 2, 3),
    ),
    **{
        f"two at depth {depth} of 3": lambda depth=depth: told(*["abc"] * 3, BC, "mrr", depth)
        for depth in (1, 2, 3, 4)
    },
    "a query that failed": lambda: told(*[TWO_LISTS] * 3, {"q": A, "r": A}, "mrr", None,
                                        {"r": "failed"}),
    "nothing to win": lambda: told("ab", "ab", "ba", A, "mrr"),
    # Its own list contains neither c nor x.
    "only the baseline ranks it": lambda: told(
        "ab", "ca", "ab", {"a": 1, "c": 1, "x": 1}, "recall", own=True
    ),
    **{
        f"the shorter list {after}": lambda after=after: told("abc", "abc", after, A, "precision")
        for after in ("a", "abc", "bc")
    },
    "a shorter list of the baseline": lambda: told("abc", "a", "abc", A, "precision"),
    "three are relevant, of which the list of two has one": lambda: told(
        "ab", "ab", "ab", {"a": 1, "x": 1, "y": 1}, "precision"
    ),
    "without queries": lambda: told("ab", "ab", "ab", {"a": 0}, "mrr"),
    "no headroom of labels": lambda: told("a", "a", "a", A, "judged@10"),
}  # fmt: skip


def test_the_perfect_value_is_split_by_whose_part_it_is(approved):
    approved("analysis/headroom", results(CASES))


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


@pytest.mark.parametrize(
    "rules", [{}, {"mrr_none": "skip"}, {"missing": "skip"}, {"queries": "both"}]
)
def test_the_ceiling_is_of_every_labelled_query_whatever_counts_in_a_mean(rules):
    """The candidates of "none" contain nothing relevant, and "gone" has no candidates."""
    labels = qrels(q={"b": 1}, none={"x": 1}, gone={"a": 1})
    conventions = Conventions(**rules)
    found = limits(judge(ranking(q="ab", none="ab"), labels, conventions), "mrr", conventions)
    assert dict(zip(found.query_ids, found.ceiling, strict=True)) == {"q": 1, "none": 0, "gone": 0}
    assert (found.perfect == 1).all()


DRAWN = {
    "labels": st.dictionaries(
        st.sampled_from((*DOCS, "x", "y")), st.sampled_from((-1.0, 0.0, 0.5, 1.0, 2.0)), max_size=6
    ),
    "name": st.sampled_from(QUALITY),
    "k": st.sampled_from((None, 1, 2, 3, 10)),
    "judged_only": st.booleans(),
}


@given(
    first=st.permutations(DOCS).flatmap(
        lambda docs: st.integers(1, len(docs)).map(lambda n: docs[:n])
    ),
    depth=st.sampled_from((None, 1, 2, 3)),
    data=st.data(),
    **DRAWN,
)
@settings(max_examples=50)
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
    **DRAWN,
)
@settings(max_examples=50)
def test_no_system_passes_the_ceiling_of_its_own_list(lists, labels, name, k, judged_only):
    spec = name if k is None or not registry[name].has_cutoff else f"{name}@{k}"
    rules = Conventions(judged_only=judged_only, no_relevant="count")
    own = qrels(q={**labels, "unranked": 1.0})
    rankings = [ranking(q="".join(docs)) for docs in lists]
    before, *others = (evaluate(judge(each, own, rules), [spec], rules) for each in rankings)
    for each, after in zip(rankings[1:], others, strict=True):
        best = limits(judge(each, own, rules), spec, rules, own_list=True)
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
