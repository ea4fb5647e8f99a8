"""The query list: outcomes from the tie band, orders, filters that leave out nothing else."""

import numpy as np
import pandas as pd
import pytest

from rankdash.study.query_table import (
    ALL_UNJUDGED,
    ORDERS,
    Filters,
    by_column,
    order_of,
    orders,
    passing,
    query_table,
    valued,
)

PAIRS = pd.DataFrame(
    {
        "query_id": ["q1", "q2", "q3", "q4", "q5"],
        "before": [0.5, 0.9, 0.2, 0.4, np.nan],
        "after": [0.7, 0.3, 0.203, 0.4, np.nan],
        "delta": [0.2, -0.6, 0.003, 0.0, np.nan],
        "state": ["paired"] * 4 + ["failed"],
    }
)
QUERIES = pd.DataFrame(
    {
        "query_id": ["q5", "q4", "q3", "q2", "q1"],
        "text": ["Five", "退货 four", None, "two (a+b)", "One"],
        "kind": ["x", "y", "x", "y", "x"],
    }
)


KNOWN = {
    "judged_before": pd.Series({"q1": 0.0, "q2": 0.5, "q3": 1.0, "q4": 0.0}),
    "judged_after": pd.Series({"q1": 0.0, "q2": 1.0, "q3": 1.0, "q4": 0.2}),
    "to_win": pd.Series({"q4": 0.6, "q3": 0.1, "q2": 0.7, "q1": 0.3}),
    "spread": pd.Series({"q3": 0.4}),
    "latency_ms": pd.Series({"q1": 5.0, "q5": 900.0}),
    "reason": pd.Series({"q1": "rescued", "q2": "buried", "q5": "failed"}),
}


def ordered(table: pd.DataFrame, order: str) -> pd.DataFrame:
    return table.iloc[order_of(table, order)]


def offered(table: pd.DataFrame, wanted: str = "") -> list[str]:
    return orders(valued(table), wanted)


@pytest.fixture
def table() -> pd.DataFrame:
    return query_table(QUERIES, PAIRS, known=KNOWN)


def test_a_column_orders_the_lowest_first_and_then_the_highest(table):
    assert by_column("delta", "given") == "hurt", "which has a name"
    assert by_column("delta", "hurt") == "helped"
    assert by_column("delta", "helped") == "hurt"
    assert by_column("text", "hurt") == "text"
    assert by_column("text", "text") == "-text"
    assert by_column("text", "-text") == "text"
    assert ordered(table, "text")["query_id"].tolist() == ["q5", "q1", "q2", "q4", "q3"]
    assert by_column("after", "given") == "lowest_after", "which has a name"
    assert by_column("after", "lowest_after") == "-after"
    assert ordered(table, "-text")["query_id"].tolist() == ["q4", "q2", "q1", "q5", "q3"]
    assert ordered(table, "-after")["query_id"].tolist() == ["q1", "q4", "q2", "q3", "q5"]


def test_an_order_by_a_column_is_offered_only_where_the_column_says_something(table):
    assert offered(table, "-text") == [*offered(table), "-text"]
    assert offered(table, "hurt") == offered(table)
    for wanted in ("ceiling", "-words", "nonsense", "-"):
        assert offered(table, wanted) == offered(table)


def test_outcomes_follow_the_tie_band_and_a_failure_keeps_its_name(table):
    assert dict(zip(table["query_id"], table["outcome"], strict=True)) == {
        "q1": "helped",
        "q2": "hurt",
        "q3": "same",
        "q4": "same",
        "q5": "failed",
    }
    narrow = query_table(QUERIES, PAIRS, tie_band=0.001).set_index("query_id")
    assert narrow.loc["q3", "outcome"] == "helped"


def test_texts_and_segments_are_joined_by_query_id(table):
    assert dict(zip(table["query_id"], table["kind"], strict=True))["q1"] == "x"
    assert table.set_index("query_id").loc["q4", "text"] == "退货 four"


@pytest.mark.parametrize(
    ("order", "ids"),
    [
        ("hurt", ["q2", "q4", "q3", "q1", "q5"]),
        ("helped", ["q1", "q3", "q4", "q2", "q5"]),
        ("changed", ["q2", "q1", "q3", "q4", "q5"]),
        ("lowest", ["q3", "q4", "q1", "q2", "q5"]),
        ("lowest_after", ["q3", "q2", "q4", "q1", "q5"]),
        ("given", ["q1", "q2", "q3", "q4", "q5"]),
        ("headroom", ["q2", "q4", "q1", "q3", "q5"]),
        ("disagreement", ["q3", "q1", "q2", "q4", "q5"]),
        ("latency", ["q5", "q1", "q2", "q3", "q4"]),
    ],
)
def test_orders_put_queries_without_a_value_last(table, order, ids):
    assert list(ordered(table, order)["query_id"]) == ids


def test_every_order_offered_is_known(table):
    for order in ORDERS:
        assert sorted(ordered(table, order)["query_id"]) == sorted(table["query_id"])


def test_an_order_by_what_nobody_knows_is_not_offered(table):
    assert offered(table) == list(ORDERS)
    bare = query_table(QUERIES, PAIRS)
    assert offered(bare) == ["hurt", "helped", "changed", "lowest", "lowest_after", "given"]
    unknown = query_table(QUERIES, PAIRS, known={"latency_ms": pd.Series({"q1": np.nan})})
    assert "latency" not in offered(unknown)


def test_a_query_of_which_neither_side_shows_a_judged_document_says_so(table):
    state = dict(zip(table["query_id"], table["state"], strict=True))
    assert state == {"q1": ALL_UNJUDGED, "q2": "ok", "q3": "ok", "q4": "ok", "q5": "failed"}


