"""Comparisons join by query id and exclude queries without a value on one side."""

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, Evaluation, evaluate, judge
from rankdash.core.statistics import alignment
from tests.lists import ranking
from tests.results import results

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


def evaluated(made: Ranking, *specs: str, left_out=None, **conventions) -> Evaluation:
    rules = Conventions(**conventions)
    return evaluate(judge(made, QRELS, rules), specs or ("mrr@10",), rules, left_out or {})


BEFORE = ranking(q1="xab", q2="xa", q3="xc", q4="a", q5="a")
# The same queries in another order: a join by position would pair the wrong ones.
AFTER = ranking(q5="xa", q3="c", q2="xya", q4="a", q1="axb")


TREC = Conventions.trec_eval()
SHUFFLED = QRELS.sample(frac=1, random_state=3)
SHORT = ranking(q1="ab")
LACKING = {"missing": "skip", "mrr_none": "skip"}


def by_trec(made: Ranking) -> Evaluation:
    return evaluate(judge(made, QRELS, TREC), ["mrr@10"], TREC)


def of_other_order() -> Evaluation:
    rules = Conventions()
    return evaluate(judge(AFTER, SHUFFLED, rules), ["mrr@10"], rules)


SIDES = {
    "joined by id and not by position": lambda: (evaluated(BEFORE), evaluated(AFTER)),
    "labels in another order": lambda: (evaluated(BEFORE), of_other_order()),
    "failed and skipped": lambda: (
        evaluated(BEFORE), evaluated(AFTER, left_out={"q1": "failed", "q2": "skipped"})
    ),
    # q4 has nothing relevant either; the more important reason is shown.
    "failed before": lambda: (evaluated(BEFORE, left_out={"q4": "failed"}), evaluated(AFTER)),
    "skipped before": lambda: (evaluated(BEFORE, left_out={"q4": "skipped"}), evaluated(AFTER)),
    "skipped and failed": lambda: (
        evaluated(BEFORE, left_out={"q1": "skipped", "q4": "failed"}),
        evaluated(AFTER, left_out={"q1": "failed", "q4": "skipped"}),
    ),
    "nothing relevant does not matter where a ranking lacks it": lambda: (
        evaluated(BEFORE, **LACKING), evaluated(SHORT, **LACKING)
    ),
    "not evaluated by one side": lambda: (by_trec(BEFORE), by_trec(ranking(q1="ab", q5="a"))),
    "missing is 0 and stays paired": lambda: (evaluated(BEFORE), evaluated(SHORT)),
    "other conventions": lambda: (evaluated(BEFORE), evaluated(AFTER, threshold=2.0)),
}  # fmt: skip


def told(sides: tuple[Evaluation, Evaluation]) -> object:
    there, back = (alignment.paired(*each, "mrr@10") for each in (sides, sides[::-1]))
    turned = back.set_index("query_id").loc[there["query_id"]]
    assert turned["state"].tolist() == there["state"].tolist()
    np.testing.assert_array_equal(turned["delta"], -there["delta"])
    return alignment.counts(there), there


def test_queries_are_paired_or_leave_both_sides_with_the_weightier_reason(approved):
    approved("analysis/pairs", results(SIDES, told))


@pytest.mark.parametrize(
    ("delta", "expected"),
    [(0.505 - 0.5, "same"), (0.5 - 0.505, "same"), (0.0051, "helped"), (-0.0051, "hurt")],
)
def test_a_change_of_exactly_the_tie_band_is_the_same(delta: float, expected: str):
    tally = alignment.counts(pd.DataFrame({"delta": [delta, np.nan]}))
    assert getattr(tally, expected) == 1
    assert tally.queries == 1
