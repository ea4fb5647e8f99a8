"""JSON documents that are no list of entries, as tutorials write small examples.

    {"q1": {"retrieved": ["d3", "d1"], "relevant": {"d1": 2}}}     entries by query
    {"q1": [["d3", "d1"], ["d1"]]}, [[["d3", "d1"], ["d1"]]]       pairs: retrieved, relevant
    {"q1": [0, 1, 1]}, [[0, 1, 1], [1, 0]], [3, 2, 0]              labels in the order of the ranks
    {"questions": ["…"], "retrieved": [["d3"]], "relevant": [["d1"]]}   parallel lists
    {"query": {"0": "…"}, "document": {"0": "…"}, "label": {"0": 1}}    the columns of a data frame

Each becomes a list of entries, which are read as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rankdash.readers.formats import graded, retrieved
from rankdash.readers.formats.json_records import table_of
from rankdash.readers.parse.columns import MOST_GRADES, known, plain
from rankdash.readers.parse.json_lines import RecordPlaces
from rankdash.readers.parse.limits import ReadLimits
from rankdash.readers.parse.table import Table

Record = dict[str, Any]

_QUERY_IDS = ("queryids", "qids")
_QUERIES = ("queries", "questions", "userinputs")
_LISTS = retrieved.RETRIEVED | retrieved.RELEVANT | retrieved.RERANKED | retrieved.DOCUMENTS


def may_match(start: str) -> bool:
    """Whether the document that begins like this is worth decoding to look at."""
    inside = start.lstrip()
    return inside.startswith("{") or not inside[1:].lstrip().startswith("{")


def matches(outer: object) -> bool:
    return _records_of(outer) is not None


def read(text: str, file: str, limits: ReadLimits) -> Table:
    """The entries of the document, each with the line on which it begins."""
    places = RecordPlaces(text)
    whole = places.outermost()
    records = _records_of(whole.value) or []
    members = list(places.inside(whole))
    if _parallel(whole.value) is not None:
        # The entries of parallel lists stand in all of them; the first list gives the lines.
        members = next((found for part in members if (found := list(places.inside(part)))), [])
    lines = [part.line for part in members]
    if len(lines) != len(records):
        lines = [whole.line] * len(records)
    return table_of(records, lines, file, "JSON", limits)


def _records_of(outer: object) -> list[Record] | None:
    """An entry for each query; None where the layout is another."""
    if isinstance(outer, dict) and outer:
        columns = _parallel(outer)
        if columns is not None or graded.is_entry(outer):
            return columns
        entry = _entry_of(list(outer.values()))
        return entry and [{**_query(key), **entry(value, key)} for key, value in outer.items()]
    if not isinstance(outer, list) or not outer:
        return None
    if _grades(outer) or _is_pair(outer):
        outer = [outer]
    entry = _entry_of(outer)
    return entry and [
        {"query_id": f"q{at}", **entry(value, f"q{at}")} for at, value in enumerate(outer, 1)
    ]


def _query(key: str) -> Record:
    """What a key says of its query: an id has no blanks."""
    return {"query": key} if len(key.split()) > 1 or not key.isascii() else {"query_id": key}


def _entry_of(values: Sequence[object]) -> Callable[[Any, str], Record] | None:
    """How to read each of the values, where all can be read alike."""
    if all(isinstance(value, dict) for value in values):
        keys = {plain(key) for value in values for key in value}  # type: ignore[attr-defined]
        listed = bool(keys & _LISTS) or all(map(graded.is_entry, values))
        return (lambda value, _query: value) if listed else None
    if all(_is_pair(value) for value in values):
        return lambda value, _query: {"retrieved": value[0], "relevant": value[1]}
    if all(_grades(value) for value in values):
        return _by_rank
    return None


def _by_rank(grades: Sequence[float], query: str) -> Record:
    """Labels in the order of the ranks, of documents that nobody named."""
    places = range(1, len(grades) + 1)
    return {
        "doc_ids": [f"{query}-{place}" for place in places],
        "labels": list(grades),
        "ranks": list(places),
    }


def _grades(value: object) -> bool:
    """Whether it is a list of labels: few numbers, such as grades or 0 and 1."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, int | float) and abs(each) <= 100 for each in value)
        and len(set(value)) <= MOST_GRADES
    )


def _is_pair(value: object) -> bool:
    """Whether it is a list of retrieved documents and a list (or object) of relevant ones."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    first, second = value
    named = _documents(first) or not _grades(first)
    return _listed(first) and named and (_listed(second) or isinstance(second, dict))


def _documents(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(each, str | dict) for each in value)


def _listed(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str | int | dict) for each in value)


def _parallel(outer: object) -> list[Record] | None:
    """The entries of lists (or of the columns of a data frame) that stand side by side under one
    object; None where it is none, or is one entry itself."""
    if not isinstance(outer, dict):
        return None
    outer = next(
        (
            {**outer, **inner}
            for key, inner in outer.items()
            if plain(key) == "inputs" and isinstance(inner, dict) and _parallel(inner) is not None
        ),
        outer,
    )
    columns = {key: value for key, value in outer.items() if isinstance(value, list)}
    indexes = [tuple(value) for value in outer.values() if isinstance(value, dict)]
    queries: tuple[str, ...] = ()
    by_query = all(map(graded.is_entry, outer.values()))
    if not columns and not by_query and len(indexes) == len(outer) and len(set(indexes)) == 1:
        columns = {key: list(value.values()) for key, value in outer.items()}
        queries = indexes[0]
    meant = {key for key in columns if _name(key) != key or known([key]) or _role(key)}
    meant |= {key for key, cells in columns.items() if cells and all(map(_numbers, cells))}
    lengths = {len(columns[key]) for key in meant}
    of_queries = any(map(_is_query, meant))
    of_lists = any(isinstance(cell, list) for key in meant for cell in columns[key])
    # Lists of objects are tables of their own, and no columns.
    of_objects = any(isinstance(cell, dict) for key in meant for cell in columns[key])
    if len(meant) < 2 or len(lengths) != 1 or of_objects or not (of_queries or of_lists):
        return None
    length = lengths.pop()
    columns = {key: cells for key, cells in columns.items() if len(cells) == length}
    if not of_queries and not all(query.isdigit() for query in queries):
        columns["query_id"] = list(queries)
    return [
        {_name(key): cells[at] for key, cells in columns.items()} | _unnamed(columns, at)
        for at in range(length)
    ]


def _numbers(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, int | float) for each in value)


def _role(key: str) -> bool:
    return retrieved.is_role(plain(key))


def _is_query(key: str) -> bool:
    return plain(_name(key)) in ("query", "queryid", "question", "userinput", "qid")


def _name(key: str) -> str:
    """The name of one of the values of a list."""
    name = plain(key)
    return "query_id" if name in _QUERY_IDS else "query" if name in _QUERIES else key


def _unnamed(columns: Record, at: int) -> Record:
    """Documents for a list of labels that has neither documents nor scores beside it."""
    others = [key for key in columns if not _is_query(key)]
    if len(others) != 1 or plain(others[0]) not in retrieved.GRADES:
        return {}
    made = _by_rank(columns[others[0]][at], f"q{at + 1}")
    return {field: made[field] for field in ("doc_ids", "ranks")}
