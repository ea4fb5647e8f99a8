"""Exports of tools: tables recognised by their columns or file names, and JSON documents recognised
by their keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.formats.json_records import RecordPart, RecordPlaces, text_of
from rankdash.core.readers.join.conflicts import SPLITS
from rankdash.core.readers.join.parsed_file import joined_texts
from rankdash.core.readers.parse.columns import MOST_GRADES, fields_of, known, plain
from rankdash.core.readers.parse.limits import ReadLimits, Refusals, counted
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Row, Table, table_of_rows
from rankdash.core.readers.parse.values import Texts, blank, numbers

Tables = Sequence[tuple[Table, Source]]

_SHARD = re.compile(r"(?P<split>.+)-\d{5}-of-(?P<all>\d{5})")
_CONVERTED = re.compile(r"\d{4}")


def one_split(tables: Tables) -> list[tuple[Table, Source]]:
    """Return the tables of one split only; a finding reports the split."""
    excluded, notes = other_splits([table.file for table, _ in tables])
    used = [(table, source) for table, source in tables if table.file not in excluded]
    missing = _missing_shards([table.file for table, _ in used])
    return [(_with(table, notes.get(table.file), missing.get(table.file)), s) for table, s in used]


def _with(table: Table, *findings: Finding | None) -> Table:
    return replace(table, findings=(*table.findings, *filter(None, findings)))


def _missing_shards(files: Sequence[str]) -> dict[str, Finding]:
    """Return a warning for the first file of each table with missing files."""
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
            "Missing files of this table: {count} of {all}.",
            int(count) - len(shards),
            "Load all files whose names differ only in the number before -of-.",
            shards[0],
            all=int(count),
        )
        for (_, _, count), shards in tables.items()
        if len(shards) < int(count)
    }


def other_splits(files: Sequence[str]) -> tuple[frozenset[str], dict[str, Finding]]:
    """Return the files of the unused splits, and first file → finding for each used split."""
    folders: dict[str, dict[str, list[str]]] = {}
    for file in files:
        place = _place(file)
        if place:
            folders.setdefault(place[0], {}).setdefault(place[1], []).append(file)
    excluded: set[str] = set()
    notes: dict[str, Finding] = {}
    for splits in folders.values():
        used = min(splits, key=SPLITS.index)
        others = [split for split in splits if split != used]
        if not others:
            continue
        excluded.update(file for split in others for file in splits[split])
        first = splits[used][0]
        notes[first] = Finding(
            "warning",
            "one_split",
            "The rows are in {count} splits. rankdash uses {taken} and ignores {others}.",
            {"count": len(splits), "taken": used, "others": ", ".join(others)},
            "To use another split, load only the files of that split.",
            first,
            count=len(others),
        )
    return frozenset(excluded), notes


def _place(file: str) -> tuple[str, str] | None:
    """Return (folder, split) of a shard; None for any other file."""
    path = PurePosixPath(file)
    shard = _SHARD.fullmatch(path.stem)
    split = shard["split"].lower() if shard else ""
    if _CONVERTED.fullmatch(path.stem) or split == "data":
        path, split = path.parent, path.parent.name.lower()
    return (str(path.parent), split) if split in SPLITS else None


# CSV exports of Quepid.
#
# book:             query, docid, and a column of ratings for each annotator, with their name.
# case, detailed:   Team Name, Case Name, Case ID, Query Text, Doc ID, Doc Position, Title, Rating
#                   and the fields of the document; the position is the search engine's rank.
# snapshot:         Snapshot Name, Snapshot Time, Case ID, Query Text, Doc ID, Doc Position, and
#                   fields.
# case, basic:      query, docid, rating: read by its column names.
# case, general:    scores of queries without documents: refused, with a remedy.

_OF_THE_CASE = ("teamname", "casename", "caseid", "snapshotname", "snapshottime")
_OF_THE_PAIR = ("querytext", "docid", "docposition", "title", "rating")


def quepid(tables: Tables) -> list[tuple[Table, Source]]:
    return [(_quepid(table), source) for table, source in tables]


def _names(table: Table) -> dict[str, str]:
    """Return normalised name → column; {} for a table without column names or with fixed fields."""
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
        "The columns are read as ratings, one annotator per column, as in a Quepid book: "
        "{columns}.",
        {"columns": ", ".join(raters[:20])},
        "If they are not ratings, rename the column that contains the labels to label, and load "
        "the file again.",
        table.file,
        count=len(raters),
    )
    return replace(_with(table, note), format="Quepid book", raters=raters)


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
# A product is identified by its id and its locale. The locale of the queries becomes a segment. The
# labels are words (E, S, C, I); users may map them to the gains of the task instead of grades, see
# `values.WORD_GAINS`.

_DROPPED = ("exampleid", "smallversion", "largeversion", "column1", "unnamed0")
# The columns of a product's text, in this order.
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
            "The same id means different products in different locales, so the locale is added to "
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


# JSON documents of tools, each recognised by the keys that it uses.

# Judgment lists of OpenSearch's search relevance workbench.
#
#     {"name": …, "judgmentRatings": [{"query": …, "ratings": [{"docId": …, "rating": "3.000"}]}]}
#
# as uploaded, as returned by the plugin (`_source` of a hit), or only the list. The query has no
# id, only its text.

_RATINGS = "judgmentRatings"
# The keys around a judgment in the plugin's responses.
_AROUND = ("hits", "_source")
_OPENSEARCH = {"query": "query", "doc_id": "docId", "label": "rating"}


def is_opensearch(outer: object) -> bool:
    if isinstance(outer, list):
        first = outer[0] if outer else None
        ratings = first.get("ratings") if isinstance(first, dict) and "query" in first else None
        return (
            isinstance(ratings, list)
            and bool(ratings)
            and all(isinstance(rating, dict) and "docId" in rating for rating in ratings)
        )
    return _holds_ratings(outer)


def _holds_ratings(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_holds_ratings, value))
    return isinstance(value, dict) and (
        isinstance(value.get(_RATINGS), list)
        or any(_holds_ratings(value[name]) for name in _AROUND if name in value)
    )


def read_opensearch(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per rating. Entries without ratings, and ratings without a document or a value,
    are refused with their lines."""
    refusals = Refusals(file)
    rows = _ratings(RecordPlaces(text), refusals)
    columns = tuple(_OPENSEARCH.values())
    return table_of_rows("OpenSearch judgments", columns, rows, refusals, limits, _OPENSEARCH)


