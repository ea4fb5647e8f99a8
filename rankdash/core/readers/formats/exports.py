"""Exports of tools: tables recognised by their columns or file names, and JSON with the entries of
a tool or with its judgments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.formats import spans
from rankdash.core.readers.formats.entries import listed, normalised, noted
from rankdash.core.readers.formats.json_records import (
    RecordPart,
    RecordPlaces,
    table_of,
    text_of,
)
from rankdash.core.readers.formats.tools import (
    AUTORAG,
    AUTORAG_ROWS,
    CONFIGURATIONS,
    EVENTS,
    ROW,
    events_finding,
    is_event,
    known_entry,
)
from rankdash.core.readers.join.conflicts import SPLITS
from rankdash.core.readers.join.parsed_file import joined_texts
from rankdash.core.readers.parse.columns import SYSTEM
from rankdash.core.readers.parse.limits import ReadLimits, Refusals, counted
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Row, Table, table_of_rows

Tables = Sequence[tuple[Table, Source]]

_SHARD = re.compile(r"(?P<split>.+)-\d{5}-of-(?P<all>\d{5})")
_CONVERTED = re.compile(r"\d{4}")


def one_split(tables: Tables) -> list[tuple[Table, Source]]:
    """Return the tables of one split only; a finding reports the split."""
    excluded, notes = other_splits([table.file for table, _ in tables])
    used = [(table, source) for table, source in tables if table.file not in excluded]
    missing = _missing_shards([table.file for table, _ in used])
    return [(noted(table, notes.get(table.file), missing.get(table.file)), s) for table, s in used]


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
        if {"productid", "productlocale"} <= (names := normalised(table)).keys()
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
        table = noted(table, note)
    if "producttitle" in names and "query" not in names:
        texts = [names[name] for name in _TEXTS if name in names]
        document = joined_texts(frame[texts])
        frame = frame.drop(columns=[*texts, locale]).assign(document=document)
    dropped = [names[name] for name in _DROPPED if name in names]
    return replace(table, format=f"ESCI, {table.format}", cells=frame.drop(columns=dropped))


# Tables that need the other files of a data set, and tables with the columns of a tool.


_IN_CELLS = frozenset(("retrieval_gt", *(f"attributes.{name}" for name in spans.LISTS)))
_ORDERS = ("rank", "initial_score")
_RETRIEVED = ("retrieved_ids", "retrieved_contents", "retrieve_scores")


# The message and the remedy for files of search configurations, and of events.
_ALONE = (
    (
        "The file contains search configurations, but no rankings or labels.",
        "Load the results of an experiment and a list of judgments together with it.",
    ),
    (
        "The file contains events of users, such as clicks, but no rankings or labels. A click is "
        "not a label.",
        "Load the searches with the ids of their hits (the index ubi_queries), and labels.",
    ),
)


def tools(tables: Tables) -> list[tuple[Table, Source]]:
    """Read lists in cells, name the queries of AutoRAG's results and the search configurations of
    OpenSearch, and exclude events of users."""
    tables = [(_listed(table), source) for table, source in tables]
    names = {
        row["id"]: row["name"]
        for table, _ in tables
        if table.format == CONFIGURATIONS
        for row in table.frame.to_dict("records")
    }
    qids = _qids(tables)
    judged = any(table.format == AUTORAG and not _ranks(table) for table, _ in tables)
    used: list[tuple[Table, Source]] = []
    notes: list[Finding] = []
    for table, source in tables:
        if _is_events(table):
            notes.extend(table.findings or (events_finding(len(table), table.file),))
        elif table.format != CONFIGURATIONS:
            table = _in_rows(table, qids) if _without_queries(table) else table
            table = _ranked(table) if judged and table.format == AUTORAG else table
            used.append((_renamed(table, names) if names else table, source))
    if not used and tables:
        template, remedy = _ALONE[bool(notes)]
        raise FormatError(template, remedy=remedy, file=tables[0][0].file)
    if notes:
        used[0] = noted(used[0][0], *notes), used[0][1]
    return used


def _is_events(table: Table) -> bool:
    names = dict.fromkeys(table.columns) if table.names and table.fields is None else {}
    return table.format == EVENTS or is_event(names)


def _listed(table: Table) -> Table:
    """Read a table of a tool with lists in its cells, such as a CSV file of spans."""
    columns = table.columns if table.names and table.fields is None else []
    lists = {name for name in columns if name in _IN_CELLS or name.startswith(_RETRIEVED)}
    if not (lists or spans.is_exploded(columns)) or table.format in (AUTORAG, spans.NAME):
        return table
    records: list[dict[str, Any]] = [
        {str(name): spans.literal(cell) if name in lists else cell for name, cell in row.items()}
        for row in table.frame.to_dict("records")
    ]
    read = table_of(records, table.lines.tolist(), table.file, table.format, ReadLimits())
    return noted(read, *table.findings)


def _renamed(table: Table, names: Mapping[str, str]) -> Table:
    """Return the table with the names of search configurations in place of their ids."""
    columns = {
        SYSTEM + identity: SYSTEM + name
        for identity, name in names.items()
        if identity
        and name
        and list(names.values()).count(name) == 1
        # Another configuration may have this name as its id.
        and SYSTEM + name not in table.columns
    }
    if not columns.keys() & set(table.columns):
        return table
    return replace(table, cells=table.frame.rename(columns=columns))


def _without_queries(table: Table) -> bool:
    return table.format == AUTORAG_ROWS


def _qids(tables: Tables) -> dict[tuple[str, ...], str]:
    """Return query ids by row → file, of AutoRAG's files with queries."""
    return {
        table.queries: table.file for table, _ in tables if table.queries and all(table.queries)
    }


