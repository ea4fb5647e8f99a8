"""The SQLite database of a workspace: its rows, and connections to the file.

Each call uses a short-lived connection, so any thread may call, or a thread uses one connection for
everything that it reads in a block.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from msgspec import convert

from rankdash.core.base.errors import StoreError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import FEWEST_TIMED
from rankdash.core.data.ranking import Run
from rankdash.core.workspace import checksums, migrations
from rankdash.core.workspace.checksums import today
from rankdash.core.workspace.failures import (
    family_of,
    in_words,
    is_full,
    unreadable,
)

_Class = TypeVar("_Class")
_Scalar = str | int | float | bool | None
Settings = dict[str, str | int | float | bool]
"""Settings of a reranker or a judge."""

Record = dict[str, _Scalar | list[_Scalar] | dict[str, _Scalar]]
"""Names and values, as the settings and the machine of a run are stored."""


@dataclass(frozen=True)
class DatasetRow:
    """A stored data set. `created` is ISO 8601 in UTC; the counts are numbers of table rows."""

    id: str
    name: str
    created: str
    queries: int
    documents: int
    labels: int
    source: str
    first_stage: str
    candidates_name: str


@dataclass(frozen=True)
class RunRow:
    """A stored run. `created` is ISO 8601 in UTC.

    load_ms, p50_ms, p95_ms: the cold start, and quantiles of the latency of a query in
        milliseconds; NaN if not measured.
    pairs_per_second: of the scoring only, including work on the index; None if not measured.
    """

    id: str
    name: str
    dataset_id: str
    reranker: str
    settings: Mapping[str, object]
    depth: int | None
    created: str
    queries_done: int
    queries_failed: int
    queries_skipped: int
    load_ms: float
    p50_ms: float
    p95_ms: float
    pairs_per_second: float | None


def from_row(kind: type[_Class], row: sqlite3.Row, **other: Any) -> _Class:
    """Return a dataclass whose fields are columns of a row, except those in `other`."""
    names: Iterable[str] = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return kind(**{name: row[name] for name in names if name not in other}, **other)


def run_row(row: sqlite3.Row) -> RunRow:
    """Return the list entry of a run; without settings if `refuse_run` refuses them."""
    try:
        settings = read_json(row, "settings", Record)
    except StoreError:
        settings = {}
    times = {name: or_nan(row[name]) for name in ("load_ms", "p50_ms", "p95_ms")}
    return from_row(RunRow, row, settings=settings, **times)


def dataset_values(dataset: Dataset, source: str, report_json: str) -> dict[str, object]:
    """Return the columns of a data set's row, without its folder; it is created now."""
    return {
        "id": dataset.id,
        "name": dataset.name,
        "created": now(),
        "source": source,
        "first_stage": dataset.first_stage,
        **({"candidates_name": dataset.candidates_name} if dataset.candidates_name else {}),
        "queries": len(dataset.queries),
        "documents": len(dataset.documents),
        "labels": len(dataset.qrels),
        "report": report_json,
    }


def run_values(run: Run) -> dict[str, object]:
    """Return the columns of a run's row, without its folder."""
    states = run.queries["state"].value_counts()
    done = run.queries[run.queries["state"] == "done"]
    latency = done["latency_ms"].to_numpy(dtype=np.float64)
    latency = latency[np.isfinite(latency)]
    p50 = np.quantile(latency, 0.5) if len(latency) else math.nan
    p95 = np.quantile(latency, 0.95) if len(latency) >= FEWEST_TIMED else math.nan
    rate = math.nan if run.measured is None else run.measured.pairs_per_second
    return {
        "id": run.id,
        "dataset_id": run.dataset_id,
        "name": run.name,
        "reranker": run.reranker,
        "settings": json.dumps(dict(run.settings)),
        "machine": json.dumps(dict(run.machine)),
        "depth": run.depth,
        "created": run.created or now(),
        "queries_done": int(states.get("done", 0)),
        "queries_failed": int(states.get("failed", 0)),
        "queries_skipped": int(states.get("skipped", 0)),
        "load_ms": _finite_or_none(run.load_ms),
        "p50_ms": _finite_or_none(p50),
        "p95_ms": _finite_or_none(p95),
        "pairs_per_second": _finite_or_none(rate),
    }


def refuse_run(row: sqlite3.Row) -> None:
    """Raise StoreError if the settings or the machine of a run cannot be read."""
    for column in ("settings", "machine"):
        read_json(row, column, Record)


def read_json(row: sqlite3.Row | Mapping[str, Any], column: str, kind: Any) -> Any:
    """Return the JSON of a column as the type `kind`. Raises StoreError for any other value."""
    try:
        return convert(json.loads(row[column]), kind)
    except (ValueError, TypeError, RecursionError) as error:
        raise unreadable(column, str(error)) from error


