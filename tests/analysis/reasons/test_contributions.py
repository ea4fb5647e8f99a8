"""Contributions add up to the change, whatever the rankings, labels, metric and conventions."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.analysis.reasons.contributions import split, splits, with_top_label, without
from rankdash.analysis.reasons.statements import CAUSES, MOST, statements
from rankdash.metrics import Conventions, evaluate, judge, parse_measure, registry
from rankdash.ranking.ranking import Ranking

DOCS = "abcdefghij"
QUALITY = [name for name, metric in registry.items() if metric.measures_quality]
LABELS = st.dictionaries(
    st.sampled_from(DOCS + "xy"), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0])
)
CONVENTIONS = st.builds(
    Conventions,
    judged_only=st.booleans(),
    threshold=st.sampled_from([0.5, 1.0, 2.0]),
    ap_norm=st.sampled_from(["R", "min(R,k)"]),
    negative=st.sampled_from(["nonrelevant", "unjudged"]),
    ties=st.sampled_from(["as_ranked", "trec", "stable"]),
    score_precision=st.sampled_from(["float64", "float32"]),
    missing=st.sampled_from(["zero", "skip"]),
    no_relevant=st.sampled_from(["skip", "count"]),
    mrr_none=st.sampled_from(["zero", "skip"]),
    queries=st.sampled_from(["qrels", "both"]),
)


@st.composite
def rankings(draw) -> Ranking:
    """Queries q and r over some of the documents, with ties; r is there to be kept apart."""
    rows = []
    for query in draw(st.sampled_from(["qr", "rq", "r", "q"])):
        docs = draw(st.lists(st.sampled_from(DOCS), unique=True, min_size=1))
        steps = draw(st.lists(st.sampled_from([0.0, 1e-9, 1.0]), min_size=10, max_size=10))
        scores = -np.cumsum(steps)[: len(docs)]
        rows += [(query, doc, score) for doc, score in zip(docs, scores, strict=True)]
    queries, docs, scores = zip(*rows, strict=True)
    return Ranking.from_columns(queries, docs, scores)


def table(labels: dict[str, float], other: dict[str, float]) -> pd.DataFrame:
    rows = [("q", doc, label) for doc, label in labels.items()]
    rows += [("r", doc, label) for doc, label in other.items()]
    return pd.DataFrame(
        {
            "query_id": pd.Series([row[0] for row in rows], dtype="str"),
            "doc_id": pd.Series([row[1] for row in rows], dtype="str"),
            "label": np.array([row[2] for row in rows], dtype=float),
        }
    )


def ranked(docs: str, scores: list[float] | None = None) -> Ranking:
    return Ranking.from_lists([("q", list(docs), scores or [-float(n) for n in range(len(docs))])])


@pytest.mark.parametrize("name", QUALITY)
@settings(max_examples=30)
@given(
    before=rankings(), after=rankings(), labels=LABELS, other=LABELS,
    k=st.sampled_from([None, 1, 3, 8, 25]), rules=CONVENTIONS,
)  # fmt: skip
def test_contributions_sum_to_both_values_and_to_the_change(
    name, before, after, labels, other, k, rules
):
    measure = parse_measure(name if k is None or not registry[name].has_cutoff else f"{name}@{k}")
    qrels = table(labels, other)
    found = split(before, after, qrels, "q", measure, rules)
    values = []
    for ranking in (before, after):
        evaluation = evaluate(judge(ranking, qrels, rules), [measure], rules)
        frame = evaluation.frame().set_index("query_id")
        known = "q" in frame.index
        values.append((frame.loc["q", "value"], frame.loc["q", "state"]) if known else (np.nan, ""))
    for (value, state), own, side in zip(
        values, (found.before, found.after), ("before", "after"), strict=True
    ):
        np.testing.assert_allclose(own, value, rtol=0, atol=1e-12)
        if not found.why_not:
            assert state == "scored"
            assert math.fsum(found.documents[side]) == pytest.approx(value, abs=1e-12)
    if found.why_not:
        assert found.documents.empty
        assert any(state != "scored" for _, state in values)
    else:
        delta = values[1][0] - values[0][0]
        assert found.documents["delta"].sum() == pytest.approx(delta, abs=1e-12)
        told = statements(found, qrels, rules)
        assert len(told) <= MOST
        own = sum(each.amount for each in told if each.kind not in CAUSES)
        assert own == pytest.approx(delta, abs=1e-12)
        assert all(each.amount < 0 for each in told if each.kind in CAUSES)


def test_a_metric_that_is_no_sum_over_documents_is_said_to_be_none():
    measure = parse_measure("judged@10")
    found = split(ranked("ab"), ranked("ba"), table({"a": 1}, {}), "q", measure)
    assert not splits(measure)
    assert found.why_not == "metric"
    assert found.documents.empty


def test_a_document_that_one_list_lacks_keeps_its_label():
    measure = parse_measure("ndcg@10")
    for lists in (("ab", "b"), ("b", "ab")):
        rows = split(*map(ranked, lists), table({"a": 2, "b": 1}, {}), "q", measure).documents
        assert rows.set_index("doc_id")["label"].to_dict() == {"a": 2.0, "b": 1.0}


@pytest.mark.parametrize(
    ("rules", "listed", "value"),
    [
        (Conventions(), "a -1, b 0, c 2", 1 / 3),
        (Conventions(negative="unjudged"), "a nan, b 0, c 2", 1 / 3),
        (Conventions(judged_only=True), "a -1, b 0, c 2", 1 / 3),
        (Conventions(judged_only=True, negative="unjudged"), "b 0, c 2", 1 / 2),
    ],
)
def test_a_label_below_0_is_none_where_the_conventions_say_so(rules, listed, value):
    qrels = table({"a": -1, "b": 0, "c": 2}, {})
    found = split(ranked("abc"), ranked("cba"), qrels, "q", parse_measure("mrr"), rules)
    rows = found.documents.sort_values("rank_before")
    labels = zip(rows["doc_id"], rows["label"], strict=True)
    assert ", ".join(f"{doc} {label:g}" for doc, label in labels) == listed
    assert rows["rank_before"].tolist() == [*range(1, len(rows) + 1)]
    assert rows["before"].tolist() == [*[0] * (len(rows) - 1), value]


@pytest.mark.parametrize("name", QUALITY)
def test_every_quality_metric_splits(name):
    assert splits(parse_measure(name))


@pytest.mark.parametrize("state", ["failed", "skipped"])
def test_a_query_without_a_result_is_not_split(state):
    measure = parse_measure("ndcg@10")
    qrels = table({"a": 1}, {})
    found = split(ranked("ab"), ranked("ba"), qrels, "q", measure, left_out={"q": state})
    assert found.why_not == state
    assert math.isnan(found.delta)


def test_a_query_that_one_ranking_lacks_is_not_split_and_keeps_its_value():
    other = Ranking.from_lists([("r", ["a"], [1.0])])
    qrels = table({"a": 1}, {"a": 1})
    found = split(ranked("ab"), other, qrels, "q", parse_measure("ndcg@10"))
    assert (found.why_not, found.before, found.after) == ("missing", 1.0, 0.0)
    assert split(other, other, qrels, "z", parse_measure("ndcg")).why_not == "absent"


def test_each_documents_part_is_its_discounted_gain():
    qrels = table({"a": 3, "b": 1, "x": 2}, {})
    rows = split(ranked("abc"), ranked("cba"), qrels, "q", parse_measure("ndcg@3")).documents
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    rows = rows.set_index("doc_id")
    assert list(rows.index) == ["a", "c", "b"], "the largest change first"
    assert rows.loc["a", "delta"] == pytest.approx((3 / 2 - 3) / ideal)
    assert rows.loc["b", "delta"] == 0
    assert rows.loc["a", ["rank_before", "rank_after", "label"]].tolist() == [1, 3, 3]
    assert math.isnan(rows.loc["c", "label"])


# Document "a" at rank 1 (label 3), "b" at 3 (1), "c" at 4 (2); "x" (2) is not ranked.
@pytest.mark.parametrize(
    ("spec", "rules", "credits"),
    [
        ("dcg", {}, [3, 1 / 2, 2 / math.log2(5)]),
        ("dcg_exp@3", {}, [7, 1 / 2, 0]),
        ("precision@3", {}, [1 / 3, 1 / 3, 0]),
        ("recall", {}, [1 / 4, 1 / 4, 1 / 4]),
        ("recall@3", {"threshold": 2}, [1 / 3, 0, 0]),
        ("f1@4", {}, [2 / 8, 2 / 8, 2 / 8]),
        ("r_precision", {"threshold": 2}, [1 / 3, 0, 0]),
        ("r_precision", {}, [1 / 4, 1 / 4, 1 / 4]),
        ("hit@3", {}, [1, 0, 0]),
        ("hit", {"threshold": 2}, [1, 0, 0]),
        ("map", {}, [1 / 4, 2 / 3 / 4, 3 / 4 / 4]),
        ("map@3", {"ap_norm": "min(R,k)"}, [1 / 3, 2 / 3 / 3, 0]),
        ("map@3", {"ap_norm": "R"}, [1 / 4, 2 / 3 / 4, 0]),
        ("err@3", {}, [7 / 8, 1 / 8 * 1 / 8 / 3, 0]),
        ("err", {}, [7 / 8, 1 / 8 * 1 / 8 / 3, 1 / 8 * 7 / 8 * 3 / 8 / 4]),
        ("err", {"err_top_label": 4}, [7 / 16, 9 / 16 / 16 / 3, 9 / 16 * 15 / 16 * 3 / 16 / 4]),
        ("rbp(0.8)@3", {}, [1 - 0.8, 0.2 * 0.8**2, 0]),
    ],
)
def test_what_a_document_is_credited_with_follows_from_its_rank_and_label(spec, rules, credits):
    qrels = table({"a": 3, "b": 1, "c": 2, "x": 2, "n": 0}, {})
    rows = split(
        ranked("anbc"), ranked("n"), qrels, "q", parse_measure(spec), Conventions(**rules)
    ).documents.set_index("doc_id")["before"]
    assert rows.loc[["a", "b", "c", "n"]].tolist() == pytest.approx([*credits, 0])


def test_documents_that_changed_as_much_come_in_the_order_of_the_challenger():
    """The last digits of equal changes are not those of their sizes."""
    qrels = table(dict.fromkeys("abcdef", 1), {})
    found = split(ranked("abcxyz"), ranked("zyxwfed"), qrels, "q", parse_measure("recall@6"))
    order = found.documents["doc_id"].tolist()
    assert order == ["f", "e", "a", "b", "c", "z", "y", "x", "w", "d"]


def test_in_mrr_the_credit_passes_from_one_document_to_the_other():
    qrels = table({"a": 1, "b": 1}, {})
    rows = split(ranked("ab"), ranked("cb"), qrels, "q", parse_measure("mrr")).documents
    assert dict(zip(rows["doc_id"], rows["delta"], strict=True)) == {"a": -1.0, "b": 0.5, "c": 0.0}


def test_in_average_precision_a_document_counts_less_when_one_above_it_goes():
    qrels = table({"a": 1, "b": 1}, {})
    rows = split(ranked("ab"), ranked("cb"), qrels, "q", parse_measure("map")).documents
    assert dict(zip(rows["doc_id"], rows["delta"], strict=True))["b"] == pytest.approx(-0.25)
    told = statements(
        split(ranked("ab"), ranked("cb"), qrels, "q", parse_measure("map")), qrels, Conventions()
    )
    assert [each.kind for each in told] == ["left", "held", "unjudged_above"]


def test_among_judged_documents_ranks_count_those_alone():
    qrels = table({"a": 1, "b": 0}, {})
    rules = Conventions(judged_only=True)
    rows = split(ranked("uba"), ranked("ua"), qrels, "q", parse_measure("mrr"), rules).documents
    rows = rows.set_index("doc_id")
    assert rows.loc["a", ["rank_before", "rank_after"]].tolist() == [2, 1]
    assert "u" not in rows.index


def told(before: str, after: str, labels: dict[str, float], spec: str, **rules):
    qrels, conventions = table(labels, {}), Conventions(**rules)
    found = split(ranked(before), ranked(after), qrels, "q", parse_measure(spec), conventions)
    return found, statements(found, qrels, conventions)


def test_entrants_and_leavers_are_told_with_their_ranks_and_signed_shares():
    found, said = told("abcdef", "defabc", {"a": 1, "d": 1, "f": 1, "b": 0, "c": 0}, "recall@3")
    assert [each.kind for each in said] == ["entered", "left"]
    entered, left = said
    assert entered.doc_ids == ("d", "f")
    assert entered.moves == ((4, 1), (6, 3))
    assert entered.amount == pytest.approx(2 / 3)
    assert left.moves == ((1, 4),)
    assert left.amount == pytest.approx(-1 / 3)
    assert found.delta == pytest.approx(1 / 3)


def test_the_first_relevant_document_is_told_where_only_it_counts():
    _, said = told("abcd", "bcda", {"a": 1, "d": 1}, "mrr@2")
    assert said[0].kind == "first"
    assert said[0].doc_ids == ("a", "d")
    assert said[0].moves == ((1, 3),)
    assert said[0].amount == -1


@pytest.mark.parametrize(
    ("threshold", "after", "docs"), [(1.0, "cbda", ("a", "b")), (2.0, "bcda", ("b", "b"))]
)
def test_the_first_relevant_document_is_one_of_at_least_the_threshold(threshold, after, docs):
    _, said = told("abcd", after, {"a": 1, "b": 2}, "mrr@4", threshold=threshold)
    assert said[0].doc_ids == docs


def test_the_top_of_the_scale_is_that_of_all_labels_unless_the_conventions_name_one():
    qrels = pd.DataFrame({"query_id": ["q", "r"], "doc_id": ["a", "a"], "label": [1.0, 2.0]})
    assert with_top_label(Conventions(), qrels).err_top_label == 2
    assert with_top_label(Conventions(err_top_label=3), qrels).err_top_label == 3
    assert with_top_label(Conventions(), qrels.assign(label=0.0)).err_top_label is None
    assert with_top_label(Conventions(), qrels.head(0)).err_top_label is None


def test_unjudged_documents_lifted_over_a_relevant_one_are_named_with_what_they_cost():
    found, said = told("abcd", "bcad", {"a": 1, "d": 0}, "ndcg@4")
    assert [each.kind for each in said] == ["fell", "unjudged_above"]
    assert said[1].doc_ids == ("b", "c")
    assert said[1].amount == pytest.approx(found.after - 1.0)


def test_what_stood_above_already_was_not_lifted():
    for above, lifted in (("u", ("b",)), ("", ("u", "b"))):
        before = f"{above}a{'b' if above else 'ub'}"
        found, said = told(before, "uba", {"a": 1}, "ndcg@3")
        assert said[-1].doc_ids == lifted
        rank_without = 3 - len(lifted)
        assert said[-1].amount == pytest.approx(found.after - 1 / np.log2(rank_without + 1))


@pytest.mark.parametrize(
    ("before", "after", "docs", "ranks"),
    [("ab", "bc", ("a", ""), (1, math.nan)), ("bc", "ba", ("", "a"), (math.nan, 2))],
)
def test_the_first_relevant_document_may_be_in_one_list_alone(before, after, docs, ranks):
    _, said = told(before, after, {"a": 1}, "mrr")
    assert (said[0].kind, said[0].doc_ids, said[0].count) == ("first", docs, 1)
    np.testing.assert_array_equal(said[0].moves, [ranks])


def test_where_grades_count_only_a_label_of_0_or_below_is_judged_worse():
    for label, kinds in ((0, ["worse_above"]), (-1, ["worse_above"]), (0.5, [])):
        _, said = told("ab", "ba", {"a": 2, "b": label}, "ndcg")
        assert [each.kind for each in said if each.kind in CAUSES] == kinds


def test_what_was_lifted_over_a_document_that_lost_nothing_is_no_cause():
    """ "c" passed "a", and "u" passed "b", which rose all the same."""
    found, said = told("acdebu", "caubde", {"a": 3, "c": 1, "b": 1}, "ndcg@6")
    assert found.delta < 0
    assert [each.kind for each in said] == ["fell", "rose"]
    assert said[1].doc_ids == ("c", "b"), "as they stood before"
    _, said = told("xyab", "baxy", {"a": 1, "b": 1}, "ndcg@4")
    assert (said[0].doc_ids, said[0].moves) == (("a", "b"), ((3, 2), (4, 1)))


def test_what_took_the_place_of_a_document_that_is_gone_was_lifted_over_it():
    _, said = told("abcd", "bcd", {"a": 1, "d": 1}, "ndcg@4")
    assert (said[-1].kind, said[-1].doc_ids) == ("unjudged_above", ("b", "c"))


def test_what_was_lifted_over_one_of_those_that_lost_is_a_cause():
    """ "c" passed both, "u" only "b"."""
    _, said = told("abcu", "caub", {"a": 2, "b": 1}, "ndcg@4")
    assert (said[-1].kind, said[-1].doc_ids) == ("unjudged_above", ("c", "u"))


def test_of_two_causes_the_dearer_is_named():
    _, said = told("abcde", "dcbea", {"a": 2, "b": 0, "c": 0, "e": 0}, "ndcg@5")
    assert said[-1].kind == "worse_above"
    assert said[-1].doc_ids == ("c", "b", "e")


@pytest.mark.parametrize(("after", "kinds"), [("rsxya", []), ("rsxa", ["worse_above"])])
def test_what_was_lifted_is_a_cause_where_the_list_without_it_is_better(after, kinds):
    """Without x alone, or y alone, a is still below the third place."""
    _, said = told("rsaxy", after, dict.fromkeys("rsa", 1) | {"x": 0}, "recall@3")
    assert [each.kind for each in said] == ["left", *kinds]


def test_in_binary_metrics_a_document_below_the_threshold_is_judged_worse():
    for threshold, kinds in ((2, ["fell", "worse_above"]), (1, [])):
        _, said = told("ab", "ba", {"a": 2, "b": 1}, "mrr", threshold=threshold)
        assert [each.kind for each in said] == [kind.replace("fell", "first") for kind in kinds]
        _, said = told("ab", "ba", {"a": 2, "b": 1}, "map", threshold=threshold)
        assert [each.kind for each in said if each.kind != "rose"] == kinds


@pytest.mark.parametrize("name", QUALITY)
def test_without_none_of_its_documents_a_list_scores_what_it_does(name):
    """Also where the highest label, which ERR looks at, is another query's."""
    qrels = table({"a": 1, "b": 2, "c": 0}, {"z": 3})
    found = split(ranked("abc"), ranked("cab"), qrels, "q", parse_measure(name))
    assert without(found, [], qrels, Conventions()) == pytest.approx(found.after)


