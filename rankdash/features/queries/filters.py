"""The table of queries: its columns, its orders, and the filters on its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.rules import TIE_BAND
from rankdash.core.statistics.alignment import PAIRED, direction

OUTCOMES = ("helped", "same", "hurt")
OK, ALL_UNJUDGED = "ok", "all_unjudged"
ORDERS = (
    "hurt",
    "helped",
    "changed",
    "headroom",
    "lowest",
    "lowest_after",
    "disagreement",
    "latency",
    "text",
    "reason",
    "given",
)
# Order → the column that it sorts by, and whether the highest value comes first.
_KEYS = {
    "hurt": ("delta", False),
    "helped": ("delta", True),
    "changed": ("size", True),
    "headroom": ("to_win", True),
    "lowest": ("before", False),
    "lowest_after": ("after", False),
    "disagreement": ("spread", True),
    "latency": ("latency_ms", True),
}
_SORTABLE = (
    *("text", "before", "after", "delta", "ceiling", "reason", "state", "to_win", "spread"),
    *("latency_ms", "judged_before", "judged_after"),
)
# The prefix of a column's name for a descending order.
_DOWN = "-"


def query_table(
    queries: pd.DataFrame,
    pairs: pd.DataFrame,
    tie_band: float = TIE_BAND,
    known: Mapping[str, pd.Series] | None = None,
) -> pd.DataFrame:
    """Return one row per query of `pairs`.

    queries: a data set's queries (query_id, text, segment columns).
    pairs: from `rankdash.core.statistics.alignment.paired`.
    known: column → values by query id, which may lack queries: judged_before and judged_after
        (share of the first k documents that have a label), ceiling, to_win (potential gain left),
        spread (highest minus lowest value among the rerankers), latency_ms, and any other column to
        show.

    Columns: query_id, text (missing if the data has none), the segments, before, after, delta, size
    (of the change); outcome: one of `OUTCOMES`, or the reason why the query has no difference (as
    in the state of `pairs`); state: "ok", "all_unjudged" if neither system shows a labelled
    document, or the reason why there is no difference; words: the text to search in; then the
    columns of `known`.
    """
    table = pairs.merge(queries, on="query_id", how="left", validate="one_to_one")
    sign = direction(table["delta"].to_numpy(), tie_band)
    moved = np.array(["same", "helped", "hurt"], dtype=object)[sign]
    paired = (table["state"] == PAIRED).to_numpy()
    table["outcome"] = np.where(paired, moved, table["state"])
    table["size"] = table["delta"].abs()
    known = known or {}
    for column, values in known.items():
        table[column] = values.reindex(table["query_id"]).to_numpy()
    state = np.where(paired, OK, table["state"])
    if {"judged_before", "judged_after"} <= set(known):
        nothing = (table["judged_before"] == 0) & (table["judged_after"] == 0)
        state = np.where(paired & nothing, ALL_UNJUDGED, state)
    table["state"] = state
    table["words"] = (table["query_id"] + " " + table["text"].fillna("")).str.casefold()
    segments = [column for column in queries.columns if column not in ("query_id", "text")]
    first = ["query_id", "text", *segments, "before", "after", "delta", "size", "outcome", "state"]
    return table[[*first, "words", *known]]


def valued(table: pd.DataFrame) -> frozenset[str]:
    """Return the columns of a query table that have a value to sort by."""
    columns = {*_SORTABLE, *(column for column, _highest_first in _KEYS.values())}
    return frozenset(each for each in columns & set(table.columns) if table[each].notna().any())


def orders(columns: Collection[str], requested: str = "") -> list[str]:
    """Return the `ORDERS` whose column has values, and the requested order if it is such a column
    ("-" before its name: descending). columns: from `valued`."""
    offered = [*ORDERS]
    if requested not in ORDERS and key_of(requested)[0] in _SORTABLE:
        offered.append(requested)
    return [each for each in offered if each == "given" or key_of(each)[0] in columns]


def key_of(order: str) -> tuple[str, bool]:
    """Return the column for an order, and whether its highest values come first."""
    return _KEYS.get(order) or (order.removeprefix(_DOWN), order.startswith(_DOWN))


def order_of(table: pd.DataFrame, order: str) -> npt.NDArray[np.intp]:
    """Return the rows of the table in one of `orders`, (rows,). Equal queries stay in the order of
    the data; those without a value come last."""
    if order == "given":
        return np.arange(len(table))
    column, highest_first = key_of(order)
    values = table[column]
    if values.dtype.kind != "f":
        values = values.str.casefold()
    values = values.reset_index(drop=True)
    by = values.sort_values(ascending=not highest_first, kind="stable", na_position="last")
    return by.index.to_numpy(dtype=np.intp)


@dataclass(frozen=True)
class Filters:
    """Filters on the rows of a query table; empty and None do not filter.

    outcomes, states, reasons, faults: values of these columns. segments: column → values.
    before, after, delta: the lowest and highest value of either system, and change; queries without
        a value are excluded.
    values: the same for other columns, such as the values of other systems.
    judged: the least share of labelled documents in both systems.
    text: in query or id (case ignored). tags: any of these tags.
    """

    outcomes: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    segments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    before: tuple[float, float] | None = None
    after: tuple[float, float] | None = None
    delta: tuple[float, float] | None = None
    values: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    judged: float = 0.0
    text: str = ""


def passing(
    table: pd.DataFrame, filters: Filters, tags: Mapping[str, tuple[str, ...]] | None = None
) -> npt.NDArray[np.bool_]:
    """Return which rows pass every filter, (rows,). tags: query id → its tags."""
    keep: npt.NDArray[np.bool_] = np.ones(len(table), dtype=bool)
    chosen = {
        "outcome": filters.outcomes,
        "state": filters.states,
        "reason": filters.reasons,
        "fault": filters.faults,
    }
    for column, values in {**chosen, **filters.segments}.items():
        if values:
            keep &= table[column].isin(values).to_numpy()
    ranges = {column: getattr(filters, column) for column in ("before", "after", "delta")}
    for column, ends in {**ranges, **filters.values}.items():
        if ends is not None:
            keep &= table[column].between(*ends).to_numpy()
    if filters.judged > 0:
        keep &= (table[["judged_before", "judged_after"]].min(axis=1) >= filters.judged).to_numpy()
    if filters.tags:
        required = set(filters.tags)
        tagged = {query for query, theirs in (tags or {}).items() if required & set(theirs)}
        keep &= table["query_id"].isin(tagged).to_numpy()
    text = filters.text.strip().casefold()
    if text:
        keep &= table["words"].str.contains(text, regex=False).to_numpy()
    return keep
