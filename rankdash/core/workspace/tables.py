"""Parquet files: written under another name and renamed, so a reader sees all of a file or nothing.

Each file contains the SHA-256 of all its other bytes in its metadata, so that the hash is copied
with the file; a file that does not match it is damaged.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import convert

from rankdash.core.base import files as base_files
from rankdash.core.base.errors import DataError, Phrase, StoreError
from rankdash.core.base.rules import Ties
from rankdash.core.data.arrays import Coded, alike, objects
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import Ranking, Reading, Run, text_array
from rankdash.core.workspace.failures import damaged, in_words

TIES = b"rankdash.ties"

# The id of the table's data set; under the hash like the rest of the file.
_OF = b"rankdash.of"
_HASH = b"rankdash.sha256"
_DIGITS = 64
# Parquet ends with the metadata, its length (4 bytes), and a mark (4 bytes).
_END = 8
_MARK = b"PAR1"
_CHUNK = 1 << 20

DATASET_PARTS = ("queries", "documents", "qrels")
"""The tables of a data set except its ranking."""

TIMINGS = "timings.parquet"
"""The latencies of the first stage of a data set, if it has any."""

CANDIDATES, RANKING = "candidates", "ranking"
"""The name of the ranking of a data set, and of a run."""


def ranking_parts(name: str) -> tuple[str, str, str]:
    """Return the names of the tables of a ranking: rows, queries, documents."""
    return name, f"{name}-queries", f"{name}-documents"


DOCUMENTS = "documents.parquet"
"""The file of the documents of a run that its data set lacks."""

PARTS = {
    "datasets": (*DATASET_PARTS, *ranking_parts(CANDIDATES)),
    "runs": ("queries", *ranking_parts(RANKING)),
}
"""The tables that every data set and run has."""


def write_table(file: Path, table: Any, of: str = "") -> None:
    """Write an Arrow table atomically: the data is on the disk before the file is renamed. of: the
    id of its data set, if any."""
    import pyarrow.parquet as pq

    # Dictionaries only for texts: numbers seldom repeat, and searching them for repetitions doubles
    # the writing time.
    kinds = (pa.string(), pa.large_string())
    texts = [each.name for each in table.schema if each.type in kinds]
    with in_words(file), base_files.completed(file) as target:
        with pq.ParquetWriter(
            target,
            table.schema,
            compression="zstd",
            write_page_checksum=True,
            use_dictionary=texts or False,
        ) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({_OF: of.encode(), _HASH: b"0" * _DIGITS})
        _seal(target)


def read_table(file: Path, dictionaries: Sequence[str] = ()) -> Any:
    """Read an Arrow table. dictionaries: the columns of text to read as codes. Raises StoreError if
    the file is missing or damaged."""
    import pyarrow.parquet as pq

    refuse_changed(file)
    with as_stored(file):
        return pq.read_table(
            file,
            memory_map=False,
            page_checksum_verification=True,
            partitioning=None,
            read_dictionary=list(dictionaries),
        )


def refuse_changed(file: Path) -> bool:
    """Verify the SHA-256 in a file. Return False if there is none (older version); raise StoreError
    if the file is truncated or does not match."""
    with in_words(file), file.open("rb") as source:
        size = source.seek(0, os.SEEK_END)
        source.seek(max(size - _END, 0))
        if not source.read().endswith(_MARK):
            raise damaged(file, Phrase("it is truncated."))
        place = _place_of_hash(source, size)
        if place is None:
            return False
        source.seek(place)
        if source.read(_DIGITS) != _hash_around(source, place):
            raise damaged(file, Phrase("it has changed since it was written."))
    return True


def _seal(target: BinaryIO) -> None:
    """Write the hash of a file into its reserved place."""
    place = _place_of_hash(target, target.seek(0, os.SEEK_END))
    assert place is not None  # noqa: S101 - it was written a moment ago
    digest = _hash_around(target, place)
    target.seek(place)
    target.write(digest)


def _place_of_hash(source: BinaryIO, size: int) -> int | None:
    """Return the position of the hash in a Parquet file; None if there is none."""
    source.seek(max(size - _END, 0))
    begin = size - _END - int.from_bytes(source.read(4), "little")
    if begin < 0:
        return None
    source.seek(begin)
    metadata = source.read(size - begin)
    at = metadata.rfind(_HASH)
    # Between the name and the digits are two bytes of Thrift: type and length.
    place = begin + at + len(_HASH) + 2
    return place if at >= 0 and place + _DIGITS <= size else None


def _hash_around(source: BinaryIO, place: int) -> bytes:
    """Return the SHA-256 in hexadecimal of all of a file except the digits at `place`."""
    hasher = hashlib.sha256()
    source.seek(0)
    remaining = place
    while remaining and (chunk := source.read(min(_CHUNK, remaining))):
        hasher.update(chunk)
        remaining -= len(chunk)
    source.seek(place + _DIGITS)
    while chunk := source.read(_CHUNK):
        hasher.update(chunk)
    return hasher.hexdigest().encode()


@contextmanager
def as_stored(file: Path) -> Iterator[None]:
    """Turn errors about the content of `file` inside the block into StoreErrors."""
    try:
        with in_words(file):
            yield
    except (DataError, ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise damaged(file, str(error)) from error


def refuse_changed_folder(folder: Path, kind: str, *, seal: bool) -> None:
    """Raise StoreError if a table of a data set or run is changed, truncated or missing.

    kind: "datasets" or "runs". seal: whether to add a hash to tables of an older version without
        one; a table stays as it is if the disk is full.
    """
    names = {f"{part}.parquet" for part in PARTS[kind]}
    for name in sorted(names.union(each.name for each in folder.glob("*.parquet"))):
        if not refuse_changed(folder / name) and seal:
            table = read_table(folder / name)
            with suppress(StoreError):
                write_table(folder / name, table)


def write_frame(file: Path, frame: pd.DataFrame, of: str = "") -> None:
    """Write a frame as `write_table` does, without its index."""
    write_table(file, pa.Table.from_pandas(frame, preserve_index=False), of)


def read_frame(file: Path) -> pd.DataFrame:
    table = read_table(file)
    with as_stored(file):
        return cast(pd.DataFrame, table.to_pandas())


def write_dataset(folder: Path, dataset: Dataset) -> None:
    """Write a data set as six tables, and the latencies of its first stage, if any."""
    for name in DATASET_PARTS:
        write_frame(folder / f"{name}.parquet", getattr(dataset, name), dataset.id)
    if dataset.timings is not None:
        write_frame(folder / TIMINGS, dataset.timings, dataset.id)
    write_ranking(folder, CANDIDATES, dataset.candidates, dataset.id)


def read_dataset(folder: Path, row: sqlite3.Row) -> Dataset:
    """Read a data set that `write_dataset` wrote. Its id is computed again only if a table, such as
    one of an older version, does not name the id of the row."""
    ids = ("query_id", "doc_id")
    with as_stored(folder):
        queries, documents = (read_frame(folder / f"{part}.parquet") for part in DATASET_PARTS[:2])
        # Parquet stores repeated ids as codes; computing them again would dominate the reading
        # time.
        labels = read_table(folder / f"{DATASET_PARTS[2]}.parquet", ids)
        codes = {key: Coded.of_dictionary(labels[key]) for key in ids}
        for key in ids:
            labels = labels.set_column(
                labels.column_names.index(key), key, labels[key].cast("string")
            )
        dataset = Dataset(
            row["name"],
            queries,
            documents,
            labels.to_pandas(),
            read_ranking(folder, CANDIDATES),
            first_stage=row["first_stage"],
            candidates_name=row["candidates_name"],
            codes=codes,
            known_id=row["id"] if _are_of(folder, row["id"]) else None,
        )
        if (folder / TIMINGS).exists():
            dataset.timings = read_frame(folder / TIMINGS)
        return dataset


def _are_of(folder: Path, dataset_id: str) -> bool:
    import pyarrow.parquet as pq

    files = (folder / f"{part}.parquet" for part in PARTS["datasets"])
    metadata = (pq.read_metadata(file).metadata or {} for file in files)
    # Without a hash, the metadata of a table cannot be trusted.
    return all(each.get(_OF) == dataset_id.encode() and _HASH in each for each in metadata)


def write_run(folder: Path, run: Run) -> None:
    """Write the tables of a run, except tables of measurements that it does not have."""
    write_frame(folder / "queries.parquet", run.queries)
    write_ranking(folder, RANKING, run.ranking)
    if run.reading is not None:
        counts = pa.table({"read": run.reading.read, "full": run.reading.full})
        write_table(folder / "reading.parquet", counts)
    if run.measured is not None:
        measured = pa.table({"measured": [json.dumps(asdict(run.measured))]})
        write_table(folder / "measured.parquet", measured)
    for name in ("calls", "documents"):
        if (frame := getattr(run, name)) is not None:
            write_frame(folder / f"{name}.parquet", frame)


def read_run(folder: Path) -> dict[str, Any]:
    """Return the tables that `write_run` wrote, as fields of a `Run`."""
    ranking, calls = read_ranking(folder, RANKING), folder / "calls.parquet"
    documents = folder / DOCUMENTS
    return {
        "ranking": ranking,
        "queries": read_frame(folder / "queries.parquet"),
        "reading": _read_reading(folder / "reading.parquet", len(ranking)),
        "measured": read_measured(folder),
        "calls": read_frame(calls) if calls.exists() else None,
        "documents": read_frame(documents) if documents.exists() else None,
    }


def write_ranking(folder: Path, name: str, ranking: Ranking, of: str = "") -> None:
    """Write a ranking as three tables: its rows, its queries and its documents. of: as for
    `write_table`.

    Rows contain the position of the document in the documents table, so that a million of them load
    in milliseconds.
    """
    rows = pa.table({"document": ranking.docs, "score": ranking.scores, "given": ranking.given})
    rows = rows.replace_schema_metadata({TIES: ranking.ties.encode()})
    queries = pa.table(
        {
            "query_id": text_array(ranking.query_ids),
            "documents": np.diff(ranking.offsets),
            "tied": ranking.tied,
        }
    )
    documents = pa.table({"doc_id": ranking.documents})
    for part, table in zip(ranking_parts(name), (rows, queries, documents), strict=True):
        write_table(folder / f"{part}.parquet", table, of)


def read_ranking(folder: Path, name: str) -> Ranking:
    file = folder / f"{name}.parquet"
    tables = [read_table(folder / f"{part}.parquet") for part in ranking_parts(name)]
    with as_stored(file):
        ranking = ranking_of(*tables)
    if ranking is None:
        raise damaged(file, Phrase("its rows do not match its queries and documents."))
    return ranking


def ranking_of(rows: Any, queries: Any, documents: Any) -> Ranking | None:
    """Return the ranking in three tables; None if they are inconsistent."""
    counts = _column(queries, "documents")
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    codes = _column(rows, "document")
    if offsets[-1] != len(codes) or (len(codes) and codes.max() >= len(documents)):
        return None
    return Ranking(
        query_ids=objects(_text(queries, "query_id")),
        documents=alike(_text(documents, "doc_id")),
        offsets=offsets,
        docs=codes,
        scores=_column(rows, "score"),
        tied=_column(queries, "tied"),
        ties=cast(Ties, rows.schema.metadata[TIES].decode()),
        given=_column(rows, "given"),
    )


def _read_reading(file: Path, rows: int) -> Reading | None:
    if not file.exists():
        return None
    counts = read_table(file)
    if len(counts) != rows:
        raise damaged(file, Phrase("its rows do not match the ranking."))
    with as_stored(file):
        return Reading(_column(counts, "read"), _column(counts, "full"))


def read_measured(folder: Path) -> Measured | None:
    """Return the times and counts of a run; None if it has none."""
    file = folder / "measured.parquet"
    if not file.exists():
        return None
    with as_stored(file):
        return measured_of(read_table(file))


def measured_of(table: Any) -> Measured:
    """Return the times and counts in a table. Raises ValueError or LookupError if it contains
    none."""
    # Not strict: a count may be stored as 3.0.
    return convert(json.loads(table["measured"][0].as_py()), Measured, strict=False)


def _column(table: Any, name: str) -> Any:
    return table[name].combine_chunks().to_numpy(zero_copy_only=False)


def _text(table: Any, name: str) -> Any:
    return table[name].combine_chunks()
