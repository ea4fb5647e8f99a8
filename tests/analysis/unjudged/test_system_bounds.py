"""Bounds hold for every assignment of labels, and where they are called tight one reaches them."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.analysis.unjudged.system_bounds import (
    RankedLabels,
    UnjudgedComparison,
    bounds_table,
    top_label,
)
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, evaluate, judge, parse_measure
from rankdash.ranking.ranking import Ranking

DOCS = "abcde"
TIGHT = ("ndcg", "ndcg_exp", "ndcg_jk", "precision", "recall", "mrr", "hit", "rbp", "f1")
TIGHT_FOR_ONE = (*TIGHT, "map", "err")
EVERY = (*TIGHT_FOR_ONE, "r_precision", "bpref", "map_graded", "map_graded_norm")

lists = st.permutations(DOCS).flatmap(
    lambda order: st.integers(0, len(DOCS)).map(lambda length: order[:length])
)
labels = st.dictionaries(st.sampled_from(DOCS), st.sampled_from((0.0, 1.0, 2.0)), max_size=4)


def made(docs, queries=("q",)) -> Ranking:
    """The same list for every query; one query more keeps the ranking from being empty."""
    scores = [float(-place) for place in range(len(docs))]
    return Ranking.from_lists([*((q, list(docs), scores) for q in queries), ("z", ["x"], [0.0])])


def qrels(**found) -> pd.DataFrame:
    # Every query has a label, and 2 is the top grade whatever is drawn.
    every = {**{query: {"unranked": 0.0, **own} for query, own in found.items()}, "z": {"x": 2.0}}
    rows = [(query, doc, label) for query, own in every.items() for doc, label in own.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def values(docs, outcomes, spec: str, conventions: Conventions):
    """What the list is worth under each of some labellings: (n,) and, last, the extra query."""
    queries = {f"q{number}": found for number, found in enumerate(outcomes)}
    judged = judge(made(docs, queries), qrels(**queries), conventions)
    return evaluate(judged, [spec], conventions).values[:, 0]


def spelled(name: str, k: int | None) -> str:
    return name if k is None or name == "r_precision" else f"{name}@{k}"


def within(docs, k: int | None) -> set[str]:
    return set(docs if k is None else docs[:k])


def outcomes(open_docs, found):
    """Every assignment of the labels 0, 1 and 2 to the documents that have none."""
    return [
        {**found, **dict(zip(open_docs, assigned, strict=True))}
        for assigned in itertools.product((0.0, 1.0, 2.0), repeat=len(open_docs))
    ]


def system(docs, found, conventions: Conventions) -> RankedLabels:
    ranking = made(docs)
    return RankedLabels(ranking, judge(ranking, qrels(q=found), conventions))


@pytest.mark.parametrize("name", EVERY)
@given(
    docs=lists,
    found=labels,
    k=st.sampled_from((None, 1, 2, 3)),
    ap_norm=st.sampled_from(("R", "min(R,k)")),
    threshold=st.sampled_from((1.0, 2.0)),
)
@settings(max_examples=30)
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
    if name != "bpref":  # which alone tells a document labelled 0 from one without a label
        assert now == pytest.approx(every[0], abs=1e-9), "no document left open is relevant"
    assert relevant == pytest.approx(every[-1], abs=1e-9), "all of them are, fully"


@pytest.mark.parametrize("name", EVERY)
@given(
    before=lists,
    after=lists,
    found=labels,
    k=st.sampled_from((None, 1, 2, 3)),
    ap_norm=st.sampled_from(("R", "min(R,k)")),
    threshold=st.sampled_from((1.0, 2.0)),
)
@settings(max_examples=30)
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
    bounds = comparison.bounds()
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


def test_a_middle_grade_can_be_best_for_ndcg():
    rules = Conventions()
    row = bounds_table({"s": system("axb", {"a": 1.0, "b": 1.0}, rules)}, ["ndcg"], rules).iloc[0]
    assert row["highest"] == pytest.approx(1), "a grade of 1 for x makes the order perfect"
    assert max(row["value"], row["if_relevant"]) < 1


def test_average_precision_is_lowest_with_as_many_relevant_documents_as_hurt_most():
    rules = Conventions()
    row = bounds_table({"s": system("abcde", {"a": 1.0}, rules)}, ["map"], rules).iloc[0]
    # With e relevant too: (1 + 2/5) / 2; with d and e no less. The other query has 1.
    assert row["lowest"] == pytest.approx((0.7 + 1) / 2)


@given(
    cases=st.lists(st.tuples(lists, lists, labels), min_size=2, max_size=6),
    name=st.sampled_from(EVERY),
    k=st.sampled_from((None, 2)),
)
@settings(max_examples=60)
def test_the_bounds_of_a_query_do_not_depend_on_the_others(cases, name, k):
    rules, spec = Conventions(no_relevant="count"), spelled(name, k)

    def bounds(chosen):
        own = {f"q{number}": case for number, case in enumerate(chosen)}
        labelled = qrels(**{query: case[2] for query, case in own.items()})
        sides = []
        for side in (0, 1):
            every = Ranking.from_lists(
                [
                    *(
                        (query, case[side], [-float(i) for i in range(len(case[side]))])
                        for query, case in own.items()
                    ),
                    ("z", ["x"], [0.0]),
                ]
            )
            sides.append(RankedLabels(every, judge(every, labelled, rules)))
        found = UnjudgedComparison(sides[0], sides[1], spec, rules)
        rows = found.bounds().queries.set_index("query_id")
        effects = pd.Series(found.effects * len(rows)).groupby(found.query_ids[found.pool.query])
        return rows, effects.apply(sorted)

    together, effects = bounds(cases)
    for number, case in enumerate(cases):
        alone, effect = bounds([case])
        row = together.loc[f"q{number}"]
        assert row.to_numpy(float) == pytest.approx(alone.loc["q0"].to_numpy(float), abs=1e-9)
        if "q0" in effect:
            assert effects[f"q{number}"] == pytest.approx(effect["q0"], abs=1e-9)


def test_ties_are_settled_by_the_rule_before_ranks_are_read():
    tied = Ranking.from_columns(["q"] * 3, ["a", "b", "c"], [1.0, 1.0, 1.0])
    labelled = pd.DataFrame({"query_id": ["q"], "doc_id": ["b"], "label": [1.0]})
    for ties, before in (("stable", "a"), ("trec", "c")):
        rules = Conventions(ties=ties)
        one = RankedLabels(tied, judge(tied, labelled, rules))
        found = UnjudgedComparison(one, one, "mrr@1", rules)
        assert list(found.pool.doc_ids) == [before], "the first of the list, and it alone"


def test_a_query_that_one_ranking_lacks_counts_as_the_conventions_say():
    lists = {"p": "ua", "q": "ua"}, {"p": "au"}, {"p": {"a": 1}, "q": {"a": 1}}
    assert compared(*lists).bounds().n == 2
    assert compared(*lists, queries="both").bounds().n == 1
    assert compared(*lists, missing="skip").bounds().n == 1


def test_systems_joined_with_other_labels_are_not_compared():
    rules = Conventions()
    one = system("ab", {"a": 1.0}, rules)
    other = RankedLabels(one.ranking, judge(one.ranking, qrels(z={"a": 1.0}), rules))
    with pytest.raises(SpecError, match="joined with other labels"):
        UnjudgedComparison(one, other, "mrr", rules)


def compared(
    before, after, labels, spec="mrr@2", left_out=None, **conventions
) -> UnjudgedComparison:
    """before, after: query → its documents. labels: query → document → label."""
    rules = Conventions(**conventions)
    rows = [(query, doc, label) for query, own in labels.items() for doc, label in own.items()]
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])
    sides = []
    for lists in (before, after):
        ranking = Ranking.from_lists(
            (query, list(docs), [float(-place) for place in range(len(docs))])
            for query, docs in lists.items()
        )
        sides.append(RankedLabels(ranking, judge(ranking, frame, rules), left_out or {}))
    return UnjudgedComparison(sides[0], sides[1], spec, rules)


def test_a_gain_that_no_label_can_undo_is_settled():
    found = compared({"q": "xa"}, {"q": "ax"}, {"q": {"a": 1, "x": 0}})
    bounds = found.bounds()
    assert (bounds.lowest, bounds.delta, bounds.highest) == (0.5, 0.5, 0.5)
    assert (bounds.sign, bounds.unjudged, found.labels_to_settle()) == ("above", 0, 0)


def test_a_gain_that_one_label_could_turn_is_open_until_it_is_given():
    # u on top of the baseline alone: relevant, it would turn the gain of 0.5 into a loss.
    found = compared({"q": "uab"}, {"q": "abu"}, {"q": {"a": 1, "b": 0}})
    bounds = found.bounds()
    assert bounds.delta == 0.5
    assert bounds.lowest == 0
    assert bounds.sign == "open"
    assert found.labels_to_settle() == 1


def test_a_loss_is_settled_from_above():
    found = compared({"q": "ax"}, {"q": "xa"}, {"q": {"a": 1, "x": 0}})
    assert found.bounds().sign == "below"
    assert found.labels_to_settle() == 0


def test_no_number_of_labels_settles_a_difference_of_zero():
    assert compared({"q": "au"}, {"q": "au"}, {"q": {"a": 1}}).labels_to_settle() is None
    assert compared({"q": "au"}, {"q": "au"}, {"q": {"a": 0}}).labels_to_settle() is None


def test_the_number_that_settles_is_the_smallest_that_does():
    """Three queries gain 0.5 each and have one open document each that could undo it."""
    queries = {"p": "uab", "q": "vab", "r": "wab"}
    after = {query: docs[1:] + docs[0] for query, docs in queries.items()}
    found = compared(queries, after, {query: {"a": 1, "b": 0} for query in queries})
    bounds = found.bounds()
    assert (bounds.delta, bounds.lowest, bounds.sign) == (0.5, 0, "open")
    # Any one label makes 0.5/3 certain, whatever the other two turn out to be.
    assert found.labels_to_settle() == 1


def test_a_failed_query_is_in_no_bound_and_needs_no_label():
    lists = {"p": "ua", "q": "va"}
    labels = {"p": {"a": 1}, "q": {"a": 1}}
    found = compared(lists, {"p": "au", "q": "av"}, labels, left_out={"q": "failed"})
    bounds = found.bounds()
    assert list(bounds.queries["query_id"]) == ["p"]
    assert set(found.pool.doc_ids) == {"u"}
    assert bounds.n == 1


def test_a_query_that_labels_could_bring_into_the_mean_is_counted_and_not_bounded():
    lists = {"p": "ua", "q": "va"}
    found = compared(lists, {"p": "au", "q": "av"}, {"p": {"a": 1}, "q": {"a": 0}})
    assert found.bounds().could_join == 1
    assert list(found.bounds().queries["query_id"]) == ["p"]


def test_a_query_without_an_open_document_can_join_no_mean():
    lists = {"p": "ua", "q": "a"}
    found = compared(lists, lists, {"p": {"a": 1}, "q": {"a": 0}})
    assert found.bounds().could_join == 0


def test_only_documents_within_the_cutoff_of_either_system_are_open():
    found = compared({"q": "abuv"}, {"q": "abvw"}, {"q": {"a": 1}}, "ndcg@3")
    assert sorted(found.pool.doc_ids) == ["b", "u", "v"]
    ranks = dict(zip(found.pool.doc_ids, found.pool.ranks.T.tolist(), strict=True))
    assert ranks["u"] == [3.0, float("inf")]
    assert ranks["v"] == [float("inf"), 3.0], "v is fourth in the baseline, beyond the cutoff"


def test_judged_only_changes_nothing_about_the_bounds():
    lists = {"q": "uab"}, {"q": "abu"}, {"q": {"a": 1, "b": 0}}
    plain, condensed = (compared(*lists, judged_only=each).bounds() for each in (False, True))
    assert (plain.delta, plain.lowest, plain.highest) == (
        condensed.delta,
        condensed.lowest,
        condensed.highest,
    )


def test_one_more_relevant_document_can_lower_ndcg_below_what_is_shown():
    rules = Conventions()
    row = bounds_table({"s": system("abc", {"a": 2.0, "b": 0.0}, rules)}, ["ndcg@3"], rules).iloc[0]
    assert row["value"] == 1
    assert row["lowest"] < 1
    assert row["if_relevant"] == pytest.approx(row["lowest"])
    assert row["highest"] == 1


def test_the_table_leaves_out_what_is_no_quality_and_says_how_much_is_judged():
    rules = Conventions()
    table = bounds_table(
        {"s": system("abcd", {"a": 1.0, "d": 0.0}, rules)}, ["judged@2", "mrr@2"], rules
    )
    assert list(table["metric"]) == ["mrr@2"]
    # One of two for this query, one of one for the other.
    assert table["judged"].iloc[0] == pytest.approx((1 / 2 + 1) / 2)
    assert table["unjudged"].iloc[0] == 1


@pytest.mark.parametrize("rules", [Conventions(), Conventions.trec_eval()], ids=["own", "trec"])
@pytest.mark.parametrize("missing", ["zero", "skip"])
@pytest.mark.parametrize("name", EVERY)
def test_a_run_that_lacks_a_labelled_query_has_bounds(name, missing, rules):
    """The query counts 0 or not at all, as the conventions say; no label can change that."""
    rules = replace(rules, missing=missing)
    ranking = made("abc", ["q"])
    judged = judge(ranking, qrels(q={"a": 1.0}, lacking={"a": 1.0}), rules)
    row = bounds_table({"s": RankedLabels(ranking, judged)}, [name], rules).iloc[0]
    shown = evaluate(judged, [name], rules)
    assert row["n"] == (~np.isnan(shown.values[:, 0])).sum()
    assert row["value"] == pytest.approx(shown.mean(name))
    assert row["lowest"] - 1e-9 <= row["value"] <= row["highest"] + 1e-9
    assert row["unjudged"] == 2 if name != "r_precision" else row["unjudged"] <= 2


def test_a_measure_of_the_labels_cannot_be_moved_by_them():
    with pytest.raises(SpecError, match="says nothing of quality"):
        compared({"q": "a"}, {"q": "a"}, {"q": {"a": 1}}, "judged@10")


def test_without_labels_there_is_nothing_to_bound():
    rules = Conventions()
    ranking = made("ab")
    empty = pd.DataFrame({"query_id": [], "doc_id": [], "label": []})
    one = RankedLabels(ranking, judge(ranking, empty, rules))
    bounds = UnjudgedComparison(one, one, "ndcg@10", rules).bounds()
    assert (bounds.n, bounds.unjudged, bounds.sign) == (0, 0, "open")
    assert bounds_table({"s": one}, ["map"], rules)["n"].tolist() == [0]


@pytest.mark.parametrize(
    ("labels", "spec", "threshold", "top"),
    [
        ([0.0], "ndcg", 1.0, 1.0),
        ([0.0], "mrr", 2.0, 2.0),
        ([0.0], "ndcg", 2.0, 1.0),
        ([3.0, 1.0], "mrr", 2.0, 3.0),
        ([0.5], "ndcg", 1.0, 0.5),
        ([0.5], "mrr", 1.0, 1.0),
    ],
)
def test_a_fully_relevant_document_has_the_top_grade_and_reaches_the_threshold(
    labels, spec, threshold, top
):
    rules = Conventions(threshold=threshold)
    frame = pd.DataFrame({"query_id": "q", "doc_id": list("ab")[: len(labels)], "label": labels})
    judged = judge(Ranking.from_columns(["q"], ["a"], [1.0]), frame, rules)
    assert top_label(judged, parse_measure(spec), rules) == top


def test_a_list_that_finds_nothing_without_the_label_has_an_effect_where_it_is_skipped_too():
    found = {
        rule: UnjudgedComparison(
            *(
                system(docs, {}, Conventions(mrr_none=rule, no_relevant="count"))
                for docs in (["a", "b"], ["b", "a"])
            ),
            "mrr@2",
            Conventions(mrr_none=rule, no_relevant="count"),
        ).effects
        for rule in ("zero", "skip")
    }
    assert np.isfinite(found["skip"]).all() and found["skip"].any()
    assert found["skip"] == pytest.approx(found["zero"])
