"""Parquet files of rows, or of entries that hold lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankdash.errors import FormatError
from rankdash.readers.formats.json_records import cell, table_of
from rankdash.readers.parse import faults
from rankdash.readers.parse.faults import told
from rankdash.readers.parse.limits import ReadLimits
from rankdash.readers.parse.skipped_rows import Refusals
from rankdash.readers.parse.table import (
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
    with told(file, faults.FILE, format=NAME):
        return tabulated(_unpacked(data, file, limits), file, NAME, limits)


def tabulated(table: pa.Table, file: str, name: str, limits: ReadLimits) -> Table:
    """The columns as text; of the documents, where entries hold lists of them."""
    if len(set(table.column_names)) != len(table.column_names):
        raise FormatError(
            "Two columns have the same name.",
            remedy="Give every column a name of its own.",
            file=file,
        )
    lines = np.arange(1, table.num_rows + 1, dtype=np.int64)
    if any(_holds_values(column.type) for column in table.schema):
        return table_of(table.to_pylist(), lines.tolist(), file, name, limits)
    columns: dict[str, pa.Array] = {}
    for column in table.column_names:
        with told(file, faults.COLUMN, "Store the column as text, or leave it out.", column=column):
            columns[column] = _texts(table.column(column))
    for cells in columns.values():
        refuse_long_fields(cells, lines, file, limits)
    return Table(file, name, Columns(columns), lines, Refusals(file))


def _unpacked(data: bytes, file: str, limits: ReadLimits) -> pa.Table:
    # It brings file systems with it, which take longer to import than small files to read.
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(pa.BufferReader(data))
    refuse_many_rows(parquet.metadata.num_rows, file, limits)
    refuse_many_columns(len(parquet.schema_arrow), file, limits)
    groups = map(parquet.metadata.row_group, range(parquet.metadata.num_row_groups))
    refuse_many_bytes(sum(group.total_byte_size for group in groups), file, limits)
    # Read in batches: a few bytes of dictionary-encoded text can become gigabytes.
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
        # What stands in the file need not be what it says it is.
        batch.validate(full=True)
        size += batch.nbytes
        refuse_many_bytes(size, file, limits)
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=parquet.schema_arrow)


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
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
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
