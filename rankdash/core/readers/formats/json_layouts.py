"""Reader of JSON documents that are not a list of entries, such as small examples in tutorials.

    {"q1": {"retrieved": ["d3", "d1"], "relevant": {"d1": 2}}}     entries by query
    {"q1": [["d3", "d1"], ["d1"]]}, [[["d3", "d1"], ["d1"]]]       pairs: retrieved, relevant
    {"q1": [0, 1, 1]}, [[0, 1, 1], [1, 0]], [3, 2, 0]              labels in the order of the ranks
    [[3, 2, 0], [0.9, 0.7, 0.8]], [[[3, 2, 0]], [[0.9, 0.7, 0.8]]]      labels and scores
    {"questions": ["…"], "retrieved": [["d3"]], "relevant": [["d1"]]}   parallel lists
    {"query": {"0": "…"}, "document": {"0": "…"}, "label": {"0": 1}}    the columns of a data frame

Each is converted to a list of entries, which are then read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.formats import nested, retrieved
from rankdash.core.readers.formats.json_records import RecordPart, RecordPlaces, table_of, text_of
from rankdash.core.readers.parse.columns import MOST_GRADES, known, plain
from rankdash.core.readers.parse.limits import REASONS, ReadLimits, Refusals
from rankdash.core.readers.parse.table import Row, Table, table_of_rows

Record = dict[str, Any]

_QUERY_IDS = ("queryids", "qids")
_QUERIES = ("queries", "questions", "userinputs")
_LISTS = retrieved.RETRIEVED | retrieved.RELEVANT | retrieved.RERANKED | retrieved.DOCUMENTS


def matches(outer: object) -> bool:
    return bool(_uneven(outer)) or _unclear(outer) or _records_of(outer) is not None


def read(text: str, file: str, limits: ReadLimits) -> Table:
    """Read the entries of the document, each with its first line.

    Raises FormatError if parallel lists differ in length.
    """
    places = RecordPlaces(text)
    whole = places.outermost()
    lengths = _uneven(whole.value)
    if lengths:
        raise FormatError(
            "Lists that belong together differ in length: {lengths}. Nothing was read from the "
            "file.",
            remedy="Write one value for each query (or for each row) in every list, or an object "
            "for each query.",
            file=file,
            line=whole.line,
            lengths=nested.named_lengths(lengths),
        )
    if _unclear(whole.value):
        raise FormatError(
            "The lists of numbers have no names. They could be labels, scores or ids. Nothing was "
            "read from the file.",
            remedy="Name the lists: {example}, or {labels} for labels in the order of the ranks.",
            file=file,
            line=whole.line,
            example='{"y_true": [[3, 2, 0]], "y_score": [[0.9, 0.7, 0.8]]}',
            labels='{"q1": [3, 2, 0], "q2": [1, 0, 2]}',
        )
    records = _records_of(whole.value) or []
    members = list(places.inside(whole))
    if _parallel(whole.value) is not None:
        # An entry of parallel lists has the line of its value in the first list.
        members = next((entries for part in members if (entries := list(places.inside(part)))), [])
    lines = [part.line for part in members]
    if len(lines) != len(records):
        lines = [whole.line] * len(records)
    table = table_of(records, lines, file, "JSON", limits)
    return replace(table, findings=(*table.findings, *_ignored(whole.value, file)))


def _records_of(outer: object) -> list[Record] | None:
    """Return an entry per query; None if the layout is unknown."""
    if isinstance(outer, dict) and outer:
        columns = _parallel(outer)
        if columns is not None or retrieved.is_graded(outer):
            return columns
        entry = _entry_of(list(outer.values()))
        return entry and [{**_query(key), **entry(value, key)} for key, value in outer.items()]
    # A list of objects contains rows or entries and needs no conversion.
    if not isinstance(outer, list) or not outer or isinstance(outer[0], dict):
        return None
    if _of_one_query(outer):
        outer = [outer]
    elif _of_matrices(outer):
        outer = list(map(list, zip(*outer, strict=True)))
    entry = _entry_of(outer)
    return entry and [
        {"query_id": f"q{at}", **entry(value, f"q{at}")} for at, value in enumerate(outer, 1)
    ]


def _query(key: str) -> Record:
    """Return a key as the query's text if it contains spaces or non-ASCII text, else as its id."""
    return {"query": key} if len(key.split()) > 1 or not key.isascii() else {"query_id": key}


