"""TREC files that memory cannot hold, packed with gzip or not, split into pieces that it can: all
lines of a query, of every file, are in the same piece, in their order."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rankdash.core.data.arrays import numbers_of
from rankdash.core.readers.formats import trec
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.table import has_empty
from rankdash.core.readers.parse.unpack import GZIP

PIECE_BYTES, BLOCK_BYTES = 24_000_000, 1 << 24
"""The size of a piece, of all files, and of what is read at once."""
# So many files may be open at once.
_MOST_PIECES = 256
_START = 1 << 16
_FIELDS = {"qrels": (4,), "run": (5, 6)}
_UNREADABLE = (OSError, EOFError, zlib.error)


class UnevenError(Exception):
    """A line of the file has another number of fields, or none, or it cannot be unpacked."""


def unpacked_size(path: Path) -> int:
    """The bytes of a file; of a gzip file about those that come out of it, judged by its start. 0
    where it cannot be read."""
    try:
        size = path.stat().st_size
        with path.open("rb") as packed:
            if not _is_packed(packed):
                return size
            with gzip.open(packed) as file:
                start = len(file.read(BLOCK_BYTES))
            return round(size * start / max(1, min(size, packed.tell())))
    except _UNREADABLE:
        return 0


def is_plain(path: Path, shape: str) -> bool:
    """Whether the file, or what a gzip file holds, begins as TREC lines do, of a "run" or
    "qrels"."""
    try:
        with _opened(path) as file:
            start = file.read(_START).decode("utf-8", "replace")
    except _UNREADABLE:
        return False
    return (
        "\0" not in start
        and not start.startswith(("\ufeff", " ", "\t", "\n", "\r", "{", "["))
        and trec.shape_of(start) == shape
        and len(start.split("\n", 1)[0].split(_delimiter(start))) in _FIELDS[shape]
    )


def _delimiter(start: str) -> str:
    return "\t" if "\t" in start.split("\n", 1)[0] else " "


def pieces_for(size: int) -> int:
    """Into how many pieces files of `size` bytes in all are split."""
    return min(_MOST_PIECES, -(-size // PIECE_BYTES))


def split(path: Path, folder: Path, pieces: int) -> Any:
    """Write the lines of a file into `pieces` files "0", "1" … in an empty folder, and give its
    queries, as distinct Arrow bytes in the order of their first lines.

    Raises UnevenError, and OSError where there is no room.
    """
    seen = pa.array([], type=pa.binary())
    with ExitStack() as stack:
        files = [stack.enter_context((folder / str(n)).open("wb")) for n in range(pieces)]
        for block in _blocks(path):
            ids, lines = _parsed(block)
            coded = ids.dictionary_encode()
            seen = pc.unique(pa.concat_arrays([seen, coded.dictionary]))
            own = np.array(
                [zlib.crc32(query) % pieces for query in coded.dictionary.to_pylist()],
                dtype=np.uint16,
            )[numbers_of(coded.indices)]
            order = np.argsort(own, kind="stable")
            moved = lines.take(pa.array(order))
            starts = np.frombuffer(moved.buffers()[1], dtype=np.int32)
            data = memoryview(moved.buffers()[2])
            stops = np.cumsum(np.bincount(own, minlength=pieces))
            first = 0
            for file, stop in zip(files, stops.tolist(), strict=True):
                file.write(data[starts[first] : starts[stop]])
                first = stop
    return seen


def _opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """The file to be read, unpacked where it is a gzip file."""
    with path.open("rb") as file:
        packed = _is_packed(file)
    return gzip.open(path) if packed else path.open("rb")


def _is_packed(file: io.BufferedReader) -> bool:
    return file.peek(len(GZIP)).startswith(GZIP)


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines, each with its end. Raises UnevenError for what cannot be unpacked, or unpacks to
    more than files may."""
    rest = b""
    left = path.stat().st_size * ReadLimits().unpacked_ratio
    with _opened(path) as file:
        while block := _read(file):
            left -= len(block)
            if left < 0:
                raise UnevenError
            cut = block.rfind(b"\n") + 1
            if cut:
                yield rest + block[:cut]
                rest = block[cut:]
            else:
                rest += block
    if rest:
        yield rest + b"\n"


def _read(file: gzip.GzipFile | io.BufferedReader) -> bytes:
    try:
        return file.read(BLOCK_BYTES)
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise UnevenError from problem


def _parsed(block: bytes) -> tuple[Any, Any]:
    """(N,) the query of each line, and (N,) the lines, as Arrow bytes. Raises UnevenError."""
    start = block[:_START].decode("utf-8", "replace")
    delimiter = _delimiter(start)
    width = len(start.split("\n", 1)[0].split(delimiter))
    names = [str(place) for place in range(width)]
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(block),
            read_options=pa_csv.ReadOptions(
                column_names=names, block_size=len(block) + 1, use_threads=False
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=delimiter, quote_char=False, ignore_empty_lines=False
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types={"0": pa.binary()}, include_columns=["0"], strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as problem:
        raise UnevenError from problem
    ids = table.column("0").combine_chunks()
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + 1
    if len(ids) != len(ends) or has_empty(ids):
        raise UnevenError
    offsets = np.append(np.int64(0), ends).astype(np.int32)
    lines = pa.Array.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    )
    return ids, lines


def order_of(
    queries: Any, ids: np.ndarray[Any, np.dtype[np.object_]]
) -> np.ndarray[Any, np.dtype[np.intp]]:
    """(N,) the places of the ids in the order of `queries`, which are as from `split`."""
    wanted = pa.array(ids, type=pa.string()).cast(pa.binary())
    places = numbers_of(pc.index_in(wanted, value_set=queries))
    return np.argsort(places, kind="stable")