def _ratings(places: RecordPlaces, refusals: Refusals) -> Iterator[Row]:
    for entry in _entries(places, places.outermost()):
        value = entry.value if isinstance(entry.value, dict) else {}
        query = text_of(value.get("query"))
        if not isinstance(value.get("ratings"), list) or not value["ratings"]:
            refusals.add("no_documents", [entry.line], [str(query)])
            continue
        for rating in places.inside(places.member(entry, "ratings")):
            pair = rating.value if isinstance(rating.value, dict) else {}
            yield rating.line, (query, text_of(pair.get("docId")), text_of(pair.get("rating")))


def _entries(places: RecordPlaces, part: RecordPart) -> Iterator[RecordPart]:
    """Yield the entries (a query and its ratings) of every judgment in the document."""
    if part.name == _RATINGS or (isinstance(part.value, list) and not _holds_ratings(part.value)):
        yield from places.inside(part)
        return
    for inner in places.inside(part):
        if inner.name == _RATINGS or inner.name in _AROUND or not inner.name:
            yield from _entries(places, inner)


# Ratings files of the Rated Ranking Evaluator (RRE), also as Quepid writes them.
#
#     {"id_field": …, "topics": [{"description": …, "query_groups": [
#         {"name": …, "queries": [{"placeholders": {"$query": …}}],
#          "relevant_documents": {"doc": {"gain": 3}}}]}]}
#
# Query groups may occur without topics, and queries without groups. Documents may also be listed by
# gain (`{"3": ["doc", …]}`). All queries of a group have its judgments; the topic and the group
# become segments.

_DOCUMENTS = "relevant_documents"
_OWN = {_DOCUMENTS, "placeholders"}
_INNER = ("topics", "query_groups", "queries")


def is_rre(outer: object) -> bool:
    return isinstance(outer, dict) and any(
        isinstance(outer.get(name), list) and _judged(outer[name]) for name in _INNER
    )


def _judged(entries: object) -> bool:
    """Return whether entries contain judgments or queries in the format of RRE, at any depth."""
    return isinstance(entries, list) and any(
        isinstance(entry, dict)
        and (_OWN & entry.keys() or any(_judged(entry.get(name)) for name in _INNER))
        for entry in entries
    )


