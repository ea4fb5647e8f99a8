"""The job queue: rows that a server adds and a worker claims, one transaction per step.

    queued ──claim──▶ running ──▶ done | failed | cancelled
       ▲                 │
       └──resume── interrupted   the worker died or is silent; also from failed and cancelled

`rankdash.core.workspace.jobs.leases` describes how a worker owns a claimed job.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

import pandas as pd
import pyarrow as pa

from rankdash.core.base.errors import RankdashError, StoreError
from rankdash.core.data.measured import WithoutText
from rankdash.core.workspace import folders
from rankdash.core.workspace.database import (
    Settings,
    find,
    from_row,
    insert,
    now,
    read_json,
)
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import STALE_SECONDS as STALE_SECONDS
from rankdash.core.workspace.jobs.leases import (
    Ending,
    Explanations,
    Leases,
    State,
    state_of,
)
from rankdash.core.workspace.jobs.leases import Owner as Owner
from rankdash.core.workspace.tables import read_table, write_table
from rankdash.core.workspace.workspace import Workspace

Stage = Literal[
    "waiting", "loading", "converting", "exporting", "choosing", "warming", "scoring", "timing"
]

LIVE: tuple[State, ...] = ("queued", "running")

JOURNAL = "journal.jsonl"
"""The file of a fetch with the answers of a search engine, in the folder of its job."""


@dataclass(frozen=True)
class JobRow:
    """A job. Times are ISO 8601 in UTC, None if not reached.

    sample: how many queries are sampled with `seed`; None for all.
    timing: options of the latency measurement, as its submitter wrote them; empty for the default.
    without_text: what happens to candidates without a text.
    grid: the id that the variants of one request share; None for a single job.
    actors: of a job on a Ray cluster, the number and size of its actors; None for this machine.
    fused: the name of a second run, the fusion with the first stage; None without one.
    stop: the rule by which it may stop because of its result, as in
        `rankdash.core.runs.stopping.StopRule`; None without one.
    look: the interim result of this rule, as in `rankdash.core.runs.stopping.Look`; None before it.
    cancelling: whether it is being cancelled.
    done, failed, total: queries. pairs_done, pairs_total: (query, document) pairs.
    rate_pairs_s, seconds_left: of the current scoring; None if not known.
    requests: sent to other machines. refused: requests that a rate limit refused (status 429).
    load_ms: the latest cold start; None before it. started: when work on it last began.
    error: why it failed or stopped; None without an error.
    """

    id: str
    dataset_id: str
    name: str
    reranker: str
    settings: Mapping[str, str | int | float | bool]
    depth: int | None
    sample: int | None
    seed: int
    timing: Mapping[str, object]
    without_text: WithoutText
    grid: str | None
    actors: Mapping[str, Any] | None
    fused: str | None
    stop: Mapping[str, Any] | None
    look: Mapping[str, Any] | None
    state: State
    stage: Stage
    cancelling: bool
    done: int
    failed: int
    total: int
    pairs_done: int
    pairs_total: int
    requests: int
    refused: int
    rate_pairs_s: float | None
    seconds_left: float | None
    load_ms: float | None
    error: RankdashError | None
    created: str
    started: str | None
    finished: str | None

    @property
    def runs(self) -> dict[str, str]:
        """Id → name of its runs: the reranker's, and the fusion with the first stage."""
        fused = {} if self.fused is None else {f"{self.id}-fused": self.fused}
        return {self.id: self.name, **fused}

    @property
    def message(self) -> str:
        """The error and its remedy, in English; "" without an error."""
        return "" if self.error is None else str(self.error)


@dataclass(frozen=True)
class Progress:
    """The progress of a job, as in the same fields of `JobRow`."""

    stage: Stage = "waiting"
    done: int = 0
    failed: int = 0
    total: int = 0
    pairs_done: int = 0
    pairs_total: int = 0
    rate_pairs_s: float | None = None
    seconds_left: float | None = None
    load_ms: float | None = None
    requests: int = 0
    refused: int = 0
    look: Mapping[str, Any] | None = None


def new_id() -> str:
    """Return an id that no other job has."""
    return uuid.uuid4().hex[:16]


