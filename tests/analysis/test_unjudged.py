"""Bounds hold for every assignment of labels, and where they are called tight one reaches them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.analysis.unjudged import Comparison, System, bounds_table
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, evaluate, judge
from rankdash.ranking import Ranking

DOCS = "abcde"
TIGHT = ("ndcg", "ndcg_exp", "ndcg_jk", "precision", "recall", "mrr", "hit", "rbp", "f1")
TIGHT_FOR_ONE = (*TIGHT, "map", "err")
EVERY = (*TIGHT_FOR_ONE, "r_precision", "bpref", "map_graded", "map_graded_norm")

lists = st.permutations(DOCS).flatmap(
    lambda order: st.integers(0, len(DOCS)).map(lambda length: order[:length])
)
labels = st.dictionaries(st.sampled_from(DOCS), st.sampled_from((0.0, 1.0, 2.0)), max_size=4)


def made(docs) -> Ranking:
    """One query; the other keeps the ranking from being empty."""
    return Ranking.from_lists(
        [("q", list(docs), [float(-place) for place in range(len(docs))]), ("z", ["x"], [0.0])]
    )


def qrels(found) -> pd.DataFrame:
    rows = [("q", doc, label) for doc, label in found.items()]
    # The label of the other query makes 2 the top grade and 'q' a labelled query.
    return pd.DataFrame(
        [*rows, ("q", "unranked", 0.0), ("z", "x", 2.0)], columns=["query_id", "doc_id", "label"]
    )


def value(ranking: Ranking, found, spec: str, conventions: Conventions) -> float:
    evaluation = evaluate(judge(ranking, qrels(found), conventions), [spec], conventions)
    return float(evaluation.values[0, 0])


def spelled(name: str, k: int | None) -> str:
    return name if k is None or name == "r_precision" else f"{name}@{k}"


def within(docs, k: int | None) -> set[str]:
    return set(docs if k is None else docs[:k])


def outcomes(open_docs, found):
    """Every assignment of the labels 0, 1 and 2 to the documents that have none."""
    for assigned in itertools.product((0.0, 1.0, 2.0), repeat=len(open_docs)):
        yield {**found, **dict(zip(open_docs, assigned, strict=True))}


def system(ranking: Ranking, found, conventions: Conventions) -> System:
    return System(ranking, judge(ranking, qrels(found), conventions))


@given(
    docs=lists,
    found=labels,
    name=st.sampled_from(EVERY),
    k=st.sampled_from((None, 1, 2, 3)),
    ap_norm=st.sampled_from(("R", "min(R,k)")),
)
@settings(max_examples=150, deadline=None)
def test_no_labels_take_a_system_beyond_its_bounds(docs, found, name, k, ap_norm):
    rules = Conventions(no_relevant="count", ap_norm=ap_norm)
    ranking, spec = made(docs), spelled(name, k)
    k = None if name == "r_precision" else k
    open_docs = sorted(within(docs, k) - found.keys())
    values = [value(ranking, each, spec, rules) for each in outcomes(open_docs, found)]
    table = bounds_table({"s": system(ranking, found, rules)}, [spec], rules).iloc[0]
    # The means are over two queries; the other has no unjudged document within reach.
    other = evaluate(judge(ranking, qrels(found), rules), [spec], rules).values[1, 0]
    lowest, highest, now = (table[column] * 2 - other for column in ("lowest", "highest", "value"))
    assert lowest <= min(values) + 1e-9
    assert highest >= max(values) - 1e-9
    if name in TIGHT_FOR_ONE:
        assert table["kind"] == "tight"
        assert (lowest, highest) == pytest.approx((min(values), max(values)), abs=1e-9)
    assert table["unjudged"] == len(open_docs)
    assert now == pytest.approx(value(ranking, found, spec, rules), abs=1e-9)
    everything = {**found, **dict.fromkeys(open_docs, 2.0)}
    assert table["if_relevant"] * 2 - other == pytest.approx(
        value(ranking, everything, spec, rules), abs=1e-9
    )


@given(
    before=lists,
    after=lists,
    found=labels,
    name=st.sampled_from(EVERY),
    k=st.sampled_from((None, 1, 2, 3)),
    ap_norm=st.sampled_from(("R", "min(R,k)")),
)
@settings(max_examples=150, deadline=None)
def test_no_labels_take_a_difference_beyond_its_bounds(before, after, found, name, k, ap_norm):
    rules = Conventions(no_relevant="count", ap_norm=ap_norm)
    spec = spelled(name, k)
    k = None if name == "r_precision" else k
    open_docs = sorted((within(before, k) | within(after, k)) - found.keys())
    ours, theirs = made(before), made(after)
    values = [
        value(theirs, each, spec, rules) - value(ours, each, spec, rules)
        for each in outcomes(open_docs, found)
    ]
    comparison = Comparison(system(ours, found, rules), system(theirs, found, rules), spec, rules)
    bounds = comparison.bounds()
    row = bounds.queries.iloc[0]
    assert row["lowest"] <= min(values) + 1e-9
    assert row["highest"] >= max(values) - 1e-9
    if name in TIGHT and not (name == "f1" and len(before) != len(after)):
        assert bounds.kind == "tight"
        assert row["lowest"] == pytest.approx(min(values), abs=1e-9)
        assert row["highest"] == pytest.approx(max(values), abs=1e-9)
    plain = value(theirs, found, spec, rules) - value(ours, found, spec, rules)
    for doc, effect in zip(comparison.pool.doc_ids, comparison.effects, strict=True):
        one = {**found, doc: 2.0}
        changed = value(theirs, one, spec, rules) - value(ours, one, spec, rules)
        assert effect * 2 == pytest.approx(changed - plain, abs=1e-9)
