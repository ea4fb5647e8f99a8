"""`Table`: the rows of a file as text, before anyone says what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rankdash.core.base.errors import LimitError
from rankdash.core.base.findings import Finding
from rankdash.core.data.coded import ArrowText, objects
from rankdash.core.readers.parse.limits import MEGABYTE, ReadLimits, variable
from rankdash.core.readers.parse.skipped_rows import Refusals

Texts = npt.NDArray[np.object_]
Lines = npt.NDArray[np.integer[Any]]


class Columns(dict[str, Any]):
    """Name → (N,) Arrow text. Where the text can be read `again`: numbers too, or None once it is
    let go."""

    def __init__(
        self,
        columns: Mapping[str, Any] | Iterable[tuple[str, Any]],
        again: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(columns)
        self._again = again

    def text(self, name: str) -> Any:
        """(N,) Arrow text."""
        cells = self[name]
        return self._texts[name] if cells is None or pa.types.is_floating(cells.type) else cells

    @cached_property
    def _texts(self) -> Mapping[str, Any]:
        return {} if self._again is None else self._again()

    def let_go(self, name: str) -> None:
        """Hold the column no longer if it can be read again."""
        if self._again is not None:
            self[name] = None

    @cached_property
    def frame(self) -> pd.DataFrame:
        """As objects, made once for all tables that share the columns."""
        return frame_of({name: objects(self.text(name)) for name in self})


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one file.

    file:     its name.
    format:   in words, such as "TREC run".
    cells:    (N, columns) object cells, str or None; or the same as Arrow text.
    lines:    (N,) the physical line, from 1, on which each row begins; the row's number in a
              Parquet file.
    refusals: rows that are not in `frame`, and where later steps add theirs.
    fields:   field → column, where the format says it; None where column names must.
    names:    the file names its columns itself.
    findings: what the reader noticed.
    wants:    the fields that a person may add to `fields`, such as which of many columns is the
              score.
    raters:   columns that hold the labels of one annotator each.
    keys:     of entries of JSON.
    inner:    the columns in which entries of JSON hold lists or objects that no reader knows.
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

    @property
    def frame(self) -> pd.DataFrame:
        """`cells` as a frame of objects."""
        return self.cells.frame if isinstance(self.cells, Columns) else self.cells

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def columns(self) -> list[str]:
        return [str(name) for name in self.cells]

    def arrow(self, column: str) -> Any:
        """(N,) Arrow text: the cells of a column."""
        if isinstance(self.cells, Columns):
            return self.cells.text(column)
        return as_arrow(self.cells[column].to_numpy(dtype=object))

    def values(self, column: str) -> Any:
        """The same, or Arrow numbers, and no longer held where the file can be read again."""
        if not isinstance(self.cells, Columns) or self.cells[column] is None:
            return self.arrow(column)
        cells = self.cells[column]
        self.cells.let_go(column)
        return cells

    def row_text(self, position: int) -> str:
        if isinstance(self.cells, pd.DataFrame):
            cells = self.cells.iloc[position].to_list()
        else:
            cells = [self.cells.text(name)[position].as_py() for name in self.cells]
        return " | ".join("" if cell is None else cell for cell in cells)


def as_arrow(cells: Texts) -> Any:
    """Object cells, str or None, as Arrow text."""
    return pa.array(cells, type=pa.string(), from_pandas=True)


def frame_of(columns: Mapping[str, Sequence[str | None] | Texts]) -> pd.DataFrame:
    """A frame of object cells; nothing in the text is taken for a number or for missing."""
    return pd.DataFrame(
        {name: np.array(cells, dtype=object) for name, cells in columns.items()}, dtype=object
    )


def table_of_rows(
    file: str,
    name: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    lines: Sequence[int],
    refusals: Refusals,
    fields: Mapping[str, str],
    limits: ReadLimits,
) -> Table:
    """The table of a format that says itself what its columns mean. Raises LimitError for a cell
    that is too long."""
    numbers = np.array(lines, dtype=np.int64)
    cells = {column: [row[at] for row in rows] for at, column in enumerate(columns)}
    for column in cells.values():
        refuse_long_fields(column, numbers, file, limits)
    return Table(file, name, frame_of(cells), numbers, refusals, fields)


def refuse_many_rows(rows: int, file: str, limits: ReadLimits) -> None:
    """Say how many rows of the file are read so far. Raises LimitError for too many."""
    limits.watch(file, rows)
    if rows > limits.rows:
        raise too_many_rows(file, limits)


def too_many_rows(file: str, limits: ReadLimits) -> LimitError:
    return LimitError(
        "The file has more than {limit:,} rows.",
        remedy="Load a sample of the queries with all their rows, or allow more with {variable}.",
        file=file,
        limit=limits.rows,
        variable=variable("rows"),
    )


def refuse_many_columns(columns: int, file: str, limits: ReadLimits) -> None:
    if columns > limits.columns:
        raise LimitError(
            "The file has more than {limit:,} columns.",
            remedy="Keep the columns for query, document, label, score and what describes a query, "
            "or allow more with {variable}.",
            file=file,
            limit=limits.columns,
            variable=variable("columns"),
        )


def refuse_many_bytes(unpacked: int, file: str, limits: ReadLimits) -> None:
    if unpacked > limits.unpacked_bytes:
        raise LimitError(
            "Unpacked, the table is larger than {limit:,.1f} MB.",
            remedy="Remove columns and documents that are not needed, or allow more with "
            "{variable}.",
            file=file,
            limit=limits.unpacked_bytes / MEGABYTE,
            variable=variable("unpacked_bytes"),
        )


def refuse_long_fields(
    cells: Sequence[str | None] | Texts | ArrowText, lines: Lines, file: str, limits: ReadLimits
) -> None:
    """Raises LimitError with the line of the first cell that is too long."""
    if isinstance(cells, ArrowText):
        # A character has at least a byte.
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
    return LimitError(
        "A field has more than {limit:,} characters.",
        remedy="Cut the document into passages, or allow longer ones with {variable}. Where the "
        "text is short, a quotation mark is probably not closed.",
        file=file,
        line=line,
        limit=limits.field_chars,
        variable=variable("field_chars"),
    )
