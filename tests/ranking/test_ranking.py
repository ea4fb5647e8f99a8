"""`Ranking`, `Run` and `digest`: order, ties, refusals, and that nothing can be changed."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import DataError
from rankdash.ranking.ranking import Ranking, Reading, Run, digest


def ranking(*rows: tuple[str, str, float], ties: str = "stable") -> Ranking:
    queries, docs, scores = zip(*rows, strict=True)
    return Ranking.from_columns(queries, docs, scores, ties=ties)


def test_rows_in_any_order_are_ranked_by_score_within_their_query():
    made = ranking(("q2", "a", 1.0), ("q1", "b", 5.0), ("q2", "c", 3.0), ("q1", "a", 7.0))

    assert list(made.query_ids) == ["q2", "q1"]
    assert made.documents_of("q1")[0] == ["a", "b"]
    assert made.documents_of("q2")[0] == ["c", "a"]
    np.testing.assert_array_equal(made.documents_of("q2")[1], [3.0, 1.0])


def test_a_list_stored_worst_first_comes_out_best_first():
    made = ranking(*[("q", f"d{i}", float(i)) for i in range(5)])

    assert made.documents_of("q")[0] == ["d4", "d3", "d2", "d1", "d0"]
    assert made.frame()["rank"].tolist() == [1, 2, 3, 4, 5]


def test_ties_by_trec_go_by_document_id_descending_as_text():
    rows = [("q", doc, 1.0) for doc in ("10", "9", "2", "b", "a")]

    assert ranking(*rows, ties="trec").documents_of("q")[0] == ["b", "a", "9", "2", "10"]


def test_ties_by_stable_keep_the_order_given():
    rows = [("q", doc, 1.0) for doc in ("10", "9", "2", "b", "a")]

    assert ranking(*rows, ties="stable").documents_of("q")[0] == ["10", "9", "2", "b", "a"]


@pytest.mark.parametrize("ties", ["trec", "stable"])
def test_single_precision_ties_scores_that_double_tells_apart_under_the_same_rule_too(ties):
    made = ranking(("q", "b", 1.0), ("q", "a", 1.0 + 1e-9), ties=ties)
    single = made.settled(ties, "float32")

    assert (made.documents_of("q")[0], made.tied.tolist()) == (["a", "b"], [False])
    assert (single.documents_of("q")[0], single.tied.tolist()) == (["b", "a"], [True])
    assert single.scores.tolist() == [1.0, 1.0]


def test_only_queries_with_two_equal_scores_are_tied():
    made = ranking(("q1", "a", 1.0), ("q1", "b", 1.0), ("q2", "a", 1.0), ("q2", "b", 2.0))

    assert made.tied.tolist() == [True, False]


def test_the_last_score_of_a_query_and_the_first_of_the_next_are_no_tie():
    assert not ranking(("q1", "a", 1.0), ("q2", "b", 1.0)).tied.any()


def test_ids_that_are_digits_stay_strings():
    made = ranking(("007", "0042", 1.0), ("7", "42", 1.0))

    assert list(made.query_ids) == ["007", "7"]
    assert made.documents_of("007")[0] == ["0042"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_not_finite_is_refused_with_its_document(bad):
    with pytest.raises(DataError, match=r"Rows without a finite score: 1; .*'b'.*'q1'"):
        ranking(("q1", "a", 1.0), ("q1", "b", bad))


@pytest.mark.parametrize("row", [(None, "a", 1.0), ("q", None, 1.0)])
def test_a_row_without_an_id_is_refused(row):
    with pytest.raises(DataError, match="lacks its query id or its document id"):
        ranking(("q", "b", 2.0), row)


def test_a_document_ranked_twice_for_a_query_is_refused():
    with pytest.raises(DataError, match=r"rank a document again: 1; .*'a'.*'q1'"):
        ranking(("q1", "a", 1.0), ("q1", "a", 2.0))


def test_columns_of_different_length_are_refused():
    with pytest.raises(DataError, match="one query, one document and one score"):
        Ranking.from_columns(["q"], ["a", "b"], [1.0, 2.0])


def test_an_unknown_query_has_no_documents():
    docs, scores = ranking(("q", "a", 1.0)).documents_of("other")

    assert docs == []
    assert len(scores) == 0


def test_an_empty_ranking_has_no_rows():
    made = Ranking.from_columns([], [], [])

    assert len(made) == 0
    assert made.frame().empty


def test_from_lists_keeps_the_order_and_allows_unscored_documents_at_the_end():
    made = Ranking.from_lists([("q", ["a", "b", "c"], [2.0, 1.0, float("nan")])])

    assert made.documents_of("q")[0] == ["a", "b", "c"]
    assert np.isnan(made.documents_of("q")[1][2])
    assert not made.tied.any()


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ([("q", ["a", "b"], [1.0, 2.0])], "must not rise"),
        ([("q", ["a", "b"], [float("nan"), 2.0])], "must not rise"),
        ([("q", ["a", "a"], [2.0, 1.0])], "same document twice"),
        ([("q", ["a"], [1.0]), ("q", ["b"], [1.0])], "same query twice"),
        ([("q", ["a", "b"], [1.0])], "one score for each"),
        ([("q", ["a"], [2.0, 1.0])], "one score for each"),
    ],
)
def test_from_lists_refuses(lists, reason):
    with pytest.raises(DataError, match=reason):
        Ranking.from_lists(lists)


def test_a_ranking_cannot_be_changed():
    made = ranking(("q", "a", 1.0), ("q", "b", 0.5))

    with pytest.raises(ValueError, match="read-only"):
        made.scores[0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        made.query_ids[0] = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.ties = "trec"


@pytest.mark.parametrize("name", ["doc_ids", "offsets", "docs", "scores", "tied", "given"])
def test_no_array_of_a_ranking_can_be_changed(name):
    array = getattr(ranking(("q", "a", 1.0)), name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = array[0]


def test_what_a_model_read_cannot_be_changed():
    reading = Reading(np.array([1], dtype=np.int32), np.array([2], dtype=np.int32))
    for array in (reading.read, reading.full):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3


def test_of_several_rows_that_are_wrong_the_first_is_named_and_all_are_counted():
    nan = float("nan")
    with pytest.raises(DataError, match=r"finite score: 2; .*'c' of query 'q2'"):
        ranking(("q1", "a", 1.0), ("q2", "c", nan), ("q1", "b", nan))
    rows = [("q1", "a", 1.0), ("q2", "c", 2.0), ("q2", "c", 3.0), ("q1", "a", 1.0)]
    with pytest.raises(DataError, match=r"rank a document again: 2; .*'c' of query 'q2'"):
        ranking(*rows)


@pytest.mark.parametrize("ties", ["trec", "stable"])
def test_settling_again_goes_by_the_rows_that_were_given(ties):
    """Three documents at 1 and two at 0, mixed with another query."""
    rows = [("q", "b", 0.0), ("q", "c", 1.0), ("r", "x", 1.0), ("q", "e", 1.0), ("q", "d", 0.0)]
    made = ranking(*rows, ("q", "a", 1.0), ties=ties)
    orders = {"trec": ["e", "c", "a", "d", "b"], "stable": ["c", "e", "a", "b", "d"]}
    assert made.documents_of("q")[0] == orders[ties]
    for rule, order in orders.items():
        settled = made.settled(rule)
        assert (settled.documents_of("q")[0], settled.ties) == (order, rule)
        assert settled.tied.tolist() == [True, False]
        assert [rows[row][1] if row < 5 else "a" for row in settled.given] == [*order, "x"]
    assert made.settled(ties) is made


def test_documents_without_a_score_are_no_ties_and_keep_their_place():
    nan = float("nan")
    made = Ranking.from_lists([("q", ["b", "c", "a", "d"], [1.0, 1.0, nan, nan])])
    settled = made.settled("trec", "float32")
    assert settled.documents_of("q")[0] == ["c", "b", "a", "d"]
    assert settled.tied.tolist() == [True]


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

    assert run.left_out == {"q2": "failed", "q3": "skipped"}
    assert not dataclasses.replace(run, machine={"cpu": "any"}).shipped
    assert dataclasses.replace(run, machine={"shipped_with": "help centre"}).shipped


def test_digest_depends_on_content_order_and_where_parts_end():
    assert digest([b"ab", b"c"]) == digest([b"ab", b"c"])
    assert digest([b"ab", b"c"]) != digest([b"a", b"bc"])
    assert digest([b"ab", b"c"]) != digest([b"c", b"ab"])
    assert len(digest([b"ab"])) == 16


def test_a_ranking_without_some_queries_keeps_the_others_as_they_were():
    whole = Ranking.from_columns(
        ["a", "b", "a", "c", "b"], ["x", "y", "z", "x", "z"], [1, 2, 1, 3, 5], ties="trec"
    )
    left = whole.without(["b", "elsewhere"])
    assert list(left.query_ids) == ["a", "c"]
    for query in left.query_ids:
        assert left.documents_of(query)[0] == whole.documents_of(query)[0]
    assert left.documents_of("b")[0] == []
    assert list(left.tied) == [True, False]
    assert left.settled("stable").documents_of("a")[0] == ["x", "z"]


def test_a_digest_is_the_same_in_every_version():
    """Data sets and runs that are stored go by it."""
    assert digest([b"ab", b"c"]) == "43ee655579de01ca"
    assert digest([b"ab"]) != digest([b"cd"])
    assert digest([]) != digest([b""])
