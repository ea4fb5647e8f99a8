"""Reader of TREC files, and BEIR qrels without a header: fields separated by white space.

run:   query Q0 document rank score tag   (the tag is optional; text after it is ignored)
qrels: query iteration document label
plain: query document label               (three fields; also a run if the third is a rank)
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rankdash.core.data.arrays import ArrowText, Coded, numbers_of
from rankdash.core.readers.parse.columns import known
from rankdash.core.readers.parse.limits import ReadLimits, Refusals
from rankdash.core.readers.parse.source import Decoded, Source
from rankdash.core.readers.parse.table import (
    Columns,
    Lines,
    Table,
    even_columns,
    has_empty,
    refuse_long_fields,
    refuse_many_rows,
)
from rankdash.core.readers.parse.unpack import GZIP
from rankdash.core.readers.parse.values import is_grade_word, numbers

_SAMPLE_CHARS = 1 << 16
_SAMPLE_LINES = 200
# The share of the sample that must look like the format; other lines are invalid lines. Few other
# formats look like runs and qrels, so half of the lines are enough.
_ENOUGH = {"run": 0.5, "qrels": 0.5, "plain": 0.8}
_MOST_TABBED = 0.8
# A first line with this many known names is a header, which is not TREC.
_HEADER_NAMES = 2
_ITERATIONS = ("Q0", "0")
_ITERATION = re.compile(r"[Qq]?\d+")
# Not `str.split()`: an id may contain a no-break or an ideographic space, and trec_eval splits at
# ASCII white space only.
_ASCII_SPACE = re.compile(r"[ \t\r\v\f]+")
_OTHER_SPACE = re.compile("[\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")

# A field with spaces or non-ASCII characters may be a text, not an id.
_TOKEN = re.compile(r"[!-~]{1,100}")

_COLUMNS = {
    "run": {"query_id": 0, "doc_id": 2, "rank": 3, "score": 4},
    "qrels": {"query_id": 0, "doc_id": 2, "label": 3},
    "plain": {"query_id": 0, "doc_id": 1, "label": 2},
}
_RUN_FIELDS = 6
_WIDTHS = {"run": (5, _RUN_FIELDS), "qrels": (4,), "plain": (3,)}
# The second field, which distinguishes qrels from a ranking without scores.
_SECOND = 1
# Numeric fields, except for labels, which may be words.
_NUMERIC = {"run": (3, 4), "qrels": (), "plain": ()}
_FORMATS = {"run": "TREC run", "qrels": "TREC qrels", "plain": "labels without a header"}


def shape_of(text: str) -> str | None:
    """Return "run", "qrels" or "plain" if the first lines look like it, else None."""
    sample = text[:_SAMPLE_CHARS]
    lines = sample.split("\n")
    if len(sample) < len(text):
        lines = lines[:-1]
    sample_lines = [line for line in lines if line and not line.isspace()][:_SAMPLE_LINES]
    split = _splitter(sample)
    rows = [split(line) for line in sample_lines]
    # A header may have another separator.
    if rows and max(map(known, (rows[0], *map(sample_lines[0].split, ",;|\t")))) >= _HEADER_NAMES:
        return None
    for shape, looks in (("run", _is_run), ("qrels", _is_qrels), ("plain", _is_plain)):
        if rows and sum(map(looks, rows)) >= _ENOUGH[shape] * len(rows):
            return shape
    return None


def read(decoded: Decoded, shape: str, file: str, limits: ReadLimits) -> Table:
    """Read a table with fixed fields. Lines with a wrong number of fields are refused."""
    refusals = Refusals(file)
    columns = _even_columns(decoded.start, decoded.utf8, shape)
    if columns is None:
        columns, lines = _uneven_columns(decoded.text, _WIDTHS[shape], refusals)
        return _table(columns, lines, shape, refusals, limits)
    return _table(columns, _lines(columns), shape, refusals, limits)


def read_pieces(source: Source, start: str, shape: str, limits: ReadLimits) -> Table | None:
    """Read a file like `read`, one piece in memory at a time; return None if it is not regular
    enough. start: the beginning of its text."""

    def again() -> dict[str, Any]:
        columns = _even_columns(start, source, shape) or {}
        return {field: columns.get(at) for field, at in _COLUMNS[shape].items()}

    columns = _even_columns(start, source, shape, _NUMERIC[shape])
    if columns is None:
        return None
    return _table(columns, _lines(columns), shape, Refusals(source.name), limits, again)


def _table(
    columns: Mapping[int, Any],
    lines: Lines,
    shape: str,
    refusals: Refusals,
    limits: ReadLimits,
    again: Callable[[], dict[str, Any]] | None = None,
) -> Table:
    file = refusals.file
    refuse_many_rows(len(lines) + refusals.count, file, limits)
    fields = Columns({field: columns[at] for field, at in _COLUMNS[shape].items()}, again)
    for field in ("query_id", "doc_id"):
        refuse_long_fields(fields[field], lines, file, limits)
    name = _FORMATS[shape]
    # A run without scores has four fields like qrels, but Q0 as its second field.
    bare = shape == "qrels" and {
        cell.upper() for cell in columns[_SECOND].unique().to_pylist()
    } == {"Q0"}
    least = 2 if bare else 5
    if (bare or shape == "plain") and _counts_ranks(
        fields["query_id"], fields["label"], least=least
    ):
        fields["rank"] = fields.pop("label")
        name = "ranked lists without a header"
    return Table(file, name, fields, lines, refusals, {field: field for field in fields})


def _lines(columns: Mapping[int, Any]) -> Lines:
    return np.arange(1, len(columns[0]) + 1, dtype=np.int32)


def _even_columns(
    start: str, text: bytes | Source, shape: str, numeric: Collection[int] = ()
) -> dict[int, Any] | None:
    """Parse a file with Arrow, which is many times faster: return position → column for the used
    columns, or None unless single spaces or tabs separate the same number of fields in every line.
    start: the beginning of its text. numeric: as for `even_columns`."""
    delimiter, width = _separated(start)
    others = (b"\v", b"\f", b" \t", b"\t ") if delimiter == "\t" else (b"\v", b"\f", b"\t")
    if width not in _WIDTHS[shape]:
        return None
    used = {*_COLUMNS[shape].values(), *((_SECOND,) if shape == "qrels" else ())}
    # An empty field is a doubled separator.
    return even_columns(
        text,
        delimiter,
        width,
        used,
        filled=True,
        barred=others,
        ascii_only=isinstance(text, Source),
        numeric=numeric,
    )


def _uneven_columns(
    text: str, widths: Sequence[int], refusals: Refusals
) -> tuple[dict[int, Any], Lines]:
    """Parse columns line by line; lines with a wrong number of fields are refused."""
    split = _splitter(text)
    numbered = [(number, split(line)) for number, line in enumerate(text.split("\n"), 1)]
    counts = Counter(len(cells) for _, cells in numbered)
    width = max(widths, key=lambda width: counts[width])
    lines: list[int] = []
    rows: list[list[str]] = []
    for number, cells in numbered:
        # Like trec_eval, ignore text after the name of the run.
        behind = _RUN_FIELDS in widths and len(cells) > width and _has_rank_and_score(cells)
        if len(cells) == width or behind:
            lines.append(number)
            rows.append(cells[:width])
        elif cells:
            refusals.add("field_count", [number], [" ".join(cells)])
    columns = {at: pa.array([row[at] for row in rows], type=pa.string()) for at in range(width)}
    return columns, np.array(lines, dtype=np.int64)


def _splitter(text: str) -> Callable[[str], list[str]]:
    """Return a function that splits lines: at tabs if nearly every line has two or more unpadded
    ones (ids may then contain spaces), else at white space."""
    lines = [line for line in text[:_SAMPLE_CHARS].split("\n")[:_SAMPLE_LINES] if line.strip()]
    padded = any(" \t" in line or "\t " in line for line in lines)
    tabs = sum(line.count("\t") >= 2 for line in lines)
    if lines and not padded and tabs >= _MOST_TABBED * len(lines):
        return lambda line: line.rstrip("\r").split("\t") if line.strip() else []
    if not _OTHER_SPACE.search(text):
        return str.split
    return lambda line: _ASCII_SPACE.split(line.strip(" \t\r\v\f")) if line.strip() else []


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_run(cells: Sequence[str]) -> bool:
    if len(cells) == _RUN_FIELDS or (len(cells) > _RUN_FIELDS and cells[1].upper() in _ITERATIONS):
        return _has_rank_and_score(cells)
    return len(cells) == 5 and cells[1].upper() in _ITERATIONS and _is_number(cells[4])


def _has_rank_and_score(cells: Sequence[str]) -> bool:
    return _is_number(cells[3]) and _is_number(cells[4])


def _is_qrels(cells: Sequence[str]) -> bool:
    if len(cells) != 4 or not _ITERATION.fullmatch(cells[1]):
        return False
    # With the usual second field, any word may be a label; the user can assign its grade.
    return cells[1].upper() in _ITERATIONS or _is_number(cells[3]) or is_grade_word(cells[3])


def _is_plain(cells: Sequence[str]) -> bool:
    ids = all(_TOKEN.fullmatch(cell) for cell in cells[:2])
    return len(cells) == 3 and ids and _is_number(cells[2])


def _counts_ranks(queries: ArrowText, values: ArrowText, *, least: int) -> bool:
    """Return whether a field counts 1, 2, 3 … within each query, as in MS MARCO runs, and reaches
    `least` in at least one."""
    ranks = numbers(values)
    if not len(ranks) or np.isnan(ranks).any() or ranks.max() < least:
        return False
    by_query = pd.Series(ranks).groupby(Coded.of(queries).codes)
    highest, distinct, rows = by_query.max(), by_query.nunique(), by_query.size()
    return bool(((highest == rows) & (distinct == rows) & (by_query.min() == 1)).all())


# TREC files larger than memory (plain or gzip) are split into pieces that fit: all lines of a
# query, from every file, are in the same piece, in their order.

PIECE_BYTES, BLOCK_BYTES = 24_000_000, 1 << 24
"""The size of a piece (all files together), and of a block read from a file."""
# The largest number of open files.
_MOST_PIECES = 256
_START = 1 << 16
_FIELDS = {"qrels": (4,), "run": (5, 6)}
_UNREADABLE = (OSError, EOFError, zlib.error)


class UnevenError(Exception):
    """A file with a wrong number of fields in a line, or a file that cannot be unpacked."""


def unpacked_size(path: Path) -> int:
    """Return the size of a file in bytes; for a gzip file, an estimate of its unpacked size from
    its beginning. 0 if it cannot be read."""
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
    """Return whether the file (unpacked if gzip) begins with TREC lines of `shape`, "run" or
    "qrels"."""
    try:
        with _opened(path) as file:
            start = file.read(_START).decode("utf-8", "replace")
    except _UNREADABLE:
        return False
    return (
        "\0" not in start
        and not start.startswith(("\ufeff", " ", "\t", "\n", "\r", "{", "["))
        and shape_of(start) == shape
        and _separated(start)[1] in _FIELDS[shape]
    )


def _separated(start: str) -> tuple[str, int]:
    """Return the delimiter and the number of fields of the first line."""
    first = start.split("\n", 1)[0]
    delimiter = "\t" if "\t" in first else " "
    return delimiter, first.count(delimiter) + 1


def pieces_for(size: int) -> int:
    """Return the number of pieces for files of `size` bytes in total."""
    return min(_MOST_PIECES, -(-size // PIECE_BYTES))


def split(path: Path, folder: Path, pieces: int) -> Any:
    """Write the lines of a file into `pieces` files "0", "1" … in an empty folder. Return its
    distinct queries as Arrow bytes in the order of their first lines.

    Raises UnevenError, and OSError if the disk is full.
    """
    seen = pa.array([], type=pa.binary())
    with ExitStack() as stack:
        files = [stack.enter_context((folder / str(n)).open("wb")) for n in range(pieces)]
        for block in _blocks(path):
            ids, lines = _parsed(block)
            coded = ids.dictionary_encode()
            seen = pc.unique(pa.concat_arrays([seen, coded.dictionary]))
            assigned = np.array(
                [zlib.crc32(query) % pieces for query in coded.dictionary.to_pylist()],
                dtype=np.uint16,
            )[numbers_of(coded.indices)]
            order = np.argsort(assigned, kind="stable")
            moved = lines.take(pa.array(order))
            starts = np.frombuffer(moved.buffers()[1], dtype=np.int32)
            data = memoryview(moved.buffers()[2])
            stops = np.cumsum(np.bincount(assigned, minlength=pieces))
            first = 0
            for file, stop in zip(files, stops.tolist(), strict=True):
                file.write(data[starts[first] : starts[stop]])
                first = stop
    return seen


def _opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file for reading, and unpack it if it is gzip."""
    with path.open("rb") as file:
        packed = _is_packed(file)
    return gzip.open(path) if packed else path.open("rb")


