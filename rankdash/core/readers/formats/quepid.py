"""What Quepid exports as CSV.

book:             query, docid, and a column of ratings for each rater, named after the person.
case, detailed:   Team Name, Case Name, Case ID, Query Text, Doc ID, Doc Position, Title, Rating and
                  the fields of the document; the position is the search engine's rank.
snapshot:         Snapshot Name, Snapshot Time, Case ID, Query Text, Doc ID, Doc Position, fields.
case, basic:      query, docid, rating: read by its column names.
case, general:    scores of queries without documents: refused, with what to export instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.join.parsed_file import joined_texts
from rankdash.core.readers.parse.columns import MOST_GRADES, fields_of, plain
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import blank, numbers

BOOK, CASE, SNAPSHOT = "Quepid book", "Quepid case", "Quepid snapshot"
_OF_THE_CASE = ("teamname", "casename", "caseid", "snapshotname", "snapshottime")
_OF_THE_PAIR = ("querytext", "docid", "docposition", "title", "rating")


def prepare(tables: Sequence[tuple[Table, Source]]) -> list[tuple[Table, Source]]:
    return [(_prepared(table), source) for table, source in tables]


def _prepared(table: Table) -> Table:
    if not table.names or table.fields is not None:
        return table
    names = {plain(column): column for column in reversed(table.columns)}
    if "querytext" in names and {"casename", "snapshotname"} & names.keys():
        return _case(table, names)
    if list(names)[::-1][:2] == ["query", "docid"] and _are_raters(table.frame):
        raters = tuple(table.frame.columns[2:])
        findings = (*table.findings, _raters(table.file, raters))
        return replace(table, format=BOOK, raters=raters, findings=findings)
    return table


def _raters(file: str, raters: tuple[str, ...]) -> Finding:
    return Finding(
        "note",
        "read_as_raters",
        "The columns are read as the ratings of one person each, as in a book of Quepid: "
        "{columns}.",
        {"columns": ", ".join(raters[:20])},
        "If they are something else, rename the column that holds the labels to label, and load "
        "the file again.",
        file,
        count=len(raters),
    )


def _are_raters(frame: pd.DataFrame) -> bool:
    """Whether all columns after the second hold few grades or nothing, under names that say
    nothing."""
    others = list(frame.columns[2:])
    if not others or set(fields_of(frame)) != {"query", "doc_id"}:
        return False
    return all(_grades(frame[column].to_numpy(dtype=object)) for column in others)


def _grades(cells: np.ndarray[tuple[int], np.dtype[np.object_]]) -> bool:
    """Whether a column holds few whole numbers; a word among more of them is a bad cell, and
    refused with its line."""
    told = numbers(cells[~blank(cells)])
    values = told[~np.isnan(told)]
    whole = np.array_equal(values, np.floor(values)) and 2 * len(values) >= len(told)
    return whole and len(np.unique(values)) <= MOST_GRADES and bool((np.abs(values) <= 100).all())


def _case(table: Table, names: dict[str, str]) -> Table:
    if "docid" not in names and names.keys() & set(_OF_THE_PAIR[2:]):
        raise FormatError(
            "This export of Quepid has no column Doc ID.",
            remedy="Export the case again as Detail, and leave its columns as they are.",
            file=table.file,
        )
    if "docid" not in names:
        raise FormatError(
            "This export of Quepid holds scores of queries, without documents and ratings.",
            remedy="Export the case again as Detail, or its ratings as Basic.",
            file=table.file,
        )
    frame, lines, findings = table.frame, table.lines, list(table.findings)
    if "snapshotname" in names:
        snapshots = frame[names["snapshotname"]].fillna("")
        first = snapshots.iloc[0] if len(frame) else ""
        kept = (snapshots == first).to_numpy()
        if not kept.all():
            findings.append(_several_snapshots(table, first, int(snapshots.nunique())))
            frame, lines = frame[kept].reset_index(drop=True), lines[kept]
    fields = {"query": names["querytext"], "doc_id": names["docid"]}
    for field, name in (("rank", "docposition"), ("title", "title"), ("label", "rating")):
        if name in names:
            fields[field] = names[name]
    others = [name for name in names if name not in (*_OF_THE_CASE, *_OF_THE_PAIR)]
    columns = [names[name] for name in reversed(others)]
    told = joined_texts(frame[columns])
    frame = frame.drop(columns=[*columns, *(names[n] for n in _OF_THE_CASE if n in names)])
    if columns:
        frame["document"] = told
        fields["document"] = "document"
    kind = SNAPSHOT if "snapshotname" in names else CASE
    return replace(
        table, format=kind, cells=frame, lines=lines, fields=fields, findings=tuple(findings)
    )


def _several_snapshots(table: Table, first: str, count: int) -> Finding:
    return Finding(
        "warning",
        "one_snapshot",
        "The file holds {count} snapshots. {taken} is used, the others are not.",
        {"count": count, "taken": first},
        "To compare snapshots, export each to a file of its own.",
        table.file,
        count=count - 1,
    )
