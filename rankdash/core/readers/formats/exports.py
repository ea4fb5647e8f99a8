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
from rankdash.core.readers.parse.limits import counted
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import Texts, blank, numbers

Tables = Sequence[tuple[Table, Source]]

_SHARD = re.compile(r"(?P<split>.+)-\d{5}-of-(?P<all>\d{5})")
_CONVERTED = re.compile(r"\d{4}")


def one_split(tables: Tables) -> list[tuple[Table, Source]]:
    """The tables without those of other splits; a finding says which split was taken."""
    left_aside, notes = other_splits([table.file for table, _ in tables])
    used = [(table, source) for table, source in tables if table.file not in left_aside]
    missing = _missing_shards([table.file for table, _ in used])
    return [(_with(table, notes.get(table.file), missing.get(table.file)), s) for table, s in used]


def _with(table: Table, *findings: Finding | None) -> Table:
    return replace(table, findings=(*table.findings, *filter(None, findings)))


def _missing_shards(files: Sequence[str]) -> dict[str, Finding]:
    """A warning on the first file of each table of which some files are not there."""
    tables: dict[tuple[str, str, str], list[str]] = {}
    for file in files:
        path = PurePosixPath(file)
        shard = _SHARD.fullmatch(path.stem)
        if shard:
            tables.setdefault((str(path.parent), shard["split"], shard["all"]), []).append(file)
    return {
        shards[0]: counted(
            "warning",
            "missing_shards",
            "Files of this table that are not there: {count} of {all}.",
            int(count) - len(shards),
            "Load all files whose names differ only in the number before -of-.",
            shards[0],
            all=int(count),
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
        taken = min(splits, key=SPLITS.index)
        others = [split for split in splits if split != taken]
        if not others:
            continue
        left_aside.update(file for split in others for file in splits[split])
        first = splits[taken][0]
        notes[first] = Finding(
            "warning",
            "one_split",
            "The rows come in {count} splits. {taken} is used, not {others}.",
            {"count": len(splits), "taken": taken, "others": ", ".join(others)},
            "To use another split, load its files without those of the other splits.",
            first,
            count=len(others),
        )
    return frozenset(left_aside), notes


def _place(file: str) -> tuple[str, str] | None:
    """(folder, split) of a shard; None for any other file."""
    path = PurePosixPath(file)
    shard = _SHARD.fullmatch(path.stem)
    split = shard["split"].lower() if shard else ""
    if _CONVERTED.fullmatch(path.stem) or split == "data":
        path, split = path.parent, path.parent.name.lower()
    return (str(path.parent), split) if split in SPLITS else None


# What Quepid exports as CSV.
#
# book:             query, docid, and a column of ratings for each rater, named after the person.
# case, detailed:   Team Name, Case Name, Case ID, Query Text, Doc ID, Doc Position, Title, Rating
#                   and the fields of the document; the position is the search engine's rank.
# snapshot:         Snapshot Name, Snapshot Time, Case ID, Query Text, Doc ID, Doc Position, and
#                   fields.
# case, basic:      query, docid, rating: read by its column names.
# case, general:    scores of queries without documents: refused, with what to export instead.

_OF_THE_CASE = ("teamname", "casename", "caseid", "snapshotname", "snapshottime")
_OF_THE_PAIR = ("querytext", "docid", "docposition", "title", "rating")


def quepid(tables: Tables) -> list[tuple[Table, Source]]:
    return [(_quepid(table), source) for table, source in tables]


def _names(table: Table) -> dict[str, str]:
    """Plain name → column, of a table that names its columns and says nothing else of them."""
    if not table.names or table.fields is not None:
        return {}
    return {plain(column): column for column in reversed(table.columns)}


def _quepid(table: Table) -> Table:
    names = _names(table)
    if "querytext" in names and {"casename", "snapshotname"} & names.keys():
        return _case(table, names)
    if list(names)[::-1][:2] != ["query", "docid"] or not _are_raters(table.frame):
        return table
    raters = tuple(table.frame.columns[2:])
    note = Finding(
        "note",
        "read_as_raters",
        "The columns are read as the ratings of one person each, as in a book of Quepid: "
        "{columns}.",
        {"columns": ", ".join(raters[:20])},
        "If they are something else, rename the column that holds the labels to label, and load "
        "the file again.",
        table.file,
        count=len(raters),
    )
    return replace(_with(table, note), format="Quepid book", raters=raters)


def _are_raters(frame: pd.DataFrame) -> bool:
    """Whether all columns after the second hold few grades or nothing, under names that say
    nothing."""
    others = list(frame.columns[2:])
    if not others or set(fields_of(frame)) != {"query", "doc_id"}:
        return False
    return all(_grades(frame[column].to_numpy(dtype=object)) for column in others)


def _grades(cells: Texts) -> bool:
    """Whether a column holds few whole numbers; a word among more of them is a bad cell, and
    refused with its line."""
    parsed = numbers(cells[~blank(cells)])
    values = parsed[~np.isnan(parsed)]
    whole = np.array_equal(values, np.floor(values)) and 2 * len(values) >= len(parsed)
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
                "The file holds {count} snapshots. {taken} is used, the others are not.",
                {"count": count, "taken": first},
                "To compare snapshots, export each to a file of its own.",
                table.file,
                count=count - 1,
            )
            table, frame, lines = (
                _with(table, note),
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

_DROPPED = ("exampleid", "smallversion", "largeversion", "column1", "unnamed0")
# What a product says of itself, in this order.
_TEXTS = ("productdescription", "productbulletpoint", "productbrand", "productcolor")


def esci(tables: Tables) -> list[tuple[Table, Source]]:
    shopping = {
        table.file: names
        for table, _ in tables
        if {"productid", "productlocale"} <= (names := _names(table)).keys()
    }
    several = False
    for table, _ in tables:
        if columns := shopping.get(table.file):
            keys = table.frame[[columns["productid"], columns["productlocale"]]].drop_duplicates()
            several |= bool(keys.iloc[:, 0].duplicated().any())
    return [
        (_products(table, columns, several), source)
        if (columns := shopping.get(table.file))
        else (table, source)
        for table, source in tables
    ]


def _products(table: Table, names: dict[str, str], several: bool) -> Table:
    frame = table.frame
    identity, locale = names["productid"], names["productlocale"]
    if several:
        both = frame[identity].notna() & frame[locale].notna()
        ids = frame[identity].where(~both, frame[identity] + "_" + frame[locale])
        frame = frame.assign(**{identity: ids})
        note = Finding(
            "note",
            "ids_with_locale",
            "Products with one id are other products in other locales, so the locale is added to "
            "the id, as in B000MOO21W_us.",
            file=table.file,
        )
        table = _with(table, note)
    if "producttitle" in names and "query" not in names:
        texts = [names[name] for name in _TEXTS if name in names]
        document = joined_texts(frame[texts])
        frame = frame.drop(columns=[*texts, locale]).assign(document=document)
    dropped = [names[name] for name in _DROPPED if name in names]
    return replace(table, format=f"ESCI, {table.format}", cells=frame.drop(columns=dropped))