def read_rre(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per query of a group and document of the group.

    A group without documents, or a query without a text, is refused with its line.
    """
    refusals = Refusals(file)
    columns = ("query", "doc_id", "label", "topic", "query group")
    rows = _judgements(RecordPlaces(text), refusals)
    return table_of_rows("RRE ratings", columns, rows, refusals, limits)


def _judgements(places: RecordPlaces, refusals: Refusals) -> Iterator[Row]:
    for topic, group in _groups(places, places.outermost(), None):
        part = places.member(group, _DOCUMENTS)
        documents = list(_documents(places, part)) if part else []
        if not documents:
            refusals.add("no_documents", [group.line], [str(group.value.get("name", ""))])
        name = text_of(group.value.get("name"))
        for query in _queries(group.value):
            for doc_id, gain, line in documents:
                yield line, (query, doc_id, gain, topic, name)


def _groups(
    places: RecordPlaces, outer: RecordPart, topic: str | None
) -> Iterator[tuple[str | None, RecordPart]]:
    """Yield (topic, group) for each entry with queries, which may have judgments."""
    for member in places.inside(outer):
        for entry in places.inside(member) if member.name in _INNER else ():
            if not isinstance(entry.value, dict):
                continue
            if member.name == "topics":
                yield from _groups(places, entry, text_of(entry.value.get("description")))
            else:
                yield topic, entry


def _queries(group: Mapping[str, object]) -> list[str | None]:
    """Return the distinct texts of a group's queries; [None] if there are none."""
    queries = group.get("queries")
    entries = queries if isinstance(queries, list) else [group]
    return list(dict.fromkeys(map(_text_of_query, entries))) or [None]


def _text_of_query(query: object) -> str | None:
    """Return the value of the placeholder `$query`, else of the first placeholder with a text."""
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
    """Yield (document, gain, line); the gain is None if missing."""
    for entry in places.inside(documents):
        if isinstance(documents.value, list):
            yield from _documents(places, entry)
        elif isinstance(entry.value, list):
            for doc in places.inside(entry):
                yield str(doc.value), entry.name, doc.line
        else:
            gain = entry.value
            if isinstance(gain, dict):
                gain = gain.get("gain", gain.get("rating"))
            yield entry.name, text_of(gain), entry.line


# Qrels and runs as nested dictionaries, the JSON format of ranx and pytrec_eval.
#
#     {"q_1": {"doc_a": 1, "doc_b": 0}, "q_2": {…}}
#
# Few distinct whole numbers are labels; anything else is a run. ranx writes labels as integers
# and scores with a decimal point.


def is_ranx(outer: object) -> bool:
    if not isinstance(outer, dict) or not outer:
        return False
    values = list(outer.values())
    if not all(isinstance(value, dict) for value in values):
        return False
    # Entries with known column names are records.
    names = [name for value in values for name in value]
    inner = [cell for value in values for cell in value.values()]
    numeric = [isinstance(cell, int | float) and not isinstance(cell, bool) for cell in inner]
    return 2 * sum(numeric) > len(inner) > 2 * known(names)


def read_ranx(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per pair; a value that is not a number is refused with its line."""
    places, refusals = RecordPlaces(text), Refusals(file)
    rows: list[tuple[str | None, ...]] = []
    lines: list[int] = []
    values: list[object] = []
    for query in places.inside(places.outermost()):
        if not query.value:
            refusals.add("no_documents", [query.line], [query.name])
        for document in places.inside(query):
            values.append(document.value)
            lines.append(document.line)
            rows.append((query.name, document.name, text_of(document.value)))
    field, name = ("label", "ranx qrels") if _are_labels(values) else ("score", "ranx run")
    numbered = zip(lines, rows, strict=True)
    return table_of_rows(name, ("query_id", "doc_id", field), numbered, refusals, limits)


def _are_labels(values: list[object]) -> bool:
    distinct = {value for value in values if isinstance(value, int | float)}
    whole = all(float(value).is_integer() for value in distinct)
    written_whole = all(isinstance(value, int) for value in values if value in distinct)
    # Runs hardly ever repeat a score, labels nearly always repeat a grade.
    repeats = 2 * len(distinct) <= len(values)
    return whole and len(distinct) <= MOST_GRADES and (written_whole or repeats)


# Topics of TREC CAsT and iKAT: conversations whose turns are the queries.
#
#     [{"number": 31, "title": …, "turn": [{"number": 1, "raw_utterance": …}]}]
#
# The id of a turn is topic_turn, such as 31_1, as in the labels. An utterance that was rewritten to
# be understandable without context is preferred to the original one.

_TURNS = ("turn", "turns")
_SAID = ("manual_rewritten_utterance", "resolved_utterance", "utterance", "raw_utterance")


def is_cast(outer: object) -> bool:
    return isinstance(outer, list) and any(
        isinstance(topic, dict)
        and "number" in topic
        and any(isinstance(topic.get(name), list) for name in _TURNS)
        for topic in outer
    )


def read_cast(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per turn with an utterance; the topic's title and the turn's number are
    segments."""
    columns = ("query_id", "query", "topic", "turn")
    rows = _turns(RecordPlaces(text))
    return table_of_rows("TREC CAsT topics", columns, rows, Refusals(file), limits)


def _turns(places: RecordPlaces) -> Iterator[Row]:
    for topic in places.inside(places.outermost()):
        if not isinstance(topic.value, dict):
            continue
        number, title = text_of(topic.value.get("number")), text_of(topic.value.get("title"))
        turns = next((part for part in places.inside(topic) if part.name in _TURNS), None)
        for turn in places.inside(turns):
            if not isinstance(turn.value, dict):
                continue
            utterances = (text_of(turn.value[name]) for name in _SAID if turn.value.get(name))
            query, place = next(utterances, None), text_of(turn.value.get("number"))
            if query is not None:
                yield turn.line, (f"{number}_{place}", query, title, place)
