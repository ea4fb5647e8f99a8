"""Reduction of large downloaded corpora to labelled or ranked documents."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rankdash.core.base.errors import refused
from rankdash.core.readers.by_name.start import MOST_DOCUMENTS, Fetched, partly_read
from rankdash.core.readers.detect import tables_of
from rankdash.core.readers.parse.columns import fields_of, plain, recognise
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.unpack import unpack

_PARQUET = ".parquet"
_SHARD = re.compile(r"-\d{5}-of-\d{5}")
_LINES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")


def thinned(files: Sequence[Fetched], folder: Path) -> list[Fetched]:
    """Return the files, with reduced copies of large corpora, which are written to the folder. The
    original files may be in a cache and are not changed.

    Raises the errors of the readers of labels and rankings.
    """
    texts = {file.path: count for file in files if (count := _texts(file))}
    tables: dict[str, list[Fetched]] = {}
    for file in files:
        if file.path in texts:
            tables.setdefault(_SHARD.sub("", file.name), []).append(file)
    large = {
        name: shards
        for name, shards in tables.items()
        if sum(texts[file.path] for file in shards) > MOST_DOCUMENTS
    }
    if not large:
        return list(files)
    doc_ids = {
        identity for file in files if file.path not in texts for identity in _mentioned(file)
    }
    if not doc_ids:
        return list(files)
    replaced: dict[Path, Fetched | None] = {}
    for shards in large.values():
        counts: dict[Path, int] = {}
        for file in shards:
            copy = folder / f"part {len(replaced)}.parquet"
            counts[file.path] = _copied(file.path, copy, doc_ids)
            replaced[file.path] = replace(file, path=copy) if counts[file.path] else None
        first = next((path for path, count in counts.items() if count), None)
        if first and (copied := replaced[first]):
            rows = sum(texts[path] for path in counts)
            note = partly_read(copied.origin, sum(counts.values()), rows, copied.name)
            replaced[first] = replace(copied, notes=(*copied.notes, note))
    return [part for file in files if (part := replaced.get(file.path, file)) is not None]


def _texts(file: Fetched) -> int:
    """Return the number of documents (or queries: both have an id and a text) in a file; 0 if it
    contains other data."""
    if file.path.name.endswith(_PARQUET):
        parquet = pq.ParquetFile(file.path)
        names = list(parquet.schema_arrow.names)
        return parquet.metadata.num_rows if _names_texts(names) else 0
    if file.path.name.endswith(_LINES):
        first = next(_entries(file.path), {})
        if _names_texts(list(first)):
            with _opened(file.path) as lines:
                return sum(1 for _ in lines)
    return 0


def _names_texts(names: Sequence[str]) -> bool:
    fields = recognise(names).keys()
    others = {"query", "query_id", "label", "score", "rank", "reranked"} & fields
    texts = {"document", "title"} & fields or "text" in map(plain, names)
    return not others and bool(texts) and _identity(names) is not None


def _identity(names: Sequence[str]) -> str | None:
    """Return the column with the ids of documents, or None."""
    plain_id = next((name for name in names if plain(name) == "id"), None)
    return recognise(names).get("doc_id", plain_id)


def _mentioned(file: Fetched) -> Iterable[str]:
    """Yield the ids of queries and documents in a file of labels or of a ranking."""
    source = Source(file.name, file.path.read_bytes())
    if source.is_readme:
        return
    files, broken = unpack([source], ReadLimits())
    if broken:
        raise refused(broken)
    for table in (table for each in files for table in tables_of(each, ReadLimits())):
        fields = table.fields if table.fields is not None else fields_of(table.frame)
        for field in ("query_id", "doc_id"):
            if field in fields:
                yield from table.frame[fields[field]].dropna().unique()


def _copied(path: Path, copy: Path, doc_ids: set[str]) -> int:
    """Copy the documents with the ids. Return their number."""
    tables = _batches(path, doc_ids)
    first = next(tables, None)
    if first is None:
        return 0
    count = 0
    with pq.ParquetWriter(copy, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(first.schema))
            count += table.num_rows
    return count


def _batches(path: Path, doc_ids: set[str]) -> Iterator[pa.Table]:
    if path.name.endswith(_PARQUET):
        parquet = pq.ParquetFile(path)
        identity = _identity(list(parquet.schema_arrow.names)) or ""
        values = pa.array(sorted(doc_ids), pa.string())
        for batch in parquet.iter_batches():
            ids = batch.column(identity).cast(pa.string())
            table = pa.Table.from_batches([batch]).filter(pc.is_in(ids, value_set=values))
            if table.num_rows:
                yield table
        return
    identity = ""
    rows: list[dict[str, str | None]] = []
    for entry in _entries(path):
        identity = identity or _identity(list(entry)) or ""
        if str(entry.get(identity)) in doc_ids:
            # Cells become text, because their types could differ between batches.
            rows.append(
                {
                    key: value if value is None or isinstance(value, str) else json.dumps(value)
                    for key, value in entry.items()
                }
            )
    if rows:
        yield pa.Table.from_pylist(rows)


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines; invalid lines are skipped here, refused later."""
    with _opened(path) as lines:
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
