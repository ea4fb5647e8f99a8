"""Tables of queries and tables of documents: an id, a text, and what describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rankdash.findings import Finding
from rankdash.readers.join.parsed_file import Part
from rankdash.readers.parse.columns import MappingNeeded, id_and_text
from rankdash.readers.parse.rows import free_name
from rankdash.readers.parse.source import Source, stem_of
from rankdash.readers.parse.table import Table
from rankdash.readers.parse.values import blank

_QUERIES = re.compile(r"quer|question|topic|查询|问题", re.IGNORECASE)
_DOCUMENTS = re.compile(r"corpus|doc|passage|collection|文档|段落", re.IGNORECASE)


def queries_part(table: Table, fields: Mapping[str, str], source: Source) -> Part:
    """`fields` has query, query_id or both; further columns become segments."""
    frame, notes = _one_row_an_id(table, fields, "query_id", "query")
    found = pd.DataFrame({"query_id": frame[_id_column(fields, "query_id", "query")]}, dtype=object)
    found["text"] = _told(frame, fields.get("query"))
    for column in frame.columns:
        if column not in fields.values() and not blank(frame[column].to_numpy(dtype=object)).all():
            found[free_name(column, found)] = frame[column]
    return Part(
        table.file,
        source.origin,
        f"{table.format}, queries",
        table.refusals,
        queries=found.reset_index(drop=True),
        keyed_by_text=frozenset() if "query_id" in fields else frozenset({"query_id"}),
        findings=(*table.findings, *notes),
    )


def documents_part(table: Table, fields: Mapping[str, str], source: Source) -> Part:
    """`fields` has document, doc_id or both, and may have a title."""
    frame, notes = _one_row_an_id(table, fields, "doc_id", "document")
    found = pd.DataFrame({"doc_id": frame[_id_column(fields, "doc_id", "document")]}, dtype=object)
    found["title"] = _told(frame, fields.get("title"))
    found["text"] = _told(frame, fields.get("document"))
    return Part(
        table.file,
        source.origin,
        f"{table.format}, documents",
        table.refusals,
        documents=found.reset_index(drop=True),
        keyed_by_text=frozenset() if "doc_id" in fields else frozenset({"doc_id"}),
        findings=(*table.findings, *notes),
    )


def settle(unsettled: Sequence[tuple[Table, Source]], parts: Sequence[Part]) -> list[Part]:
    """Tables of `id` and `text` that hold either queries or documents, told apart.

    The ids decide: queries are what the labels and rankings call queries. Where both fit, the
    file's name decides, and then which side is still missing. Raises MappingNeeded where nothing
    tells.
    """
    has_queries = any(len(part.queries) for part in parts)
    has_documents = any(len(part.documents) for part in parts)
    sides = {"query_id": _mentioned(parts, "query_id"), "doc_id": _mentioned(parts, "doc_id")}
    found: list[Part] = []
    doubtful: list[tuple[Table, Source]] = []
    for table, source in unsettled:
        ids = set(table.frame[_columns(table)[0]].dropna())
        queries, documents = (
            len(ids & sides[side]) / max(len(sides[side]), 1) for side in ("query_id", "doc_id")
        )
        name = stem_of(table.file)
        named = bool(_QUERIES.search(name)) - bool(_DOCUMENTS.search(name))
        if queries > documents or (queries == documents and named > 0):
            found.append(_as_queries(table, source))
            has_queries = True
        elif documents > queries or named < 0:
            found.append(_as_documents(table, source))
            has_documents = True
        else:
            doubtful.append((table, source))
    for table, source in doubtful:
        if has_documents and not has_queries:
            found.append(_as_queries(table, source))
            has_queries = True
        elif has_queries and not has_documents:
            found.append(_as_documents(table, source))
            has_documents = True
        else:
            raise MappingNeeded(table.file, table.frame, "query or document")
    return found


def _mentioned(parts: Sequence[Part], key: str) -> set[str]:
    """The ids that labels, rankings and rows speak of."""
    frames = [
        frame
        for part in parts
        if key not in part.keyed_by_text
        for frame in (part.labels, part.pairs, *(scores.frame for scores in part.scores))
    ]
    return {identity for frame in frames for identity in pd.unique(frame[key])}


def _columns(table: Table) -> tuple[str, str]:
    columns = id_and_text(table.frame)
    return columns or (str(table.frame.columns[0]), str(table.frame.columns[1]))


def _as_queries(table: Table, source: Source) -> Part:
    identity, text = _columns(table)
    return queries_part(table, {"query_id": identity, "query": text}, source)


def _as_documents(table: Table, source: Source) -> Part:
    identity, text = _columns(table)
    return documents_part(table, {"doc_id": identity, "document": text}, source)


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