def test_a_cause_is_named_only_where_the_query_lost():
    """Either way nobody judged "u" and "v", which were lifted over "a"."""
    for grade, lost in ((1.8, True), (2.2, False)):
        found, said = told("auvd", "duva", {"a": 2, "d": grade}, "ndcg@4")
        assert (found.delta < 0) == lost
        assert [each.kind for each in said if each.kind in CAUSES] == ["unjudged_above"] * lost
    # What entered makes good for what left, which "x" now stands above.
    found, said = told("axbcde", "cxbade", {"a": 1, "b": 1, "c": 1}, "recall@2")
    assert found.delta == 0
    assert sorted(each.kind for each in said) == ["entered", "left"]


def test_as_many_groups_as_there_is_room_for_are_told_each():
    _, said = told("abcd", "dacb", {"a": 1, "b": 1, "c": 1, "d": 3}, "ndcg@3")
    assert sorted(each.kind for each in said) == ["entered", "fell", "left"]
    _, said = told("abcdx", "bxadc", {"a": 3, "b": 1, "c": 1, "d": 0}, "ndcg@3")
    assert said[-1].kind in CAUSES
    assert [each.kind for each in said[:-1]] == ["fell", "rest"], "three groups, room for two"


def test_more_groups_than_there_is_room_for_share_a_statement():
    labels = {"a": 3, "b": 1, "c": 2, "d": 2, "e": 1, "f": 3}
    found, said = told("abcdefgh", "cfbdgahe", labels, "ndcg@4")
    assert len(said) <= MOST
    assert "rest" in [each.kind for each in said]
    own = [each.amount for each in said if each.kind not in CAUSES]
    assert sum(own) == pytest.approx(found.delta)


def test_nothing_is_told_where_nothing_changed():
    assert told("abc", "abc", {"a": 1}, "ndcg@3")[1] == ()
    assert told("abc", "bac", {"a": 1, "b": 1}, "mrr")[1] == ()


def test_without_documents_the_others_move_up():
    qrels = table({"a": 1, "d": 0}, {})
    found = split(ranked("abcd"), ranked("bcad"), qrels, "q", parse_measure("mrr"))
    assert without(found, ["b"], qrels, Conventions()) == 0.5
    assert without(found, ["b", "c"], qrels, Conventions()) == 1.0
