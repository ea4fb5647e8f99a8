"""How long queries took, from a file: what `rerank --timings` writes, or any table with a column
of milliseconds."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.findings import Finding
from rankdash.core.readers.detect import tables_of
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table

LATENCY_COLUMN = "latency_ms"
_STATES = ("done", "failed", "skipped")
_NOT_MEASURED = frozenset(("", "nan", "null", "none", "n/a"))


def read_timings(
    source: Source, column: str = LATENCY_COLUMN, *, limits: ReadLimits | None = None
) -> tuple[pd.DataFrame, list[Finding]]:
    """Read a table of queries.

    The frame has query_id ("" without such a column), state ("done" without such a column),
    reason (of a failure; "" without such a column) and latency_ms (NaN where the cell is empty, or
    says NaN or null).

    Raises FormatError and LimitError as the other readers do, and DataError with the line where
    the column is missing, or a cell is neither a latency nor a state.
    """
    table = tables_of(source, limits or ReadLimits())[0]
    names = {str(name).strip(): name for name in table.frame.columns}
    if column not in names or not table.names:
        raise DataError(
            "The file has no column {column!r}.",
            remedy="Its columns: {columns}.",
            file=source.name,
            column=column,
            columns=", ".join(names) if table.names else "none are named",
        )
    rows = len(table.frame)
    frame = pd.DataFrame(
        {
            "query_id": _texts(table, names, "query_id", ""),
            "state": _texts(table, names, "state", "done"),
            "reason": _texts(table, names, "reason", ""),
            "latency_ms": _latencies(table, names[column]),
        },
        index=range(rows),
    )
    for row in np.flatnonzero(~frame["state"].isin(_STATES))[:1]:
        raise DataError(
            "{state!r} is no state of a query.",
            remedy="The states are: {states}.",
            file=source.name,
            line=int(table.lines[row]),
            state=frame["state"].iloc[row],
            states=", ".join(_STATES),
        )
    return frame, [*table.findings, *table.refusals.findings()]


def _texts(table: Table, names: dict[str, str], name: str, default: str) -> list[str]:
    if name not in names:
        return [default] * len(table.frame)
    return [(cell or "").strip() or default for cell in table.frame[names[name]]]


def _latencies(table: Table, column: str) -> npt.NDArray[np.float64]:
    values = np.full(len(table.frame), np.nan)
    for row, cell in enumerate(table.frame[column]):
        text = (cell or "").strip()
        if text.casefold() in _NOT_MEASURED:
            continue
        try:
            values[row] = float(text)
        except ValueError:
            values[row] = math.inf
        if not 0 <= values[row] < math.inf:
            raise DataError(
                "{text!r} is not a latency.",
                remedy="Give milliseconds, or leave the cell empty if nothing was measured.",
                file=table.file,
                line=int(table.lines[row]),
                text=text,
            )
    return values
