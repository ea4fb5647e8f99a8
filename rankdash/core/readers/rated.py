"""Readers of labels with annotators (a row per annotator and pair, as exported by annotation tools
and `rankdash label status --out`), of a judge's grades (as written by `rankdash judge run`), and of
latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError, Finding
from rankdash.core.base.text import restored
from rankdash.core.readers.detect import tables_of
from rankdash.core.readers.parse.columns import fields_of, plain
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import Floats, Texts, blank, labels, numbers

_RATERS = [
    "rater",
    "annotator",
    "assessor",
    "labeler",
    "labeller",
    "who",
    "标注员",
    "标注人",
    "标注者",
]
_TIMES = ("time", "made", "timestamp", "createdat", "updatedat", "submittedat", "时间")
_ERRORS = ("error", "errors", "failure", "exception", "错误", "失败原因")
_JUDGES = ("judge", "judgename", *_RATERS)
_CANNOT_TELL = [
    "cannottell",
    "canttell",
    "unknown",
    "unsure",
    "notsure",
    "skip",
    "无法判断",
    "不确定",
]


def read_rated(
    source: Source, *, rater: str = "", limits: ReadLimits | None = None
) -> tuple[pd.DataFrame, list[Finding]] | None:
    """Read rows with a label or "cannot tell" (also "unsure", "unknown" or "skip"): query_id,
    doc_id, label (NaN for "cannot tell"), rater, time (ISO 8601 in UTC; "" if missing). Return None
    for a file without columns of ids and labels, and for a file without raters and without any
    "cannot tell".

    rater: the annotator of all labels; overrides the file.

    Raises FormatError and LimitError like the other readers, and DataError with the line for a row
    without an id or with an invalid label.
    """
    table = tables_of(source, limits or ReadLimits())[0]
    frame, fields = table.frame, _fields(table)
    column, time = None if rater else _column(table, _RATERS), _column(table, _TIMES)
    if not {"query_id", "doc_id", "label"} <= set(fields):
        return None
    cells = frame[fields["label"]].to_numpy(dtype=object)
    unsure = np.array([plain(cell or "") in _CANNOT_TELL for cell in cells], dtype=bool)
    if column is None and not unsure.any():
        return None
    filled = ~blank(cells)
    graded = cells.copy()
    graded[unsure] = None
    values = labels(graded).values
    _refuse_odd(table, fields, filled, filled & ~unsure & np.isnan(values))
    rated = pd.DataFrame(
        {
            "query_id": frame[fields["query_id"]].to_numpy(dtype=object),
            "doc_id": frame[fields["doc_id"]].to_numpy(dtype=object),
            "label": values,
            "rater": rater if column is None else _texts(table, column),
            "time": _moments(frame[time]) if time is not None else "",
        }
    )
    return rated[filled].reset_index(drop=True), [*table.findings, *table.refusals.findings()]


@dataclass(frozen=True)
class JudgedRows:
    """The grades of one judge.

    table: one row per pair: query_id, doc_id, grade (NaN if missing), error (reason for a missing
    grade, else "") and kind (of the error; "" if unknown). name, model: from the file; "" if
    missing. top: the highest grade of the scale; NaN if the file does not state it."""

    table: pd.DataFrame
    name: str
    model: str
    top: float
    findings: list[Finding]


def read_judged(source: Source, *, limits: ReadLimits | None = None) -> JudgedRows:
    """Read rows of query, document and grade, or an error if the judge failed. If a pair has
    several rows, the last is used.

    Raises FormatError and LimitError like the other readers, DataError for a file without ids or
    grades or with several judges, and DataError with the line for a row without an id or with a
    grade that is not a number.
    """
    table = tables_of(source, limits or ReadLimits())[0]
    frame, fields = table.frame, _fields(table)
    if "grade" in frame:
        # Further columns may contain the grade of each repeat.
        fields["label"] = "grade"
    missing = [field for field in ("query_id", "doc_id", "label") if field not in fields]
    if missing:
        raise DataError(
            "The file has no column of {lacking}.",
            remedy="Provide a judge's grades as rows with the columns query_id, doc_id and grade.",
            file=source.name,
            lacking={"label": "grade"}.get(missing[0], missing[0]),
        )
    cells = frame[fields["label"]].to_numpy(dtype=object)
    values = labels(cells).values
    every = np.ones(len(frame), dtype=bool)
    _refuse_odd(table, fields, every, ~blank(cells) & np.isnan(values))
    error = _texts(table, _column(table, _ERRORS))
    graded = ~np.isnan(values)
    error[~graded & (error == "")] = "no grade"
    error[graded] = ""
    mend = restored if source.name.casefold().endswith(".csv") else str
    rows = pd.DataFrame(
        {
            "query_id": [mend(cell) for cell in frame[fields["query_id"]]],
            "doc_id": [mend(cell) for cell in frame[fields["doc_id"]]],
            "grade": values,
            "error": error,
            "kind": np.where(graded, "", _texts(table, _column(table, ("kind",)))),
        }
    ).drop_duplicates(["query_id", "doc_id"], keep="last", ignore_index=True)
    names = sorted(set(_texts(table, _column(table, _JUDGES))) - {""})
    if len(names) > 1:
        raise DataError(
            "The file contains the grades of several judges: {judges}.",
            remedy="Provide one file per judge.",
            file=source.name,
            judges=", ".join(names[:5]),
        )
    models = _texts(table, _column(table, ("model",)))
    return JudgedRows(
        table=rows,
        name=names[0] if names else "",
        model=next(filter(None, models), ""),
        top=float(pd.Series(numbers(_texts(table, _column(table, ("top",))))).max()),
        findings=[*table.findings, *table.refusals.findings()],
    )


def _fields(table: Table) -> dict[str, str]:
    return fields_of(table.frame) if table.fields is None else dict(table.fields)


def _column(table: Table, names: Sequence[str]) -> str | None:
    """Return the column with the first of the names that the table has, or None."""
    columns = (
        {plain(str(name)): name for name in reversed(table.frame.columns)} if table.names else {}
    )
    return next((columns[name] for name in names if name in columns), None)


def _texts(table: Table, column: str | None, default: str = "") -> Texts:
    """Return the (N,) stripped texts of a column, `default` for missing ones."""
    cells = [None] * len(table.frame) if column is None else table.frame[column]
    return np.array([(cell or "").strip() or default for cell in cells], dtype=object)


def _refuse_odd(
    table: Table,
    fields: Mapping[str, str],
    rows: npt.NDArray[np.bool_],
    odd: npt.NDArray[np.bool_],
) -> None:
    """Raise DataError for a label that is not a number (`odd`), or if one of `rows` has no id."""
    for row in np.flatnonzero(odd)[:1]:
        raise DataError(
            "A label is not a number: {label!r}.",
            remedy="Write numbers into the label column, such as 0, 1 and 2.",
            file=table.file,
            line=int(table.lines[row]),
            label=str(table.frame[fields["label"]].iloc[row]),
        )
    for field in ("query_id", "doc_id"):
        cells = table.frame[fields[field]].to_numpy(dtype=object)
        missing = np.flatnonzero(rows & blank(cells))
        if len(missing):
            raise DataError(
                "A label has no {field}.",
                remedy="Each label needs a query and a document.",
                file=table.file,
                line=int(table.lines[missing[0]]),
                field=field,
            )


def _moments(cells: pd.Series[str]) -> list[str]:
    moments = pd.to_datetime(cells, utc=True, format="ISO8601", errors="coerce")
    return ["" if pd.isna(each) else each.isoformat() for each in moments]


# Latencies of queries from a file: the output of `rerank --timings`, or any table with a column of
# milliseconds.

LATENCY_COLUMN = "latency_ms"
_STATES = ("done", "failed", "skipped")
_NOT_MEASURED = frozenset(("", "nan", "null", "none", "n/a"))


def read_timings(
    source: Source, column: str = LATENCY_COLUMN, *, limits: ReadLimits | None = None
) -> tuple[pd.DataFrame, list[Finding]]:
    """Read a table of queries with latencies and the findings.

    The frame has query_id ("" without such a column), state ("done" without such a column),
    reason (of a failure; "" without such a column) and latency_ms (NaN if the cell is empty, NaN or
    null).

    Raises FormatError and LimitError like the other readers, and DataError if the column is missing
    or, with the line, if a latency or a state is invalid.
    """
    table = tables_of(source, limits or ReadLimits())[0]
    names = {str(name).strip(): name for name in table.frame.columns}
    if column not in names or not table.names:
        raise DataError(
            "The file has no column {column!r}.",
            remedy="Columns of the file: {columns}.",
            file=source.name,
            column=column,
            columns=", ".join(names) if table.names else "unnamed",
        )
    frame = pd.DataFrame(
        {
            "query_id": _texts(table, names.get("query_id")),
            "state": _texts(table, names.get("state"), "done"),
            "reason": _texts(table, names.get("reason")),
            "latency_ms": _latencies(table, _texts(table, names[column])),
        }
    )
    for row in np.flatnonzero(~frame["state"].isin(_STATES))[:1]:
        raise DataError(
            "Unknown query state {state!r}.",
            remedy="Allowed states: {states}.",
            file=source.name,
            line=int(table.lines[row]),
            state=frame["state"].iloc[row],
            states=", ".join(_STATES),
        )
    return frame, [*table.findings, *table.refusals.findings()]


def _latencies(table: Table, texts: Texts) -> Floats:
    measured = np.array([text.casefold() not in _NOT_MEASURED for text in texts], dtype=bool)
    values = np.where(measured, numbers(texts), np.nan)
    for row in np.flatnonzero(measured & ~((values >= 0) & (values < np.inf)))[:1]:
        raise DataError(
            "{text!r} is not a latency.",
            remedy="Enter milliseconds, or leave the cell empty if nothing was measured.",
            file=table.file,
            line=int(table.lines[row]),
            text=texts[row],
        )
    return values
