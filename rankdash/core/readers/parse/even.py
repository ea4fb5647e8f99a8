"""Text of which every line has as many fields: Arrow reads it, without a Python object a cell."""

from __future__ import annotations

from collections.abc import Collection
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from rankdash.core.readers.parse.source import Source

# Large enough for any row but one with a very long text; small enough that what is read of a block
# takes the place of the last one in memory, which is faster than fresh memory.
_BLOCK_BYTES = 1 << 20
_TOGETHER = 8


def even_columns(
    text: bytes | Source,
    delimiter: str,
    width: int,
    wanted: Collection[int],
    *,
    filled: bool = False,
    barred: Collection[bytes] = (),
    ascii_only: bool = False,
    numeric: Collection[int] = (),
) -> dict[int, Any] | None:
    """Place → column as Arrow text in chunks, of those that are wanted, of a text in UTF-8 in which
    `delimiter` separates `width` fields in every line and every line is a row; None for any other.
    Quotation marks are characters like others.

    filled: None too where a cell is empty, whether or not its column is wanted. barred: None too
    where one of these, of two bytes at most, is in the text. ascii_only: None too for other
    characters. numeric: columns that are given as numbers where all their cells are.
    """
    # Only "\n" and "\r\n" end lines in the same way for everyone.
    if width < 2 or not delimiter.isascii():
        return None
    names = [str(place) for place in range(width)]
    columns = {place: _Column() for place in wanted}
    rows = 0
    with BytesIO(text) if isinstance(text, bytes) else text.open() as file:
        looked = _Text(file, barred, ascii_only=ascii_only)
        try:
            for block in pa_csv.open_csv(
                looked,
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
                for place, kept in columns.items():
                    cells = block.column(place)
                    kept.add(_as_numbers(cells) if place in numeric else cells)
        except (pa.ArrowInvalid, _OddError):
            pass
        else:
            # Arrow skips blank lines, which would shift the numbers of those behind them.
            if rows == looked.lines:
                return {place: kept.whole() for place, kept in columns.items()}
            return None
    if not numeric or looked.odd:
        return None
    return even_columns(
        text, delimiter, width, wanted, filled=filled, barred=barred, ascii_only=ascii_only
    )


def _as_numbers(cells: Any) -> Any:
    """Arrow text as Arrow numbers, as small as hold them. Raises ArrowInvalid for other text."""
    values = cells.cast(pa.float64())
    small = values.cast(pa.float32(), safe=False)
    return small if small.cast(pa.float64()).equals(values) else values


class _Column:
    """What is kept of blocks, laid together now and then: the memory between small pieces would be
    of no use to anyone."""

    def __init__(self) -> None:
        self._large: list[Any] = []
        self._small: list[Any] = []

    def add(self, cells: Any) -> None:
        self._small.append(cells)
        if len(self._small) == _TOGETHER:
            self._lay_together()

    def whole(self) -> Any:
        """All cells, in chunks."""
        self._lay_together()
        return pa.chunked_array(_alike(self._large))

    def _lay_together(self) -> None:
        if self._small:
            self._large.append(pa.concat_arrays(_alike(self._small)))
            self._small = []


def _alike(pieces: list[Any]) -> list[Any]:
    """All as wide numbers where some are."""
    if len({piece.type for piece in pieces}) < 2:
        return pieces
    return [piece.cast(pa.float64()) for piece in pieces]


class _OddError(Exception):
    """The text holds what the fast way does not read."""


class _Text:
    """A file as Arrow reads it, looked at on the way."""

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
    """Whether a carriage return ends a line alone, but for one at the end."""
    return piece.count(b"\r", 0, len(piece) - 1) != piece.count(b"\r\n")


def has_empty(column: Any) -> bool:
    """Whether a cell of (N,) Arrow text without missing cells is empty."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)
    inside = offsets[column.offset : column.offset + len(column) + 1]
    return bool((inside[1:] == inside[:-1]).any())
