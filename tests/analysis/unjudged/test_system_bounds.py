"""Bounds contain the value under every assignment of labels; tight bounds are reached."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge, parse_measure
from rankdash.core.study.unjudged.system_bounds import (
    RankedLabels,
    UnjudgedComparison,
    bounds_table,
    top_label,
)
from tests.lists import qrels as labels_of
from tests.lists import ranking
from tests.results import results, several

DOCS = "abcde"
TIGHT = ("ndcg", "ndcg_exp", "ndcg_jk", "precision", "recall", "mrr", "hit", "rbp", "f1")
TIGHT_FOR_ONE = (*TIGHT, "map", "err")
EVERY = (*TIGHT_FOR_ONE, "r_precision", "bpref", "map_graded", "map_graded_norm")

lists = st.permutations(DOCS).flatmap(
    lambda order: st.integers(0, len(DOCS)).map(lambda length: order[:length])
)
DRAWN = {
    "found": st.dictionaries(st.sampled_from(DOCS), st.sampled_from((0.0, 1.0, 2.0)), max_size=4),
    "k": st.sampled_from((None, 1, 2, 3)),
    "ap_norm": st.sampled_from(("R", "min(R,k)")),
    "threshold": st.sampled_from((1.0, 2.0)),
}


def made(docs, queries=("q",)) -> Ranking:
    """Return a ranking with the same list for every query, and one more query: never empty."""
    return ranking(**dict.fromkeys(queries, docs), z="x")


def qrels(**found) -> pd.DataFrame:
    # Every query has a label, and the top grade is always 2.
    every = {**{query: {"unranked": 0.0, **own} for query, own in found.items()}, "z": {"x": 2.0}}
    rows = [(query, doc, label) for query, own in every.items() for doc, label in own.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def values(docs, outcomes, spec: str, conventions: Conventions):
    """Return the list's value under each labelling: (n,) and, last, the extra query's value."""
    queries = {f"q{number}": found for number, found in enumerate(outcomes)}
    judged = judge(made(docs, queries), qrels(**queries), conventions)
    return evaluate(judged, [spec], conventions).values[:, 0]


def spelled(name: str, k: int | None) -> str:
    return name if k is None or name == "r_precision" else f"{name}@{k}"


def within(docs, k: int | None) -> set[str]:
    return set(docs if k is None else docs[:k])


def outcomes(open_docs, found):
    """Return every assignment of the labels 0, 1 and 2 to the documents without a label."""
    return [
        {**found, **dict(zip(open_docs, assigned, strict=True))}
        for assigned in itertools.product((0.0, 1.0, 2.0), repeat=len(open_docs))
    ]


def system(docs, found, conventions: Conventions) -> RankedLabels:
    ranking = made(docs)
    return RankedLabels(ranking, judge(ranking, qrels(q=found), conventions))


@pytest.mark.parametrize("name", EVERY)
@given(docs=lists, **DRAWN)
@settings(max_examples=15)
def test_no_labels_take_a_system_beyond_its_bounds(docs, found, name, k, ap_norm, threshold):
    rules = Conventions(no_relevant="count", ap_norm=ap_norm, threshold=threshold)
    spec = spelled(name, k)
    open_docs = sorted(within(docs, None if name == "r_precision" else k) - found.keys())
    *every, other = values(docs, outcomes(open_docs, found), spec, rules)
    table = bounds_table({"s": system(docs, found, rules)}, [spec], rules).iloc[0]
    # The means are over two queries; the other has no unjudged document within reach.
    lowest, highest, now, relevant = (
        table[column] * 2 - other for column in ("lowest", "highest", "value", "if_relevant")
    )
    assert lowest <= min(every) + 1e-9
    assert highest >= max(every) - 1e-9
    if name in TIGHT_FOR_ONE:
        assert table["kind"] == "tight"
        assert (lowest, highest) == pytest.approx((min(every), max(every)), abs=1e-9)
    assert table["unjudged"] == len(open_docs)
    if name != "bpref":  # Only bpref distinguishes a document labelled 0 from one without a label.
        assert now == pytest.approx(every[0], abs=1e-9), "no document left open is relevant"
    assert relevant == pytest.approx(every[-1], abs=1e-9), "all of them are, fully"


@pytest.mark.parametrize("name", EVERY)
@given(before=lists, after=lists, **DRAWN)
@settings(max_examples=15)
def test_no_labels_take_a_difference_beyond_its_bounds(
    before, after, found, name, k, ap_norm, threshold
):
    rules = Conventions(no_relevant="count", ap_norm=ap_norm, threshold=threshold)
    spec = spelled(name, k)
    depth = None if name == "r_precision" else k
    open_docs = sorted((within(before, depth) | within(after, depth)) - found.keys())
    labellings = outcomes(open_docs, found)
    deltas = (values(after, labellings, spec, rules) - values(before, labellings, spec, rules))[:-1]
    comparison = UnjudgedComparison(
        system(before, found, rules), system(after, found, rules), spec, rules
    )
    bounds = comparison.bounds
    row = bounds.queries.iloc[0]
    if name != "bpref":
        assert row["delta"] == pytest.approx(deltas[0], abs=1e-9)
    assert row["lowest"] <= deltas.min() + 1e-9
    assert row["highest"] >= deltas.max() - 1e-9
    if name in TIGHT and not (name == "f1" and k is None):
        assert bounds.kind == "tight"
        assert row["lowest"] == pytest.approx(deltas.min(), abs=1e-9)
        assert row["highest"] == pytest.approx(deltas.max(), abs=1e-9)
    assert sorted(comparison.pool.doc_ids) == open_docs
    ones = [found, *({**found, doc: 2.0} for doc in comparison.pool.doc_ids)]
    alone = (values(after, ones, spec, rules) - values(before, ones, spec, rules))[:-1]
    # Means are over two queries.
    assert comparison.effects * 2 == pytest.approx(alone[1:] - alone[0], abs=1e-9)


@pytest.mark.parametrize("rules", [Conventions(), Conventions.trec_eval()], ids=["own", "trec"])
@pytest.mark.parametrize("missing", ["zero", "skip"])
@pytest.mark.parametrize("name", EVERY)
def test_a_run_that_lacks_a_labelled_query_has_bounds(name, missing, rules):
    """The query counts 0 or is excluded, by the conventions; no label can change that."""
    rules = replace(rules, missing=missing)
    ranking = made("abc", ["q"])
    judged = judge(ranking, qrels(q={"a": 1.0}, lacking={"a": 1.0}), rules)
    row = bounds_table({"s": RankedLabels(ranking, judged)}, [name], rules).iloc[0]
    shown = evaluate(judged, [name], rules)
    assert row["n"] == (~np.isnan(shown.values[:, 0])).sum()
    assert row["value"] == pytest.approx(shown.mean(name))
    assert row["lowest"] - 1e-9 <= row["value"] <= row["highest"] + 1e-9
    assert row["unjudged"] == 2 if name != "r_precision" else row["unjudged"] <= 2


def compared(
    before, after, labels, spec="mrr@2", left_out=None, **conventions
) -> UnjudgedComparison:
    """Return the comparison. before, after: query → its documents. labels: query → document →
    label."""
    rules, frame = Conventions(**conventions), labels_of(**labels)
    lists = (ranking(**each) for each in (before, after))
    sides = [RankedLabels(each, judge(each, frame, rules), left_out or {}) for each in lists]
    return UnjudgedComparison(*sides, spec, rules)


def bounded(docs: str, found: dict[str, float], *specs: str) -> pd.DataFrame:
    """Return bounds of means over two queries; the second query has the value 1."""
    rules = Conventions()
    return bounds_table({"s": system(docs, found, rules)}, list(specs), rules)


def tied(ties: str) -> UnjudgedComparison:
    ranking = Ranking.from_columns(["q"] * 3, ["a", "b", "c"], [1.0, 1.0, 1.0])
    labelled = pd.DataFrame({"query_id": ["q"], "doc_id": ["b"], "label": [1.0]})
    rules = Conventions(ties=ties)
    one = RankedLabels(ranking, judge(ranking, labelled, rules))
    return UnjudgedComparison(one, one, "mrr@1", rules)


def of_other_labels() -> UnjudgedComparison:
    rules = Conventions()
    one = system("ab", {"a": 1.0}, rules)
    other = RankedLabels(one.ranking, judge(one.ranking, qrels(z={"a": 1.0}), rules))
    return UnjudgedComparison(one, other, "mrr", rules)


def swapped(rule: str) -> UnjudgedComparison:
    rules = Conventions(mrr_none=rule, no_relevant="count")
    sides = (system(docs, {}, rules) for docs in (["a", "b"], ["b", "a"]))
    return UnjudgedComparison(*sides, "mrr@2", rules)


def top(labels: list[float], spec: str, threshold: float) -> float:
    rules = Conventions(threshold=threshold)
    frame = pd.DataFrame({"query_id": "q", "doc_id": list("ab")[: len(labels)], "label": labels})
    judged = judge(Ranking.from_columns(["q"], ["a"], [1.0]), frame, rules)
    return top_label(judged, parse_measure(spec), rules)


A, AB, BOTH = {"a": 1}, {"a": 1, "b": 0}, {"p": "ua", "q": "va"}
THREE = {"p": "uab", "q": "vab", "r": "wab"}
COMPARED = {
    "a gain that no label can undo": lambda: compared(
        {"q": "xa"}, {"q": "ax"}, {"q": {"a": 1, "x": 0}}
    ),
    # Only the challenger ranks u first: if u is relevant, the gain of 0.5 becomes a loss.
    "a gain that one label could turn": lambda: compared({"q": "uab"}, {"q": "abu"}, {"q": AB}),
    "condensed": lambda: compared({"q": "uab"}, {"q": "abu"}, {"q": AB}, judged_only=True),
    "a loss": lambda: compared({"q": "ax"}, {"q": "xa"}, {"q": {"a": 1, "x": 0}}),
    "no difference": lambda: compared({"q": "au"}, {"q": "au"}, {"q": A}),
    "no difference, nothing relevant": lambda: compared(
        {"q": "au"}, {"q": "au"}, {"q": {"a": 0}}
    ),
    # Three queries gain 0.5 each and have one unjudged document each that could undo it; any one
    # label makes 0.5/3 certain, for any labels of the other two.
    "the smallest number that settles": lambda: compared(
        THREE, {query: docs[1:] + docs[0] for query, docs in THREE.items()},
        dict.fromkeys(THREE, AB),
    ),
    "a failed query": lambda: compared(
        BOTH, {"p": "au", "q": "av"}, {"p": A, "q": A}, left_out={"q": "failed"}
    ),
    "labels could bring a query into the mean": lambda: compared(
        BOTH, {"p": "au", "q": "av"}, {"p": A, "q": {"a": 0}}
    ),
    "they could not": lambda: compared(
        *[{"p": "ua", "q": "a"}] * 2, {"p": A, "q": {"a": 0}}
    ),
    **several(
        "a ranking lacks a query, {}",
        lambda rules: compared({"p": "ua", "q": "ua"}, {"p": "au"}, {"p": A, "q": A}, **rules),
        ({}, {"queries": "both"}, {"missing": "skip"}),
    ),
    # v is fourth in the baseline, beyond the cutoff.
    "within the cutoff of either system": lambda: compared(
        {"q": "abuv"}, {"q": "abvw"}, {"q": A}, "ndcg@3"
    ),
    **{f"ties by {ties}": lambda ties=ties: tied(ties) for ties in ("stable", "trec")},
    **{f"nothing found, {rule}": lambda rule=rule: swapped(rule) for rule in ("zero", "skip")},
    "no labels": lambda: compared({"q": "ab"}, {"q": "ab"}, {}, "ndcg@10"),
    "a measure of labels": lambda: compared({"q": "a"}, {"q": "a"}, {"q": A}, "judged@10"),
    "joined with other labels": of_other_labels,
}  # fmt: skip
BOUNDED = {
    # A grade of 1 for x makes the order perfect.
    "a middle grade can be best": lambda: bounded("axb", {"a": 1.0, "b": 1.0}, "ndcg"),
    # With e relevant too: (1 + 2/5) / 2; with d and e no less.
    "average precision": lambda: bounded("abcde", {"a": 1.0}, "map"),
    "a relevant document can lower NDCG": lambda: bounded("abc", {"a": 2.0, "b": 0.0}, "ndcg@3"),
    # One of two is judged for this query, one of one for the other.
    "no quality": lambda: bounded("abcd", {"a": 1.0, "d": 0.0}, "judged@2", "mrr@2"),
    **{
        f"the top grade of {labels} in {spec} from {threshold}": lambda each=(
            labels, spec, threshold
        ): top(*each)
        for labels, spec, threshold in (
            ([0.0], "ndcg", 1.0), ([0.0], "mrr", 2.0), ([0.0], "ndcg", 2.0),
            ([3.0, 1.0], "mrr", 2.0), ([0.5], "ndcg", 1.0), ([0.5], "mrr", 1.0),
        )
    },
}  # fmt: skip


def told(found: UnjudgedComparison) -> tuple[object, ...]:
    bounds = found.bounds
    names = ("n", "delta", "lowest", "highest", "sign", "kind", "unjudged", "could_join")
    pool = dict(zip(found.pool.doc_ids, found.pool.ranks.T, strict=True))
    numbers = {name: getattr(bounds, name) for name in names}
    return numbers, "settles:", found.labels_to_settle, pool, found.effects


def test_what_labels_could_still_change(approved):
    approved("analysis/bounds", results(COMPARED, told))
    approved("analysis/bounds_table", results(BOUNDED))
