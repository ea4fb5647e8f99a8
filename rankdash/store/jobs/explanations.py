"""Why a document got its score: what was asked, how far it is, and what was found.

An explanation is asked for by run, query, document and level, and kept under them, so that asking
again costs nothing. It is claimed, beats and ends as a job does (`rankdash.store.jobs.queue`),
but has a table of its own: it takes seconds, so that a worker takes it between the batches of a
long job.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from dataclasses import dataclass
from typing import Literal

from rankdash.errors import RankdashError
from rankdash.store.failures import dataset_of_run
from rankdash.store.jobs.worker_lease import Owner, lost, problem_from_json, problem_to_json
from rankdash.store.rows import now
from rankdash.store.workspace import Workspace

State = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True)
class Asked:
    """What is to be explained. level: as in `rankdash.analysis.reasons.occlusion`."""

    run_id: str
    query_id: str
    doc_id: str
    level: str

    @property
    def id(self) -> str:
        """The same for the same question."""
        parts = [self.run_id, self.query_id, self.doc_id, self.level]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ExplanationRow:
    """An explanation. done, total: (query, document) pairs scored for it; total is 0 before it
    begins. result: JSON, None before it is done. error: why it failed or stopped."""

    id: str
    asked: Asked
    state: State
    cancelling: bool
    done: int
    total: int
    result: str | None
    error: RankdashError | None

    @property
    def live(self) -> bool:
        return self.state in ("queued", "running")


class Explanations:
    """The explanations of a workspace; they go with their run. Every method raises StoreError where
    the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database
        self._read_only = workspace.read_only

    def ask(self, asked: Asked) -> str:
        """Queue it unless it is done or under way, and return its id.

        Raises StoreError where there is no such run.
        """
        with self._database.writing() as db:
            dataset_of_run(db, asked.run_id)
            db.execute(
                """
                INSERT INTO explanations (id, run_id, query_id, doc_id, level, queued)
                VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET state = 'queued', cancel = 0, worker = NULL,
                       done = 0, total = 0, problem = NULL, finished = NULL,
                       queued = excluded.queued
                WHERE state IN ('failed', 'cancelled', 'interrupted')
                """,
                (asked.id, *vars(asked).values(), now()),
            )
        return asked.id

    def find(self, asked: Asked) -> ExplanationRow | None:
        """How far it is; None where it was never asked for. Without a live worker, what runs is
        interrupted."""
        found = self._row(asked.id)
        dead = found is not None and found["state"] == "running" and lost(found)
        if found is not None and dead and not self._read_only:
            self.interrupt(found["worker"])
            found = self._row(asked.id)
        return None if found is None else _explanation_row(found)

    def claim(self, owner: Owner) -> ExplanationRow | None:
        """Take what has waited longest; None where nothing waits."""
        with self._database.reading() as db:
            if _first_queued(db) is None:
                return None
        with self._database.writing() as db:
            waiting = _first_queued(db)
            if waiting is None:
                return None
            db.execute(
                "UPDATE explanations SET state = 'running', worker = ?, host = ?, pid = ?, "
                "heartbeat = ? WHERE id = ?",
                (owner.token, owner.host, owner.pid, time.time(), waiting["id"]),
            )
            return _explanation_row(
                db.execute("SELECT * FROM explanations WHERE id = ?", (waiting["id"],)).fetchone()
            )

    def beat(self, explanation_id: str, owner: Owner) -> bool:
        """Say that the owner is alive; False when it has to stop: cancelled, deleted or lost."""
        with self._database.writing() as db:
            db.execute(
                """
                UPDATE explanations SET heartbeat = ?, state = 'running', problem = NULL,
                       finished = NULL
                WHERE id = ? AND worker = ? AND state IN ('running', 'interrupted')
                """,
                (time.time(), explanation_id, owner.token),
            )
            row = db.execute(
                "SELECT cancel FROM explanations WHERE id = ? AND worker = ? AND state = 'running'",
                (explanation_id, owner.token),
            ).fetchone()
        return row is not None and not row["cancel"]

    def progress(self, explanation_id: str, owner: Owner, done: int, total: int) -> None:
        with self._database.writing() as db:
            db.execute(
                "UPDATE explanations SET done = ?, total = ? WHERE id = ? AND worker = ?",
                (done, total, explanation_id, owner.token),
            )

    def finish(
        self,
        explanation_id: str,
        owner: Owner,
        state: Literal["done", "failed", "cancelled", "interrupted"],
        result: str | None = None,
        error: RankdashError | None = None,
    ) -> None:
        """End the owner's work; without effect when it is no longer the owner's."""
        with self._database.writing() as db:
            db.execute(
                "UPDATE explanations SET state = ?, result = ?, problem = ?, finished = ?, "
                "cancel = 0, worker = NULL WHERE id = ? AND worker = ?",
                (state, result, problem_to_json(error), now(), explanation_id, owner.token),
            )

    def cancel(self, explanation_id: str) -> None:
        """Cancel at once what waits, and ask the worker to stop what runs; else without effect."""
        with self._database.writing() as db:
            db.execute(
                "UPDATE explanations SET cancel = 1 WHERE id = ? AND state = 'running'",
                (explanation_id,),
            )
            db.execute(
                "UPDATE explanations SET state = 'cancelled', finished = ? "
                "WHERE id = ? AND state = 'queued'",
                (now(), explanation_id),
            )

    def interrupt(self, worker: str, error: RankdashError | None = None) -> None:
        """Write off what a worker, named by its token, was doing."""
        with self._database.writing() as db:
            db.execute(
                """
                UPDATE explanations
                SET state = CASE WHEN cancel THEN 'cancelled' ELSE 'interrupted' END,
                    problem = ?, finished = ?
                WHERE worker = ? AND state = 'running'
                """,
                (problem_to_json(error), now(), worker),
            )

    def fail_waiting(self, error: RankdashError) -> None:
        """Fail everything that waits, because no worker can be had."""
        with self._database.writing() as db:
            db.execute(
                "UPDATE explanations SET state = 'failed', problem = ?, finished = ? "
                "WHERE state = 'queued'",
                (problem_to_json(error), now()),
            )

    def _row(self, explanation_id: str) -> sqlite3.Row | None:
        with self._database.reading() as db:
            row: sqlite3.Row | None = db.execute(
                "SELECT * FROM explanations WHERE id = ?", (explanation_id,)
            ).fetchone()
        return row


def _first_queued(db: sqlite3.Connection) -> sqlite3.Row | None:
    row: sqlite3.Row | None = db.execute(
        "SELECT id FROM explanations WHERE state = 'queued' ORDER BY queued, rowid LIMIT 1"
    ).fetchone()
    return row


def _explanation_row(row: sqlite3.Row) -> ExplanationRow:
    return ExplanationRow(
        id=row["id"],
        asked=Asked(row["run_id"], row["query_id"], row["doc_id"], row["level"]),
        state=row["state"],
        cancelling=bool(row["cancel"]) and row["state"] == "running",
        done=row["done"],
        total=row["total"],
        result=row["result"],
        error=problem_from_json(row["problem"]),
    )
