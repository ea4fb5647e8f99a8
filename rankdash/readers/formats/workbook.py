"""Excel workbooks (.xlsx): every sheet that holds rows is a table, as if it were a file."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from datetime import date, datetime, time

import numpy as np

from rankdash.errors import FormatError, UnavailableError
from rankdash.readers.formats.json_records import cell
from rankdash.readers.parse import faults
from rankdash.readers.parse.faults import told
from rankdash.readers.parse.limits import ReadLimits
from rankdash.readers.parse.skipped_rows import Refusals
from rankdash.readers.parse.table import (
    Table,
    frame_of,
    refuse_long_fields,
    refuse_many_columns,
    refuse_many_rows,
)

NAME = "Excel"
MAGIC = b"PK\x03\x04"

Row = list[str | None]


def read(data: bytes, file: str, limits: ReadLimits) -> list[Table]:
    """A table of each sheet that is not hidden and holds more than a header. A row's line is its
    number in the sheet. Of several, each is called after the file and the sheet.

    A formula is the value that was saved with it. Raises FormatError where the file is damaged or
    has no rows, LimitError for too many rows or columns or too long cells, UnavailableError
    without openpyxl.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as problem:
        raise UnavailableError(
            "Excel workbooks are read by the package openpyxl, which is not installed.",
            remedy="Install it with pip install openpyxl, or save the sheet as CSV (UTF-8).",
        ) from problem
    # It warns of what it cannot keep, such as lists of allowed values; cells are kept.
    with told(file, faults.FILE, format=NAME), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        rows = {sheet.title: list(_rows(sheet, file, limits)) for sheet in sheets}
    filled = {title: found for title, found in rows.items() if len(found) > 1}
    if not filled:
        raise FormatError(
            "The workbook holds no rows below a header.",
            remedy="Put the names of the columns into the first row of a sheet that is not hidden.",
            file=file,
        )
    return [
        _table(found, file if len(filled) == 1 else f"{file}/{title}", limits)
        for title, found in filled.items()
    ]


def _rows(sheet: object, file: str, limits: ReadLimits) -> Iterator[tuple[int, Row]]:
    """(number, cells) of every row that is not empty, without empty cells at its end."""
    # Some programs write a wrong size into the file.
    sheet.reset_dimensions()  # type: ignore[attr-defined]
    found = 0
    for number, values in enumerate(sheet.iter_rows(values_only=True), 1):  # type: ignore[attr-defined]
        refuse_many_columns(len(values), file, limits)
        cells = [_text(value) for value in values]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            found += 1
            refuse_many_rows(found, file, limits)
            yield number, cells


def _text(value: object) -> str | None:
    return value.isoformat() if isinstance(value, date | datetime | time) else cell(value)


def _table(rows: list[tuple[int, Row]], file: str, limits: ReadLimits) -> Table:
    names: list[str] = []
    for position, name in enumerate(rows[0][1], 1):
        unique = (name or "").strip() or f"column {position}"
        while unique in names:
            unique += " (2)"
        names.append(unique)
    refusals = Refusals(file)
    wide = [(number, cells) for number, cells in rows[1:] if len(cells) > len(names)]
    refusals.add(
        "field_count",
        [number for number, _ in wide],
        [" | ".join(text or "" for text in cells) for _, cells in wide],
    )
    kept = [(number, cells) for number, cells in rows[1:] if len(cells) <= len(names)]
    lines = np.array([number for number, _ in kept], dtype=np.int64)
    columns = {
        name: [cells[at] if at < len(cells) else None for _, cells in kept]
        for at, name in enumerate(names)
    }
    for texts in columns.values():
        refuse_long_fields(texts, lines, file, limits)
    return Table(file, NAME, frame_of(columns), lines, refusals)
