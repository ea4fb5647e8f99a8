"""Ratings files of the Rated Ranking Evaluator (RRE), also as Quepid writes them.

    {"id_field": …, "topics": [{"description": …, "query_groups": [
        {"name": …, "queries": [{"placeholders": {"$query": …}}],
         "relevant_documents": {"doc": {"gain": 3}}}]}]}

Query groups may stand without topics, and queries without groups. Documents are given by their
gain (`{"3": ["doc", …]}`) too. All queries of a group have its judgments; the topic and the group
become segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rankdash.core.readers.parse.json_lines import RecordPart, RecordPlaces, text_of
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.skipped_rows import Refusals
from rankdash.core.readers.parse.table import Table, refuse_many_rows, table_of_rows

NAME = "RRE ratings"
_DOCUMENTS = "relevant_documents"
_OWN = {_DOCUMENTS, "placeholders"}
_INNER = ("topics", "query_groups", "queries")
_COLUMNS = ("query", "doc_id", "label", "topic", "query group")
_FIELDS = {"query": "query", "doc_id": "doc_id", "label": "label"}


def may_match(start: str) -> bool:
    """Whether the document that begins like this is worth decoding to look at."""
    return start.lstrip().startswith("{")


def matches(outer: object) -> bool:
    return isinstance(outer, dict) and any(
        isinstance(outer.get(name), list) and _judged(outer[name]) for name in _INNER
    )


def _judged(entries: object) -> bool:
    """Whether judgments, or queries as RRE writes them, stand somewhere among the entries."""
    return isinstance(entries, list) and any(
        isinstance(entry, dict)
        and (_OWN & entry.keys() or any(_judged(entry.get(name)) for name in _INNER))
        for entry in entries
    )


def read(text: str, file: str, limits: ReadLimits) -> Table:
    """A row for each query of a group and each of the group's documents.

    A group without documents, or a query without a text, is refused with its line.
    """
    places = RecordPlaces(text)
    refusals = Refusals(file)
    rows: list[tuple[str | None, ...]] = []
    lines: list[int] = []
    for topic, group in _groups(places, places.outermost(), None):
        found = places.member(group, _DOCUMENTS)
        documents = list(_documents(places, found)) if found else []
        if not documents:
            refusals.add("no_documents", [group.line], [str(group.value.get("name", ""))])
        name = text_of(group.value.get("name"))
        for query in _queries(group.value):
            for doc_id, gain, line in documents:
                rows.append((query, doc_id, gain, topic, name))
                lines.append(line)
        refuse_many_rows(len(rows), file, limits)
    return table_of_rows(file, NAME, _COLUMNS, rows, lines, refusals, _FIELDS, limits)


def _groups(
    places: RecordPlaces, outer: RecordPart, topic: str | None
) -> Iterator[tuple[str | None, RecordPart]]:
    """(topic, group) for everything that has queries and may have judgments."""
    for member in places.inside(outer):
        if member.name not in _INNER:
            continue
        for entry in places.inside(member):
            if not isinstance(entry.value, dict):
                continue
            if member.name == "topics":
                yield from _groups(places, entry, text_of(entry.value.get("description")))
            else:
                yield topic, entry


def _queries(group: Mapping[str, object]) -> list[str | None]:
    """The texts of a group's queries, each once; [None] where there is none."""
    queries = group.get("queries")
    entries = queries if isinstance(queries, list) else [group]
    return list(dict.fromkeys(map(_text_of_query, entries))) or [None]


def _text_of_query(query: object) -> str | None:
    """What its placeholder `$query` stands for, else the first placeholder that is a text."""
    if not isinstance(query, dict):
        return text_of(query)
    placeholders = query.get("placeholders")
    if not isinstance(placeholders, dict):
        return None
    first = next((value for value in placeholders.values() if isinstance(value, str)), None)
    return text_of(placeholders.get("$query", first))


def _documents(
    places: RecordPlaces, documents: RecordPart
) -> Iterator[tuple[str, str | None, int]]:
    """(document, gain, line); the gain is None where none is given."""
    for entry in places.inside(documents):
        if isinstance(documents.value, list):
            yield from _documents(places, entry)
        elif isinstance(entry.value, list):
            for doc in places.inside(entry):
                yield str(doc.value), entry.name, doc.line
        elif isinstance(entry.value, dict):
            gain = entry.value.get("gain", entry.value.get("rating"))
            yield entry.name, text_of(gain), entry.line
        else:
            yield entry.name, text_of(entry.value), entry.line
