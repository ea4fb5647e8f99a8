"""`Ranking`, `Run` and `digest`: order, ties, errors, and immutability."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.data.ranking import Ranking, Reading, Run, digest
from tests.results import results, several, shown


def ranking(*rows: tuple[str, str, float], ties: str = "stable") -> Ranking:
    queries, docs, scores = zip(*rows, strict=True)
    return Ranking.from_columns(queries, docs, scores, ties=ties)


NAN = float("nan")
TIED = [("q", doc, 1.0) for doc in ("10", "9", "2", "b", "a")]
PAIR = [("q", "b", 1.0), ("q", "a", 1.0 + 1e-9)]
SPREAD = Ranking.from_columns(
    ["a", "b", "a", "c", "b"], ["x", "y", "z", "x", "z"], [1, 2, 1, 3, 5], ties="trec"
)
CASES = {
    "rows in any order": lambda: ranking(
        ("q2", "a", 1.0), ("q1", "b", 5.0), ("q2", "c", 3.0), ("q1", "a", 7.0)
    ),
    "worst first": lambda: ranking(*[("q", f"d{i}", float(i)) for i in range(5)]),
    **several("ties by {}", lambda rule: ranking(*TIED, ties=rule), ("trec", "stable")),
    # Single precision ties scores that differ in double precision, under the same rule too.
    **several("double, by {}", lambda rule: ranking(*PAIR, ties=rule), ("trec", "stable")),
    **{f"single, by {rule}": lambda rule=rule: ranking(*PAIR, ties=rule).with_ties(rule, "float32")
       for rule in ("trec", "stable")},
    "two equal scores of a query": lambda: ranking(
        ("q1", "a", 1.0), ("q1", "b", 1.0), ("q2", "a", 1.0), ("q2", "b", 2.0)
    ),
    "the last of a query and the first of the next": lambda: ranking(
        ("q1", "a", 1.0), ("q2", "b", 1.0)
    ),
    "ids that are digits": lambda: ranking(("007", "0042", 1.0), ("7", "42", 1.0)),
    "without documents": lambda: Ranking.from_columns([], [], []),
    # Documents without a score are not ties and do not move.
    "below a depth": lambda: Ranking.from_lists([("q", ["a", "b", "c"], [2.0, 1.0, NAN])]),
    "settled below a depth": lambda: Ranking.from_lists(
        [("q", ["b", "c", "a", "d"], [1.0, 1.0, NAN, NAN])]
    ).with_ties("trec", "float32"),
    "without a query": lambda: SPREAD.without(["b", "elsewhere"]),
    "and settled": lambda: SPREAD.without(["b", "elsewhere"]).with_ties("stable"),
    **{
        f"a score of {bad}": lambda bad=bad: ranking(("q1", "a", 1.0), ("q1", "b", bad))
        for bad in (NAN, float("inf"), float("-inf"))
    },
    # The message names the first and counts all.
    "two scores": lambda: ranking(("q1", "a", 1.0), ("q2", "c", NAN), ("q1", "b", NAN)),
    "no query id": lambda: ranking(("q", "b", 2.0), (None, "a", 1.0)),
    "no document id": lambda: ranking(("q", "b", 2.0), ("q", None, 1.0)),
    "a document twice": lambda: ranking(("q1", "a", 1.0), ("q1", "a", 2.0)),
    "two documents twice": lambda: ranking(
        ("q1", "a", 1.0), ("q2", "c", 2.0), ("q2", "c", 3.0), ("q1", "a", 1.0)
    ),
    "columns of different length": lambda: Ranking.from_columns(["q"], ["a", "b"], [1.0, 2.0]),
    **{
        f"lists {lists}": lambda lists=lists: Ranking.from_lists(lists)
        for lists in (
            [("q", ["a", "b"], [1.0, 2.0])], [("q", ["a", "b"], [NAN, 2.0])],
            [("q", ["a", "a"], [2.0, 1.0])], [("q", ["a"], [1.0]), ("q", ["b"], [1.0])],
            [("q", ["a", "b"], [1.0])], [("q", ["a"], [2.0, 1.0])],
        )
    },
}  # fmt: skip


def told(made: Ranking) -> str:
    lists = [
        f"{query}: {shown(made.documents_of(query))}{' tied' * bool(tied)}"
        for query, tied in zip(made.query_ids, made.tied, strict=True)
    ]
    assert made.documents_of("nowhere")[0] == []
    assert made.frame()["rank"].tolist() == [
        rank for query in made.query_ids for rank in range(1, len(made.documents_of(query)[0]) + 1)
    ]
    return "; ".join([f"{len(made)} rows, {made.ties}", *lists])


def test_lists_are_ordered_or_refused(approved):
    approved("ranking/ranking", results(CASES, told))


def test_nothing_of_a_ranking_can_be_changed():
    made = ranking(("q", "a", 1.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.ties = "trec"
    names = ("query_ids", "doc_ids", "offsets", "docs", "scores", "tied", "given")
    reading = Reading(np.array([1], dtype=np.int32), np.array([2], dtype=np.int32))
    for array in (*(getattr(made, name) for name in names), reading.read, reading.full):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]


@pytest.mark.parametrize("ties", ["trec", "stable"])
def test_settling_again_goes_by_the_rows_that_were_given(ties):
    """Three documents at 1 and two at 0, mixed with another query."""
    rows = [("q", "b", 0.0), ("q", "c", 1.0), ("r", "x", 1.0), ("q", "e", 1.0), ("q", "d", 0.0)]
    made = ranking(*rows, ("q", "a", 1.0), ties=ties)
    orders = {"trec": ["e", "c", "a", "d", "b"], "stable": ["c", "e", "a", "b", "d"]}
    assert made.documents_of("q")[0] == orders[ties]
    for rule, order in orders.items():
        settled = made.with_ties(rule)
        assert (settled.documents_of("q")[0], settled.ties) == (order, rule)
        assert settled.tied.tolist() == [True, False]
        assert [rows[row][1] if row < 5 else "a" for row in settled.given] == [*order, "x"]
    assert made.with_ties(ties) is made


scored_rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("wxyz"), st.integers(-3, 3)),
    unique_by=lambda row: row[:2],
    min_size=1,
)


@given(scored_rows)
def test_every_row_comes_back_once_in_descending_order(rows):
    frame = ranking(*rows, ties="trec").frame()

    assert sorted(zip(frame["query_id"], frame["doc_id"], frame["score"], strict=True)) == sorted(
        rows
    )
    for _, of_query in frame.groupby("query_id"):
        keys = list(zip(of_query["score"], of_query["doc_id"], strict=True))
        assert keys == sorted(keys, reverse=True)
        assert of_query["rank"].tolist() == list(range(1, len(of_query) + 1))


@given(scored_rows, st.randoms(use_true_random=False))
def test_trec_ties_make_the_order_independent_of_the_row_order(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)

    for query in {row[0] for row in rows}:
        assert (
            ranking(*rows, ties="trec").documents_of(query)[0]
            == ranking(*shuffled, ties="trec").documents_of(query)[0]
        )


def test_a_run_says_which_queries_have_no_result():
    run = Run(
        id="r",
        name="run",
        dataset_id="d",
        ranking=ranking(("q1", "a", 1.0)),
        reranker="bm25",
        queries=pd.DataFrame(
            {"query_id": ["q1", "q2", "q3"], "state": ["done", "failed", "skipped"]}
        ),
    )

    assert run.excluded == {"q2": "failed", "q3": "skipped"}
    assert not dataclasses.replace(run, machine={"cpu": "any"}).shipped
    assert dataclasses.replace(run, machine={"shipped_with": "help centre"}).shipped


def test_a_digest_is_the_same_in_every_version_and_depends_on_order_and_where_parts_end():
    """Stored data sets and runs are identified by it."""
    assert digest([b"ab", b"c"]) == "43ee655579de01ca"
    several = ([b"ab", b"c"], [b"a", b"bc"], [b"c", b"ab"], [b"ab"], [b"cd"], [], [b""])
    assert len({digest(each) for each in several}) == len(several)
