"""The states of queued work: claim, beat, cancel, interrupt, finish; and who works on it.

    queued ──claim──▶ running ──finish, cancel──▶ done | failed | cancelled
                         │
                    interrupted   the worker died or fell silent

`Queue.resume` puts a job that failed, was cancelled or was interrupted back into the queue.

A worker owns what it claimed by its token, and everything it writes is conditional on still owning
it: a worker that was suspended and written off can neither overwrite nor finish what another one
has taken over, and one that wakes up before that simply carries on.
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
from rankdash.core.workspace.workspace import Workspace

State = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]
Ending = Literal["done", "failed", "cancelled", "interrupted"]
_Row = TypeVar("_Row")

# A worker beats once a second; this many missed beats mean that it is gone or hangs.
STALE_SECONDS = 10.0


@dataclass(frozen=True)
class Owner:
    """Who works on a job: a process, and a token that no other process ever has."""

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)


def lost(row: sqlite3.Row) -> bool:
    """Whether the worker of something that runs is dead or silent."""
    # A beat of the future is one of before the clock was set back.
    if abs(time.time() - row["heartbeat"]) > STALE_SECONDS:
        return True
    # Only POSIX can ask about a process without touching it.
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
    """An error as a row keeps it, to be said in any language later."""
    if error is None:
        return None
    return json.dumps(
        {"template": error.template, "remedy": error.remedy, "params": error.params}, default=str
    )


def problem_from_json(problem: str | None) -> RankdashError | None:
    """The error that `problem_to_json` wrote; one that says so for a text that it did not write."""
    if problem is None:
        return None
    try:
        stored = cast(dict[str, object], json.loads(problem))
        params = cast(dict[str, object], stored["params"])
        error = RankdashError(str(stored["template"]), remedy=str(stored["remedy"]), **params)
        # Its words have to fit together.
        str(error)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as refusal:
        return unreadable("problem", str(refusal))
    return error


def state_of(row: sqlite3.Row) -> dict[str, Any]:
    """Whether work on a row is to stop and has not yet, and why it failed or stopped."""
    cancelling = bool(row["cancel"]) and row["state"] == "running"
    return {"cancelling": cancelling, "error": problem_from_json(row["problem"])}


class Leases(Generic[_Row]):
    """The rows of a table that wait for a worker or have had one; each step is a transaction.

    table: has the columns id, state, cancel, worker, host, pid, heartbeat, problem, queued and
        finished; `unreadable`, `rows` and `row` need dataset_id, name and created too. on_claim,
        on_stop, on_end: what else is set where a row is claimed, where its work stops, and where
        its owner ends it. missing: what to raise for an id that does not exist.

    Every method raises StoreError where the workspace cannot be used.
    """

    table: ClassVar[str]
    on_claim: ClassVar[str] = ""
    on_stop: ClassVar[str] = ""
    on_end: ClassVar[str] = ""
    missing: ClassVar[str]

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._database = workspace.database

    def _made(self, row: sqlite3.Row) -> _Row:
        """What a row says. Raises StoreError if rankdash did not write it."""
        raise NotImplementedError

    def rows(self, dataset_id: str | None = None) -> list[_Row]:
        """Those of a data set, or all, oldest first. What has no live worker is interrupted."""
        return self._living(lambda: self._of_dataset(dataset_id))

    def row(self, row_id: str) -> _Row:
        row = self._database.row(self.table, id=row_id)
        if row is None:
            again = "It may have been deleted in another window."
            raise StoreError(self.missing, remedy=again, id=row_id)
        return self._made(row)

    def delete(self, row_id: str) -> None:
        """Delete a row and what belongs to it; work on one that runs stops."""
        with self._database.writing() as db:
            delete(db, self.table, id=row_id)

    def unreadable(self, dataset_id: str) -> dict[str, tuple[str, StoreError]]:
        """id → name, and what is wrong with it, of each row of a data set that the lists are
        without."""
        problems = {}
        for row in self._of_dataset(dataset_id):
            try:
                self._made(row)
            except StoreError as error:
                problems[str(row["id"])] = str(row["name"]), error
        return problems

    def any_waits(self) -> bool:
        """Whether there is anything to claim."""
        return self._database.row(self.table, state="queued") is not None

    def claim(self, owner: Owner) -> _Row | None:
        """Take what has waited longest; None where nothing waits."""
        if not self.any_waits():
            return None
        waiting = (
            f"SELECT id FROM {self.table} WHERE state = 'queued' ORDER BY queued, rowid LIMIT 1"  # noqa: S608
        )
        taken = self._set(
            f"state = 'running', worker = :token, host = :host, pid = :pid, heartbeat = :time "
            f"{self.on_claim}",
            f"id = ({waiting})",
            **vars(owner),
        )
        if not taken:
            return None
        try:
            return self._made(taken[0])
        except StoreError as error:
            self.finish(taken[0]["id"], owner, "failed", error)
            return None

    def beat(self, row_id: str, owner: Owner) -> bool:
        """Say that the owner is alive; False when it has to stop: cancelled, deleted or lost.

        What was written off as interrupted, and not taken over, is running again.
        """
        running = self._set(
            "heartbeat = :time, state = 'running', problem = NULL, finished = NULL",
            "id = :id AND worker = :token AND state IN ('running', 'interrupted')",
            id=row_id,
            token=owner.token,
        )
        return bool(running) and not running[0]["cancel"]

    def cancel(self, row_id: str) -> None:
        """Cancel at once what waits, and ask the worker to stop what runs; else without effect."""
        self._set(
            "cancel = (state = 'running'), finished = iif(state = 'queued', :now, finished), "
            "state = iif(state = 'queued', 'cancelled', state)",
            "id = :id AND state IN ('queued', 'running')",
            id=row_id,
        )

    def interrupt(self, worker: str, error: RankdashError | None = None) -> None:
        """Write off what a worker, named by its token, was doing."""
        self._set(
            "state = iif(cancel, 'cancelled', 'interrupted'), problem = :problem, finished = :now "
            f"{self.on_stop}",
            "worker = :worker AND state = 'running'",
            worker=worker,
            problem=problem_to_json(error),
        )

    def fail_waiting(self, error: RankdashError) -> None:
        """Fail everything that waits, because no worker can be had."""
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
        """End the owner's work, and set further columns; False, and without effect, when it is no
        longer the owner's."""
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
        """What `find` finds and can be read, once what has no live worker is interrupted."""
        records = find()
        gone = {row["worker"] for row in records if row["state"] == "running" and lost(row)}
        if gone and not self._workspace.read_only:
            for token in gone:
                self.interrupt(token)
            records = find()
        rows = []
        for row in records:
            with suppress(StoreError):
                rows.append(self._made(row))
        return rows

    def _of_dataset(self, dataset_id: str | None) -> list[sqlite3.Row]:
        return self._database.rows(self.table, "created, rowid", dataset_id=dataset_id)

    def _own(self, row_id: str, owner: Owner, **values: object) -> bool:
        """Set columns; False, and without effect, when the row is no longer the owner's."""
        changes = ", ".join(f"{name} = :{name}" for name in values)
        where = "id = :id AND worker = :token"
        return bool(self._set(changes, where, id=row_id, token=owner.token, **values))

    def _set(self, what: str, where: str, **values: object) -> list[sqlite3.Row]:
        """Change rows, and give them as they are then. what, where: of us, over the values, :now
        and :time."""
        change = f"UPDATE {self.table} SET {what} WHERE {where} RETURNING *"  # noqa: S608
        with self._database.writing() as db:
            return db.execute(change, {**values, "now": now(), "time": time.time()}).fetchall()


# Why a document got its score: what was asked, how far it is, and what was found.
#
# An explanation is asked for by run, query, document and level, and kept under them, so that asking
# again costs nothing. It is claimed, beats and ends as a job does
# (`rankdash.core.workspace.jobs.queue`), but has a table of its own: it takes seconds, so that a
# worker takes it between the batches of a long job.


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
    """The explanations of a workspace; they go with their run. One that is deleted can be asked for
    again."""

    table = "explanations"

    def ask(self, request: Asked) -> str:
        """Queue it unless it is done or under way, and return its id.

        Raises StoreError where there is no such run.
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

    def find(self, request: Asked) -> ExplanationRow | None:
        """How far it is; None where it was never asked for. Without a live worker, what runs is
        interrupted."""
        rows = self._living(lambda: self._database.rows(self.table, id=request.id))
        return rows[0] if rows else None

    def progress(self, explanation_id: str, owner: Owner, done: int, total: int) -> None:
        self._own(explanation_id, owner, done=done, total=total)

    def _made(self, row: sqlite3.Row) -> ExplanationRow:
        return from_row(ExplanationRow, row, asked=from_row(Asked, row), **state_of(row))
