"""What an unfinished job has so far: one Parquet file a batch in `jobs/<id>/`."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import pandas as pd
import pyarrow as pa

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.tables import read_table, write_table
from rankdash.core.workspace.workspace import Workspace

_SCHEMA = pa.schema(
    [
        ("query_id", pa.string()),
        ("state", pa.string()),
        ("reason", pa.string()),
        ("scores", pa.list_(pa.float64())),
        ("latency_ms", pa.float64()),
        ("index_ms", pa.float64()),
        ("read", pa.list_(pa.int32())),
        ("full", pa.list_(pa.int32())),
        ("cached", pa.int64()),
        ("calls", pa.string()),
        ("repeated_ms", pa.list_(pa.float64())),
        ("computed", pa.string()),
    ]
)


def write_part(workspace: Workspace, job_id: str, rows: Sequence[dict[str, Any]]) -> None:
    """Keep one batch. Each row has the columns of the schema, lists as arrays; `computed`, a JSON
    object of how it was computed, may be missing."""
    workspace.database.refuse_read_only()
    folder = workspace.root / "jobs" / job_id
    with in_words(folder):
        folder.mkdir(parents=True, exist_ok=True)
    columns = {name: [row.get(name) for row in rows] for name in _SCHEMA.names}
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.parquet"
    write_table(folder / name, pa.table(columns, schema=_SCHEMA))


def has_parts(workspace: Workspace, job_id: str) -> bool:
    """Return whether results of a job are kept."""
    return any((workspace.root / "jobs" / job_id).glob("*.parquet"))


def copy_parts(workspace: Workspace, job_id: str, new_id: str) -> None:
    """Copy the results of a job for another one. Raises StoreError if there are none."""
    workspace.database.refuse_read_only()
    if not has_parts(workspace, job_id):
        raise StoreError(
            "The results of the job {id!r} are not kept.",
            remedy="Start the run again; cached scores are used.",
            id=job_id,
        )
    folder = workspace.root / "jobs"
    with in_words(folder):
        shutil.copytree(folder / job_id, folder / new_id)


def read_parts(workspace: Workspace, job_id: str) -> pd.DataFrame:
    """All rows kept so far, the latest of each query, with the columns of the schema; one that an
    older version did not write has only None. What a file held that cannot be read is missing, to
    be scored again.
    """
    tables = [_SCHEMA.empty_table()]
    for file in sorted((workspace.root / "jobs" / job_id).glob("*.parquet")):
        with suppress(StoreError):
            tables.append(read_table(file))
    rows = cast(pd.DataFrame, pa.concat_tables(tables, promote_options="default").to_pandas())
    return rows.drop_duplicates("query_id", keep="last", ignore_index=True)
