"""Comparisons join by query id, and a query without a value on one side leaves both."""

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.statistics import pairs
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, Evaluation, evaluate, judge
from rankdash.ranking.ranking import Ranking

QRELS = pd.DataFrame(
    [
        ("q1", "a", 3.0),
        ("q1", "b", 1.0),
        ("q1", "x", 0.0),
        ("q2", "a", 1.0),
        ("q3", "c", 2.0),
        ("q4", "a", 0.0),
        ("q5", "a", 1.0),
    ],
    columns=["query_id", "doc_id", "label"],
)


def ranking(**lists: str) -> Ranking:
    """q1="ab" ranks a before b for q1."""
    return Ranking.from_lists(
        (query, list(docs), [float(-place) for place in range(len(docs))])
        for query, docs in lists.items()
    )


def left_out(frame: pd.DataFrame) -> dict[str, int]:
    return frame.loc[frame["state"] != "paired", "state"].value_counts().to_dict()


def evaluated(made: Ranking, *specs: str, left_out=None, **conventions) -> Evaluation:
    rules = Conventions(**conventions)
    return evaluate(judge(made, QRELS, rules), specs or ("mrr@10",), rules, left_out or {})


BEFORE = ranking(q1="xab", q2="xa", q3="xc", q4="a", q5="a")
# The same queries in another order: a join by position would pair the wrong ones.
AFTER = ranking(q5="xa", q3="c", q2="xya", q4="a", q1="axb")


def test_queries_are_joined_by_id_and_not_by_position():
    frame = pairs.paired(evaluated(BEFORE), evaluated(AFTER), "mrr@10").set_index("query_id")
    assert frame.loc["q1", ["before", "after", "delta"]].tolist() == [0.5, 1.0, 0.5]
    assert frame.loc["q2", "delta"] == pytest.approx(1 / 3 - 1 / 2)
    assert frame.loc["q5", "delta"] == -0.5


def test_the_order_of_the_labels_makes_no_difference_to_a_pair():
    shuffled = QRELS.sample(frac=1, random_state=3)
    rules = Conventions()
    other = evaluate(judge(AFTER, shuffled, rules), ["mrr@10"], rules)
    frame = pairs.paired(evaluated(BEFORE), other, "mrr@10").set_index("query_id")
    assert frame.loc["q1", "delta"] == 0.5
    assert frame.loc["q5", "delta"] == -0.5


def test_a_failed_query_leaves_both_sides_and_is_counted_by_reason():
    failed = evaluated(AFTER, left_out={"q1": "failed", "q2": "skipped"})
    frame = pairs.paired(evaluated(BEFORE), failed, "mrr@10")
    assert np.isnan(frame.set_index("query_id").loc["q1", "delta"])
    assert left_out(frame) == {"failed": 1, "skipped": 1, "no_relevant": 1}
    assert pairs.counts(frame) == pairs.Tally(helped=1, same=0, hurt=1)


def test_the_same_reason_is_given_whichever_side_failed():
    failed = evaluated(BEFORE, left_out={"q4": "failed"})
    frame = pairs.paired(failed, evaluated(AFTER), "mrr@10")
    assert frame.set_index("query_id").loc["q4", "state"] == "failed"


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ({"q1": "skipped"}, {"q1": "failed"}, "failed"),
        ({"q4": "skipped"}, {}, "skipped"),  # It has nothing relevant either.
        ({"q4": "failed"}, {"q4": "skipped"}, "failed"),
    ],
)
def test_of_two_reasons_the_weightier_is_given(one, other, told):
    query = next(iter(one))
    sides = evaluated(BEFORE, left_out=one), evaluated(AFTER, left_out=other)
    for before, after in (sides, sides[::-1]):
        frame = pairs.paired(before, after, "mrr@10").set_index("query_id")
        assert frame.loc[query, "state"] == told


def test_without_a_relevant_document_it_does_not_matter_that_a_ranking_lacks_the_query():
    short = evaluated(ranking(q1="ab"), missing="skip", mrr_none="skip")
    whole = evaluated(BEFORE, missing="skip", mrr_none="skip")
    states = pairs.paired(whole, short, "mrr@10").set_index("query_id")["state"]
    assert states.to_dict() == {
        "q1": "paired", "q2": "missing", "q3": "missing", "q4": "no_relevant", "q5": "missing"
    }  # fmt: skip


def test_a_query_that_one_side_did_not_evaluate_is_absent_from_the_pairs():
    rules = Conventions.trec_eval()
    both = [
        evaluate(judge(each, QRELS, rules), ["mrr@10"], rules)
        for each in (BEFORE, ranking(q1="ab", q5="a"))
    ]
    frame = pairs.paired(*both, "mrr@10")
    assert left_out(frame) == {"absent": 3}
    backwards = pairs.paired(*reversed(both), "mrr@10")
    assert left_out(backwards) == {"absent": 3}
    assert set(backwards["query_id"]) == set(frame["query_id"])


def test_a_query_missing_from_a_ranking_is_a_zero_and_stays_paired():
    short = evaluated(ranking(q1="ab"))
    frame = pairs.paired(evaluated(BEFORE), short, "mrr@10").set_index("query_id")
    assert frame.loc["q5", ["after", "state"]].tolist() == [0.0, "paired"]


def test_evaluations_under_other_conventions_are_not_compared():
    with pytest.raises(SpecError, match="same settings"):
        pairs.paired(evaluated(BEFORE), evaluated(AFTER, threshold=2.0), "mrr@10")


@pytest.mark.parametrize(
    ("delta", "expected"),
    [(0.505 - 0.5, "same"), (0.5 - 0.505, "same"), (0.0051, "helped"), (-0.0051, "hurt")],
)
def test_a_change_of_exactly_the_tie_band_is_the_same(delta: float, expected: str):
    tally = pairs.counts(pd.DataFrame({"delta": [delta, np.nan]}))
    assert getattr(tally, expected) == 1
    assert tally.queries == 1
