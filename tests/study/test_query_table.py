"""The query list: outcomes from the tie band, orders, and filters."""

import numpy as np
import pandas as pd
import pytest

from rankdash.features.queries.filters import (
    ALL_UNJUDGED,
    ORDERS,
    Filters,
    order_of,
    orders,
    passing,
    query_table,
    valued,
)
from tests.approved import table as as_text

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
    "spread": pd.Series({"q3": 0.4, "q5": 0.2, "q1": 0.1}),
    "latency_ms": pd.Series({"q1": 5.0, "q5": 900.0}),
    "reason": pd.Series({"q1": "rescued", "q2": "buried", "q5": "failed"}),
}
NOTHING = pd.Series({"q5": 0.0, "q1": 0.0})
TAGS = {"q1": ("wrong label", "ask"), "q4": ("ask",), "gone": ("ask",)}
WANTED = (
    *({}, {"outcomes": ("hurt", "failed")}, {"segments": {"kind": ("y",)}}),
    # A text matches literally, in upper or lower case, without leading and trailing spaces.
    *({"text": each} for each in ("ONE", "退货", "(a+b)", "Q3 ", "  TWO (A+b)  ", "   ")),
    *({"reasons": ("buried", "rescued")}, {"states": ("failed", ALL_UNJUDGED)}),
    # A range includes both ends.
    *({"delta": each} for each in ((-0.6, 0.2), (-0.6, 0.199), (-0.599, 0.2), (0.0, 0.0))),
    *({"before": each} for each in ((0.4, 0.5), (0.0, 1.0))),
    *({"after": (0.0, 0.3)}, {"values": {"after": (0.0, 0.3)}}),
    {"before": (0.4, 1.0), "after": (0.0, 0.4)},
    {"before": (0.4, 0.5), "values": {"after": (0.0, 0.4)}},
    # The side with fewer judged documents counts.
    *({"judged": each} for each in (0.0, 1e-9, 0.5, 0.500001, 1.0)),
    *({"tags": ("ask",)}, {"tags": ("ask", "wrong label")}),
    {"tags": ("ask",), "outcomes": ("hurt",)},
)  # fmt: skip


@pytest.fixture
def table() -> pd.DataFrame:
    return query_table(QUERIES, PAIRS, known=KNOWN)


def ordered(table: pd.DataFrame, order: str) -> list[str]:
    return table.iloc[order_of(table, order)]["query_id"].tolist()


def offered(table: pd.DataFrame, wanted: str = "") -> list[str]:
    return orders(valued(table), wanted)


def test_tables_orders_and_filters_are_as_approved(table, approved):
    half = query_table(QUERIES, PAIRS, known={"judged_before": KNOWN["judged_before"]})
    unknown = query_table(QUERIES, PAIRS, known={"latency_ms": pd.Series({"q1": np.nan})})
    mixed = query_table(QUERIES.assign(text=["b", "C", "A", "d", "B"]), PAIRS)
    cases = {
        "the table": table.to_string(),
        "the tie band 0.001": query_table(QUERIES, PAIRS, tie_band=0.001)["outcome"].tolist(),
        "what one side shows is not known: nothing is said of it": half["state"].tolist(),
        "a query without a difference says why, and not that nothing is judged": query_table(
            QUERIES, PAIRS, known=dict.fromkeys(("judged_before", "judged_after"), NOTHING)
        )["state"].tolist(),
        "texts are put in order whatever their case": ordered(mixed, "text"),
        "orders, queries without a value last": "\n".join(
            f"{order}: {' '.join(ordered(table, order))}" for order in (*ORDERS, "-text", "-after")
        ),
        "orders that are offered": "\n".join(
            f"{name}: {' '.join(offered(each))}"
            for name, each in {"all": table, "half": half, "no latency": unknown}.items()
        ),
        "filters": "\n".join(
            f"{wanted}: {' '.join(table[passing(table, Filters(**wanted), TAGS)]['query_id'])}"
            for wanted in WANTED
        ),
    }
    approved("study/query_table", as_text(cases))
    assert not passing(table, Filters(tags=("ask",)), None).any()


def test_an_order_by_a_column_is_offered_only_where_the_column_says_something(table):
    assert offered(table, "-text") == [*offered(table), "-text"]
    for wanted in ("hurt", "ceiling", "-words", "nonsense", "-"):
        assert offered(table, wanted) == offered(table)


def test_equal_queries_stay_in_the_order_of_the_data_whichever_comes_first():
    """An unstable sort would change the order of this many rows."""
    ids = [f"q{place:03}" for place in range(200)]
    deltas = [-0.5 if place % 3 else 0.5 for place in range(200)]
    pairs = pd.DataFrame(
        {"query_id": ids, "before": 0.5, "after": 0.5, "delta": deltas, "state": "paired"}
    )
    table = query_table(pd.DataFrame({"query_id": ids, "text": ids}), pairs)
    lost = [query for query, delta in zip(ids, deltas, strict=True) if delta < 0]
    gained = [query for query, delta in zip(ids, deltas, strict=True) if delta > 0]
    assert ordered(table, "hurt") == [*lost, *gained]
    assert ordered(table, "helped") == [*gained, *lost]
    assert ordered(table, "changed") == ids
