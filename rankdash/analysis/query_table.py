"""The list of queries behind a comparison: text, segments, both values, what became of each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from rankdash.analysis.compare import PAIRED, TIE_BAND, direction

OUTCOMES = ("helped", "same", "hurt")
ORDERS = ("hurt", "helped", "changed", "lowest", "given")


def query_table(
    queries: pd.DataFrame, pairs: pd.DataFrame, tie_band: float = TIE_BAND
) -> pd.DataFrame:
    """One row per query of `pairs`.

    queries: a data set's queries (query_id, text, segment columns).
    pairs: from `rankdash.analysis.compare.paired`.
    Columns: query_id, text (missing where the data has none), the segments, before, after, delta,
    outcome: one of `OUTCOMES`, or why the query has no difference (as in `pairs`' state).
    """
    table = pairs.merge(queries, on="query_id", how="left", validate="one_to_one")
    sign = direction(table["delta"].to_numpy(), tie_band)
    moved = np.array(["same", "helped", "hurt"], dtype=object)[sign]
    table["outcome"] = np.where(table["state"] == PAIRED, moved, table["state"])
    segments = [column for column in queries.columns if column not in ("query_id", "text")]
    return table[["query_id", "text", *segments, "before", "after", "delta", "outcome"]]


def ordered(table: pd.DataFrame, order: str) -> pd.DataFrame:
    """The table in one of `ORDERS`: most hurt first, most helped first, largest change first,
    lowest baseline first, or as given. Queries without a value come last."""
    if order == "given":
        return table
    keys = {
        "hurt": table["delta"],
        "helped": -table["delta"],
        "changed": -table["delta"].abs(),
        "lowest": table["before"],
    }
    position = keys[order].sort_values(kind="stable", na_position="last").index
    return table.loc[position]


def filtered(
    table: pd.DataFrame,
    *,
    outcomes: tuple[str, ...] = (),
    segments: Mapping[str, tuple[str, ...]] | None = None,
    text: str = "",
) -> pd.DataFrame:
    """The rows with one of the outcomes, one of the values in each segment, and the text in query
    or id (case ignored). Whatever is empty does not filter."""
    keep = np.ones(len(table), dtype=bool)
    if outcomes:
        keep &= table["outcome"].isin(outcomes).to_numpy()
    for column, values in (segments or {}).items():
        if values:
            keep &= table[column].isin(values).to_numpy()
    wanted = text.strip().casefold()
    if wanted:
        words = table["query_id"] + " " + table["text"].fillna("")
        keep &= words.str.casefold().str.contains(wanted, regex=False).to_numpy()
    return table[keep]
