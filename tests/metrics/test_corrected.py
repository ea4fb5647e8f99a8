"""Some changed labels: only their queries are joined again, with the same result as for all."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, Judged, evaluate, evaluation, judge, judge_again

QUERIES, DOCS = [f"q{n}" for n in range(5)], [f"d{n}" for n in range(6)]
PAIRS = [(query, doc) for query in QUERIES for doc in DOCS]
LABELS = st.dictionaries(st.sampled_from(PAIRS), st.sampled_from([-1.0, 0.0, 1.0, 2.5]), min_size=1)
CHANGES = st.dictionaries(
    st.sampled_from(PAIRS), st.sampled_from([-1.0, 0.0, 1.0, 3.0, np.nan]), min_size=1
)
SCORES = st.dictionaries(st.sampled_from(PAIRS), st.sampled_from([0.0, 1.0, 2.0]), min_size=1)
RULES = [
    Conventions(),
    Conventions(ties="as_ranked"),
    Conventions(negative="unjudged"),
    Conventions(score_precision="float32"),
]


def frame(labels: dict[tuple[str, str], float]) -> pd.DataFrame:
    rows = [(*pair, label) for pair, label in labels.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]).astype({"label": float})


def labelled(labels: dict[tuple[str, str], float], ranking: Ranking) -> Dataset:
    return Dataset(
        "set",
        pd.DataFrame({"query_id": QUERIES, "text": QUERIES}),
        pd.DataFrame({"doc_id": DOCS, "title": "", "text": DOCS}),
        frame(labels),
        ranking,
    )


def ranked(scores: dict[tuple[str, str], float]) -> Ranking:
    queries, docs = zip(*scores, strict=True)
    return Ranking.from_columns(queries, docs, list(scores.values()))


def assert_same(found: Judged, whole: Judged) -> None:
    for each in fields(Judged):
        one, other = (getattr(side, each.name) for side in (found, whole))
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype, each.name
            assert one.tolist() == other.tolist(), each.name
        else:
            assert one == other, each.name


@pytest.mark.parametrize("rules", RULES)
@settings(max_examples=25)
@given(labels=LABELS, changes=CHANGES, scores=SCORES)
def test_the_join_is_that_of_all_labels(rules, labels, changes, scores):
    ranking = ranked(scores)
    before = labelled(labels, ranking)
    after = before.relabelled(frame(changes))
    found = judge_again(
        judge(ranking, before.labels, rules), ranking, after.labels, after.changed, rules
    )
    assert_same(found, judge(ranking, after.qrels, rules))


def test_queries_without_a_change_are_not_joined_again(monkeypatch):
    ranking = ranked(dict.fromkeys(PAIRS, 1.0))
    before = labelled({(query, doc): float(doc == "d1") for query, doc in PAIRS}, ranking)
    after = before.relabelled(frame({("q3", "d1"): 0.0, ("q3", "d4"): 1.0, ("q1", "d0"): 2.0}))
    joined = judge(ranking, before.labels)
    asked = []

    def counted(own: Ranking, labels, rules) -> Judged:
        asked.append((own.query_ids.tolist(), len(labels["label"])))
        return judge(own, labels, rules)

    monkeypatch.setattr(evaluation, "judge", counted)
    found = judge_again(joined, ranking, after.labels, after.changed, Conventions())
    assert asked == [(["q1", "q3"], 2 * len(DOCS))]
    (was, now) = (evaluate(each, ["mrr", "ndcg@3"]).values for each in (joined, found))
    assert (was != now).any(axis=1).tolist() == [False, True, False, True, False]


def test_labels_that_are_changed_twice_are_those_before_both() -> None:
    ranking = ranked(dict.fromkeys(PAIRS, 1.0))
    first = labelled(dict.fromkeys(PAIRS, 1.0), ranking)
    second = first.relabelled(frame({("q1", "d0"): 0.0}))
    third = second.relabelled(frame({("q3", "d4"): 0.0}))
    assert third.before is first
    found = judge_again(
        judge(ranking, first.labels), ranking, third.labels, third.changed, Conventions()
    )
    assert_same(found, judge(ranking, third.qrels))