def _entry_of(values: Sequence[object]) -> Callable[[Any, str], Record] | None:
    """Return a function that converts each value to an entry, or None if the values differ."""
    if all(isinstance(value, dict) for value in values):
        keys = {plain(key) for value in values for key in value}  # type: ignore[attr-defined]
        listed = bool(keys & _LISTS) or all(map(retrieved.is_graded, values))
        return (lambda value, _query: value) if listed else None
    if all(map(_is_scored, values)):
        return lambda value, _query: {"relevance_labels": value[0], "scores": value[1]}
    if all(_is_pair(value) for value in values):
        return lambda value, _query: {"retrieved": value[0], "relevant": value[1]}
    if all(_grades(value) for value in values):
        return _by_rank
    return None


def _by_rank(grades: Sequence[float], query: str) -> Record:
    """Return an entry with made-up document ids, for labels that are listed in rank order."""
    places = range(1, len(grades) + 1)
    return {
        "doc_ids": [f"{query}-{place}" for place in places],
        "labels": list(grades),
        "ranks": list(places),
    }


def _of_one_query(value: object) -> bool:
    return _grades(value) or _is_pair(value) or _is_scored(value)


def _is_scored(value: object) -> bool:
    """Return whether a value is a list of labels and a list of scores: whole numbers, and as many
    different numbers of which most have fractions."""
    pair = _numbers(value)
    if pair is None:
        return False
    labels, scores = pair
    return all(map(_is_whole, labels)) and _are_scores(scores)


def _of_matrices(value: object) -> bool:
    """Return whether a value is a list of labels per query and a list of scores per query."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    labels, scores = value
    if not (isinstance(labels, list) and isinstance(scores, list)) or len(labels) != len(scores):
        return False
    return bool(labels) and all(map(_is_scored, map(list, zip(labels, scores, strict=True))))


def _numbers(value: object) -> tuple[list[float], list[float]] | None:
    """Return a value that is two lists of numbers of the same length, else None."""
    if not isinstance(value, list) or len(value) != 2 or not all(map(_numeric, value)):
        return None
    first, second = value
    return (first, second) if len(first) == len(second) else None


def _numeric(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_number, value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: float) -> bool:
    return isinstance(value, int) or value.is_integer()


def _unclear(outer: object) -> bool:
    """Return whether lists of numbers without names can be read in two ways: two lists without
    repeated numbers in the second, which could be scores, or lists of such pairs."""
    if not isinstance(outer, list) or not outer or _is_scored(outer) or _of_matrices(outer):
        return False
    pair = _numbers(outer)
    if pair is not None:
        second = pair[1]
        return len(set(second)) == len(second) > 1 and not {*second} <= {0, 1}
    deep = [isinstance(each, list) and bool(each) and all(map(_numeric, each)) for each in outer]
    return all(deep) and not all(map(_is_scored, outer))


def _grades(value: object) -> bool:
    """Return whether a value is a list of labels: few distinct numbers, such as 0 and 1; not
    different numbers of which most have fractions, such as scores."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, int | float) and abs(each) <= 100 for each in value)
        and len(set(value)) <= MOST_GRADES
        and not _are_scores(value)
    )


def _are_scores(numbers: Sequence[float]) -> bool:
    fractions = [each for each in numbers if not _is_whole(each)]
    return len(set(numbers)) == len(numbers) and 2 * len(fractions) > len(numbers)


