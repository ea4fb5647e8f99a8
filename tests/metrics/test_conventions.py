import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from rankdash.errors import SpecError
from rankdash.metrics import CONVENTION_SETTINGS, Conventions, evaluate, judge, judge_frame
from rankdash.ranking.ranking import Ranking


def test_every_field_describes_itself():
    names = [setting.name for setting in CONVENTION_SETTINGS]
    assert names == [field.name for field in dataclasses.fields(Conventions)]
    for setting in CONVENTION_SETTINGS:
        assert setting.title and setting.meaning.endswith(".")
        assert setting.default == getattr(Conventions(), setting.name)
        assert not setting.choices or setting.default in setting.choices


@pytest.mark.parametrize(
    ("name", "choice"), [(s.name, c) for s in CONVENTION_SETTINGS for c in s.choices]
)
def test_every_choice_is_accepted_and_survives_json(name, choice):
    conventions = Conventions(**{name: choice})
    assert Conventions(**json.loads(json.dumps(conventions.as_dict()))) == conventions


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ties", "trek", "Did you mean 'trec'?"),
        ("missing", "zeros", "Did you mean 'zero'?"),
        ("ap_norm", "min", "min(R,k)"),
        ("threshold", 0, "above 0"),
        ("threshold", float("nan"), "above 0"),
        ("err_top_label", -1, "above 0"),
    ],
)
def test_a_value_that_does_not_exist_is_refused(name, value, said):
    with pytest.raises(SpecError) as caught:
        Conventions(**{name: value})
    assert said in str(caught.value)
    assert name in str(caught.value)


def tied_ranking(ties):
    return Ranking.from_columns(["q", "q"], ["a", "b"], [1.0, 1.0], ties=ties)


@pytest.mark.parametrize(
    ("made_with", "rule", "value"),
    [
        ("stable", "as_ranked", 1.0),
        ("trec", "as_ranked", 0.5),
        ("stable", "trec", 0.5),
        ("trec", "stable", 1.0),
    ],
)
def test_ties(made_with, rule, value):
    qrels = pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "label": [1]})
    conventions = Conventions(ties=rule)
    evaluation = evaluate(judge(tied_ranking(made_with), qrels, conventions), ["mrr"], conventions)
    assert evaluation.mean("mrr") == value
    assert evaluation.counts["tied"] == 1


def test_ties_in_one_table():
    frame = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": 1.0, "label": [1, 0]})
    for rule, value in (("as_ranked", 1.0), ("stable", 1.0), ("trec", 0.5)):
        conventions = Conventions(ties=rule)
        assert evaluate(judge_frame(frame, conventions), ["mrr"], conventions).mean("mrr") == value


def test_threshold_moves_binary_metrics_only(value_of):
    labels = [1, 2, 0, 2]
    assert value_of("mrr", labels, threshold=2) == 0.5
    assert value_of("recall@2", labels, threshold=2) == 0.5
    assert value_of("ndcg", labels, threshold=2) == value_of("ndcg", labels)


@pytest.mark.parametrize(
    ("rule", "mean", "state"), [("skip", 1.0, "no_relevant"), ("count", 0.5, "no_relevant")]
)
def test_query_without_a_relevant_document(evaluation_of, rule, mean, state):
    evaluation = evaluation_of({"a": [1], "b": [0, 0]}, ["ndcg", "map"], no_relevant=rule)
    assert evaluation.means() == {"ndcg": mean, "map": mean}
    assert list(evaluation.states) == ["scored", state]
    assert evaluation.counts["no_relevant"] == 1


def test_a_threshold_that_leaves_nothing_relevant_leaves_ndcg_alone(evaluation_of):
    evaluation = evaluation_of({"a": [3], "b": [0, 1]}, ["ndcg", "map"], threshold=2)
    assert evaluation.counts["no_relevant"] == 1
    assert evaluation.mean("map") == 1.0
    assert evaluation.mean("ndcg") == pytest.approx((1 + 1 / np.log2(3)) / 2)
    frame = evaluation.frame().set_index(["query_id", "metric"])["state"]
    assert frame["b", "ndcg"] == "scored"
    assert frame["b", "map"] == "no_relevant"


@pytest.mark.parametrize(("rule", "mean"), [("zero", 0.5), ("skip", 1.0)])
def test_judged_query_missing_from_a_ranking(evaluation_of, rule, mean):
    evaluation = evaluation_of({"a": [1]}, ["ndcg"], {"absent": [1]}, missing=rule)
    assert evaluation.mean("ndcg") == mean
    assert evaluation.counts["missing"] == 1
    assert evaluation.wide().loc["absent", "state"] == "missing"


def test_missing_query_without_relevant_documents_is_no_relevant(evaluation_of):
    evaluation = evaluation_of({"a": [1]}, ["ndcg"], {"absent": [0]})
    assert evaluation.wide().loc["absent", "state"] == "no_relevant"
    assert evaluation.mean("ndcg") == 1.0


def test_queries_in_both_files_only(evaluation_of):
    evaluation = evaluation_of({"a": [1]}, ["ndcg"], {"absent": [1]}, queries="both")
    assert list(evaluation.query_ids) == ["a"]
    assert evaluation.counts["queries"] == 1
    assert evaluation.counts["missing"] == 0


def test_failed_query_is_kept_when_only_queries_in_both_count(evaluation_of):
    evaluation = evaluation_of(
        {"a": [1]}, ["ndcg"], {"b": [1]}, left_out={"b": "failed"}, queries="both"
    )
    assert list(evaluation.states) == ["scored", "failed"]


