"""Judgment lists of OpenSearch's search relevance workbench.

    {"name": …, "judgmentRatings": [{"query": …, "ratings": [{"docId": …, "rating": "3.000"}]}]}

as they are put in, as the plugin gives them back (`_source` of a hit), or the list alone. The query
has no id, only its text.
"""

from __future__ import annotations

from collections.abc import Iterator

from rankdash.core.readers.parse.json_lines import RecordPart, RecordPlaces, text_of
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.skipped_rows import Refusals
from rankdash.core.readers.parse.table import Table, refuse_many_rows, table_of_rows

NAME = "OpenSearch judgments"
_KEY = "judgmentRatings"
# Where the plugin's answers hold a judgment.
_AROUND = ("hits", "_source")
_FIELDS = {"query": "query", "doc_id": "docId", "label": "rating"}


def may_match(start: str) -> bool:
    """Whether the document that begins like this is worth decoding to look at."""
    return _KEY in start or (start.lstrip().startswith("[") and "docId" in start)


def matches(outer: object) -> bool:
    if isinstance(outer, list):
        first = outer[0] if outer else None
        ratings = first.get("ratings") if isinstance(first, dict) and "query" in first else None
        return _rated(ratings)
    return _holds_key(outer)


def _rated(ratings: object) -> bool:
    return (
        isinstance(ratings, list)
        and bool(ratings)
        and all(isinstance(rating, dict) and "docId" in rating for rating in ratings)
    )


def _holds_key(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_holds_key, value))
    if not isinstance(value, dict):
        return False
    return isinstance(value.get(_KEY), list) or any(
        _holds_key(value[name]) for name in _AROUND if name in value
    )


def read(text: str, file: str, limits: ReadLimits) -> Table:
    """A row a rating. An entry without ratings, or a rating without a document or a value, is
    refused with its line."""
    places = RecordPlaces(text)
    refusals = Refusals(file)
    rows: list[tuple[str | None, ...]] = []
    lines: list[int] = []
    for entry in _entries(places, places.outermost()):
        told = entry.value if isinstance(entry.value, dict) else {}
        query = text_of(told.get("query"))
        if not isinstance(told.get("ratings"), list) or not told["ratings"]:
            refusals.add("no_documents", [entry.line], [str(query)])
            continue
        for rating in places.inside(places.member(entry, "ratings")):
            pair = rating.value if isinstance(rating.value, dict) else {}
            rows.append((query, text_of(pair.get("docId")), text_of(pair.get("rating"))))
            lines.append(rating.line)
        refuse_many_rows(len(rows), file, limits)
    return table_of_rows(
        file, NAME, tuple(_FIELDS.values()), rows, lines, refusals, _FIELDS, limits
    )


def _entries(places: RecordPlaces, part: RecordPart) -> Iterator[RecordPart]:
    """The entries (a query and its ratings) of every judgment in the document."""
    if part.name == _KEY or (isinstance(part.value, list) and not _holds_key(part.value)):
        yield from places.inside(part)
        return
    for inner in places.inside(part):
        if inner.name == _KEY or inner.name in _AROUND or not inner.name:
            yield from _entries(places, inner)
