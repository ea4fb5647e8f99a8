import dataclasses
import itertools
import json

import pandas as pd
import pytest

from rankdash.core.base.errors import SpecError
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import (
    CONVENTION_SETTINGS,
    Conventions,
    evaluate,
    judge,
    registry,
)
from tests.results import results


def test_every_field_describes_itself():
    names = [setting.name for setting in CONVENTION_SETTINGS]
    assert names == [field.name for field in dataclasses.fields(Conventions)]
    for setting in CONVENTION_SETTINGS:
        assert setting.title and setting.help.endswith(".")
        assert setting.default == getattr(Conventions(), setting.name)
        assert not setting.choices or setting.default in setting.choices


@pytest.mark.parametrize(
    ("name", "choice"), [(s.name, c) for s in CONVENTION_SETTINGS for c in s.choices]
)
def test_every_choice_is_accepted_and_survives_json(name, choice):
    conventions = Conventions(**{name: choice})
    assert Conventions(**json.loads(json.dumps(conventions.as_dict()))) == conventions


NAN = float("nan")
WRONG = (("ties", "trek"), ("missing", "zeros"), ("ap_norm", "min"), ("threshold", 0),
         ("threshold", NAN), ("err_top_label", -1))  # fmt: skip
# Lists, specs, labels of unranked documents, and the rules.
EVALUATED = {
    "the threshold is of binary metrics only": (
        {"q": [1, 2, 0, 2]}, ["mrr", "recall@2", "ndcg"], {}, ({}, {"threshold": 2})
    ),
    "nothing relevant": (
        {"a": [1], "b": [0, 0]}, ["ndcg", "map"], {},
        ({"no_relevant": "skip"}, {"no_relevant": "count"}),
    ),
    "a threshold that leaves nothing relevant leaves NDCG alone": (
        {"a": [3], "b": [0, 1]}, ["ndcg", "map"], {}, ({"threshold": 2},)
    ),
    "missing": (
        {"a": [1]}, ["ndcg", "judged@10"], {"absent": [1]},
        ({"missing": "zero"}, {"missing": "skip"}, {"queries": "both"}),
    ),
    "missing, with nothing relevant": ({"a": [1]}, ["ndcg"], {"absent": [0]}, ({},)),
    "failed, in one file": (
        {"a": [1]}, ["ndcg"], {"b": [1]}, ({"queries": "both", "left_out": {"b": "failed"}},)
    ),
    "every query has a state": (
        {"good": [1], "empty": [0], "tried": [1]}, ["ndcg@10", "judged@10"],
        {"absent": [1], "broken": [1]}, ({"left_out": {"broken": "failed", "tried": "skipped"}},),
    ),
    "queries without labels": (
        {"a": [1], "b": [0, 1], "stray": [None]}, ["mrr"], {"absent": [1]},
        ({},),
    ),
    "failed, with nothing relevant": (
        {"a": [0], "b": [0]}, ["mrr"], {},
        ({"left_out": {"a": "failed"}, "no_relevant": "count"},),
    ),
    "MRR if no relevant document is found": (
        {"a": [1, 0, 0], "b": [0, 0, 1]}, ["mrr@2", "mrr"], {},
        ({"mrr_none": "zero"}, {"mrr_none": "skip"}),
    ),
    "average precision over the smaller of R and k": (
        {"a": [1, 1, 1, 1], "b": [1, 0], "c": [3, 2, 1], "d": [3, 3]},
        ["map@2", "map", "map_graded_norm@2", "map_graded@1"], {"b": [1]},
        ({"ap_norm": "R"}, {"ap_norm": "min(R,k)"}),
    ),
    "condensed": (
        {"a": [None, None, 1, None, 0, 1], "b": [None, 1, None, 0, None]},
        ["mrr", "precision@2", "judged@3", "precision", "f1"], {}, ({}, {"judged_only": True}),
    ),
    # A label of 0 is not negative.
    "negative labels": (
        {"a": [-1, 1], "b": [-1, 0, 1], "last": [-1]}, ["judged", "judged@2", "bpref"], {},
        ({"no_relevant": "count"}, {"no_relevant": "count", "negative": "unjudged"}),
    ),
    "the highest label": (
        {"a": [1]}, ["err", "map_graded"], {}, ({}, {"err_top_label": 3}, {"err_top_label": 2})
    ),
    "of the whole set": ({"a": [1], "b": [3]}, ["err"], {}, ({},)),
    "above the highest": ({"a": [4]}, ["err"], {}, ({"err_top_label": 3},)),
    "above the highest, graded map": ({"a": [4]}, ["map_graded"], {}, ({"err_top_label": 3},)),
    "a threshold of 0.5": ({"a": [0, 0.5]}, ["mrr"], {}, ({"threshold": 0.5},)),
    "nothing relevant counts": ({"a": [0, 0]}, ["map_graded"], {}, ({"no_relevant": "count"},)),
}  # fmt: skip


def test_each_rule_changes_what_it_says(approved, evaluation_of):
    def told(lists, specs, unranked, rules):
        found = evaluation_of(lists, specs, unranked, **rules)
        states = found.frame().groupby("query_id", sort=False)["state"].agg(" ".join)
        rows = "".join(
            f"\n  {query} {row.drop('state').to_dict()} {states[query]}"
            for query, row in found.wide().round(6).iterrows()
        )
        return f"{found.means()} { ({k: n for k, n in found.counts.items() if n}) }{rows}"

    cases = {
        f"{name}: {rules or 'as usual'}": lambda case=case, rules=rules: told(*case, rules)
        for name, (*case, several) in EVALUATED.items()
        for rules in several
    }
    refused = {f"{n} is {v!r}": lambda n=n, v=v: Conventions(**{n: v}) for n, v in WRONG}
    own = {
        "of rankdash": Conventions.rankdash().as_dict,
        "of trec_eval": Conventions.trec_eval().as_dict,
        "the usual summary": Conventions().summary,
        "a summary": Conventions(threshold=2.0, judged_only=True).summary,
    }
    approved("metrics/conventions", results(cases | refused | own))


def test_an_evaluation_does_not_depend_on_those_before_it(tables):
    run, qrels = tables({"a": [None, 1, None, 0, 3, 2], "b": [0, None, 2], "c": [1, 0]})
    specs = [f"{name}@3" if each.has_cutoff else name for name, each in registry.items()]
    changes = [
        {},
        {"judged_only": True},
        {"threshold": 2.0},
        {"threshold": 2.0, "judged_only": True},
    ]
    changes += [{"ap_norm": "min(R,k)"}, {"err_top_label": 4.0}, {"no_relevant": "count"}]

    def joined():
        return judge(Ranking.from_columns(*run.to_numpy().T), qrels)

    used = joined()
    for before, changed in itertools.permutations(changes, 2):
        evaluate(used, specs, Conventions(**before))
        found, expected = (
            evaluate(join, specs, Conventions(**changed)).frame() for join in (used, joined())
        )
        pd.testing.assert_frame_equal(found, expected)


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


@pytest.mark.parametrize(
    "changed", [{"ties": "trec"}, {"score_precision": "float32"}, {"negative": "unjudged"}]
)
def test_conventions_that_join_otherwise_are_refused(tables, changed):
    run, qrels = tables({"q": [1]})
    judged = judge(Ranking.from_columns(*run.to_numpy().T), qrels)
    with pytest.raises(SpecError, match="joined under other conventions"):
        evaluate(judged, ["ndcg"], Conventions(**changed))
    evaluate(judged, ["ndcg"], Conventions(threshold=2, missing="skip", judged_only=True))
