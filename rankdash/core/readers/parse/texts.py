"""Tables of queries and tables of documents: an id, a text, and what describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.readers.join.parsed_file import ParsedFile
from rankdash.core.readers.parse.columns import MappingNeeded, id_and_text, is_id, trimmed_ids
from rankdash.core.readers.parse.source import Source, stem_of
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import blank

Key = Literal["query_id", "doc_id"]
_SIDES: dict[Key, str] = {"query_id": "queries", "doc_id": "documents"}
_QUERIES = re.compile(r"quer|question|topic|查询|问题", re.IGNORECASE)
_DOCUMENTS = re.compile(r"corpus|doc|passage|collection|文档|段落", re.IGNORECASE)


def queries_part(table: Table, fields: Mapping[str, str], source: Source) -> ParsedFile:
    """`fields` has query, query_id or both; further columns become segments."""
    frame, found, part = _rows_of(table, fields, source, "query_id", "query")
    for column in frame.columns:
        told = column not in fields.values() and not is_id(str(column))
        if told and not blank(frame[column].to_numpy(dtype=object)).all():
            found[free_name(column, found)] = frame[column]
    return replace(part, queries=found.reset_index(drop=True))


def documents_part(table: Table, fields: Mapping[str, str], source: Source) -> ParsedFile:
    """`fields` has document, doc_id or both, and may have a title."""
    frame, found, part = _rows_of(table, fields, source, "doc_id", "document")
    found.insert(1, "title", _told(frame, fields.get("title")))
    return replace(part, documents=found.reset_index(drop=True))


def _rows_of(
    table: Table, fields: Mapping[str, str], source: Source, identity: Key, text: str
) -> tuple[pd.DataFrame, pd.DataFrame, ParsedFile]:
    """The rows with an id of their own; their ids and texts; and a part without them."""
    frame, notes = _one_row_an_id(table, fields, identity, text)
    ids = frame[_id_column(fields, identity, text)]
    found = pd.DataFrame({identity: ids}, dtype=object).assign(text=_told(frame, fields.get(text)))
    part = ParsedFile(
        table.file,
        source.origin,
        f"{table.format}, {_SIDES[identity]}",
        table.refusals,
        keyed_by_text=frozenset() if identity in fields else frozenset({identity}),
        findings=(*table.findings, *notes),
    )
    return frame, found, part


def settle(
    unsettled: Sequence[tuple[Table, Source]], parts: Sequence[ParsedFile]
) -> list[ParsedFile]:
    """Tables of `id` and `text` that hold either queries or documents, told apart.

    The ids decide: queries are what the labels and rankings call queries. Where both fit, the
    file's name decides, and then which side is still missing. Raises MappingNeeded where nothing
    tells.
    """
    if not unsettled:
        return []
    unsettled = [(trimmed_ids(table, _columns(table)[:1]), source) for table, source in unsettled]
    there = {
        key: any(getattr(part, side) is not None for part in parts) for key, side in _SIDES.items()
    }
    sides = {key: _mentioned(parts, key) for key in _SIDES}
    found: list[ParsedFile] = []
    doubtful: list[tuple[Table, Source]] = []

    def read(table: Table, source: Source, key: Key) -> None:
        identity, text = _columns(table)
        there[key] = True
        found.append(
            queries_part(table, {"query_id": identity, "query": text}, source)
            if key == "query_id"
            else documents_part(table, {"doc_id": identity, "document": text}, source)
        )

    for table, source in unsettled:
        ids = set(table.frame[_columns(table)[0]].dropna())
        queries, documents = (len(ids & known) / max(len(known), 1) for known in sides.values())
        name = stem_of(table.file)
        named = bool(_QUERIES.search(name)) - bool(_DOCUMENTS.search(name))
        if queries > documents or (queries == documents and named > 0):
            read(table, source, "query_id")
        elif documents > queries or named < 0:
            read(table, source, "doc_id")
        else:
            doubtful.append((table, source))
    for table, source in doubtful:
        lacking = [key for key, has in there.items() if not has]
        if len(lacking) != 1:
            raise MappingNeeded(table.file, table.frame, "query or document")
        read(table, source, lacking[0])
    return found


def _mentioned(parts: Sequence[ParsedFile], key: Key) -> set[str]:
    """The ids that labels, rankings and rows speak of."""
    found: set[str] = set()
    for part in parts:
        if key not in part.keyed_by_text:
            if part.pairs is not None:
                found.update(pd.unique(part.pairs[key]))
            for pairs in (part.labels, *(scores.pairs for scores in part.scores)):
                found.update(pairs.ids(key).texts.to_pylist())
    return found


def _columns(table: Table) -> tuple[str, str]:
    columns = id_and_text(table.frame)
    return columns or (str(table.frame.columns[0]), str(table.frame.columns[1]))


def _told(frame: pd.DataFrame, column: str | None) -> pd.Series[Any]:
    """The column, or None in every row."""
    if column is None:
        return pd.Series([None] * len(frame), index=frame.index, dtype=object)
    return frame[column]


def _id_column(fields: Mapping[str, str], identity: str, text: str) -> str:
    return fields.get(identity, fields.get(text, ""))


def _one_row_an_id(
    table: Table, fields: Mapping[str, str], identity: str, text: str
) -> tuple[pd.DataFrame, list[Finding]]:
    """The rows with an id, the first of each; those that give an id another text are refused."""
    frame = table.frame
    ids = frame[_id_column(fields, identity, text)].to_numpy(dtype=object)
    missing = blank(ids)
    code = "no_query" if identity == "query_id" else "no_document"
    _refuse(table, code, missing)
    again = pd.Series(ids, dtype=object).duplicated().to_numpy() & ~missing
    told = [fields[field] for field in (text, "title") if field in fields]
    content = pd.factorize(pd.MultiIndex.from_frame(frame[told].fillna("")))[0] if told else ids
    codes = pd.factorize(ids)[0]
    first = np.zeros(codes.max(initial=-1) + 1, dtype=np.int64)
    kept = np.flatnonzero(~again & ~missing)
    first[codes[kept]] = kept
    other = np.zeros(len(ids), dtype=bool)
    rows = np.flatnonzero(again)
    other[rows] = content[rows] != content[first[codes[rows]]]
    _refuse(table, "repeated_id", other)
    table.refusals.stop_if_most(len(frame))
    same = int((again & ~other).sum())
    notes = []
    if same:
        notes.append(
            Finding(
                "note",
                "repeated_rows",
                "Rows that repeat an id and its text, read once: {count}.",
                {"count": same},
                file=table.file,
                count=same,
            )
        )
    return frame[~missing & ~again], notes


def _refuse(table: Table, code: str, bad: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
    positions = np.flatnonzero(bad)
    examples = [table.row_text(int(position)) for position in positions[:5]]
    table.refusals.add(code, table.lines[positions], examples)


def one_each(
    values: npt.NDArray[np.object_], codes: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.bool_]]:
    """((G,) the first value that is not blank of each group, or None; (G,) whether it has
    others)."""
    groups = int(codes.max()) + 1 if len(codes) else 0
    kinds, unique = pd.factorize(values)
    told = np.append(~blank(np.asarray(unique, dtype=object)), False)
    filled = np.flatnonzero(told[kinds])
    first = np.full(groups, -1, dtype=np.int64)
    # Assigned from the last to the first, so the first one stays.
    first[codes[filled][::-1]] = kinds[filled][::-1]
    varying = np.zeros(groups, dtype=bool)
    varying[codes[filled][kinds[filled] != first[codes[filled]]]] = True
    chosen = np.full(groups, None, dtype=object)
    chosen[first >= 0] = np.asarray(unique, dtype=object)[first[first >= 0]]
    return chosen, varying


def free_name(column: str, found: pd.DataFrame) -> str:
    """A name for a segment that `found` does not use yet."""
    name = column
    while name in found.columns:
        name += " (2)"
    return name
