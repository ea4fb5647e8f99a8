"""Arrow files and streams, as the `datasets` library saves them."""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Iterator

import pyarrow as pa

from rankdash.core.readers.formats.parquet import tabulated
from rankdash.core.readers.parse import skipped_rows
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.skipped_rows import told
from rankdash.core.readers.parse.table import (
    Table,
    refuse_many_bytes,
    refuse_many_columns,
    refuse_many_rows,
    too_many_rows,
)

_FILE, _STREAM = b"ARROW1", b"\xff\xff\xff\xff"
NAME = "Arrow"
_STREAM_BEGINS = 8
_INT, _LONG, _SHORT, _PAIR = map(struct.Struct, ("<i", "<q", "<H", "<qq"))
# Where the fields stand in the tables of Message.fbs; a batch of a dictionary is a batch within.
_HEADER, _DICTIONARY, _ROWS, _BUFFERS, _COMPRESSION = 2, 1, 0, 2, 3
# In place of a size, where packing it would have made it larger.
_NOT_PACKED = -1


def matches(data: bytes) -> bool:
    return data.startswith((_FILE, _STREAM))


def read(data: bytes, file: str, limits: ReadLimits) -> Table:
    """A table of the file's columns, all as text. A row's line is its number.

    Raises FormatError where the file is damaged, LimitError for too many rows, columns or bytes.
    """
    with told(file, skipped_rows.FILE, format=NAME):
        return tabulated(_unpacked(data, file, limits), file, NAME, limits)


def _unpacked(data: bytes, file: str, limits: ReadLimits) -> pa.Table:
    content, batches = pa.py_buffer(data), sys.maxsize
    if data.startswith(_FILE):
        batches = pa.ipc.open_file(content).num_record_batches
        # What the end of a file points to is a stream; what else it may point to is never read.
        content = content.slice(_STREAM_BEGINS)
    _refuse_large(content, batches, file, limits)
    reader = pa.ipc.open_stream(content)
    refuse_many_columns(len(reader.schema), file, limits)
    found: list[pa.RecordBatch] = []
    rows = 0
    for batch in itertools.islice(reader, batches):
        # Offsets and lengths in a hostile file may point anywhere.
        batch.validate(full=True)
        rows += batch.num_rows
        refuse_many_rows(rows, file, limits)
        found.append(batch)
    if len(found) < batches < sys.maxsize:
        raise ValueError(f"{len(found)} of {batches} batches are there")
    return pa.Table.from_batches(found, schema=reader.schema)


def _refuse_large(content: pa.Buffer, batches: int, file: str, limits: ReadLimits) -> None:
    """Raises LimitError where so many batches unpack to too much, or hold too many rows: a batch is
    unpacked as a whole, so its header is looked at before."""
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
        packed = batch.holds(_COMPRESSION)
        for offset, length in batch.pairs(_BUFFERS):
            if packed and length:
                # The size that it takes is the size that it must have.
                [stated] = _LONG.unpack_from(message.body, offset)
                length = length if stated == _NOT_PACKED else stated
            size += max(length, 0)
            refuse_many_bytes(size, file, limits)


class _Flat:
    """A table of a FlatBuffer: the place of a field, 0 where it is missing, stands in front of it.

    Positions beyond the end raise struct.error.
    """

    def __init__(self, data: pa.Buffer, start: int) -> None:
        self._data, self._start = data, start
        self._fields = start - _INT.unpack_from(data, start)[0]

    @classmethod
    def root(cls, data: pa.Buffer) -> _Flat:
        return cls(data, _INT.unpack_from(data, 0)[0])

    def holds(self, field: int) -> bool:
        return self._place(field) is not None

    def number(self, field: int) -> int:
        place = self._place(field)
        return 0 if place is None else int(_LONG.unpack_from(self._data, place)[0])

    def table(self, field: int) -> _Flat:
        return _Flat(self._data, self._target(field))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """The entries of a list of two numbers each."""
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
