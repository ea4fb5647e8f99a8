"""Parquet files: written under another name and renamed, so a reader sees all of one or nothing."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import convert

from rankdash.dataset import Dataset
from rankdash.ranking.build import text_array
from rankdash.ranking.coded import alike, objects
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import Ranking, Reading, Run
from rankdash.ranking.ties import Ties
from rankdash.store.failures import damaged, in_words

TIES = b"rankdash.ties"


DATASET_PARTS = ("queries", "documents", "qrels")
"""The tables of a data set beside its ranking."""

CANDIDATES, RANKING = "candidates", "ranking"
"""The name of the ranking of a data set, and of a run."""


def write_table(file: Path, table: Any) -> None:
    """Write an Arrow table. The data is on the disk before the name is."""
    part = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}")
    with in_words(file):
        try:
            with part.open("wb") as target:
                pq.write_table(table, target, compression="zstd", write_page_checksum=True)
                target.flush()
                os.fsync(target.fileno())
            part.replace(file)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def read_table(file: Path) -> Any:
    """Read an Arrow table. Raises StoreError where the file is missing or damaged."""
    with in_words(file):
        return pq.read_table(
            file, memory_map=False, page_checksum_verification=True, partitioning=None
        )


def write_frame(file: Path, frame: pd.DataFrame) -> None:
    """Write a frame; its index is not kept."""
    write_table(file, pa.Table.from_pandas(frame, preserve_index=False))


def read_frame(file: Path) -> pd.DataFrame:
    return cast(pd.DataFrame, read_table(file).to_pandas())


def write_dataset(folder: Path, dataset: Dataset) -> None:
    """Write a data set as six tables."""
    for name in DATASET_PARTS:
        write_frame(folder / f"{name}.parquet", getattr(dataset, name))
    write_ranking(folder, CANDIDATES, dataset.candidates)


def write_run(folder: Path, run: Run) -> None:
    """Write the tables of a run; those of what it did not measure are left out."""
    write_frame(folder / "queries.parquet", run.queries)
    write_ranking(folder, RANKING, run.ranking)
    write_reading(folder, run.reading)
    write_measured(folder, run)


def write_ranking(folder: Path, name: str, ranking: Ranking) -> None:
    """Write a ranking as three tables: its rows, its queries and its documents.

    Rows hold the document's position in the documents table, so that a million of them load in
    milliseconds.
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
    write_table(folder / f"{name}-queries.parquet", queries)
    write_table(folder / f"{name}-documents.parquet", pa.table({"doc_id": ranking.documents}))
    write_table(folder / f"{name}.parquet", rows)


def read_ranking(folder: Path, name: str) -> Ranking:
    file = folder / f"{name}.parquet"
    ranking = ranking_of(
        read_table(file),
        read_table(folder / f"{name}-queries.parquet"),
        read_table(folder / f"{name}-documents.parquet"),
    )
    if ranking is None:
        raise damaged(file, "its rows do not fit its queries and documents.")
    return ranking


def ranking_of(rows: Any, queries: Any, documents: Any) -> Ranking | None:
    """The ranking that three tables hold; None where they do not fit together."""
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


def write_reading(folder: Path, reading: Reading | None) -> None:
    """Write how much was read of each row of a run's ranking, if anything was."""
    if reading is not None:
        counts = pa.table({"read": reading.read, "full": reading.full})
        write_table(folder / "reading.parquet", counts)


def read_reading(folder: Path, rows: int) -> Reading | None:
    """What `write_reading` wrote for a ranking of `rows` rows; None where it wrote nothing."""
    file = folder / "reading.parquet"
    if not file.exists():
        return None
    counts = read_table(file)
    if len(counts) != rows:
        raise damaged(file, "its rows do not fit the ranking.")
    return Reading(_column(counts, "read"), _column(counts, "full"))


def write_measured(folder: Path, run: Run) -> None:
    """Write what a run measured, and the calls that it made, where it did."""
    if run.measured is not None:
        kept = pa.table({"measured": [json.dumps(asdict(run.measured))]})
        write_table(folder / "measured.parquet", kept)
    if run.calls is not None:
        write_frame(folder / "calls.parquet", run.calls)


def read_measured(folder: Path) -> Measured | None:
    """What `write_measured` wrote of times and counts."""
    file = folder / "measured.parquet"
    if not file.exists():
        return None
    try:
        return measured_of(read_table(file))
    except (ValueError, LookupError) as error:
        raise damaged(file, str(error)) from error


def measured_of(table: Any) -> Measured:
    """Raises ValueError or LookupError where the table holds no such thing."""
    # Not strict: a count may have been written as 3.0.
    return convert(json.loads(table["measured"][0].as_py()), Measured, strict=False)


def read_calls(folder: Path) -> pd.DataFrame | None:
    """What `write_measured` wrote of calls."""
    file = folder / "calls.parquet"
    return read_frame(file) if file.exists() else None


def _column(table: Any, name: str) -> Any:
    return table[name].combine_chunks().to_numpy(zero_copy_only=False)


def _text(table: Any, name: str) -> Any:
    return table[name].combine_chunks()
