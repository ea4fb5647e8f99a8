"""The query list: outcomes from the tie band, orders, filters that leave out nothing else."""

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.query_table import ORDERS, filtered, ordered, query_table

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


@pytest.fixture
def table() -> pd.DataFrame:
    return query_table(QUERIES, PAIRS)


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
        ("given", ["q1", "q2", "q3", "q4", "q5"]),
    ],
)
def test_orders_put_queries_without_a_value_last(table, order, ids):
    assert list(ordered(table, order)["query_id"]) == ids


def test_every_order_offered_is_known(table):
    for order in ORDERS:
        assert sorted(ordered(table, order)["query_id"]) == sorted(table["query_id"])


def test_filters_by_outcome_segment_and_plain_text(table):
    assert list(filtered(table, outcomes=("hurt", "failed"))["query_id"]) == ["q2", "q5"]
    assert list(filtered(table, segments={"kind": ("y",)})["query_id"]) == ["q2", "q4"]
    assert list(filtered(table, text="ONE")["query_id"]) == ["q1"]
    assert list(filtered(table, text="退货")["query_id"]) == ["q4"]
    assert list(filtered(table, text="(a+b)")["query_id"]) == ["q2"]
    assert list(filtered(table, text="q3")["query_id"]) == ["q3"]
    assert len(filtered(table)) == len(table)
