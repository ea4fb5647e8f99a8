"""Parquet files of rows, or of entries that hold lists."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankdash.core.base.errors import FormatError, LimitError
from rankdash.core.readers.formats.json_records import cell, table_of
from rankdash.core.readers.parse import skipped_rows
from rankdash.core.readers.parse.limits import ReadLimits, variable
from rankdash.core.readers.parse.skipped_rows import Refusals, told
from rankdash.core.readers.parse.table import (
    Columns,
    Table,
    refuse_long_fields,
    refuse_many_bytes,
    refuse_many_columns,
    refuse_many_rows,
)

NAME = "Parquet"
MAGIC = b"PAR1"
_BATCH_ROWS = 20_000
# Beyond this a float64 does not hold every whole number.
_LARGEST_WHOLE = 2.0**53


def read(data: bytes, file: str, limits: ReadLimits) -> Table:
    """A table of the file's columns, all as text. A row's line is its number.

    Whole numbers become their decimal text, also where a missing value made the column a
    floating-point one. Raises FormatError where the file is damaged, LimitError for too many
    rows, columns or bytes.
    """
    with told(file, skipped_rows.FILE, format=NAME):
        return tabulated(_unpacked(data, file, limits), file, NAME, limits)


def tabulated(table: pa.Table, file: str, name: str, limits: ReadLimits) -> Table:
    """The columns as text; of the documents, where entries hold lists of them."""
    if len(set(table.column_names)) != len(table.column_names):
        raise FormatError(
            "Two columns have the same name.",
            remedy="Give every column a name of its own.",
            file=file,
        )
    values = size = 0
    for part in itertools.chain.from_iterable(column.chunks for column in table.columns):
        held, taken = _extent(part)
        values, size = values + held, size + taken
        refuse_many_bytes(size, file, limits)
    lines = np.arange(1, table.num_rows + 1, dtype=np.int64)
    if any(_holds_values(column.type) for column in table.schema):
        _refuse_many_values(values, file, limits)
        return table_of(table.to_pylist(), lines.tolist(), file, name, limits)
    columns: dict[str, pa.Array] = {}
    for column in table.column_names:
        with told(
            file, skipped_rows.COLUMN, "Store the column as text, or leave it out.", column=column
        ):
            columns[column] = _texts(table.column(column))
    for cells in columns.values():
        refuse_long_fields(cells, lines, file, limits)
    return Table(file, name, Columns(columns), lines, Refusals(file))


def _unpacked(data: bytes, file: str, limits: ReadLimits) -> pa.Table:
    # It brings file systems with it, which take longer to import than small files to read.
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(pa.BufferReader(data))
    # A text that stands there once can be that of every row: it is measured before it is repeated.
    texts = [each.name for each in parquet.schema_arrow if _is_text(each.type)]
    parquet = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts)
    refuse_many_rows(parquet.metadata.num_rows, file, limits)
    refuse_many_columns(len(parquet.schema_arrow), file, limits)
    groups = map(parquet.metadata.row_group, range(parquet.metadata.num_row_groups))
    refuse_many_bytes(sum(group.total_byte_size for group in groups), file, limits)
    batches: list[pa.Table] = []
    size = 0
    for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
        # What stands in the file need not be what it says it is.
        batch.validate(full=True)
        size += sum(_extent(column)[1] for column in batch.columns)
        refuse_many_bytes(size, file, limits)
        columns = [_repeated(column) for column in batch.columns]
        batches.append(pa.table(columns, names=batch.schema.names))
    return pa.concat_tables(batches) if batches else parquet.schema_arrow.empty_table()


def _extent(column: pa.Array) -> tuple[int, int]:
    """How many values the column holds, those in lists one by one, and the bytes that they take
    once each stands by itself; at least, where nobody can say."""
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
    """The bytes of each value."""
    if _is_view(values.type):
        # A view is its length and three more numbers.
        views = np.frombuffer(values.buffers()[1], dtype=np.int32).reshape(-1, 4)
        return pa.array(views[values.offset : values.offset + len(values), 0].astype(np.int64))
    if _is_text(values.type):
        return pc.binary_length(values).cast(pa.int64()).fill_null(0)
    return pa.array(np.full(len(values), values.nbytes // max(len(values), 1), dtype=np.int64))


def _refuse_many_values(values: int, file: str, limits: ReadLimits) -> None:
    if values > limits.json_values:
        raise LimitError(
            "The lists of the file hold more than {limit:,} values.",
            remedy="Load a sample of the queries with all their rows, or allow more with "
            "{variable}.",
            file=file,
            limit=limits.json_values,
            variable=variable("json_values"),
        )


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or _is_view(kind)
    )


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _repeated(column: Any) -> Any:
    """The values themselves, where the column says each once."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    return column


def _holds_values(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_struct(kind)
        or pa.types.is_map(kind)
    )


def _texts(column: pa.ChunkedArray) -> pa.Array:
    """The column as text, without a Python object a cell where it holds texts or whole numbers."""
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