def _ranks(table: Table) -> list[str]:
    """Return the columns of rankings."""
    return [name for name in table.columns if name in _ORDERS or name.startswith(SYSTEM)]


def _ranked(table: Table) -> Table:
    """Return AutoRAG's results without the labels, which qa.parquet contains too."""
    columns = _ranks(table)
    if not columns or "label" not in table.columns:
        return table
    rows = table.frame[columns].notna().any(axis=1).to_numpy()
    frame = table.frame[rows].drop(columns="label").reset_index(drop=True)
    findings = tuple(each for each in table.findings if each.code != "all_relevant")
    return replace(table, cells=frame, lines=table.lines[rows], findings=findings)


def _in_rows(table: Table, qids: Mapping[tuple[str, ...], str]) -> Table:
    """Name the queries of AutoRAG's results by the rows of qa.parquet."""
    rows = len(table.queries)
    same = [ids for ids in qids if len(ids) == rows]
    if len(same) != 1:
        raise FormatError(
            "This file of AutoRAG contains no queries. Files with the queries of its {rows} rows: "
            "{count}.",
            remedy="Load them together with their qa.parquet, or load a file such as "
            "best_0.parquet, which contains the queries.",
            file=table.file,
            rows=rows,
            count=len(same),
        )
    places = table.frame["query_id"].str.removeprefix(ROW).astype(int)
    note = Finding(
        "note",
        "queries_by_row",
        "The file contains no queries. Its rows have the query ids of {other}, in the same order.",
        {"other": qids[same[0]]},
        file=table.file,
    )
    named = table.frame.assign(query_id=[same[0][place - 1] for place in places])
    return noted(replace(table, cells=named, format=AUTORAG), note)


# JSON documents of tools, each recognised by the keys that it uses.

# Documents of tools in which the entries are inside other objects, such as the answer of an index
# (`hits`), an experiment (`results`) or spans (`resourceSpans`).

_INSIDE = (
    *("hits", "_source", "results", "data", "queries", "querySetQueries", "query_doc_pairs"),
    *("resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans"),
)
# The lists of a snapshot of Quepid.
_SNAPSHOT = frozenset(("docs", "queries"))


def is_wrapped(outer: object) -> bool:
    return _is_snapshot(outer) or _wraps(outer)


def _is_entry(value: object) -> bool:
    """Return whether an object is a tool's entry that is not around others."""
    return known_entry(value) and not any(isinstance(value.get(name), list) for name in _INSIDE)  # type: ignore[attr-defined]


def _wraps(value: object, depth: int = 0) -> bool:
    """Return whether the first entries inside an object are a known tool's."""
    if isinstance(value, list):
        return any(_wraps(each, depth) for each in value[:10])
    if not isinstance(value, dict) or depth > len(_INSIDE):
        return False
    if depth and _is_entry(value):
        return True
    return any(_wraps(value[name], depth + 1) for name in _INSIDE if name in value)


def read_wrapped(text: str, file: str, limits: ReadLimits) -> Table:
    """Read the entries of a tool, each with its line."""
    places = RecordPlaces(text)
    outer = places.outermost()
    entries = _snapshot(places, outer) if _is_snapshot(outer.value) else _inside(places, outer)
    rows = [(entry, line) for entry, line in entries if isinstance(entry, dict)]
    return table_of([row[0] for row in rows], [row[1] for row in rows], file, "JSON", limits)


def _inside(places: RecordPlaces, part: RecordPart) -> Iterator[tuple[Any, int]]:
    if part.name and _is_entry(part.value):
        yield part.value, part.line
        return
    for inner in places.inside(part):
        if isinstance(part.value, list) and _is_entry(inner.value):
            yield inner.value, inner.line
        elif inner.name in _INSIDE or isinstance(part.value, list):
            yield from _inside(places, inner)


def _is_snapshot(outer: object) -> bool:
    if not isinstance(outer, dict) or not outer.keys() >= _SNAPSHOT:
        return False
    docs, queries = outer["docs"], outer["queries"]
    return (
        isinstance(docs, dict)
        and isinstance(queries, list)
        and bool(queries)
        and all(isinstance(each, dict) and "query_text" in each for each in queries)
    )


def _snapshot(places: RecordPlaces, outer: RecordPart) -> Iterator[tuple[Any, int]]:
    """Yield each query of a snapshot with its results and its line."""
    results = {part.name: part for part in places.inside(places.member(outer, "docs"))}
    for query in outer.value["queries"]:
        found = results.get(str(query.get("query_id", query.get("queryId"))))
        line = found.line if found else outer.line
        yield {"ratings": {}, **query, "docs": found.value if found else []}, line


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
    failures: list[str] = []
    rows = _ratings(RecordPlaces(text), refusals, failures)
    columns = tuple(_OPENSEARCH.values())
    table = table_of_rows("OpenSearch judgments", columns, rows, refusals, limits, _OPENSEARCH)
    if not failures:
        return table
    template = "Documents that the judge could not rate, which have no label: {count}."
    return noted(
        table,
        counted("warning", "unrated", template, len(failures), file=file, examples=failures),
    )


def _ratings(places: RecordPlaces, refusals: Refusals, failures: list[str]) -> Iterator[Row]:
    for entry in _entries(places, places.outermost()):
        value = entry.value if isinstance(entry.value, dict) else {}
        query = text_of(value.get("query"))
        for failure in listed(value.get("failures")):
            failures.append(f"{query}: {failure.get('docId') if isinstance(failure, dict) else ''}")
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