class Queue(Leases["JobRow"]):
    """The jobs of a workspace."""

    table = "jobs"
    on_claim = ", stage = 'loading', started = :now"
    on_stop = ", rate_pairs_s = NULL, seconds_left = NULL"
    on_end = ", stage = 'waiting'"
    missing = "There is no job {id!r} in this workspace."

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._others = (Explanations(workspace), StoredJudges(workspace))

    def submit(
        self,
        *,
        dataset_id: str,
        name: str,
        reranker: str,
        settings: Mapping[str, str | int | float | bool],
        depth: int | None,
        sample: int | None,
        seed: int,
        timing: Mapping[str, object] | None = None,
        without_text: WithoutText = "exclude",
        grid: str | None = None,
        actors: Mapping[str, Any] | None = None,
        fused: str | None = None,
        stop: Mapping[str, Any] | None = None,
        job_id: str | None = None,
    ) -> str:
        """Add a job at the end of the queue; return its id, which its run will have too."""
        job_id = job_id or new_id()
        created = now()
        with self._database.writing() as db:
            find(db, "datasets", dataset_id, "id")
            values = {
                "id": job_id,
                "dataset_id": dataset_id,
                "name": name,
                "reranker": reranker,
                "settings": json.dumps(dict(settings)),
                "depth": depth,
                "sample": sample,
                "seed": seed,
                "timing": json.dumps(dict(timing or {})),
                "without_text": without_text,
                "grid": grid,
                "actors": None if actors is None else json.dumps(dict(actors)),
                "fused": fused,
                "stop": None if stop is None else json.dumps(dict(stop)),
                "created": created,
                "queued": created,
            }
            insert(db, self.table, values, "")
        return job_id

    def progress(self, job_id: str, owner: Owner, progress: Progress) -> None:
        """Store the progress of the job; do nothing if the owner no longer owns it."""
        # A resumed job shows its previous cold start until there is another.
        look = None if progress.look is None else json.dumps(dict(progress.look))
        values = {**vars(progress), "look": look}
        if progress.load_ms is None:
            del values["load_ms"]
        self._update_owned(job_id, owner, **values)

    def stop_when_conclusive(self, job_id: str) -> None:
        """Let a job that may stop because of its result do so at its next conclusive look."""
        self._set(
            "stop = json_set(stop, '$.by_itself', json('true'))",
            "id = :id AND stop IS NOT NULL",
            id=job_id,
        )

    def finish(
        self,
        row_id: str,
        owner: Owner,
        state: Ending,
        error: RankdashError | None = None,
        **also: object,
    ) -> bool:
        """End the owner's work on a job. The results of a done job belong to the run; if queries
        failed, they also stay for `retry`."""
        ended = super().finish(row_id, owner, state, error, **also)
        if ended and state == "done" and not self.row(row_id).failed:
            folders.remove(self._workspace.root, [f"jobs/{row_id}"])
        return ended

    def interrupt(self, worker: str, error: RankdashError | None = None) -> None:
        """Interrupt the work of a worker, named by its token, including explanations and judges."""
        super().interrupt(worker, error)
        for each in self._others:
            each.interrupt(worker, error)

    def fail_waiting(self, error: RankdashError) -> None:
        """Fail every queued job, explanation and judge, because no worker can be started."""
        super().fail_waiting(error)
        for each in self._others:
            each.fail_waiting(error)

    def resume(self, job_id: str) -> None:
        """Append a job that stopped before its end to the queue again; do nothing for other
        jobs."""
        self._set(
            "state = 'queued', stage = 'waiting', queued = :now, cancel = 0, worker = NULL, "
            "problem = NULL, finished = NULL",
            "id = :id AND state IN ('failed', 'cancelled', 'interrupted')",
            id=job_id,
        )

    def retry(self, job_id: str, name: str, new_id: str) -> None:
        """Add a job that scores only the queries that failed in a done job. Raises StoreError if
        the results of the other queries are missing."""
        row = self.row(job_id)
        _copy_parts(self._workspace, job_id, new_id)
        same = ("dataset_id", "reranker", "settings", "depth", "sample", "seed", "timing",
                "without_text", "actors", "stop")  # fmt: skip
        self.submit(name=name, job_id=new_id, **{each: getattr(row, each) for each in same})

    def delete(self, row_id: str) -> None:
        """Delete a job and its unfinished results, not a finished run; a running job stops."""
        super().delete(row_id)
        folders.remove(self._workspace.root, [f"jobs/{row_id}"])

    def _parsed(self, row: sqlite3.Row) -> JobRow:
        return from_row(
            JobRow,
            row,
            settings=read_json(row, "settings", Settings),
            timing=read_json(row, "timing", dict[str, Any]),
            **{
                name: None if row[name] is None else read_json(row, name, dict[str, Any])
                for name in ("actors", "stop", "look")
            },
            **state_of(row),
        )


# The results of an unfinished job: one Parquet file per batch in `jobs/<id>/`.

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
    """Store one batch. Each row has the columns of the schema, lists as arrays; `computed`, a JSON
    object about the computation, may be missing."""
    workspace.database.refuse_read_only()
    folder = workspace.root / "jobs" / job_id
    with in_words(folder):
        folder.mkdir(parents=True, exist_ok=True)
    columns = {name: [row.get(name) for row in rows] for name in _SCHEMA.names}
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.parquet"
    write_table(folder / name, pa.table(columns, schema=_SCHEMA))


def has_parts(workspace: Workspace, job_id: str) -> bool:
    """Return whether results of a job are stored."""
    folder = workspace.root / "jobs" / job_id
    return (folder / JOURNAL).exists() or any(folder.glob("*.parquet"))


def _copy_parts(workspace: Workspace, job_id: str, new_id: str) -> None:
    """Copy the results of a job for another one. Raises StoreError if there are none."""
    workspace.database.refuse_read_only()
    if not has_parts(workspace, job_id):
        raise StoreError(
            "The results of the job {id!r} are not stored.",
            remedy="Start the run again; cached scores are used.",
            id=job_id,
        )
    folder = workspace.root / "jobs"
    with in_words(folder):
        shutil.copytree(folder / job_id, folder / new_id)


def read_parts(workspace: Workspace, job_id: str) -> pd.DataFrame:
    """Return all stored rows, the latest of each query, with the columns of the schema; a column
    that an older version did not write contains only None. Rows of a file that cannot be read are
    missing, and are scored again."""
    tables = [_SCHEMA.empty_table()]
    for file in sorted((workspace.root / "jobs" / job_id).glob("*.parquet")):
        with suppress(StoreError):
            tables.append(read_table(file))
    rows = cast(pd.DataFrame, pa.concat_tables(tables, promote_options="default").to_pandas())
    return rows.drop_duplicates("query_id", keep="last", ignore_index=True)
