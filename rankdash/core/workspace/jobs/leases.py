"""The states of queued work (claim, beat, cancel, interrupt, finish) and its worker.

    queued ──claim──▶ running ──finish, cancel──▶ done | failed | cancelled
                         │
                    interrupted   the worker died or is silent

`Queue.resume` puts a job that failed, was cancelled or was interrupted back into the queue.

A worker owns a claimed row by its token, and each of its writes requires that it still owns the
row. A worker that was suspended and marked as interrupted can therefore neither overwrite nor
finish work that another worker took over; if no other worker did, it continues.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

from rankdash.core.base.errors import RankdashError, StoreError
from rankdash.core.workspace.database import delete, find, from_row, now
from rankdash.core.workspace.failures import unreadable
from rankdash.core.workspace.jobs.former_errors import in_current_words
from rankdash.core.workspace.workspace import Workspace

State = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]
Ending = Literal["done", "failed", "cancelled", "interrupted"]
_Row = TypeVar("_Row")

# A worker sends a heartbeat once per second; after this time without one it is dead or hangs.
STALE_SECONDS = 10.0


@dataclass(frozen=True)
class Owner:
    """The process that works on a row, with a token that no other process ever has."""

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)


def lost(row: sqlite3.Row) -> bool:
    """Return whether the worker of a running row is dead or silent."""
    # A heartbeat in the future is from before the clock was set back.
    if abs(time.time() - row["heartbeat"]) > STALE_SECONDS:
        return True
    # Only POSIX can check a process without affecting it.
    if os.name != "posix" or row["host"] != socket.gethostname():
        return False
    try:
        os.kill(row["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def problem_to_json(error: RankdashError | None) -> str | None:
    """Return an error as a row stores it, so that it can be translated later."""
    if error is None:
        return None
    return json.dumps(
        {"template": error.template, "remedy": error.remedy, "params": error.params}, default=str
    )


def problem_from_json(problem: str | None) -> RankdashError | None:
    """Return the error that `problem_to_json` wrote; for any other text, an error about an
    unreadable problem."""
    if problem is None:
        return None
    try:
        stored = cast(dict[str, object], json.loads(problem))
        params = cast(dict[str, object], stored["params"])
        template, remedy = (in_current_words(str(stored[name])) for name in ("template", "remedy"))
        error = RankdashError(template, remedy=remedy, **params)
        # Check that the fields fit the template.
        str(error)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as refusal:
        return unreadable("problem", str(refusal))
    return error


def state_of(row: sqlite3.Row) -> dict[str, Any]:
    """Return whether work on a row is being cancelled, and why it failed or stopped."""
    cancelling = bool(row["cancel"]) and row["state"] == "running"
    return {"cancelling": cancelling, "error": problem_from_json(row["problem"])}


class Leases(Generic[_Row]):
    """The rows of a table that wait for a worker or have had one; each step is a transaction.

    table: has the columns id, state, cancel, worker, host, pid, heartbeat, problem, queued and
        finished; `unreadable`, `rows` and `row` need dataset_id, name and created too.
    on_claim, on_stop, on_end: further SQL assignments when a row is claimed, its work stops, and
        its owner ends it.
    missing: the error message for an id that does not exist.

    Every method raises StoreError if the workspace cannot be used.
    """

    table: ClassVar[str]
    on_claim: ClassVar[str] = ""
    on_stop: ClassVar[str] = ""
    on_end: ClassVar[str] = ""
    missing: ClassVar[str]

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._database = workspace.database

    def _parsed(self, row: sqlite3.Row) -> _Row:
        """Return the content of a row. Raises StoreError if rankdash did not write it."""
        raise NotImplementedError

    def rows(self, dataset_id: str | None = None) -> list[_Row]:
        """Return the rows of a data set, or all, oldest first. Rows without a live worker are
        interrupted."""
        return self._living(lambda: self._of_dataset(dataset_id))

    def row(self, row_id: str) -> _Row:
        row = self._database.row(self.table, id=row_id)
        if row is None:
            again = "It may have been deleted in another window."
            raise StoreError(self.missing, remedy=again, id=row_id)
        return self._parsed(row)

    def delete(self, row_id: str) -> None:
        """Delete a row and everything that belongs to it; its work stops."""
        with self._database.writing() as db:
            delete(db, self.table, id=row_id)

    def unreadable(self, dataset_id: str) -> dict[str, tuple[str, StoreError]]:
        """Return id → (name, error), for each row of a data set that the lists omit."""
        problems = {}
        for row in self._of_dataset(dataset_id):
            try:
                self._parsed(row)
            except StoreError as error:
                problems[str(row["id"])] = str(row["name"]), error
        return problems

    def any_waits(self) -> bool:
        """Return whether there is anything to claim."""
        return self._database.row(self.table, state="queued") is not None

    def claim(self, owner: Owner) -> _Row | None:
        """Claim the row that has waited longest; return None if no row waits."""
        if not self.any_waits():
            return None
        waiting = (
            f"SELECT id FROM {self.table} WHERE state = 'queued' ORDER BY queued, rowid LIMIT 1"  # noqa: S608
        )
        claimed = self._set(
            f"state = 'running', worker = :token, host = :host, pid = :pid, heartbeat = :time "
            f"{self.on_claim}",
            f"id = ({waiting})",
            **vars(owner),
        )
        if not claimed:
            return None
        try:
            return self._parsed(claimed[0])
        except StoreError as error:
            self.finish(claimed[0]["id"], owner, "failed", error)
            return None

    def beat(self, row_id: str, owner: Owner) -> bool:
        """Send a heartbeat. Return False if the owner has to stop, because the row was cancelled,
        deleted or taken over.

        An interrupted row that was not taken over is running again.
        """
        running = self._set(
            "heartbeat = :time, state = 'running', problem = NULL, finished = NULL",
            "id = :id AND worker = :token AND state IN ('running', 'interrupted')",
            id=row_id,
            token=owner.token,
        )
        return bool(running) and not running[0]["cancel"]

    def cancel(self, row_id: str) -> None:
        """Cancel a queued row immediately, or request the worker to stop a running one; do nothing
        for others."""
        self._set(
            "cancel = (state = 'running'), finished = iif(state = 'queued', :now, finished), "
            "state = iif(state = 'queued', 'cancelled', state)",
            "id = :id AND state IN ('queued', 'running')",
            id=row_id,
        )

    def interrupt(self, worker: str, error: RankdashError | None = None) -> None:
        """Interrupt the work of a worker, named by its token."""
        self._set(
            "state = iif(cancel, 'cancelled', 'interrupted'), problem = :problem, finished = :now "
            f"{self.on_stop}",
            "worker = :worker AND state = 'running'",
            worker=worker,
            problem=problem_to_json(error),
        )

    def fail_waiting(self, error: RankdashError) -> None:
        """Fail every queued row, because no worker can be started."""
        self._set(
            "state = 'failed', problem = :problem, finished = :now",
            "state = 'queued'",
            problem=problem_to_json(error),
        )

    def finish(
        self,
        row_id: str,
        owner: Owner,
        state: Ending,
        error: RankdashError | None = None,
        **also: object,
    ) -> bool:
        """End the owner's work, and set further columns. Return False, without effect, if the owner
        no longer owns the row."""
        ended = self._set(
            "state = :state, problem = :problem, finished = :now, cancel = 0, worker = NULL "
            + self.on_stop
            + self.on_end
            + "".join(f", {name} = :{name}" for name in also),
            "id = :id AND worker = :token",
            id=row_id,
            token=owner.token,
            state=state,
            problem=problem_to_json(error),
            **also,
        )
        return bool(ended)

    def _living(self, find: Callable[[], list[sqlite3.Row]]) -> list[_Row]:
        """Return the readable rows that `find` finds, after rows without a live worker are
        interrupted."""
        records = find()
        lost_workers = {row["worker"] for row in records if row["state"] == "running" and lost(row)}
        if lost_workers and not self._workspace.read_only:
            for token in lost_workers:
                self.interrupt(token)
            records = find()
        rows = []
        for row in records:
            with suppress(StoreError):
                rows.append(self._parsed(row))
        return rows

    def _of_dataset(self, dataset_id: str | None) -> list[sqlite3.Row]:
        return self._database.rows(self.table, "created, rowid", dataset_id=dataset_id)

    def _update_owned(self, row_id: str, owner: Owner, **values: object) -> bool:
        """Set columns. Return False, without effect, if the owner no longer owns the row."""
        changes = ", ".join(f"{name} = :{name}" for name in values)
        where = "id = :id AND worker = :token"
        return bool(self._set(changes, where, id=row_id, token=owner.token, **values))

    def _set(self, what: str, where: str, **values: object) -> list[sqlite3.Row]:
        """Change rows, and return them after the change. what, where: SQL of rankdash, over the
        values, :now and :time."""
        change = f"UPDATE {self.table} SET {what} WHERE {where} RETURNING *"  # noqa: S608
        with self._database.writing() as db:
            return db.execute(change, {**values, "now": now(), "time": time.time()}).fetchall()


# Explanations of a document's score: request, progress and result.
#
# An explanation is requested by run, query, document and level, and stored under them, so that a
# repeated request costs nothing. It is claimed, sends heartbeats and ends as a job does
# (`rankdash.core.workspace.jobs.queue`), but has a separate table: it takes seconds, so a worker
# does it between the batches of a long job.


@dataclass(frozen=True)
class ExplanationRequest:
    """The request for an explanation. level: as in `rankdash.features.queries.occlusion`."""

    run_id: str
    query_id: str
    doc_id: str
    level: str

    @property
    def id(self) -> str:
        """A hash of the request: equal requests have equal ids."""
        parts = [self.run_id, self.query_id, self.doc_id, self.level]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ExplanationRow:
    """An explanation.

    done, total: (query, document) pairs scored for it; total is 0 before it begins.
    result: JSON, None before it is done. error: why it failed or stopped.
    """

    id: str
    asked: ExplanationRequest
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
    """The explanations of a workspace; they are deleted with their run, and a deleted one can be
    requested again."""

    table = "explanations"

    def ask(self, request: ExplanationRequest) -> str:
        """Queue an explanation unless it is done, queued or running; return its id.

        Raises StoreError if the run does not exist.
        """
        with self._database.writing() as db:
            find(db, "runs", request.run_id, "id")
            db.execute(
                """
                INSERT INTO explanations (id, run_id, query_id, doc_id, level, queued)
                VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET state = 'queued', cancel = 0, worker = NULL,
                       done = 0, total = 0, problem = NULL, finished = NULL,
                       queued = excluded.queued
                WHERE state IN ('failed', 'cancelled', 'interrupted')
                """,
                (request.id, *vars(request).values(), now()),
            )
        return request.id

    def find(self, request: ExplanationRequest) -> ExplanationRow | None:
        """Return the state of an explanation; None if it was never requested. A running one without
        a live worker is interrupted."""
        rows = self._living(lambda: self._database.rows(self.table, id=request.id))
        return rows[0] if rows else None

    def progress(self, explanation_id: str, owner: Owner, done: int, total: int) -> None:
        self._update_owned(explanation_id, owner, done=done, total=total)

    def _parsed(self, row: sqlite3.Row) -> ExplanationRow:
        return from_row(
            ExplanationRow, row, asked=from_row(ExplanationRequest, row), **state_of(row)
        )
