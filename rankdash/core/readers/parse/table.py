"""`Table`: the rows of a file as text, before they are interpreted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rankdash.core.base.errors import Finding, LimitError
from rankdash.core.data.arrays import ArrowText, objects
from rankdash.core.readers.parse.limits import ReadLimits, Refusals
from rankdash.core.readers.parse.source import Source

Texts = npt.NDArray[np.object_]
Lines = npt.NDArray[np.integer[Any]]
# (first line, cells)
Row = tuple[int, Sequence[str | None]]

# The fields that a column can be mapped to, in the order of forms.
FIELDS = ("query_id", "query", "doc_id", "document", "title", "label", "score", "rank", "reranked")


class Columns(dict[str, Any]):
    """Name → (N,) Arrow text. If the text can be read again by calling `again`, a column may also
    be Arrow numbers, or None after `let_go`."""

    def __init__(
        self,
        columns: Mapping[str, Any] | Iterable[tuple[str, Any]],
        again: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(columns)
        self._again = again

    def text(self, name: str) -> Any:
        """Return a column as (N,) Arrow text."""
        cells = self[name]
        return self._texts[name] if cells is None or pa.types.is_floating(cells.type) else cells

    @cached_property
    def _texts(self) -> Mapping[str, Any]:
        return {} if self._again is None else self._again()

    def let_go(self, name: str) -> None:
        """Free the memory of a column if it can be read again."""
        if self._again is not None:
            self[name] = None

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The columns as a frame of objects, shared by all tables with these columns."""
        return frame_of({name: objects(self.text(name)) for name in self})


