"""Why a document got its score: what was asked, how far it is, and what was found.

An explanation is asked for by run, query, document and level, and kept under them, so that asking
again costs nothing. It is claimed, beats and ends as a job does
(`rankdash.core.workspace.jobs.queue`), but has a table of its own: it takes seconds, so that a
worker takes it between the batches of a long job.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass

from rankdash.core.base.errors import RankdashError
from rankdash.core.workspace.failures import dataset_of_run
from rankdash.core.workspace.jobs.leases import Leases, Owner, State, problem_from_json
from rankdash.core.workspace.rows import now


@dataclass(frozen=True)
class Asked:
    """What is to be explained. level: as in `rankdash.features.queries.occlusion`."""

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


class Explanations(Leases["ExplanationRow"]):
    """The explanations of a workspace; they go with their run. Every method raises StoreError where
    the workspace cannot be used."""

    table = "explanations"

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
        found = self._living(lambda: [row for row in [self._one(asked.id)] if row is not None])
        return found[0] if found else None

    def delete(self, explanation_id: str) -> None:
        """Delete an explanation, so that it can be asked for again."""
        with self._database.writing() as db:
            db.execute("DELETE FROM explanations WHERE id = ?", (explanation_id,))

    def progress(self, explanation_id: str, owner: Owner, done: int, total: int) -> None:
        self._set(
            "done = :done, total = :total",
            "id = :id AND worker = :token",
            id=explanation_id,
            token=owner.token,
            done=done,
            total=total,
        )

    def _made(self, row: sqlite3.Row) -> ExplanationRow:
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
