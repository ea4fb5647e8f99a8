"""Readers of Parquet, Arrow and Excel: tables of typed cells."""

from __future__ import annotations

import io
import itertools
import re
import struct
import sys
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankdash.core.base.errors import Finding, FormatError, Phrase
from rankdash.core.readers.formats.json_records import cell, table_of
from rankdash.core.readers.parse.limits import (
    BAD_COLUMN,
    DAMAGED_FILE,
    LINES_NAMED,
    ReadLimits,
    Refusals,
    reading,
)
from rankdash.core.readers.parse.table import (
    Columns,
    Row,
    Table,
    refuse_long_fields,
    refuse_many_bytes,
    refuse_many_columns,
    refuse_many_rows,
    table_of_rows,
    too_many_rows,
    unique_names,
)

PARQUET = b"PAR1"
_BATCH_ROWS = 20_000
# Above this, float64 cannot represent every whole number.
_LARGEST_WHOLE = 2.0**53


def read_parquet(data: bytes, file: str, limits: ReadLimits) -> Table:
    """Read a table of the file's columns, all as text. A row's line is its number.

    Whole numbers are written without a decimal point, even if missing values made the column a
    floating-point one. Raises FormatError if the file is damaged, LimitError for too many rows,
    columns or bytes.
    """
    with reading(file, DAMAGED_FILE, format="Parquet"):
        return _tabulated(_unpacked(data, file, limits), file, "Parquet", limits)


def _tabulated(table: pa.Table, file: str, name: str, limits: ReadLimits) -> Table:
    """Convert columns to text; one row per document if entries contain lists of documents."""
    if len(set(table.column_names)) != len(table.column_names):
        raise FormatError(
            "Two columns have the same name.",
            remedy="Column names must be unique.",
            file=file,
        )
    values = size = 0
    for part in itertools.chain.from_iterable(column.chunks for column in table.columns):
        part_values, part_size = _extent(part)
        values, size = values + part_values, size + part_size
        refuse_many_bytes(size, file, limits)
    lines = np.arange(1, table.num_rows + 1, dtype=np.int64)
    if any(_holds_values(column.type) for column in table.schema):
        if values > limits.json_values:
            raise limits.over(
                "json_values",
                "The lists of the file contain more than {limit:,} values.",
                "Load a sample of the queries with all their rows, or allow more with {variable}.",
                file,
            )
        return table_of(table.to_pylist(), lines.tolist(), file, name, limits)
    columns: dict[str, pa.Array] = {}
    for column in table.column_names:
        with reading(
            file,
            BAD_COLUMN,
            "Store the column as text, or remove it.",
            column=column,
        ):
            columns[column] = _texts(table.column(column))
    for cells in columns.values():
        refuse_long_fields(cells, lines, file, limits)
    return Table(file, name, Columns(columns), lines, Refusals(file))


def _unpacked(data: bytes, file: str, limits: ReadLimits) -> pa.Table:
    # Imported here because it imports file systems, which takes longer than reading a small file.
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(pa.BufferReader(data))
    # A text stored once may belong to every row: its size is measured before it is repeated.
    texts = [each.name for each in parquet.schema_arrow if _is_text(each.type)]
    parquet = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts)
    refuse_many_rows(parquet.metadata.num_rows, file, limits)
    refuse_many_columns(len(parquet.schema_arrow), file, limits)
    groups = map(parquet.metadata.row_group, range(parquet.metadata.num_row_groups))
    refuse_many_bytes(sum(group.total_byte_size for group in groups), file, limits)
    batches: list[pa.Table] = []
    size = 0
    for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
        # The content of a hostile file may contradict its metadata.
        batch.validate(full=True)
        size += sum(_extent(column)[1] for column in batch.columns)
        refuse_many_bytes(size, file, limits)
        columns = [_repeated(column) for column in batch.columns]
        batches.append(pa.table(columns, names=batch.schema.names))
    return pa.concat_tables(batches) if batches else parquet.schema_arrow.empty_table()


def _extent(column: pa.Array) -> tuple[int, int]:
    """Return the number of values in a column (counting each value in lists) and their size in
    bytes without sharing; a lower bound if the exact size is unknown."""
    kind = column.type
    if not _holds_values(kind):
        return len(column), _bytes(column)
    if pa.types.is_struct(kind):
        inner = column.flatten()
    elif pa.types.is_map(kind):
        inner = [column.keys, column.items]
    else:
        inner = [column.flatten()]
    extents = [_extent(each) for each in inner]
    return len(column) + sum(each[0] for each in extents), sum(each[1] for each in extents)


