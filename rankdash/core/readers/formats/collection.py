"""A whole data set in one JSON document, as LlamaIndex saves its datasets and sentence-transformers
wants its evaluators' input.

    {"queries": {"q1": "…"}, "corpus": {"d1": "…"}, "relevant_docs": {"q1": ["d1"]}}

The relevant documents may have grades, `{"q1": {"d1": 2}}`; what was retrieved may stand beside
them as lists, or with scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rankdash.core.readers.formats import nested, retrieved
from rankdash.core.readers.parse.columns import plain
from rankdash.core.readers.parse.json_lines import RecordPart, RecordPlaces, text_of
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.skipped_rows import Refusals
from rankdash.core.readers.parse.table import Table, refuse_many_rows, table_of_rows

NAME = "JSON"
_QUERIES = frozenset(("queries", "questions", "topics"))
_DOCUMENTS = frozenset(("corpus", "nodes", "collection")) | retrieved.DOCUMENTS
_RELEVANT = retrieved.RELEVANT | retrieved.GRADES
_RETRIEVED = retrieved.RETRIEVED | {"run", "runs"}

_TEXTS = ("title", "document")

Row = tuple[int, tuple[str | None, ...]]


def may_match(start: str) -> bool:
    """Whether the document that begins like this is worth decoding to look at."""
    return start.lstrip().startswith("{")


def matches(outer: object) -> bool:
    """Whether texts by their ids stand beside what is relevant to each query."""
    if not isinstance(outer, dict):
        return False
    named = {plain(key): value for key, value in outer.items() if isinstance(value, dict) and value}
    relevant = [value for name, value in named.items() if name in _RELEVANT]
    texts = [value for name, value in named.items() if name in _QUERIES | _DOCUMENTS]
    return (
        len(relevant) == 1
        and all(isinstance(each, list | dict) for each in relevant[0].values())
        and bool(texts)
        and all(isinstance(each, str | dict) for value in texts for each in value.values())
    )


def read(text: str, file: str, limits: ReadLimits) -> list[Table]:
    """A table each of the queries, the documents, the labels and what was retrieved, called after
    the file and its key."""
    places = RecordPlaces(text)
    tables: list[Table] = []
    for part in places.inside(places.outermost()):
        if not isinstance(part.value, dict) or not part.value:
            continue
        columns, rows = _of(plain(part.name), places, part)
        if not columns:
            continue
        refuse_many_rows(len(rows), file, limits)
        own = f"{file}/{part.name}"
        fields = dict(zip(columns, columns, strict=True))
        cells, lines = [cells for _, cells in rows], [line for line, _ in rows]
        tables.append(
            table_of_rows(own, NAME, columns, cells, lines, Refusals(own), fields, limits)
        )
    return tables


def _of(name: str, places: RecordPlaces, part: RecordPart) -> tuple[tuple[str, ...], list[Row]]:
    """The columns of what a key holds, and its rows; nothing under an unknown key."""
    if name in _QUERIES:
        return ("query_id", "query"), [
            (each.line, (each.name, text_of(_row(each.value).get("document"))))
            for each in places.inside(part)
        ]
    if name in _DOCUMENTS:
        return ("doc_id", "title", "document"), [
            (each.line, (each.name, *(text_of(_row(each.value).get(field)) for field in _TEXTS)))
            for each in places.inside(part)
        ]
    pairs = list(_pairs(places, part)) if name in _RELEVANT | _RETRIEVED else []
    listed = all(place for _, _, place, _ in pairs)
    if name in _RELEVANT:
        return ("query_id", "doc_id", "label"), [
            (line, (*pair, "1" if value is None else value)) for line, pair, _, value in pairs
        ]
    if name in _RETRIEVED and pairs:
        return ("query_id", "doc_id", "rank" if listed else "score"), [
            (line, (*pair, str(place) if listed else value)) for line, pair, place, value in pairs
        ]
    return (), []


def _row(value: Any) -> dict[str, Any]:
    row = nested.document_row(value)
    return {"document": row.get("query"), **row}


def _pairs(
    places: RecordPlaces, part: RecordPart
) -> Iterator[tuple[int, tuple[str, str | None], int, str | None]]:
    """(line, (query, document), place in a list or 0, value in an object) for each pair."""
    for query in places.inside(part):
        for place, each in enumerate(places.inside(query), 1):
            if isinstance(query.value, list):
                yield each.line, (query.name, text_of(each.value)), place, None
            else:
                yield each.line, (query.name, each.name), 0, text_of(each.value)
