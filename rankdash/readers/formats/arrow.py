"""Arrow files and streams, as the `datasets` library saves them."""

from __future__ import annotations

import pyarrow as pa

from rankdash.readers.formats.parquet import tabulated
from rankdash.readers.parse import faults
from rankdash.readers.parse.faults import told
from rankdash.readers.parse.limits import ReadLimits
from rankdash.readers.parse.table import (
    Table,
    refuse_many_bytes,
    refuse_many_columns,
    refuse_many_rows,
)

_FILE, _STREAM = b"ARROW1", b"\xff\xff\xff\xff"
NAME = "Arrow"


def matches(data: bytes) -> bool:
    return data.startswith((_FILE, _STREAM))


def read(data: bytes, file: str, limits: ReadLimits) -> Table:
    """A table of the file's columns, all as text. A row's line is its number.

    Raises FormatError where the file is damaged, LimitError for too many rows, columns or bytes.
    """
    with told(file, faults.FILE, format=NAME):
        return tabulated(_unpacked(data, file, limits), file, NAME, limits)


def _unpacked(data: bytes, file: str, limits: ReadLimits) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    if data.startswith(_FILE):
        reader = pa.ipc.open_file(pa.BufferReader(data))
        found = (reader.get_batch(at) for at in range(reader.num_record_batches))
    else:
        reader = pa.ipc.open_stream(pa.BufferReader(data))
        found = iter(reader)
    refuse_many_columns(len(reader.schema), file, limits)
    for batch in found:
        # Offsets and lengths in a hostile file may point anywhere.
        batch.validate(full=True)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        refuse_many_rows(rows, file, limits)
        refuse_many_bytes(size, file, limits)
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=reader.schema)
