"""Entries of rankings that tools write, in the form that `nested` reads: one for each query, with
its documents, their ranks or scores in each ranking, and their labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.formats.nested import RefusedEntry
from rankdash.core.readers.parse.columns import SYSTEM, plain
from rankdash.core.readers.parse.limits import counted
from rankdash.core.readers.parse.table import Outcome, Table

Record = dict[str, Any]
# The most systems of a file: every query has a cell for each.
_MOST_SYSTEMS = 100


class Converted(NamedTuple):
    """Entries in the form of `nested`, or rows. name: of the format. raters: columns with the
    labels of one annotator each. queries: the query id of each entry of the file, "" for none, if
    other files of the tool have their queries by row."""

    records: list[Record]
    lines: list[int]
    name: str
    findings: list[Finding]
    raters: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    queries: tuple[str, ...] = ()


@dataclass
class Listed:
    """One ranking of a query. documents: their fields, in order. scores: one for each, or None."""

    documents: list[Record]
    scores: Sequence[float | None] | None = None

    @property
    def keys(self) -> list[str]:
        return [str(each.get("doc_id") or each.get("document")) for each in self.documents]

    def distinct(self) -> Listed:
        """Return the ranking with each document at its first place only."""
        places = dict(zip(reversed(self.keys), reversed(range(len(self.documents))), strict=True))
        first = sorted(places.values())
        scores = self.scores and [self.scores[at] for at in first]
        return Listed([self.documents[at] for at in first], scores)


@dataclass
class Query:
    """One entry. shared: the query's id, text and attributes. rankings: system → documents, "" for
    the first stage. labels: document → label; None if the format has none. outcomes: system →
    its latency in milliseconds (NaN if unknown), and the reason why it failed, or "". lengths: of
    the lists, if they differ and the entry is therefore refused."""

    shared: Record
    line: int
    rankings: dict[str, Listed] = field(default_factory=dict)
    labels: Mapping[str, Any] | None = None
    refused: str = ""
    outcomes: dict[str, tuple[float, str]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)


def outcomes_of(queries: Iterable[Query]) -> tuple[Outcome, ...]:
    """Return the outcomes of the queries, which are identified by their texts."""
    return tuple(
        Outcome(str(query.shared["query"]), system, latency, reason)
        for query in queries
        for system, (latency, reason) in query.outcomes.items()
    )


def entries_of(queries: Sequence[Query], file: str) -> tuple[list[Record], list[int]]:
    """Return an entry with lists for each query, and its line. The order of a ranking counts: its
    scores are used only if they descend for every query.

    Raises FormatError for too many rankings.
    """
    queries = [
        replace(each, rankings={name: one.distinct() for name, one in each.rankings.items()})
        for each in queries
    ]
    names = dict.fromkeys(name for query in queries for name in query.rankings)
    if len(names) > _MOST_SYSTEMS:
        raise FormatError(
            "The rankings of the file have {count:,} names, and at most {most:,} are allowed, such "
            "as {example}.",
            remedy="Use the same name for all queries of a retriever or reranker.",
            file=file,
            count=len(names),
            most=_MOST_SYSTEMS,
            example=", ".join(list(names)[:3]),
        )
    scored = {name: all(map(_descends, _rankings(queries, name))) for name in names}
    labelled = any(query.labels is not None for query in queries)
    records = [_entry(query, names, scored, labelled=labelled) for query in queries]
    return records, [query.line for query in queries]


def repeated_documents(queries: Iterable[Query], file: str) -> list[Finding]:
    """Return a warning about documents that a ranking contains again."""
    rankings = [each for query in queries for each in query.rankings.values()]
    count = sum(len(each.keys) - len({*each.keys}) for each in rankings)
    template = "Documents that a ranking contains again, for which the first place counts: {count}."
    remedy = "If they are parts of one document, use an id for each part."
    found = counted("warning", "repeated_documents", template, count, remedy, file)
    return [found] if count else []


def _rankings(queries: Iterable[Query], name: str) -> list[Listed]:
    return [query.rankings[name] for query in queries if name in query.rankings]


def _descends(listed: Listed) -> bool:
    scores = [score for score in listed.scores or () if score is not None]
    falls = all(first > second for first, second in itertools.pairwise(scores))
    return falls and len(scores) == len(listed.documents)


def _entry(
    query: Query, names: Iterable[str], scored: Mapping[str, bool], *, labelled: bool
) -> Record:
    documents: dict[str, Record] = {}
    for listed in query.rankings.values():
        for key, document in zip(listed.keys, listed.documents, strict=True):
            documents[key] = {**document, **documents.get(key, {})}
    for key in query.labels or ():
        documents.setdefault(key, {"doc_id": key})
    if query.refused or not documents:
        return RefusedEntry(query.shared, query.refused or "no_documents", query.lengths)
    record: Record = {**query.shared, "docs": list(documents.values())}
    for name in names:
        listed = query.rankings.get(name, Listed([]))
        places = range(1, len(listed.documents) + 1)
        values = listed.scores if scored[name] and listed.scores else places
        at = dict(zip(reversed(listed.keys), reversed(list(values)), strict=True))
        cells = [at.get(key) for key in documents]
        if name == "":
            record["initial_scores" if scored[name] else "ranks"] = cells
        elif scored[name]:
            record[SYSTEM + name] = cells
        else:
            record[SYSTEM + name] = [None if cell is None else -cell for cell in cells]
    if labelled:
        record["labels"] = [(query.labels or {}).get(key) for key in documents]
    return record


def text(value: object) -> str | None:
    """Return a text or a number as a text without blanks around it; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip() or None


def listed(value: object) -> list[Any]:
    """Return a list, or an empty list for any other value."""
    return value if isinstance(value, list) else []


def finite(value: object) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def ids_of(value: object) -> list[str] | None:
    """Return the ids in a list of texts or numbers, or None."""
    ids = [text(each) for each in value] if isinstance(value, list) else [None]
    return None if None in ids else [each for each in ids if each is not None]


def latest(queries: Iterable[tuple[Query, str]]) -> tuple[list[Query], int]:
    """Return the latest of the queries with the same text, in the order of their first occurrence,
    and the number of the others. The second value of each pair is its time."""
    last: dict[str, tuple[Query, str]] = {}
    count = 0
    for query, time in queries:
        count += 1
        key = str(query.shared.get("query"))
        if key not in last or time >= last[key][1]:
            last[key] = (query, time)
    return [query for query, _ in last.values()], count - len(last)


def normalised(table: Table) -> dict[str, str]:
    """Return normalised name → column; {} for a table without column names or with fixed fields."""
    if not table.names or table.fields is not None:
        return {}
    return {plain(column): column for column in reversed(table.columns)}


def noted(table: Table, *findings: Finding | None) -> Table:
    """Return the table with further findings."""
    return replace(table, findings=(*table.findings, *filter(None, findings)))