@pytest.mark.parametrize(("rule", "mean"), [("zero", 0.5), ("skip", 1.0)])
def test_mrr_where_nothing_was_found(evaluation_of, rule, mean):
    evaluation = evaluation_of({"a": [1, 0, 0], "b": [0, 0, 1]}, ["mrr@2", "mrr"], mrr_none=rule)
    assert evaluation.mean("mrr@2") == mean
    assert evaluation.mean("mrr") == pytest.approx(2 / 3)
    if rule == "skip":
        states = evaluation.frame().set_index(["query_id", "metric"])["state"]
        assert states["b", "mrr@2"] == "undefined"
        assert states["b", "mrr"] == "scored"


def test_average_precision_over_the_smaller_of_r_and_k(value_of):
    labels = [1, 1, 1, 1]
    assert value_of("map@2", labels) == 0.5
    assert value_of("map@2", labels, ap_norm="min(R,k)") == 1.0
    assert value_of("map", [1, 0], [1], ap_norm="min(R,k)") == 0.5
    assert value_of("map_graded_norm@2", [3, 2, 1], ap_norm="min(R,k)") == 1.0
    assert value_of("map_graded@1", [3, 3], ap_norm="min(R,k)") == 1.0
    assert value_of("map_graded@1", [3, 3], ap_norm="R") == 0.5


def test_judged_only(value_of):
    labels = [None, None, 1, None, 0, 1]
    assert value_of("mrr", labels, judged_only=True) == 1.0
    assert value_of("precision@2", labels, judged_only=True) == 0.5
    assert value_of("judged@3", labels, judged_only=True) == value_of("judged@3", labels) == 1 / 3


def test_negative_labels_as_unjudged(value_of):
    assert value_of("judged@2", [-1, 1]) == 1.0
    assert value_of("judged@2", [-1, 1], negative="unjudged") == 0.5
    assert value_of("bpref", [-1, 1]) == 0.0
    assert value_of("bpref", [-1, 1], negative="unjudged") == 1.0


def test_highest_label(value_of, evaluation_of):
    assert value_of("err", [1]) == 0.5
    assert value_of("err", [1], err_top_label=3) == 1 / 8
    whole_set = evaluation_of({"a": [1], "b": [3]}, ["err"])
    assert list(whole_set.column("err")) == [1 / 8, 7 / 8]
    for spec in ("err", "map_graded"):
        with pytest.raises(SpecError, match="4 is above the highest label in the conventions, 3"):
            value_of(spec, [4], err_top_label=3)


def test_conventions_that_join_otherwise_are_refused(tables):
    run, qrels = tables({"q": [1]})
    judged = judge(Ranking.from_columns(*run.to_numpy().T), qrels)
    with pytest.raises(SpecError, match="joined under other conventions"):
        evaluate(judged, ["ndcg"], Conventions.trec_eval())
    evaluate(judged, ["ndcg"], Conventions(threshold=2, missing="skip", judged_only=True))


@pytest.mark.parametrize(
    "changed", [{"ties": "trec"}, {"score_precision": "float32"}, {"negative": "unjudged"}]
)
def test_each_rule_of_the_join_is_one_of_the_join(tables, changed):
    run, qrels = tables({"q": [1]})
    judged = judge(Ranking.from_columns(*run.to_numpy().T), qrels)
    with pytest.raises(SpecError, match="joined under other conventions"):
        evaluate(judged, ["ndcg"], Conventions(**changed))


def test_the_summary_says_the_ties_and_what_is_not_the_default():
    own = "Ties: by the ranking's own rule (files: document id, descending)"
    assert Conventions().summary == own
    assert Conventions(threshold=2.0, judged_only=True).summary == (
        f"{own}; Relevant from: 2.0; Condensed lists (judged documents only): yes"
    )


def test_a_whole_condensed_list_is_as_long_as_it_has_labels(value_of):
    labels = [None, 1, None, 0, None]
    assert value_of("precision", labels) == 0.2
    assert value_of("precision", labels, judged_only=True) == 0.5
    assert value_of("f1", labels, judged_only=True) == 2 / 3


@pytest.mark.parametrize(("rule", "share"), [("nonrelevant", 1.0), ("unjudged", 2 / 3)])
def test_a_label_of_0_is_not_negative(tables, rule, share):
    conventions = Conventions(negative=rule, no_relevant="count")
    run, qrels = tables({"a": [-1, 0, 1], "last": [-1]})
    frame = run.merge(qrels, on=["query_id", "doc_id"])
    ranking = Ranking.from_columns(*run.to_numpy().T)
    for judged in (judge(ranking, qrels, conventions), judge_frame(frame, conventions)):
        evaluation = evaluate(judged, ["judged", "bpref"], conventions)
        assert evaluation.column("judged").tolist() == [share, float(rule == "nonrelevant")]
        assert judged.pool_size.tolist() == ([3, 1] if rule == "nonrelevant" else [2, 0])


def test_the_rules_of_trec_eval():
    assert Conventions.trec_eval().as_dict() == {
        "ties": "trec",
        "threshold": 1.0,
        "judged_only": False,
        "missing": "skip",
        "no_relevant": "count",
        "mrr_none": "zero",
        "ap_norm": "R",
        "score_precision": "float64",
        "queries": "both",
        "negative": "unjudged",
        "err_top_label": None,
    }


def test_our_own_rules():
    assert Conventions.rankdash().as_dict() == {
        "ties": "as_ranked",
        "threshold": 1.0,
        "judged_only": False,
        "missing": "zero",
        "no_relevant": "skip",
        "mrr_none": "zero",
        "ap_norm": "R",
        "score_precision": "float64",
        "queries": "qrels",
        "negative": "nonrelevant",
        "err_top_label": None,
    }