class Outcome(NamedTuple):
    """The outcome of a query. query: its id or its text, as in the table. system: the name of the
    ranking in its file, "" for the first stage. latency_ms: NaN if unknown. reason: of a failure,
    else ""."""

    query: str
    system: str
    latency_ms: float
    reason: str


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of one file.

    file:     its name.
    format:   in words, such as "TREC run".
    cells:    (N, columns) object cells, str or None; or the same as Arrow text.
    lines:    (N,) the first physical line, from 1, of each row; the row's number in a Parquet file.
    refusals: refused rows, which are not in `frame`; later steps add to them.
    fields:   field → column, if fixed by the format; None if columns are recognised by name.
    names:    True if the file contains column names.
    findings: the findings of the reader.
    wants:    fields that the user may add to `fields`, such as the score among many columns.
    raters:   columns that contain the labels of one annotator each.
    keys:     the keys of JSON entries.
    inner:    columns in which JSON entries have lists or objects of unknown meaning.
    outcomes: the latencies and failures of queries, if the file contains them.
    doubt:    the key of numbers that could be grades or ids; in this table, they are grades. ids:
              the table in which they are ids.
    unranked: True if a row without a label and a score is a candidate that was not ranked.
    queries:  the query id of each entry, "" for none, if other files have their queries by row.
    """

    file: str
    format: str
    cells: pd.DataFrame | Columns
    lines: Lines
    refusals: Refusals
    fields: Mapping[str, str] | None = None
    names: bool = True
    findings: tuple[Finding, ...] = ()
    wants: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    inner: frozenset[str] = frozenset()
    outcomes: tuple[Outcome, ...] = ()
    doubt: str = ""
    ids: Table | None = None
    unranked: bool = False
    queries: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """The cells as a frame of objects."""
        return self.cells.frame if isinstance(self.cells, Columns) else self.cells

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def columns(self) -> list[str]:
        return [str(name) for name in self.cells]

    def arrow(self, column: str) -> Any:
        """Return the cells of a column as (N,) Arrow text."""
        if isinstance(self.cells, Columns):
            return self.cells.text(column)
        cells = self.cells[column].to_numpy(dtype=object)
        return pa.array(cells, type=pa.string(), from_pandas=True)

    def values(self, column: str) -> Any:
        """Return a column as Arrow text or numbers, and free its memory if it can be read again."""
        if not isinstance(self.cells, Columns) or self.cells[column] is None:
            return self.arrow(column)
        cells = self.cells[column]
        self.cells.let_go(column)
        return cells

    def refuse(self, code: str, positions: npt.NDArray[np.intp]) -> None:
        """Refuse rows for the reason `code`, with the first of them as examples."""
        examples = [self.row_text(int(position)) for position in positions[:5]]
        self.refusals.add(code, self.lines[positions], examples)

    def row_text(self, position: int) -> str:
        if isinstance(self.cells, pd.DataFrame):
            cells = self.cells.iloc[position].to_list()
        else:
            cells = [self.cells.text(name)[position].as_py() for name in self.cells]
        return " | ".join("" if cell is None else cell for cell in cells)


def frame_of(columns: Mapping[str, Sequence[str | None] | Texts]) -> pd.DataFrame:
    """Return a frame of object cells, without conversion of text to numbers or missing values."""
    return pd.DataFrame(
        {name: np.array(cells, dtype=object) for name, cells in columns.items()}, dtype=object
    )


def table_of_rows(
    name: str,
    columns: Sequence[str],
    rows: Iterable[Row],
    refusals: Refusals,
    limits: ReadLimits,
    fields: Mapping[str, str] | None = None,
    *,
    named: bool = False,
) -> Table:
    """Create the table of a format with fixed fields.

    fields: field → column; by default the columns named like a field. named: the file contains
    column names, by which columns are recognised. Raises LimitError for too many rows or a cell
    that is too long.
    """
    file = refusals.file
    lines: list[int] = []
    read: list[Sequence[str | None]] = []
    for line, row in rows:
        lines.append(line)
        read.append(row)
        if len(lines) % 10_000 == 0:
            refuse_many_rows(len(lines) + refusals.count, file, limits)
    refuse_many_rows(len(lines) + refusals.count, file, limits)
    cells = {column: [row[at] for row in read] for at, column in enumerate(columns)}
    numbers = np.array(lines, dtype=np.int64)
    for texts in cells.values():
        refuse_long_fields(texts, numbers, file, limits)
    if not (fields or named):
        fields = {column: column for column in columns if column in FIELDS}
    return Table(file, name, frame_of(cells), numbers, refusals, fields)


def unique_names(cells: Iterable[str | None]) -> list[str]:
    """Convert the cells of a header to unique, non-empty column names."""
    names: list[str] = []
    for position, cell in enumerate(cells, 1):
        name = (cell or "").strip().lstrip("\ufeff") or f"column {position}"
        while name in names:
            name += " (2)"
        names.append(name)
    return names


def refuse_many_rows(rows: int, file: str, limits: ReadLimits) -> None:
    """Report the number of rows read to `limits.watch`. Raises LimitError for too many."""
    limits.watch(file, rows)
    if rows > limits.rows:
        raise too_many_rows(file, limits)


def too_many_rows(file: str, limits: ReadLimits) -> LimitError:
    return limits.over(
        "rows",
        "The file has more than {limit:,} rows.",
        "Load a sample of the queries with all their rows, or allow more with {variable}.",
        file,
    )


def refuse_many_columns(columns: int, file: str, limits: ReadLimits) -> None:
    if columns > limits.columns:
        raise limits.over(
            "columns",
            "The file has more than {limit:,} columns.",
            "Keep only the columns for query, document, label, score and attributes of queries, or "
            "allow more with {variable}.",
            file,
        )


def refuse_many_bytes(unpacked: int, file: str, limits: ReadLimits) -> None:
    if unpacked > limits.unpacked_bytes:
        raise limits.over(
            "unpacked_bytes",
            "Unpacked, the table is larger than {limit:,.1f} MB.",
            "Remove columns and documents that are not needed, or allow more with {variable}.",
            file,
        )


def refuse_long_fields(
    cells: Sequence[str | None] | Texts | ArrowText, lines: Lines, file: str, limits: ReadLimits
) -> None:
    """Raise LimitError with the line of the first cell that is too long."""
    if isinstance(cells, ArrowText):
        # A character has at least one byte.
        if (pc.max(pc.binary_length(cells)).as_py() or 0) <= limits.field_chars:
            return
        cells = objects(cells)
    if max(map(len, filter(None, cells)), default=0) <= limits.field_chars:
        return
    position = next(
        index for index, cell in enumerate(cells) if cell and len(cell) > limits.field_chars
    )
    raise too_long_field(file, int(lines[position]), limits)


def too_long_field(file: str, line: int, limits: ReadLimits) -> LimitError:
    return limits.over(
        "field_chars",
        "A field has more than {limit:,} characters.",
        "Split the document into passages, or allow longer ones with {variable}. If the text is "
        "short, a quotation mark is probably not closed.",
        file,
        line,
    )


# Text with the same number of fields in every line is read by Arrow, without a Python object per
# cell.

# Large enough for rows except with very long texts; small enough that a block reuses the memory of
# the previous one, which is faster than allocating new memory.
_BLOCK_BYTES = 1 << 20
_TOGETHER = 8


def even_columns(
    text: bytes | Source,
    delimiter: str,
    width: int,
    selected: Collection[int],
    *,
    filled: bool = False,
    barred: Collection[bytes] = (),
    ascii_only: bool = False,
    numeric: Collection[int] = (),
) -> dict[int, Any] | None:
    """Parse UTF-8 text in which every line is a row of `width` fields separated by `delimiter`.
    Return position → column as chunked Arrow text for the selected columns, or None for any other
    text. Quotation marks are ordinary characters.

    filled: return None if a cell of any column is empty. barred: return None if one of these byte
    sequences (two bytes at most) occurs. ascii_only: return None for non-ASCII text. numeric:
    columns that are converted to numbers if all their cells are numbers.
    """
    # Only "\n" and "\r\n" are line ends for all readers.
    if width < 2 or not delimiter.isascii():
        return None
    names = [str(place) for place in range(width)]
    columns = {place: _Column() for place in selected}
    rows = 0
    with BytesIO(text) if isinstance(text, bytes) else text.open() as file:
        checked = _Text(file, barred, ascii_only=ascii_only)
        try:
            for block in pa_csv.open_csv(
                checked,
                read_options=pa_csv.ReadOptions(
                    column_names=names, block_size=_BLOCK_BYTES, use_threads=False
                ),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter, quote_char=False),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
                ),
            ):
                if filled and any(map(has_empty, block.columns)):
                    return None
                rows += block.num_rows
                for place, column in columns.items():
                    cells = block.column(place)
                    column.add(_as_numbers(cells) if place in numeric else cells)
        except (pa.ArrowInvalid, _OddError):
            pass
        else:
            # Arrow skips blank lines, which would shift the numbers of later lines.
            if rows == checked.lines:
                return {place: column.whole() for place, column in columns.items()}
            return None
    if not numeric or checked.odd:
        return None
    return even_columns(
        text, delimiter, width, selected, filled=filled, barred=barred, ascii_only=ascii_only
    )


def _as_numbers(cells: Any) -> Any:
    """Convert Arrow text to the smallest float type without loss. Raises ArrowInvalid."""
    values = cells.cast(pa.float64())
    small = values.cast(pa.float32(), safe=False)
    return small if small.cast(pa.float64()).equals(values) else values


class _Column:
    """A column collected from blocks, which are merged regularly, because many small pieces would
    fragment the memory."""

    def __init__(self) -> None:
        self._large: list[Any] = []
        self._small: list[Any] = []

    def add(self, cells: Any) -> None:
        self._small.append(cells)
        if len(self._small) == _TOGETHER:
            self._lay_together()

    def whole(self) -> Any:
        """Return all cells in chunks."""
        self._lay_together()
        return pa.chunked_array(_alike(self._large))

    def _lay_together(self) -> None:
        if self._small:
            self._large.append(pa.concat_arrays(_alike(self._small)))
            self._small = []


def _alike(pieces: list[Any]) -> list[Any]:
    """Convert pieces of different types to float64."""
    if len({piece.type for piece in pieces}) < 2:
        return pieces
    return [piece.cast(pa.float64()) for piece in pieces]


class _OddError(Exception):
    """Text that the fast reader does not support."""


class _Text:
    """A file object for Arrow that checks the text while it is read."""

    closed = False

    def __init__(self, file: BinaryIO, barred: Collection[bytes], *, ascii_only: bool) -> None:
        self._file = file
        self._barred = barred
        self._ascii_only = ascii_only
        self._last = b""
        self._ends = 0
        self.odd = False

    @property
    def lines(self) -> int:
        return self._ends + (self._last not in (b"", b"\n"))

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        seam = self._last + piece[:1]
        parts = (seam, piece)
        self.odd = (
            (self._ascii_only and not piece.isascii())
            or any(each in part for each in self._barred for part in parts)
            or (seam[:1] == b"\r" and seam != b"\r\n")
            or (b"\r" in piece and _bare_returns(piece))
        )
        if self.odd:
            raise _OddError
        self._ends += piece.count(b"\n")
        self._last = piece[-1:] or self._last
        return piece


def _bare_returns(piece: bytes) -> bool:
    """Return whether a carriage return before the last byte is not followed by a line feed."""
    return piece.count(b"\r", 0, len(piece) - 1) != piece.count(b"\r\n")


def has_empty(column: Any) -> bool:
    """Return whether a cell of (N,) Arrow text without missing cells is empty."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)
    inside = offsets[column.offset : column.offset + len(column) + 1]
    return bool((inside[1:] == inside[:-1]).any())
