"""Reader of CSV, TSV and similar files: any one-character separator, quoted line breaks, with or
without a header.

The separator is chosen by known column names and by equal numbers of fields per row. Quotation
marks follow RFC 4180 (`""` inside a quoted field); if that fails, `\\"` is tried, and in
tab-separated files also plain quotation marks.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.data.arrays import ArrowText
from rankdash.core.readers.parse.columns import known
from rankdash.core.readers.parse.limits import ReadLimits, Refusals
from rankdash.core.readers.parse.table import (
    Columns,
    Lines,
    Table,
    even_columns,
    frame_of,
    refuse_long_fields,
    refuse_many_columns,
    refuse_many_rows,
    too_long_field,
    unique_names,
)
from rankdash.core.readers.parse.values import looks_like_ids, numbers

# The default limit of `csv` is process-wide and too low for long documents.
_LARGEST_FIELD = min(sys.maxsize, 2**31 - 1)
csv.field_size_limit(_LARGEST_FIELD)
_one_at_a_time = threading.Lock()

_SAMPLE_CHARS = 1 << 18
_SAMPLE_ROWS = 200
_USUAL = "\t,;|"
_NEVER = " \"'_-.\\"
# The unit and record separators, and the separator of Hive.
_CONTROLS = "\x1f\x1e\x01"
_MOST_ODD = 8
_EXCEL_HINT = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
# Without known names, at least this share of the sample must have the first row's field count.
_ENOUGH = 0.7
_NAMES = {"\t": "TSV", ",": "CSV", ";": "CSV (;)", "|": "CSV (|)"}
_QUOTING = {
    "none": "Quotation marks were read as plain characters, because reading them as quotes fails.",
    "escape": 'Quotation marks inside a text were read as \\", because reading them as "" fails.',
}
_BLOCK = 50_000
_PIECE_CHARS = 1 << 20


@dataclass(frozen=True)
class CsvDialect:
    """A CSV dialect. delimiter: one character. quotes: "double" (RFC 4180), "escape" or "none"."""

    delimiter: str
    quotes: str

    def records(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Yield (first physical line, cells) of every record that is not blank."""
        reader = csv.reader(
            _lines(text),
            delimiter=self.delimiter,
            strict=True,
            quoting=csv.QUOTE_NONE if self.quotes == "none" else csv.QUOTE_MINIMAL,
            doublequote=self.quotes == "double",
            escapechar="\\" if self.quotes == "escape" else None,
        )
        line = 1
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as problem:
            raise _Unquotable(line, str(problem)) from problem


def _lines(text: str) -> Iterator[str]:
    """Yield the lines with their line ends, without copying the whole text."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _PIECE_CHARS) + 1 or len(text)
        yield from io.StringIO(text[start:end], newline="")
        start = end


class _Unquotable(Exception):  # noqa: N818 - not raised outside this module
    """Unbalanced quotation marks in the record that begins on `line`."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        self.too_long = problem.startswith("field larger than")
        super().__init__(problem)


def sniff(text: str) -> str | None:
    """Return the separator, or None if no character separates fields."""
    hint = _EXCEL_HINT.match(text)
    if hint:
        return hint.group(1)
    sample = text[:_SAMPLE_CHARS]
    first = sample.lstrip("\r\n").split("\n", 1)[0]
    odd = Counter(
        char
        for char in first
        if not char.isalnum()
        and char not in _NEVER + _USUAL
        and (char.isprintable() or char in _CONTROLS)
    )
    candidates = [*_USUAL, *(char for char, _ in odd.most_common(_MOST_ODD)), " "]
    best: tuple[tuple[int, float, int], str] | None = None
    for delimiter in candidates:
        if delimiter not in first:
            continue
        rows = _sample_rows(sample, delimiter, truncated=len(sample) < len(text))
        width = len(rows[0]) if rows else 0
        names = known(rows[0]) if rows else 0
        same = sum(len(row) == width for row in rows) / max(len(rows), 1)
        plausible = names >= 2 or (same >= _ENOUGH and len(rows) > 1 and delimiter != " ")
        if width > 1 and plausible and (best is None or (names, same, width) > best[0]):
            best = ((names, same, width), delimiter)
    return best[1] if best else None


def _sample_rows(sample: str, delimiter: str, *, truncated: bool) -> list[list[str]]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) == _SAMPLE_ROWS:
                return rows
    except csv.Error:
        return rows
    return rows[:-1] if truncated and len(rows) > 1 else rows