def _bytes(column: pa.Array) -> int:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return int(pc.sum(_sizes(column.dictionary).take(column.indices)).as_py() or 0)
    if pa.types.is_run_end_encoded(kind):
        ends = column.run_ends.to_numpy()
        return int(_sizes(column.values).to_numpy() @ np.diff(ends, prepend=0))
    return pc.sum(_sizes(column)).as_py() or 0 if _is_view(kind) else column.nbytes


def _sizes(values: pa.Array) -> pa.Array:
    """Return the size of each value in bytes."""
    if _is_view(values.type):
        # A view is its length and three more numbers.
        views = np.frombuffer(values.buffers()[1], dtype=np.int32).reshape(-1, 4)
        return pa.array(views[values.offset : values.offset + len(values), 0].astype(np.int64))
    if _is_text(values.type):
        return pc.binary_length(values).cast(pa.int64()).fill_null(0)
    return pa.array(np.full(len(values), values.nbytes // max(len(values), 1), dtype=np.int64))


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    plain = types.is_string(kind) or types.is_large_string(kind)
    return bool(plain or types.is_binary(kind) or types.is_large_binary(kind) or _is_view(kind))


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _repeated(column: Any) -> Any:
    """Decode a dictionary- or run-length-encoded column; return others unchanged."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    return column


def _holds_values(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_nested(kind) and not (types.is_run_end_encoded(kind) or types.is_union(kind))


def _texts(column: pa.ChunkedArray) -> pa.Array:
    """Convert a column to text; texts and whole numbers without a Python object per cell."""
    column = _repeated(column)
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
        whole = pc.and_(pc.is_finite(column), pc.equal(pc.floor(column), column))
        if pc.all(whole).as_py() and pc.max(pc.abs(column)).as_py() < _LARGEST_WHOLE:
            column = column.cast(pa.int64())
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind):
        return column.cast(pa.string()).combine_chunks()
    return pa.array([cell(value) for value in column.to_pylist()], type=pa.string())


# Arrow files and streams, for example saved by the library `datasets`.

_FILE, _STREAM = b"ARROW1", b"\xff\xff\xff\xff"
_STREAM_BEGINS = 8
_INT, _LONG, _SHORT, _PAIR = map(struct.Struct, ("<i", "<q", "<H", "<qq"))
# Field numbers in the tables of Message.fbs; a dictionary batch contains a record batch.
_HEADER, _DICTIONARY, _ROWS, _BUFFERS, _COMPRESSION = 2, 1, 0, 2, 3
# A marker instead of the size of a buffer that is not compressed.
_NOT_PACKED = -1


def is_arrow(data: bytes) -> bool:
    return data.startswith((_FILE, _STREAM))


def read_arrow(data: bytes, file: str, limits: ReadLimits) -> Table:
    """Read a table of the file's columns, all as text. A row's line is its number.

    Raises FormatError if the file is damaged, LimitError for too many rows, columns or bytes.
    """
    with reading(file, DAMAGED_FILE, format="Arrow"):
        return _tabulated(_unpacked_arrow(data, file, limits), file, "Arrow", limits)


def _unpacked_arrow(data: bytes, file: str, limits: ReadLimits) -> pa.Table:
    content, batches = pa.py_buffer(data), sys.maxsize
    if data.startswith(_FILE):
        batches = pa.ipc.open_file(content).num_record_batches
        # The batches are a stream; other positions in the footer of the file are never read.
        content = content.slice(_STREAM_BEGINS)
    _refuse_large(content, batches, file, limits)
    reader = pa.ipc.open_stream(content)
    refuse_many_columns(len(reader.schema), file, limits)
    unpacked: list[pa.RecordBatch] = []
    rows = 0
    for batch in itertools.islice(reader, batches):
        # Offsets and lengths in a hostile file may point anywhere.
        batch.validate(full=True)
        rows += batch.num_rows
        refuse_many_rows(rows, file, limits)
        unpacked.append(batch)
    if len(unpacked) < batches < sys.maxsize:
        raise ValueError(f"{len(unpacked)} of {batches} batches are there")
    return pa.Table.from_batches(unpacked, schema=reader.schema)


def _refuse_large(content: pa.Buffer, batches: int, file: str, limits: ReadLimits) -> None:
    """Raise LimitError if the batches would unpack to too many bytes or rows. Only headers are
    read, because a batch is unpacked as a whole."""
    size = rows = 0
    for message in pa.ipc.MessageReader.open_stream(content):
        if not batches:
            return
        if message.type == "record batch":
            batches -= 1
        elif message.type != "dictionary":
            continue
        batch = _Flat.root(message.metadata).table(_HEADER)
        if message.type == "dictionary":
            batch = batch.table(_DICTIONARY)
        else:
            rows += batch.number(_ROWS)
            if rows > limits.rows:
                raise too_many_rows(file, limits)
        packed = batch.has(_COMPRESSION)
        for offset, length in batch.pairs(_BUFFERS):
            if packed and length:
                # Unpacking fails if the stated size is wrong.
                [stated] = _LONG.unpack_from(message.body, offset)
                length = length if stated == _NOT_PACKED else stated
            size += max(length, 0)
            refuse_many_bytes(size, file, limits)


class _Flat:
    """A table of a FlatBuffer. A list before it contains the offset of each field, 0 if missing.

    Positions beyond the end raise struct.error.
    """

    def __init__(self, data: pa.Buffer, start: int) -> None:
        self._data, self._start = data, start
        self._fields = start - _INT.unpack_from(data, start)[0]

    @classmethod
    def root(cls, data: pa.Buffer) -> _Flat:
        return cls(data, _INT.unpack_from(data, 0)[0])

    def has(self, field: int) -> bool:
        return self._place(field) is not None

    def number(self, field: int) -> int:
        place = self._place(field)
        return 0 if place is None else int(_LONG.unpack_from(self._data, place)[0])

    def table(self, field: int) -> _Flat:
        return _Flat(self._data, self._target(field))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Yield the entries of a list of pairs of numbers."""
        start = self._target(field)
        [count] = _INT.unpack_from(self._data, start)
        for at in range(count):
            yield _PAIR.unpack_from(self._data, start + _INT.size + at * _PAIR.size)

    def _target(self, field: int) -> int:
        place = self._place(field)
        if place is None:
            raise ValueError(f"the header lacks field {field}")
        return place + int(_INT.unpack_from(self._data, place)[0])

    def _place(self, field: int) -> int | None:
        at = 4 + 2 * field
        [size] = _SHORT.unpack_from(self._data, self._fields)
        [offset] = _SHORT.unpack_from(self._data, self._fields + at) if at < size else (0,)
        return self._start + offset if offset else None


# Excel workbooks (.xlsx): every sheet with rows is a table, as if it were a file.

WORKBOOK = b"PK\x03\x04"

_MOST_ROWS = 1 << 20
_FORMULA = re.compile(rb"<(?:\w{1,20}:)?f[ >/]")
# The values that spreadsheet programs write if they cannot compute a cell.
_ERRORS = frozenset(
    ("#N/A", "#REF!", "#NAME?", "#DIV/0!", "#NULL!", "#NUM!", "#VALUE!", "#GETTING_DATA", "#SPILL!")
)
# (row, column) → formula
_Formulas = dict[tuple[int, int], str]


def read_workbook(data: bytes, file: str, limits: ReadLimits) -> list[Table]:
    """Read a table from each visible sheet with more than a header. A row's line is its number in
    the sheet. If there are several tables, each is named after the file and the sheet.

    Formulas are read as their saved values. Raises FormatError if the file is damaged or has no
    rows, LimitError for too many rows or columns or too long cells.
    """
    from openpyxl import load_workbook

    # openpyxl warns about features that it ignores, such as lists of allowed values.
    with reading(file, DAMAGED_FILE, format="Excel"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        formulas = _formulas(data)
        sheets = [
            _Sheet(sheet, formulas.get(sheet.title, {}), file, limits)
            for sheet in book.worksheets
            if sheet.sheet_state == "visible"
        ]
    filled = [sheet for sheet in sheets if len(sheet.rows) > 1]
    if not filled:
        raise FormatError(
            "The workbook contains no rows below a header.",
            remedy="Write the column names into the first row of a visible sheet.",
            file=file,
        )
    first, *others = [
        sheet.table(file if len(filled) == 1 else f"{file}/{sheet.title}", limits)
        for sheet in filled
    ]
    hidden = [sheet.title for sheet in book.worksheets if sheet.sheet_state != "visible"]
    if hidden:
        note = Finding(
            "note",
            "hidden_sheets",
            "Hidden sheets that were not read: {sheets}.",
            {"sheets": ", ".join(hidden)},
            "To read a sheet, unhide it and save the workbook.",
            file,
            count=len(hidden),
        )
        first = replace(first, findings=(*first.findings, note))
    return [first, *others]


def _formulas(data: bytes) -> dict[str, _Formulas]:
    """Return sheet → formulas."""
    from openpyxl import load_workbook

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        if not any(_FORMULA.search(archive.read(name)) for name in sheets):
            return {}
    book = load_workbook(io.BytesIO(data), read_only=True)
    return {
        sheet.title: {
            (each.row, each.column): str(getattr(each.value, "text", each.value))
            for _, row in _rows_of(sheet, values_only=False)
            for each in row
            if each.data_type == "f"
        }
        for sheet in book.worksheets
    }


def _rows_of(sheet: Any, *, values_only: bool) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield (number, cells) of each row. Raises ValueError for a row beyond the maximum of a sheet,
    because openpyxl would create all rows before it."""
    # Some programs write wrong dimensions into the file.
    sheet.reset_dimensions()
    for number, cells in enumerate(sheet.iter_rows(values_only=values_only), 1):
        if number > _MOST_ROWS:
            raise ValueError(f"a sheet has at most {_MOST_ROWS:,} rows")
        yield number, cells


class _Sheet:
    """The non-empty rows of a sheet, and its cells without a saved value."""

    def __init__(self, sheet: Any, formulas: _Formulas, file: str, limits: ReadLimits) -> None:
        self.title = sheet.title
        # (row, column) → formula or error.
        self._without_value: dict[tuple[int, int], str] = {}
        self.rows: list[tuple[int, list[str | None]]] = []
        for number, values in _rows_of(sheet, values_only=not formulas):
            refuse_many_columns(len(values), file, limits)
            cells = [self._cell(each, (number, at), formulas) for at, each in enumerate(values, 1)]
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                self.rows.append((number, cells))
                refuse_many_rows(len(self.rows), file, limits)

    def _cell(self, content: Any, place: tuple[int, int], formulas: _Formulas) -> str | None:
        value = content.value if formulas else content
        if value in _ERRORS:
            self._without_value[place] = value
            return None
        # A formula whose value is an empty text has a value.
        if value is None and place in formulas and content.data_type != "str":
            self._without_value[place] = formulas[place]
        return value.isoformat() if isinstance(value, date | datetime | time) else cell(value)

    def table(self, file: str, limits: ReadLimits) -> Table:
        warning = self._warning(file)
        cause = Phrase(warning.template, **warning.params) if warning else None
        refusals = Refusals(file, cause)
        names = unique_names(self.rows[0][1])
        rows = self._below_header(len(names), refusals)
        table = table_of_rows("Excel", names, rows, refusals, limits, named=True)
        return replace(table, findings=(warning,)) if warning else table

    def _below_header(self, width: int, refusals: Refusals) -> Iterator[Row]:
        for number, cells in self.rows[1:]:
            if len(cells) <= width:
                yield number, [*cells, *[None] * (width - len(cells))]
            else:
                row = " | ".join(text or "" for text in cells)
                refusals.add("field_count", [number], [row])

    def _warning(self, file: str) -> Finding | None:
        from openpyxl.utils import get_column_letter

        if not self._without_value:
            return None
        named = [
            (f"{get_column_letter(column)}{row}", shown)
            for (row, column), shown in self._without_value.items()
        ]
        more = " …" if len(named) > LINES_NAMED else ""
        return Finding(
            "warning",
            "cells_without_value",
            "Cells of the sheet {sheet} with an error, or with a formula without a saved value, "
            "read as empty: {count} ({cells}).",
            {
                "sheet": self.title,
                "count": len(named),
                "cells": ", ".join(place for place, _ in named[:LINES_NAMED]) + more,
            },
            "Open the workbook in a spreadsheet program and save it, which stores the values.",
            file,
            next(iter(self._without_value))[0],
            len(named),
            tuple(f"{place}: {shown}" for place, shown in named[:5]),
        )
