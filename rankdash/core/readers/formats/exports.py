"""Tables that tools export, whose columns or file names have a meaning of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.join.conflicts import SPLITS
from rankdash.core.readers.join.parsed_file import joined_texts
from rankdash.core.readers.parse.columns import MOST_GRADES, fields_of, plain
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import blank, numbers

_SHARD = re.compile(r"(?P<split>.+)-\d{5}-of-(?P<all>\d{5})")
_CONVERTED = re.compile(r"\d{4}")


def one_split(tables: Sequence[tuple[Table, Source]]) -> list[tuple[Table, Source]]:
    """The tables without those of other splits; a finding says which split was taken."""
    files = [table.file for table, _ in tables]
    left_aside, notes = other_splits(files)
    missing = _missing_shards([file for file in files if file not in left_aside])
    return [
        (
            replace(
                table,
                findings=(*table.findings, *_of(notes, table.file), *_of(missing, table.file)),
            ),
            source,
        )
        for table, source in tables
        if table.file not in left_aside
    ]


def _missing_shards(files: Sequence[str]) -> dict[str, Finding]:
    """A warning on the first file of each table of which some files are not there."""
    tables: dict[tuple[str, str, str], list[str]] = {}
    for file in files:
        path = PurePosixPath(file)
        shard = _SHARD.fullmatch(path.stem)
        if shard:
            tables.setdefault((str(path.parent), shard["split"], shard["all"]), []).append(file)
    return {
        shards[0]: Finding(
            "warning",
            "missing_shards",
            "Files of this table that are not there: {count} of {all}.",
            {"count": int(count) - len(shards), "all": int(count)},
            "Load all files whose names differ only in the number before -of-.",
            shards[0],
            count=int(count) - len(shards),
        )
        for (_, _, count), shards in tables.items()
        if len(shards) < int(count)
    }


def other_splits(files: Sequence[str]) -> tuple[frozenset[str], dict[str, Finding]]:
    """The files of splits that are not taken, and what to say of the first file of those that
    are."""
    folders: dict[str, dict[str, list[str]]] = {}
    for file in files:
        place = _place(file)
        if place:
            folders.setdefault(place[0], {}).setdefault(place[1], []).append(file)
    left_aside: set[str] = set()
    notes: dict[str, Finding] = {}
    for splits in folders.values():
        if len(splits) < 2:
            continue
        taken = min(splits, key=SPLITS.index)
        others = [split for split in splits if split != taken]
        left_aside.update(file for split in others for file in splits[split])
        first = splits[taken][0]
        notes[first] = _one_split(first, taken, others)
    return frozenset(left_aside), notes


def _place(file: str) -> tuple[str, str] | None:
    """(folder, split) of a shard; None for any other file."""
    path = PurePosixPath(file)
    if _CONVERTED.fullmatch(path.stem) and path.parent.name.lower() in SPLITS:
        return str(path.parent.parent), path.parent.name.lower()
    shard = _SHARD.fullmatch(path.stem)
    if not shard:
        return None
    if shard["split"] == "data" and path.parent.name.lower() in SPLITS:
        return str(path.parent.parent), path.parent.name.lower()
    split = shard["split"].lower()
    return (str(path.parent), split) if split in SPLITS else None


def _of(notes: dict[str, Finding], file: str) -> tuple[Finding, ...]:
    return (notes[file],) if file in notes else ()


def _one_split(file: str, taken: str, others: Sequence[str]) -> Finding:
    return Finding(
        "warning",
        "one_split",
        "The rows come in {count} splits. {taken} is used, not {others}.",
        {"count": len(others) + 1, "taken": taken, "others": ", ".join(others)},
        "To use another split, load its files without those of the other splits.",
        file,
        count=len(others),
    )


# What Quepid exports as CSV.
#
# book:             query, docid, and a column of ratings for each rater, named after the person.
# case, detailed:   Team Name, Case Name, Case ID, Query Text, Doc ID, Doc Position, Title, Rating
#                   and the fields of the document; the position is the search engine's rank.
# snapshot:         Snapshot Name, Snapshot Time, Case ID, Query Text, Doc ID, Doc Position, and
#                   fields.
# case, basic:      query, docid, rating: read by its column names.
# case, general:    scores of queries without documents: refused, with what to export instead.

BOOK, CASE, SNAPSHOT = "Quepid book", "Quepid case", "Quepid snapshot"
_OF_THE_CASE = ("teamname", "casename", "caseid", "snapshotname", "snapshottime")
_OF_THE_PAIR = ("querytext", "docid", "docposition", "title", "rating")


def quepid(tables: Sequence[tuple[Table, Source]]) -> list[tuple[Table, Source]]:
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


# Amazon's shopping queries data set (ESCI): examples and products.
#
# examples: example_id, query, query_id, product_id, product_locale, esci_label, small_version,
#           large_version, split.
# products: product_id, product_title, product_description, product_bullet_point, product_brand,
#           product_color, product_locale.
#
# A product is known by its id and its locale. The locale of the queries becomes a segment. The
# labels are words (E, S, C, I); a person may give them the gains of the task in place of grades,
# see `values.WORD_GAINS`.

NAME = "ESCI"
_DROPPED = ("exampleid", "smallversion", "largeversion", "column1", "unnamed0")
# What a product says of itself, in this order.
_TEXTS = ("productdescription", "productbulletpoint", "productbrand", "productcolor")


def esci(tables: Sequence[tuple[Table, Source]]) -> list[tuple[Table, Source]]:
    shopping = {
        table.file: names
        for table, _ in tables
        if {"productid", "productlocale"} <= (names := _names(table)).keys()
    }
    if not shopping:
        return list(tables)
    several = any(
        _in_several_locales(table.frame, shopping[table.file])
        for table, _ in tables
        if table.file in shopping
    )
    return [
        (_prepared_esci(table, shopping[table.file], several), source)
        if table.file in shopping
        else (table, source)
        for table, source in tables
    ]


def _names(table: Table) -> dict[str, str]:
    if not table.names or table.fields is not None:
        return {}
    return {plain(column): column for column in reversed(table.columns)}


def _in_several_locales(frame: pd.DataFrame, names: dict[str, str]) -> bool:
    pairs = frame[[names["productid"], names["productlocale"]]].drop_duplicates()
    return bool(pairs.iloc[:, 0].duplicated().any())


def _prepared_esci(table: Table, names: dict[str, str], several: bool) -> Table:
    frame, findings = table.frame, table.findings
    identity, locale = names["productid"], names["productlocale"]
    products = "producttitle" in names and "query" not in names
    if several:
        told = frame[identity].notna() & frame[locale].notna()
        frame = frame.assign(
            **{identity: frame[identity].where(~told, frame[identity] + "_" + frame[locale])}
        )
        findings = (*findings, _several(table.file))
    if products:
        texts = [names[name] for name in _TEXTS if name in names]
        document = joined_texts(frame[texts])
        frame = frame.drop(columns=texts)
        frame["document"] = document
        frame = frame.drop(columns=locale)
    dropped = [names[name] for name in _DROPPED if name in names]
    return replace(
        table,
        format=f"{NAME}, {table.format}",
        cells=frame.drop(columns=dropped),
        findings=findings,
    )


def _several(file: str) -> Finding:
    return Finding(
        "note",
        "ids_with_locale",
        "Products with one id are other products in other locales, so the locale is added to the "
        "id, as in B000MOO21W_us.",
        file=file,
    )