def _is_packed(file: io.BufferedReader) -> bool:
    return file.peek(len(GZIP)).startswith(GZIP)


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield blocks of complete lines with their ends. Raises UnevenError if the file cannot be
    unpacked or exceeds the limit of unpacked bytes."""
    rest = b""
    remaining = path.stat().st_size * ReadLimits().unpacked_ratio
    try:
        with _opened(path) as file:
            while block := file.read(BLOCK_BYTES):
                remaining -= len(block)
                if remaining < 0:
                    raise UnevenError
                stop = block.rfind(b"\n") + 1
                if stop:
                    yield rest + block[:stop]
                    rest = block[stop:]
                else:
                    rest += block
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise UnevenError from problem
    if rest:
        yield rest + b"\n"


def _parsed(block: bytes) -> tuple[Any, Any]:
    """Return (N,) the query of each line and (N,) the lines as Arrow bytes. Raises UnevenError."""
    delimiter, width = _separated(block[:_START].decode("utf-8", "replace"))
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
    """Return the (N,) indices that sort ids by the order of `queries`, which come from `split`."""
    encoded = pa.array(ids, type=pa.string()).cast(pa.binary())
    places = numbers_of(pc.index_in(encoded, value_set=queries))
    return np.argsort(places, kind="stable")