def read(text: str, delimiter: str, file: str, limits: ReadLimits) -> Table:
    """Read a table of the file's columns.

    Rows with a wrong number of fields are refused. Raises FormatError, with the line, if a
    quotation mark is never closed; LimitError for too many or too long fields.
    """
    hint = _EXCEL_HINT.match(text)
    if hint:
        # A blank line replaces the hint, so that line numbers stay correct.
        text = "\n" + text[hint.end() :]
    others = ["escape"] * ('\\"' in text) + ["none"] * (delimiter == "\t")
    problems: list[_Unquotable] = []
    for quotes in ("double", *others):
        try:
            return _read(text, CsvDialect(delimiter, quotes), file, limits)
        except _Unquotable as unquotable:
            problems.append(unquotable)
    problem = problems[0]
    if problem.too_long:
        raise too_long_field(file, problem.line, limits)
    raise FormatError(
        "Unbalanced quotation marks in the row starting here ({problem}).",
        remedy='Close every quotation mark, and write a mark inside a quoted text as "".',
        file=file,
        line=problem.line,
        problem=str(problem),
    )


def _read(text: str, dialect: CsvDialect, file: str, limits: ReadLimits) -> Table:
    table = _even(text, dialect, file, limits)
    if table is not None:
        return table
    with _one_at_a_time:
        csv.field_size_limit(min(limits.field_chars, _LARGEST_FIELD))
        try:
            return _uneven(text, dialect, file, limits)
        finally:
            csv.field_size_limit(_LARGEST_FIELD)


def _even(text: str, dialect: CsvDialect, file: str, limits: ReadLimits) -> Table | None:
    """Read a text without quotation marks in which each line is a row with the same number of
    fields; return None for any other text."""
    width = next(_lines(text), "").count(dialect.delimiter) + 1
    refuse_many_columns(width, file, limits)
    parsed = None
    if '"' not in text:
        parsed = even_columns(text.encode(), dialect.delimiter, width, range(width))
    if parsed is None:
        return None
    columns = list(parsed.values())
    first = [column[0].as_py() for column in columns]
    rows = [column.slice(1) for column in columns]
    names = _header(first, [] if known(first) else [row.to_pylist() for row in rows])
    if names is not None:
        columns = rows
    lines = np.arange(1 if names is None else 2, text.count("\n") + 2)[: len(columns[0])]
    refuse_many_rows(len(lines), file, limits)
    return _table(first, names, columns, lines, Refusals(file), dialect, limits)


def _uneven(text: str, dialect: CsvDialect, file: str, limits: ReadLimits) -> Table:
    records = dialect.records(text)
    first_line, first = next(records, (1, []))
    refuse_many_columns(len(first), file, limits)
    width = len(first)
    refusals = Refusals(file)
    lines: list[int] = []
    columns: list[list[str]] = [[] for _ in range(width)]
    block: list[list[str]] = []
    bad = 0
    for line, cells in records:
        if len(cells) > width and not any(cells[width:]):
            del cells[width:]
        if len(cells) == width:
            lines.append(line)
            block.append(cells)
        else:
            bad += 1
            refusals.add("field_count", [line], [dialect.delimiter.join(cells)])
        if len(block) == _BLOCK:
            _flush(block, columns)
            refuse_many_rows(len(lines) + bad, file, limits)
    _flush(block, columns)
    refuse_many_rows(len(lines) + bad, file, limits)
    names = _header(first, columns)
    if names is None:
        lines.insert(0, first_line)
        for column, cell in zip(columns, first, strict=True):
            column.insert(0, cell)
    numbers_of_lines = np.array(lines, dtype=np.int64)
    return _table(first, names, columns, numbers_of_lines, refusals, dialect, limits)


def _table(
    first: Sequence[str],
    names: Sequence[str] | None,
    columns: Sequence[Any],
    lines: Lines,
    refusals: Refusals,
    dialect: CsvDialect,
    limits: ReadLimits,
) -> Table:
    """Create the table. columns: lists of str, or Arrow text."""
    for column in columns:
        refuse_long_fields(column, lines, refusals.file, limits)
    header = names or [f"column {position}" for position in range(1, len(first) + 1)]
    template = _QUOTING.get(dialect.quotes)
    note = template and Finding("note", "quotation_marks", template, file=refusals.file)
    cells = Columns(zip(header, columns, strict=True))
    return Table(
        refusals.file,
        _NAMES.get(dialect.delimiter, f"separated by {dialect.delimiter!r}"),
        cells if all(isinstance(column, ArrowText) for column in columns) else frame_of(cells),
        lines,
        refusals,
        names=names is not None,
        findings=(note,) if note else (),
    )


def _flush(block: list[list[str]], columns: list[list[str]]) -> None:
    """Append the rows of `block` to the columns, and empty it."""
    for column, cells in zip(columns, zip(*block, strict=True), strict=bool(block)):
        column.extend(cells)
    block.clear()


def _header(first: list[str], columns: Sequence[Sequence[str]]) -> list[str] | None:
    """Return the names in the first row, made unique; None if it is a row of data."""
    if not known(first):
        for cell, column in zip(first, columns, strict=True):
            values = np.array([cell, *column], dtype=object)
            if column and not np.isnan(numbers(values)).any():
                return None
        if len(first) == 2:
            ids = frame_of({"id": [first[0], *columns[0]]})["id"]
            if looks_like_ids(ids) and ids.is_unique:
                return None
    return unique_names(first)
