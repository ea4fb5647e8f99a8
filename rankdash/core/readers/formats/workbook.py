"""Excel workbooks (.xlsx): every sheet that holds rows is a table, as if it were a file."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

import numpy as np

from rankdash.core.base.errors import Finding, FormatError, Phrase, UnavailableError
from rankdash.core.readers.formats.json_records import cell
from rankdash.core.readers.parse import skipped_rows
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.skipped_rows import LINES_NAMED, Refusals, told
from rankdash.core.readers.parse.table import (
    Table,
    frame_of,
    refuse_long_fields,
    refuse_many_columns,
    refuse_many_rows,
)

NAME = "Excel"
MAGIC = b"PK\x03\x04"

Row = list[str | None]
_MOST_ROWS = 1 << 20
_FORMULA = re.compile(rb"<(?:\w{1,20}:)?f[ >/]")
# What a spreadsheet program writes in place of a value that it cannot compute.
_ERRORS = frozenset(
    ("#N/A", "#REF!", "#NAME?", "#DIV/0!", "#NULL!", "#NUM!", "#VALUE!", "#GETTING_DATA", "#SPILL!")
)


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
    with told(file, skipped_rows.FILE, format=NAME), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        formulas = _formulas(data) if _has_formulas(data) else {}
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        read = {
            sheet.title: _Sheet(sheet, formulas.get(sheet.title, {}), file, limits)
            for sheet in sheets
        }
    filled = {title: sheet for title, sheet in read.items() if len(sheet.rows) > 1}
    if not filled:
        raise FormatError(
            "The workbook holds no rows below a header.",
            remedy="Put the names of the columns into the first row of a sheet that is not hidden.",
            file=file,
        )
    first, *others = [
        sheet.table(file if len(filled) == 1 else f"{file}/{title}", limits)
        for title, sheet in filled.items()
    ]
    hidden = [sheet.title for sheet in book.worksheets if sheet.sheet_state != "visible"]
    return [replace(first, findings=(*first.findings, *_hidden(hidden, file))), *others]


def _hidden(sheets: Sequence[str], file: str) -> list[Finding]:
    if not sheets:
        return []
    return [
        Finding(
            "note",
            "hidden_sheets",
            "Hidden sheets, which are not read: {sheets}.",
            {"sheets": ", ".join(sheets)},
            "To read a sheet, unhide it and save the workbook.",
            file,
            count=len(sheets),
        )
    ]


def _has_formulas(data: bytes) -> bool:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        return any(_FORMULA.search(archive.read(name)) for name in sheets)


def _formulas(data: bytes) -> dict[str, dict[tuple[int, int], str]]:
    """Sheet → (row, column) → formula."""
    from openpyxl import load_workbook

    book = load_workbook(io.BytesIO(data), read_only=True)
    found: dict[str, dict[tuple[int, int], str]] = {}
    for sheet in book.worksheets:
        found[sheet.title] = {
            (each.row, each.column): str(getattr(each.value, "text", each.value))
            for _, row in _rows_of(sheet, values_only=False)
            for each in row
            if each.data_type == "f"
        }
    return found


def _rows_of(sheet: Any, *, values_only: bool) -> Iterator[tuple[int, Sequence[Any]]]:
    """(number, cells) of each row up to the last. Raises ValueError for one below the last row that
    a sheet can have: all between would be made."""
    # Some programs write a wrong size into the file.
    sheet.reset_dimensions()
    for number, cells in enumerate(sheet.iter_rows(values_only=values_only), 1):
        if number > _MOST_ROWS:
            raise ValueError(f"a sheet has at most {_MOST_ROWS:,} rows")
        yield number, cells


class _Sheet:
    """The rows of a sheet that are not empty, and the cells in which no value was saved."""

    def __init__(
        self,
        sheet: Any,
        formulas: Mapping[tuple[int, int], str],
        file: str,
        limits: ReadLimits,
    ) -> None:
        self._title = sheet.title
        # (row, column) → what the sheet has in place of a value.
        self._without_value: dict[tuple[int, int], str] = {}
        self.rows: list[tuple[int, Row]] = []
        for number, values in _rows_of(sheet, values_only=not formulas):
            refuse_many_columns(len(values), file, limits)
            cells = [self._cell(each, (number, at), formulas) for at, each in enumerate(values, 1)]
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                self.rows.append((number, cells))
                refuse_many_rows(len(self.rows), file, limits)

    def _cell(
        self, given: Any, place: tuple[int, int], formulas: Mapping[tuple[int, int], str]
    ) -> str | None:
        value = given.value if formulas else given
        if value in _ERRORS:
            self._without_value[place] = value
            return None
        # A formula whose value is an empty text has a value.
        if value is None and place in formulas and given.data_type != "str":
            self._without_value[place] = formulas[place]
        return _text(value)

    def table(self, file: str, limits: ReadLimits) -> Table:
        warning = self._warning(file)
        cause = Phrase(warning.template, **warning.params) if warning else None
        found = _table(self.rows, Refusals(file, cause), limits)
        return replace(found, findings=(warning,)) if warning else found

    def _warning(self, file: str) -> Finding | None:
        from openpyxl.utils import get_column_letter

        if not self._without_value:
            return None
        named = {
            f"{get_column_letter(column)}{row}": said
            for (row, column), said in self._without_value.items()
        }
        more = " …" if len(named) > LINES_NAMED else ""
        return Finding(
            "warning",
            "cells_without_value",
            "Cells of the sheet {sheet} that hold a formula without a saved value, or an error, "
            "and are read as empty: {count} ({cells}).",
            {
                "sheet": self._title,
                "count": len(named),
                "cells": ", ".join(list(named)[:LINES_NAMED]) + more,
            },
            "Open the workbook in a spreadsheet program and save it, which saves the values.",
            file,
            next(iter(self._without_value))[0],
            len(named),
            tuple(f"{cell}: {said}" for cell, said in list(named.items())[:5]),
        )


def _text(value: object) -> str | None:
    return value.isoformat() if isinstance(value, date | datetime | time) else cell(value)


def _table(rows: list[tuple[int, Row]], refusals: Refusals, limits: ReadLimits) -> Table:
    file = refusals.file
    names: list[str] = []
    for position, name in enumerate(rows[0][1], 1):
        unique = (name or "").strip() or f"column {position}"
        while unique in names:
            unique += " (2)"
        names.append(unique)
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
