"""Which column of a table is guessed to be what, before its file is read as a whole."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from rankdash.core.base.errors import RankdashError
from rankdash.core.readers import detect
from rankdash.core.readers.detect import tables_of
from rankdash.core.readers.parse.annotators import raters_of
from rankdash.core.readers.parse.columns import can_be_labels, fields_of
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.unpack import unpack
from rankdash.core.readers.parse.values import numbers

_ROWS = 5
_TRIES = 100
_NO_LABELS = ("query_id", "query", "doc_id", "document", "title")


@dataclass(frozen=True, eq=False)
class Guess:
    """The columns of a file, and what they are guessed to be.

    fields: field → column. labels: the columns whose cells can be labels. rows: the first ones, all
    text. highest: label column → the highest number that was seen.
    """

    file: str
    columns: tuple[str, ...]
    fields: dict[str, str]
    labels: tuple[str, ...]
    rows: pd.DataFrame
    highest: Mapping[str, float] = field(default_factory=dict)


def guesses(
    sources: Sequence[Source], most_bytes: int, limits: ReadLimits | None = None
) -> list[Guess]:
    """A guess for each table of rows with queries and documents whose columns only their names and
    cells tell. Nothing for files that cannot be read: reading them says why.

    most_bytes: of a larger file only so much is looked at, which gives no guess for one whose
    beginning is no file, such as an archive.
    """
    limits = limits or ReadLimits()
    tables: list[tuple[Table, Source]] = []
    try:
        files, _broken = unpack([beginning(source, most_bytes) for source in sources], limits)
        for source in files:
            with contextlib.suppress(RankdashError):
                tables += [(table, source) for table in tables_of(source, limits)]
        for preparer in detect.PREPARERS:
            tables = preparer.prepare(tables)
    except RankdashError:
        return []
    return [found for table, _ in tables if (found := _guess(table)) is not None]


def beginning(source: Source, most_bytes: int) -> Source:
    """Whole lines, at most so many bytes; a line does not count as whole within quotation marks."""
    if source.size <= most_bytes:
        return source
    ends = most_bytes
    with source.open() as file:
        data = file.read(most_bytes)
    for _ in range(_TRIES):
        ends = data.rfind(b"\n", 0, ends)
        if ends < 0 or data.count(b'"', 0, ends) % 2 == 0:
            break
    return replace(source, content=data[: max(ends, 0)])


def _guess(table: Table) -> Guess | None:
    if not table.names or table.fields is not None or not len(table.frame) or raters_of(table):
        return None
    fields = fields_of(table.frame)
    if not {"query", "query_id"} & fields.keys() or not {"document", "doc_id"} & fields.keys():
        return None
    columns = tuple(map(str, table.frame.columns))
    texts = {column for field, column in fields.items() if field in _NO_LABELS}
    labels = tuple(
        name for name in columns if name not in texts and can_be_labels(table.frame[name])
    )
    if "label" in fields and fields["label"] not in labels:
        # A column is called so and holds none: reading the file says so, with the line.
        return None
    rows = table.frame.head(_ROWS).fillna("").astype("str")
    numeric = {name: numbers(table.frame[name].to_numpy(dtype=object)) for name in labels}
    highest = {
        name: float(np.nanmax(values))
        for name, values in numeric.items()
        if np.isfinite(values).any()
    }
    return Guess(table.file, columns, fields, labels, rows, highest)