# Rows of a table. The table, columns and order come from rankdash; `where`: column → value.


def select(
    db: sqlite3.Connection, table: str, order: str = "rowid", **where: object
) -> list[sqlite3.Row]:
    """Return whole rows; a read-only connection verifies them. A value of None matches any
    value."""
    cursor = db.execute(f"SELECT * FROM {table} {_test(where)} ORDER BY {order}", where)  # noqa: S608
    return cursor.fetchall()


def delete(db: sqlite3.Connection, table: str, **where: object) -> None:
    db.execute(f"DELETE FROM {table} {_test(where)}", where)  # noqa: S608


def _test(where: Mapping[str, object]) -> str:
    tests = [f"{name} = :{name}" for name, value in where.items() if value is not None]
    return "WHERE " + " AND ".join(tests) if tests else ""


def find(db: sqlite3.Connection, table: str, key: str, columns: str = "*") -> sqlite3.Row:
    """Return the row of a data set or run. Raises StoreError if it does not exist. table:
    "datasets" or "runs"."""
    question = f"SELECT {columns} FROM {table} WHERE id = ?"  # noqa: S608
    row: sqlite3.Row | None = db.execute(question, (key,)).fetchone()
    if row is None:
        raise StoreError(
            "There is no data set {id!r} in this workspace."
            if table == "datasets"
            else "There is no run {id!r} in this workspace.",
            remedy="It may have been deleted in another window; choose another.",
            id=key,
        )
    return row


def named_folders(db: sqlite3.Connection) -> set[str]:
    """Return the folders that rows name."""
    rows = db.execute(
        "SELECT folder FROM datasets UNION SELECT folder FROM runs "
        "UNION SELECT 'jobs/' || id FROM jobs"
    )
    return {row[0] for row in rows}


def insert(
    db: sqlite3.Connection, table: str, values: Mapping[str, object], where_there: str = "OR IGNORE"
) -> bool:
    """Add a row; return whether it was added. where_there: SQLite's action if the row exists."""
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    statement = f"INSERT {where_there} INTO {table} ({names}) VALUES ({places})"  # noqa: S608
    return bool(db.execute(statement, values).rowcount)


def now() -> str:
    """Return the time in UTC, ISO 8601, with milliseconds so that quick successions stay in
    order."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def or_nan(value: float | None) -> float:
    return math.nan if value is None else value


_READ_ONLY = StoreError(
    "This workspace is open for reading only: nothing in it can be changed.",
    remedy="Start rankdash without RANKDASH_READ_ONLY to change it.",
)

# Longer than any transaction of rankdash, so a longer wait has another cause.
BUSY_SECONDS = 10.0

_NOTHING_BESIDE = {
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL),
}


def migrate(db: sqlite3.Connection, file: Path) -> None:
    """Take the missing migration steps, all or none; the database is backed up first.

    Raises StoreError if the workspace was written by a newer rankdash.
    """
    if version_of(db) == len(migrations.MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated while this one waited for the lock.
        version = version_of(db)
        _refuse_newer(version, file)
        if 0 < version < len(migrations.MIGRATIONS):
            checksums.make_backup(file)
        for step in migrations.MIGRATIONS[version:]:
            step(db)
        if migrations.rows_with_checksums in migrations.MIGRATIONS:
            checksums.keep_schema(db)
        db.execute(f"PRAGMA user_version = {len(migrations.MIGRATIONS)}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _refuse_other_versions(db: sqlite3.Connection, file: Path) -> None:
    """Raise StoreError if the workspace needs a migration, or was written by a newer rankdash."""
    version = version_of(db)
    _refuse_newer(version, file)
    if version < len(migrations.MIGRATIONS):
        raise StoreError(
            "The workspace {file} was written by an older version of rankdash.",
            remedy="Start rankdash once without RANKDASH_READ_ONLY: that brings it up to date.",
            file=str(file),
        )


def _refuse_newer(version: int, file: Path) -> None:
    if version > len(migrations.MIGRATIONS):
        raise StoreError(
            "The workspace {file} was written by a newer version of rankdash.",
            remedy="Update rankdash, or set RANKDASH_HOME to an empty or new folder.",
            file=str(file),
        )


def version_of(db: sqlite3.Connection) -> int:
    """Return how many migration steps a database has taken; 0 for one without a table."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


