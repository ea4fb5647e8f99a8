"""Exports of Quepid: books, cases, snapshots and ratings, in CSV and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.formats.entries import (
    Converted,
    Listed,
    Query,
    Record,
    entries_of,
    finite,
    listed,
    normalised,
    noted,
    repeated_documents,
    text,
)
from rankdash.core.readers.join.parsed_file import joined_texts
from rankdash.core.readers.parse.columns import MOST_GRADES, fields_of, recognise
from rankdash.core.readers.parse.limits import counted
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import Texts, blank, numbers

# CSV exports of Quepid.
#
# book:             query, docid, and a column of ratings for each annotator, with their name.
# case, detailed:   Team Name, Case Name, Case ID, Query Text, Doc ID, Doc Position, Title, Rating
#                   and the fields of the document; the position is the search engine's rank.
# snapshot:         Snapshot Name, Snapshot Time, Case ID, Query Text, Doc ID, Doc Position, and
#                   fields.
# case, basic:      query, docid, rating; only the query for a query without ratings.
# case, general:    scores of queries without documents: refused, with a remedy.

_OF_THE_CASE = ("teamname", "casename", "caseid", "snapshotname", "snapshottime")
_BASIC = ["query", "docid", "rating"]
_OF_THE_PAIR = ("querytext", "docid", "docposition", "title", "rating")


def prepared(tables: Sequence[tuple[Table, Source]]) -> list[tuple[Table, Source]]:
    return [(_quepid(table), source) for table, source in tables]


def _quepid(table: Table) -> Table:
    names = normalised(table)
    if "querytext" in names and {"casename", "snapshotname"} & names.keys():
        return _case(table, names)
    if list(names)[::-1] == _BASIC:
        return _basic(table)
    if list(names)[::-1][:2] != ["query", "docid"] or not _are_raters(table.frame):
        return table
    raters = tuple(table.frame.columns[2:])
    note = Finding(
        "note",
        "read_as_raters",
        "The columns are read as ratings, one annotator per column, as in a Quepid book: "
        "{columns}.",
        {"columns": ", ".join(raters[:20])},
        "If they are not ratings, rename the column that contains the labels to label, and load "
        "the file again.",
        table.file,
        count=len(raters),
    )
    return replace(noted(table, note), format="Quepid book", raters=raters)


def _basic(table: Table) -> Table:
    """Exclude the rows without a rating: queries without any, and documents of a snapshot."""
    rows = ~blank(table.frame.iloc[:, 2].to_numpy(dtype=object))
    if rows.all() or not rows.any():
        return table
    template = "Rows without a rating, which were not read: {count}."
    note = counted("note", "unrated_rows", template, int((~rows).sum()), file=table.file)
    frame = table.frame[rows].reset_index(drop=True)
    return replace(noted(table, note), cells=frame, lines=table.lines[rows])


def _are_raters(frame: pd.DataFrame) -> bool:
    """Return whether all columns after the second are annotators': with unknown names, and few
    distinct grades or empty cells."""
    others = list(frame.columns[2:])
    if not others or set(fields_of(frame)) != {"query", "doc_id"}:
        return False
    return all(_grades(frame[column].to_numpy(dtype=object)) for column in others)


def _grades(cells: Texts) -> bool:
    """Return whether a column contains few distinct whole numbers. A minority of other cells is
    allowed; they are refused later, with their lines."""
    parsed = numbers(cells[~blank(cells)])
    values = parsed[~np.isnan(parsed)]
    whole = np.array_equal(values, np.floor(values)) and 2 * len(values) >= len(parsed)
    return whole and len(np.unique(values)) <= MOST_GRADES and bool((np.abs(values) <= 100).all())


def _case(table: Table, names: dict[str, str]) -> Table:
    if "docid" not in names and names.keys() & set(_OF_THE_PAIR[2:]):
        raise FormatError(
            "This export of Quepid has no column Doc ID.",
            remedy="Export the case again as Detail, without changes to its columns.",
            file=table.file,
        )
    if "docid" not in names:
        raise FormatError(
            "This export of Quepid contains scores of queries, but no documents or ratings.",
            remedy="Export the case again as Detail, or its ratings as Basic.",
            file=table.file,
        )
    kind, frame, lines = "Quepid case", table.frame, table.lines
    if "snapshotname" in names:
        kind = "Quepid snapshot"
        snapshots = frame[names["snapshotname"]].fillna("")
        first = snapshots.iloc[0] if len(frame) else ""
        used = (snapshots == first).to_numpy()
        if not used.all():
            count = int(snapshots.nunique())
            note = Finding(
                "warning",
                "one_snapshot",
                "The file contains {count} snapshots. rankdash uses {taken} and ignores others.",
                {"count": count, "taken": first},
                "To compare snapshots, export each to a separate file.",
                table.file,
                count=count - 1,
            )
            table, frame, lines = (
                noted(table, note),
                frame[used].reset_index(drop=True),
                lines[used],
            )
    fields = {"query": names["querytext"], "doc_id": names["docid"]}
    for field, name in (("rank", "docposition"), ("title", "title"), ("label", "rating")):
        if name in names:
            fields[field] = names[name]
    others = [name for name in names if name not in (*_OF_THE_CASE, *_OF_THE_PAIR)]
    columns = [names[name] for name in reversed(others)]
    document = joined_texts(frame[columns])
    frame = frame.drop(columns=[*columns, *(names[n] for n in _OF_THE_CASE if n in names)])
    if columns:
        frame["document"] = document
        fields["document"] = "document"
    return replace(table, format=kind, cells=frame, lines=lines, fields=fields)


# Quepid: ratings, cases, snapshots and books in JSON.
#
# ratings:  {"queries": [{"query": …, "ratings": {"doc": 3}}]}
# case:     {"queries": [{"query_text": …, "ratings": [{"doc_id": …, "rating": 3}]}]}
# snapshot: {"docs": {"7": [{"id": …, "fields": …}]}, "queries": [{"query_id": 7, …}]}; `exports`
#           joins its two parts.
# book:     {"query_doc_pairs": [{"query_text": …, "doc_id": …, "judgements": [{"rating": 3}]}]}

_QUERY = ("query_text", "query")
_DOCUMENT = ("doc_id", "docId", "id")


def is_rated(record: Record) -> bool:
    ratings = record.get("ratings")
    if not isinstance(record.get("query_text", record.get("query")), str):
        return False
    if not isinstance(ratings, dict | list):
        return False
    if recognise(list(record)).keys() & {"doc_id", "document", "label"}:
        # A row of a document, with ratings of something else.
        return False
    others = record.keys() & {"docs", "documents", "passages"}
    if others and "query_text" not in record:
        return False
    if isinstance(ratings, list):
        return all(isinstance(each, dict) and "rating" in each for each in ratings)
    return True


def rated(records: list[Record], lines: list[int], file: str) -> Converted:
    queries: list[Query] = []
    unrated = 0
    for record, line in zip(records, lines, strict=True):
        words = next((record[name] for name in _QUERY if isinstance(record.get(name), str)), "")
        query = Query({"query": words.strip() or None}, line, labels={})
        for name, key in (("query_id", "query_id"), ("information need", "information_need")):
            if (value := text(record.get(key))) is not None:
                query.shared[name] = value
        query.labels, refused = _ratings(record.get("ratings"))
        query.refused = refused if words.strip() else "no_query"
        results = [each for each in listed(record.get("docs")) if isinstance(each, dict)]
        found = [document_of(each) for each in results if not each.get("rated_only")]
        if found:
            query.rankings[""] = Listed(found)
        elif not query.labels and not query.refused:
            unrated += 1
            continue
        queries.append(query)
    if not queries:
        raise FormatError(
            "This export of Quepid contains queries, but no ratings.",
            remedy="Rate documents in Quepid, and export the case again.",
            file=file,
            line=lines[0],
        )
    findings = repeated_documents(queries, file)
    findings += [unrated_finding(unrated, file)] if unrated else []
    return Converted(*entries_of(queries, file), "Quepid ratings", findings)


def unrated_finding(count: int, file: str) -> Finding:
    """Return the note about queries without ratings in an export of Quepid."""
    template = "Queries without ratings, which were not read: {count}."
    return counted("note", "unrated_queries", template, count, file=file)


def _ratings(value: object) -> tuple[dict[str, Any], str]:
    """Return document → rating, and the code of the reason why they cannot be read, or ""."""
    if isinstance(value, list):
        pairs = [
            (next((text(each[name]) for name in _DOCUMENT if name in each), None), each["rating"])
            for each in value
            if isinstance(each, dict) and "rating" in each
        ]
        if len(pairs) < len(value):
            return {}, "bad_ids"
    else:
        pairs = (
            [(text(key), each) for key, each in value.items()] if isinstance(value, dict) else []
        )
    if any(doc is None for doc, _ in pairs):
        return {}, "bad_ids"
    if not all(rating is None or finite(_number(rating)) for _, rating in pairs):
        return {}, "bad_label"
    return {str(doc): rating for doc, rating in pairs if rating is not None}, ""


def _number(value: object) -> object:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return None


def document_of(result: Mapping[str, Any]) -> Record:
    """Return the id, title and text of a result with the fields of its document, which may be an
    object or the JSON of one. Only fields with a text are read."""
    fields = result.get("fields", result.get("document_fields"))
    if isinstance(fields, str):
        try:
            fields = json.loads(fields)
        except (ValueError, RecursionError):
            fields = None
    texts = fields if isinstance(fields, dict) else {}
    identity = next((text(result[name]) for name in _DOCUMENT if name in result), None)
    document: Record = {"doc_id": identity}
    if isinstance(texts.get("title"), str):
        document["title"] = texts["title"]
    others = [
        each
        for name, each in texts.items()
        if isinstance(each, str) and name != "title" and each.strip() and each != identity
    ]
    return {**document, "document": "\n".join(others)} if others else document


def is_book(record: Record) -> bool:
    return isinstance(record.get("judgements"), list) and {"query_text", "doc_id"} <= record.keys()


def book(records: list[Record], lines: list[int], file: str) -> Converted:
    rows: list[Record] = []
    used: list[int] = []
    raters: dict[str, None] = {}
    unrated = 0
    for record, line in zip(records, lines, strict=True):
        row: Record = {"query": text(record.get("query_text")), **document_of(record)}
        rated = False
        for judgement in listed(record.get("judgements")):
            values = judgement if isinstance(judgement, dict) else {}
            rater = text(values.get("user_email")) or "anonymous"
            rating = values.get("rating")
            if rating is not None:
                raters[f"rating of {rater}"] = None
                row[f"rating of {rater}"] = text(rating) or "?"
                rated = True
        unrated += not rated
        if rated:
            rows.append(row)
            used.append(line)
    if not rows:
        raise FormatError(
            "This book of Quepid contains no ratings.",
            remedy="Rate documents in Quepid, and export the book again.",
            file=file,
            line=lines[0],
        )
    findings = []
    if unrated:
        template = "Pairs of the book without a rating, which were not read: {count}."
        findings.append(counted("note", "unrated_pairs", template, unrated, file=file))
    return Converted(rows, used, "Quepid book", findings, tuple(raters))