def _is_pair(value: object) -> bool:
    """Return whether a value is a list of retrieved and a list or object of relevant documents."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    first, second = value
    if _grades(first) and not any(isinstance(each, str | dict) for each in first):
        return False
    return _listed(first) and (_listed(second) or isinstance(second, dict))


def _listed(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str | int | dict) for each in value)


class _Lists(NamedTuple):
    """The lists, or columns of a data frame, in one object.

    columns: key → values. meant: keys with a known name or recognised values. keys: the row keys of
    the data frame."""

    columns: dict[str, list[Any]]
    meant: set[str]
    keys: tuple[str, ...]

    @property
    def lengths(self) -> dict[str, int]:
        return {key: len(cells) for key, cells in self.columns.items() if key in self.meant}

    @property
    def even(self) -> bool:
        return len(set(self.lengths.values())) == 1

    @property
    def of_queries(self) -> bool:
        return any(map(_is_query, self.meant))

    @property
    def of_several(self) -> bool:
        """True if the lists belong to several entries, each with a query or with inner lists."""
        queries = max((len(self.columns[key]) for key in self.meant if _is_query(key)), default=0)
        return queries > 1 or any(
            isinstance(cell, list)
            for key in self.meant
            if known([key]) or _role(key)
            for cell in self.columns[key]
        )

    def any_cell(self, kind: type) -> bool:
        return any(isinstance(cell, kind) for key in self.meant for cell in self.columns[key])


def _side_by_side(outer: object) -> _Lists | None:
    """Return the parallel lists in an object, or in the only inner object with lists; None if there
    are none."""
    if not isinstance(outer, dict):
        return None
    inner = {key: value for key, value in outer.items() if isinstance(value, dict)}
    inputs = next((inner[key] for key in inner if plain(key) == "inputs"), None)
    if inputs and _lists_in(inputs):
        return _lists_in({**outer, **inputs})
    if inner and not any(isinstance(value, list) for value in outer.values()):
        candidates = [lists for value in inner.values() if (lists := _lists_in(value))]
        if len(candidates) == 1 and candidates[0].of_several:
            return candidates[0]
    return _lists_in(outer)


def _lists_in(outer: Record) -> _Lists | None:
    columns = {key: value for key, value in outer.items() if isinstance(value, list)}
    index: tuple[str, ...] = ()
    frame = [value for value in outer.values() if isinstance(value, dict)]
    if frame and len(frame) == len(outer) and not all(map(retrieved.is_graded, frame)):
        index = tuple(frame[0])
        if any(map(_role, index)):
            # Entries by query.
            return None
        if all(value.keys() == frame[0].keys() for value in frame):
            columns = {key: [value[at] for at in index] for key, value in outer.items()}
        elif all(at.isdigit() for value in frame for at in value):
            columns = {key: list(value.values()) for key, value in outer.items()}
    meant = {key for key in columns if _name(key) != key or known([key]) or _role(key)}
    meant |= {
        key
        for key, cells in columns.items()
        if cells
        and all(isinstance(cell, list) for cell in cells)
        and all(isinstance(each, int | float) for each in chain.from_iterable(cells))
    }
    lists = _Lists(columns, meant, index)
    # Lists of objects are separate tables, not columns.
    return None if len(meant) < 2 or lists.any_cell(dict) else lists


def _uneven(outer: object) -> dict[str, int] | None:
    """Return the lengths of parallel lists, with one value per query or row, if they differ; None
    if they are equal, or if the lists belong to one entry."""
    lists = _side_by_side(outer)
    return lists.lengths if lists and lists.of_several and not lists.even else None


def _parallel(outer: object) -> list[Record] | None:
    """Return the entries of parallel lists, or of a data frame's columns, in one object; None if
    there are none, or if the object is one entry."""
    lists = _side_by_side(outer)
    if lists is None or not lists.even:
        return None
    # The rows of a data frame are numbered.
    frame = lists.meant == lists.columns.keys() and all(map(str.isdigit, lists.keys or ("",)))
    if not (lists.of_queries or lists.any_cell(list) or frame):
        return None
    length = next(iter(lists.lengths.values()))
    columns = {key: cells for key, cells in lists.columns.items() if len(cells) == length}
    if not lists.of_queries and not all(query.isdigit() for query in lists.keys):
        columns["query_id"] = list(lists.keys)
    return [
        {_name(key): cells[at] for key, cells in columns.items()} | _unnamed(columns, at)
        for at in range(length)
    ]


def _ignored(outer: object, file: str) -> tuple[Finding, ...]:
    """Return a note about lists whose length differs from the number of entries."""
    lists = _side_by_side(outer) if _parallel(outer) is not None else None
    length = next(iter(lists.lengths.values())) if lists else 0
    others = {key: len(cells) for key, cells in (lists.columns if lists else {}).items()}
    others = {key: other for key, other in others.items() if other != length}
    if not others:
        return ()
    return (
        Finding(
            "note",
            "lists_ignored",
            "Lists that are ignored because the others have {length} values: {lists}.",
            {"length": length, "lists": nested.named_lengths(others)},
            "To use a list, write one value per query in it.",
            file,
            count=len(others),
        ),
    )


def _role(key: str) -> bool:
    """Return whether the key is a name for a list of documents, labels or scores."""
    return retrieved.is_role(plain(key)) or nested.names_a_list(key)


def _is_query(key: str) -> bool:
    return plain(_name(key)) in ("query", "queryid", "question", "userinput", "qid")


def _name(key: str) -> str:
    """Return the singular name for the values of a list of queries or ids, else the key."""
    name = plain(key)
    return "query_id" if name in _QUERY_IDS else "query" if name in _QUERIES else key


def _unnamed(columns: Record, at: int) -> Record:
    """Return made-up document ids and ranks if an entry contains only a list of labels; else {}."""
    others = [key for key in columns if not _is_query(key)]
    if len(others) != 1 or plain(others[0]) not in retrieved.GRADES:
        return {}
    grades = columns[others[0]][at]
    if not isinstance(grades, list):
        return {}
    lists = _by_rank(grades, f"q{at + 1}")
    return {field: lists[field] for field in ("doc_ids", "ranks")}


# A whole data set in one JSON document: datasets of LlamaIndex and input of the evaluators of
# sentence-transformers.
#
#     {"queries": {"q1": "…"}, "corpus": {"d1": "…"}, "relevant_docs": {"q1": ["d1"]}}
#
# Relevant documents may have grades, `{"q1": {"d1": 2}}`; retrieved documents may be added as lists
# or with scores.

_COLLECTED_QUERIES = frozenset(("queries", "questions", "topics"))
_COLLECTED = frozenset(("corpus", "nodes", "collection")) | retrieved.DOCUMENTS
_RELEVANT = retrieved.RELEVANT | retrieved.GRADES
_RETRIEVED = retrieved.RETRIEVED | {"run", "runs"}
_TEXTS = ("title", "document")


def is_collection(outer: object) -> bool:
    """Return whether an object contains texts by id and the relevant documents per query."""
    if not isinstance(outer, dict):
        return False
    named = {plain(key): value for key, value in outer.items() if isinstance(value, dict) and value}
    relevant = [value for name, value in named.items() if name in _RELEVANT]
    texts = [value for name, value in named.items() if name in _COLLECTED_QUERIES | _COLLECTED]
    return (
        len(relevant) == 1
        and all(isinstance(each, list | dict) for each in relevant[0].values())
        and bool(texts)
        and all(isinstance(each, str | dict) for value in texts for each in value.values())
    )


def read_collection(text: str, file: str, limits: ReadLimits) -> list[Table]:
    """Read tables of queries, documents, labels and retrieved documents, each named after the file
    and its key."""
    places = RecordPlaces(text)
    tables: list[Table] = []
    for part in places.inside(places.outermost()):
        if isinstance(part.value, dict) and part.value:
            columns, rows = _of(plain(part.name), places, part)
            refusals = Refusals(f"{file}/{part.name}")
            if plain(part.name) in _COLLECTED_QUERIES | _COLLECTED:
                _refuse_unknown_texts(places, part, file)
            if columns:
                tables.append(table_of_rows("JSON", columns, rows, refusals, limits))
    return tables


def _of(name: str, places: RecordPlaces, part: RecordPart) -> tuple[tuple[str, ...], list[Row]]:
    """Return the columns and rows of the value of a key; both empty for an unknown key."""
    if name in _COLLECTED_QUERIES:
        return ("query_id", "query"), [
            (each.line, (each.name, text_of(_row(each.value).get("document"))))
            for each in places.inside(part)
        ]
    if name in _COLLECTED:
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


def _refuse_unknown_texts(places: RecordPlaces, part: RecordPart, file: str) -> None:
    """Raise FormatError with the path of an object without a text under a known name."""
    for each in places.inside(part):
        texts = [_row(each.value).get(field) for field in _TEXTS]
        texts = [text for text in texts if text is not None]
        if isinstance(each.value, dict) and not (texts and all(isinstance(t, str) for t in texts)):
            raise FormatError(
                "The object {path} has no text under a known name.",
                remedy=REASONS["no_text"].remedy,
                file=file,
                line=each.line,
                path=f"{part.name}.{each.name}",
            )


def _row(value: Any) -> dict[str, Any]:
    row = nested.document_row(value)
    return {"document": row.get("query"), **row}


def _pairs(
    places: RecordPlaces, part: RecordPart
) -> Iterator[tuple[int, tuple[str, str | None], int, str | None]]:
    """Yield (line, (query, document), place in a list or 0, value in an object) for each pair."""
    for query in places.inside(part):
        for place, each in enumerate(places.inside(query), 1):
            if isinstance(query.value, list):
                yield each.line, (query.name, text_of(each.value)), place, None
            else:
                yield each.line, (query.name, each.name), 0, text_of(each.value)