def left(table: pd.DataFrame, tagged=None, **wanted) -> list[str]:
    return list(table[passing(table, Filters(**wanted), tagged)]["query_id"])


def test_filters_by_outcome_segment_and_plain_text(table):
    assert left(table, outcomes=("hurt", "failed")) == ["q2", "q5"]
    assert left(table, segments={"kind": ("y",)}) == ["q2", "q4"]
    assert left(table, text="ONE") == ["q1"]
    assert left(table, text="退货") == ["q4"]
    assert left(table, text="(a+b)") == ["q2"]
    assert left(table, text="q3") == ["q3"]
    assert left(table) == list(table["query_id"])


def test_filters_by_reason_state_change_judged_share_and_tag(table):
    assert left(table, reasons=("buried", "rescued")) == ["q1", "q2"]
    assert left(table, states=("failed", ALL_UNJUDGED)) == ["q1", "q5"]
    assert left(table, delta=(-0.6, 0.0)) == ["q2", "q4"]
    assert left(table, judged=0.5) == ["q2", "q3"]
    assert left(table, judged=1.0) == ["q3"]
    tags = {"q1": ("wrong label", "ask"), "q4": ("ask",), "gone": ("ask",)}
    assert left(table, tags, tags=("ask",)) == ["q1", "q4"]
    assert left(table, tags, tags=("wrong label",), outcomes=("hurt",)) == []


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"after": (0.0, 0.3)}, ["q2", "q3"]),
        ({"before": (0.4, 0.5)}, ["q1", "q4"]),
        ({"before": (0.4, 1.0), "after": (0.0, 0.4)}, ["q2", "q4"]),
        ({"before": (0.0, 1.0)}, ["q1", "q2", "q3", "q4"]),
        ({"values": {"after": (0.0, 0.3)}}, ["q2", "q3"]),
        ({"before": (0.4, 0.5), "values": {"after": (0.0, 0.4)}}, ["q4"]),
    ],
)
def test_the_value_of_either_system_filters_by_its_ends_included(table, wanted, ids):
    assert left(table, **wanted) == ids


def test_equal_queries_stay_in_the_order_of_the_data_whichever_comes_first():
    """More rows than a sort that is not stable leaves in place by chance."""
    ids = [f"q{place:03}" for place in range(200)]
    deltas = [-0.5 if place % 3 else 0.5 for place in range(200)]
    pairs = pd.DataFrame(
        {"query_id": ids, "before": 0.5, "after": 0.5, "delta": deltas, "state": "paired"}
    )
    table = query_table(pd.DataFrame({"query_id": ids, "text": ids}), pairs)
    lost = [query for query, delta in zip(ids, deltas, strict=True) if delta < 0]
    gained = [query for query, delta in zip(ids, deltas, strict=True) if delta > 0]
    assert ordered(table, "hurt")["query_id"].tolist() == [*lost, *gained]
    assert ordered(table, "helped")["query_id"].tolist() == [*gained, *lost]
    assert ordered(table, "changed")["query_id"].tolist() == ids


def test_a_query_without_a_difference_says_why_and_not_that_nothing_is_judged():
    known = {name: pd.Series({"q5": 0.0, "q1": 0.0}) for name in ("judged_before", "judged_after")}
    table = query_table(QUERIES, PAIRS, known=known).set_index("query_id")
    assert table["state"].to_dict() == {
        "q1": ALL_UNJUDGED, "q2": "ok", "q3": "ok", "q4": "ok", "q5": "failed"
    }  # fmt: skip
    # What one side shows is not known: then nothing is said of it.
    half = query_table(QUERIES, PAIRS, known={"judged_before": known["judged_before"]})
    assert set(half["state"]) == {"ok", "failed"}


@pytest.mark.parametrize(
    ("low", "high", "ids"),
    [
        (-0.6, 0.2, ["q1", "q2", "q3", "q4"]),
        (-0.6, 0.199, ["q2", "q3", "q4"]),
        (-0.599, 0.2, ["q1", "q3", "q4"]),
        (0.0, 0.0, ["q4"]),
    ],
)
def test_a_range_of_changes_includes_both_ends(table, low, high, ids):
    assert left(table, delta=(low, high)) == ids


@pytest.mark.parametrize(
    ("judged", "ids"), [(0.0, 5), (1e-9, 2), (0.5, 2), (0.500001, 1), (1.0, 1)]
)
def test_a_share_of_judged_documents_is_that_of_the_side_that_shows_fewer(table, judged, ids):
    assert len(left(table, judged=judged)) == ids


def test_a_text_is_looked_for_without_the_spaces_around_it_in_any_case(table):
    assert left(table, text="  TWO (A+b)  ") == ["q2"]
    assert left(table, text="   ") == list(table["query_id"])
    assert left(table, text="Q3 ") == ["q3"]
    tags = {"q1": ("ask", "later"), "q2": ("later",)}
    assert left(table, tags, tags=("ask", "later")) == ["q1", "q2"]
    assert left(table, None, tags=("ask",)) == []


def test_texts_are_put_in_order_whatever_their_case_and_the_largest_disagreement_first():
    queries = pd.DataFrame({"query_id": QUERIES["query_id"], "text": ["b", "C", "A", "d", "B"]})
    known = {"spread": pd.Series({"q1": 0.1, "q3": 0.4, "q5": 0.2})}
    table = query_table(queries, PAIRS, known=known)
    assert ordered(table, "text")["text"].tolist() == ["A", "B", "b", "C", "d"]
    assert ordered(table, "disagreement")["query_id"].tolist() == ["q3", "q5", "q1", "q2", "q4"]
