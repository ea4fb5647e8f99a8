"""The job queue: rows that a server adds and a worker claims, one transaction a step.

    queued ──claim──▶ running ──▶ done | failed | cancelled
       ▲                 │
       └──requeue── interrupted   the worker died or fell silent; also from failed and cancelled

A worker owns what it claimed by its token, and everything it writes is conditional on still owning
it: a worker that was suspended and written off can neither overwrite nor finish a job that another
one has taken over, and one that wakes up before that simply carries on.
"""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rankdash.errors import RankdashError, StoreError
from rankdash.store import folders
from rankdash.store.failures import refuse_unknown
from rankdash.store.jobs.explanations import Explanations
from rankdash.store.jobs.worker_lease import STALE_SECONDS as STALE_SECONDS
from rankdash.store.jobs.worker_lease import Owner as Owner
from rankdash.store.jobs.worker_lease import lost, problem_from_json, problem_to_json
from rankdash.store.rows import now
from rankdash.store.workspace import Workspace

JobState = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]
Stage = Literal["waiting", "loading", "scoring", "timing"]

LIVE: tuple[JobState, ...] = ("queued", "running")


@dataclass(frozen=True)
class JobRow:
    """A job. Times are ISO 8601 in UTC, None where not reached.

    sample: how many queries are drawn with `seed`; None for all.
    timing: what is measured beside the scores, as its submitter wrote it; empty where by default.
    grid: what the variants of one wish have in common; None for a job of its own.
    cancelling: whether it was asked to stop and has not yet.
    done, failed, total: queries. pairs_done, pairs_total: (query, document) pairs.
    rate_pairs_s, seconds_left: of the current scoring; None where not known.
    load_ms: the latest cold start; None before it.
    error: why it failed or stopped; None where nothing went wrong.
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
    grid: str | None
    state: JobState
    stage: Stage
    cancelling: bool
    done: int
    failed: int
    total: int
    pairs_done: int
    pairs_total: int
    rate_pairs_s: float | None
    seconds_left: float | None
    load_ms: float | None
    error: RankdashError | None
    created: str
    started: str | None
    finished: str | None

    @property
    def message(self) -> str:
        """What went wrong and what to do about it, in English; "" where nothing did."""
        return "" if self.error is None else str(self.error)


@dataclass(frozen=True)
class Progress:
    """How far a job is; the fields are those of `JobRow`."""

    stage: Stage = "waiting"
    done: int = 0
    failed: int = 0
    total: int = 0
    pairs_done: int = 0
    pairs_total: int = 0
    rate_pairs_s: float | None = None
    seconds_left: float | None = None
    load_ms: float | None = None


def new_id() -> str:
    """An id that no other job has."""
    return uuid.uuid4().hex[:16]


class Queue:
    """The jobs of a workspace. Every method raises StoreError where it cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._database = workspace.database
        self._explanations = Explanations(workspace)

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
        grid: str | None = None,
        job_id: str | None = None,
    ) -> str:
        """Add a job at the end of the queue; return its id, which its run will have too."""
        job_id = job_id or new_id()
        created = now()
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            db.execute(
                """
                INSERT INTO jobs (id, dataset_id, name, reranker, settings, depth, sample, seed,
                                  timing, grid, created, queued)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
                (
                    job_id,
                    dataset_id,
                    name,
                    reranker,
                    json.dumps(dict(settings)),
                    depth,
                    sample,
                    seed,
                    json.dumps(dict(timing or {})),
                    grid,
                    created,
                    created,
                ),
            )
        return job_id

    def rows(self, dataset_id: str | None = None) -> list[JobRow]:
        """The jobs of a data set, or all, oldest first. What has no live worker is interrupted."""
        with self._database.reading() as db:
            found = _select(db, dataset_id)
        gone = {row["worker"] for row in found if row["state"] == "running" and lost(row)}
        if gone and not self._workspace.read_only:
            for token in gone:
                self.interrupt(token)
            with self._database.reading() as db:
                found = _select(db, dataset_id)
        return [_job_row(row) for row in found]

    def row(self, job_id: str) -> JobRow:
        with self._database.reading() as db:
            found = db.execute("SELECT * FROM jobs WHERE id = ?", (job_id,)).fetchone()
        if found is None:
            raise _no_job(job_id)
        return _job_row(found)

    def claim(self, owner: Owner) -> JobRow | None:
        """Take the job that has waited longest; None where none waits."""
        with self._database.reading() as db:
            if not _first_queued(db):
                return None
        with self._database.writing() as db:
            waiting = _first_queued(db)
            if waiting is None:
                return None
            job_id = waiting["id"]
            db.execute(
                """
                UPDATE jobs SET state = 'running', stage = 'loading', worker = ?, host = ?, pid = ?,
                       heartbeat = ?, started = COALESCE(started, ?)
                WHERE id = ?
                """,
                (owner.token, owner.host, owner.pid, time.time(), now(), job_id),
            )
            return _job_row(db.execute("SELECT * FROM jobs WHERE id = ?", (job_id,)).fetchone())

    def beat(self, job_id: str, owner: Owner) -> bool:
        """Say that the owner is alive; False when it has to stop: cancelled, deleted or lost.

        A job that was written off as interrupted, and not taken over, is running again.
        """
        with self._database.writing() as db:
            db.execute(
                """
                UPDATE jobs SET heartbeat = ?, state = 'running', problem = NULL, finished = NULL
                WHERE id = ? AND worker = ? AND state IN ('running', 'interrupted')
                """,
                (time.time(), job_id, owner.token),
            )
            return _owned(db, job_id, owner)

    def progress(self, job_id: str, owner: Owner, progress: Progress) -> None:
        """Show how far the job is; without effect when it is no longer the owner's."""
        with self._database.writing() as db:
            db.execute(
                """
                UPDATE jobs SET stage = :stage, done = :done, failed = :failed, total = :total,
                       pairs_done = :pairs_done, pairs_total = :pairs_total,
                       rate_pairs_s = :rate_pairs_s, seconds_left = :seconds_left,
                       load_ms = COALESCE(:load_ms, load_ms)
                WHERE id = :id AND worker = :worker
                """,
                {**vars(progress), "id": job_id, "worker": owner.token},
            )

    def finish(
        self,
        job_id: str,
        owner: Owner,
        state: Literal["done", "failed", "cancelled", "interrupted"],
        error: RankdashError | None = None,
    ) -> None:
        """End the owner's work on a job. The results of one that is done are the run's now."""
        with self._database.writing() as db:
            ended = db.execute(
                """
                UPDATE jobs SET state = ?, problem = ?, finished = ?, stage = 'waiting',
                       cancel = 0, worker = NULL, rate_pairs_s = NULL, seconds_left = NULL
                WHERE id = ? AND worker = ?
                """,
                (state, problem_to_json(error), now(), job_id, owner.token),
            ).rowcount
        if ended and state == "done":
            folders.remove(self._workspace.root, [f"jobs/{job_id}"])

    def interrupt(self, worker: str, error: RankdashError | None = None) -> None:
        """Write off what a worker, named by its token, was doing."""
        with self._database.writing() as db:
            db.execute(
                """
                UPDATE jobs SET state = CASE WHEN cancel THEN 'cancelled' ELSE 'interrupted' END,
                       problem = ?, finished = ?, rate_pairs_s = NULL, seconds_left = NULL
                WHERE worker = ? AND state = 'running'
                """,
                (problem_to_json(error), now(), worker),
            )
        self._explanations.interrupt(worker, error)

    def fail_waiting(self, error: RankdashError) -> None:
        """Fail every queued job and explanation, because no worker can be had."""
        with self._database.writing() as db:
            db.execute(
                "UPDATE jobs SET state = 'failed', problem = ?, finished = ? "
                "WHERE state = 'queued'",
                (problem_to_json(error), now()),
            )
        self._explanations.fail_waiting(error)

    def cancel(self, job_id: str) -> None:
        """Cancel at once what waits, and ask the worker to stop what runs; else without effect."""
        with self._database.writing() as db:
            db.execute("UPDATE jobs SET cancel = 1 WHERE id = ? AND state = 'running'", (job_id,))
            db.execute(
                "UPDATE jobs SET state = 'cancelled', finished = ? "
                "WHERE id = ? AND state = 'queued'",
                (now(), job_id),
            )

    def requeue(self, job_id: str) -> None:
        """Put a job that stopped before its end back into the queue, last; else without effect."""
        with self._database.writing() as db:
            db.execute(
                """
                UPDATE jobs SET state = 'queued', stage = 'waiting', queued = ?, cancel = 0,
                       worker = NULL, problem = NULL, finished = NULL
                WHERE id = ? AND state IN ('failed', 'cancelled', 'interrupted')
                """,
                (now(), job_id),
            )

    def delete(self, job_id: str) -> None:
        """Delete a job and its unfinished results, not a finished run; one that runs stops."""
        with self._database.writing() as db:
            db.execute("DELETE FROM jobs WHERE id = ?", (job_id,))
        folders.remove(self._workspace.root, [f"jobs/{job_id}"])


def _select(db: sqlite3.Connection, dataset_id: str | None) -> list[sqlite3.Row]:
    return db.execute(
        "SELECT * FROM jobs WHERE :dataset IS NULL OR dataset_id = :dataset "
        "ORDER BY created, rowid",
        {"dataset": dataset_id},
    ).fetchall()


def _first_queued(db: sqlite3.Connection) -> sqlite3.Row | None:
    row: sqlite3.Row | None = db.execute(
        "SELECT id FROM jobs WHERE state = 'queued' ORDER BY queued, rowid LIMIT 1"
    ).fetchone()
    return row


def _owned(db: sqlite3.Connection, job_id: str, owner: Owner) -> bool:
    row = db.execute(
        "SELECT cancel FROM jobs WHERE id = ? AND worker = ? AND state = 'running'",
        (job_id, owner.token),
    ).fetchone()
    return row is not None and not row["cancel"]


def _job_row(row: sqlite3.Row) -> JobRow:
    made = {
        "settings": json.loads(row["settings"]),
        "timing": json.loads(row["timing"]),
        "cancelling": bool(row["cancel"]) and row["state"] == "running",
        "error": problem_from_json(row["problem"]),
    }
    kept = {name: row[name] for name in JobRow.__dataclass_fields__ if name not in made}
    return JobRow(**kept, **made)


def _no_job(job_id: str) -> StoreError:
    return StoreError(
        "There is no job {id!r} in this workspace.",
        remedy="It may have been deleted in another window.",
        id=job_id,
    )
