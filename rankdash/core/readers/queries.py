"""Files that contain only queries: a table with a column of queries, or one query per line."""

from __future__ import annotations

from itertools import count

import pandas as pd

from rankdash.core.base.errors import DataError, FormatError
from rankdash.core.readers.detect import UnknownFormError, tables_of
from rankdash.core.readers.parse.columns import plain, recognise
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.source import Source, decode
from rankdash.core.readers.parse.unpack import unpack


def queries_in(source: Source) -> pd.DataFrame:
    """Return query_id, text and the other columns of a file, each as text.

    A table without ids, and a text with one query per line, gets the ids q1, q2 …; its repeated
    queries are dropped.

    Raises DataError, with the file, if no column contains queries, an id is repeated, or the file
    has no queries, and the errors of the readers.
    """
    limits = ReadLimits()
    files, broken = unpack([source], limits)
    if broken:
        raise broken[0]
    unpacked = files[0]
    try:
        lines = unpacked.name.casefold().endswith(".txt")
        frame = queries_of(decode(unpacked.data, source.name).text) if lines else None
        table = None if lines else tables_of(unpacked, limits)[0]
    except UnknownFormError:
        frame, table = queries_of(decode(unpacked.data, source.name).text), None
    if table is not None:
        names = table.columns
        known = {plain(name): name for name in reversed(names)}
        fields = dict(table.fields or recognise(names))
        text = fields.get("query", known.get("text"))
        query_id = fields.get("query_id", known.get("id"))
        if not table.names and table.fields is None and len(names) == 2:
            # As in MS MARCO: an id and a query, without column names.
            query_id, text = names
        if text is None:
            raise FormatError(
                "No column is recognised as query. The columns are: {columns}.",
                remedy="Name the column of the queries: query. A column query_id is optional.",
                file=source.name,
                columns=", ".join(names[:20]),
            )
        chosen = {"query_id": query_id, "text": text}
        # Another column with one of these names would be a second one.
        others = [new for new, old in chosen.items() if old not in (None, new) and new in names]
        frame = _numbered(
            table.frame.drop(columns=others).rename(
                columns={old: new for new, old in chosen.items() if old is not None}
            )
        )
    assert frame is not None  # noqa: S101 - for mypy
    _check(frame, source.name)
    return frame


def queries_of(lines: str) -> pd.DataFrame:
    """Return query_id and text of a text with one query per line, perhaps below the name of a
    column."""
    texts = [line for line in map(str.strip, lines.splitlines()) if line]
    if texts and "query" in recognise(texts[:1]):
        del texts[0]
    return _numbered(pd.DataFrame({"text": texts}, dtype=object))


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.fillna("").astype("str")
    frame["text"] = frame["text"].str.strip()
    frame = frame[frame["text"] != ""]
    if "query_id" not in frame:
        frame = frame.drop_duplicates("text")
        ids = [f"q{number}" for number, _ in zip(count(1), frame["text"], strict=False)]
        frame = frame.assign(query_id=pd.Series(ids, index=frame.index, dtype="str"))
    first = ["query_id", "text"]
    rest = [name for name in frame.columns if name not in first]
    return frame[[*first, *rest]].reset_index(drop=True)


def _check(frame: pd.DataFrame, file: str) -> None:
    if not len(frame):
        raise DataError(
            "The file contains no queries.", remedy="Write one query per line.", file=file
        )
    repeated = frame.loc[frame["query_id"].duplicated(), "query_id"]
    if len(repeated):
        raise DataError(
            "The query id {query!r} is repeated.",
            remedy="Use a unique id for each query.",
            file=file,
            query=repeated.iloc[0],
        )