class Database:
    """Access to the SQLite file `file`, which is created and brought up to date by `prepare`.

    read_only: the file must exist and be up to date, and nothing is written, not even next to it.
    refusal: the error that is raised for a write to a read-only database.
    each_day: called before the first write of a day, until it returns True.

    Every method raises StoreError if the file cannot be read or written.
    """

    def __init__(
        self,
        file: Path,
        prepare: Callable[[sqlite3.Connection, Path], None] = migrate,
        *,
        read_only: bool = False,
        refusal: StoreError = _READ_ONLY,
        each_day: Callable[[], bool] = lambda: True,
    ) -> None:
        self.file = file
        self._read_only, self._refusal = read_only, refusal
        self._each_day, self._day = each_day, ""
        self._held = threading.local()
        self._checked = checksums.checked(file)
        if read_only:
            with self.reading() as db:
                _refuse_other_versions(db, file)
            return
        try:
            with in_words(file), closing(self._connect("mode=rwc")) as db:
                db.execute("PRAGMA journal_mode = WAL")
                prepare(db, file)
        except StoreError as error:
            if not is_full(error) or not self._is_current(prepare):
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection whose rows are `sqlite3.Row`. A row that `SELECT *` reads is verified:
        StoreError is raised if it changed on the disk."""
        pooled: list[sqlite3.Connection] | None = getattr(self._held, "connections", None)
        with in_words(self.file):
            db = pooled.pop() if pooled else open_for_reading(self.file, self._access)
            db.row_factory = self._checked
            try:
                yield db
            finally:
                if pooled is None:
                    db.close()
                else:
                    pooled.append(db)

    def rows(self, table: str, order: str = "rowid", **where: object) -> list[sqlite3.Row]:
        """Return the rows of a table as `select` does."""
        with self.reading() as db:
            return select(db, table, order, **where)

    def row(self, table: str, order: str = "rowid", **where: object) -> sqlite3.Row | None:
        """Return the first of `rows`, None without any."""
        return next(iter(self.rows(table, f"{order} LIMIT 1", **where)), None)

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Reuse one connection for everything that this thread reads inside the block, which still
        sees the writes of others: opening a connection takes thirty times as long as a query. A
        read-only database is opened each time, as it may change unnoticed."""
        if self._read_only:
            yield
            return
        self._held.connections = []
        try:
            yield
        finally:
            self._let_go()
            del self._held.connections

    def _let_go(self) -> None:
        while pooled := getattr(self._held, "connections", None):
            pooled.pop().close()

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Run one transaction that has the write lock from its start, so that its reads stay valid.

        durable: the data is on the disk when this ends, and not only safe from a crash of this
            program.
        """
        self.refuse_read_only()
        self.begin_day()
        # On a full disk, an open connection may not see later writes.
        self._let_go()
        with in_words(self.file), closing(self._connect("mode=rw")) as db:
            if durable:
                db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def refuse_read_only(self) -> None:
        """Raise StoreError if nothing may be written."""
        if self._read_only:
            refusal = self._refusal
            raise StoreError(refusal.template, remedy=refusal.remedy, **refusal.params)

    def begin_day(self) -> None:
        """Run the daily task if it has not run today."""
        before, self._day = self._day, today()
        if before != self._day and not self._each_day():
            self._day = ""

    def _is_current(self, prepare: Callable[[sqlite3.Connection, Path], None]) -> bool:
        """Return whether the file can be read as it is: a full disk should not hide its content."""
        try:
            with self.reading() as db:
                return prepare is migrate and version_of(db) == len(migrations.MIGRATIONS)
        except StoreError:
            return False

    @property
    def _access(self) -> str:
        if not self._read_only:
            # A file that was deleted is an error, not a new empty workspace.
            return "mode=rw"
        return access_to(self.file)

    def _connect(self, access: str) -> sqlite3.Connection:
        db = _opened(self.file, access)
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = NORMAL")
            checksums.teach(db)
        except sqlite3.Error:
            db.close()
            raise
        return db


def open_for_reading(file: Path, access: str) -> sqlite3.Connection:
    """Return a connection that only reads. Raises sqlite3.Error if it cannot be opened.

    If SQLite cannot create its files next to the database, because the disk is full or mounted
    read-only, the database is read without them, including the content of the log. Only a program
    that opened it before the disk was full can then write to it.
    """
    try:
        return _answering(_opened(file, access))
    except sqlite3.OperationalError as error:
        if family_of(error) not in _NOTHING_BESIDE:
            raise
    db = _opened(file, "mode=ro&vfs=unix-none")
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    return _answering(db)


def _opened(file: Path, access: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"{file.absolute().as_uri()}?{access}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
    )
    db.row_factory = sqlite3.Row
    return db


def _answering(db: sqlite3.Connection) -> sqlite3.Connection:
    try:
        # The first query opens the files.
        db.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


def access_to(file: Path) -> str:
    """Return the access mode for a database that must not be written to, nor the files next to
    it."""
    # SQLite creates files next to a database with a log. If no other program has the workspace
    # open, there is no log, and the file can be read as immutable.
    log = file.with_name(f"{file.name}-wal")
    return "mode=ro" if log.exists() else "mode=ro&immutable=1"


def files_of(file: Path) -> list[Path]:
    """Return a SQLite file and the files that SQLite creates next to it."""
    return [file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")]
