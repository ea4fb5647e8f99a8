"""Rebuilding the database from the records of the folders, the readable part of the old database,
and its newest backup. Nothing is deleted: the old database is moved to the trash."""

from __future__ import annotations

import math
import shutil
import sqlite3
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

from rankdash.core.base.errors import Phrase, StoreError
from rankdash.core.workspace import checksums, folders, migrations
from rankdash.core.workspace.database import (
    Database,
    access_to,
    files_of,
    insert,
    named_folders,
    now,
    open_for_reading,
    version_of,
)
from rankdash.core.workspace.failures import UNREADABLE, first_sentence, in_words, is_damage
from rankdash.core.workspace.migrations import clean_rows

_COUNTED = ("datasets", "runs", "notes", "run_notes", "corrections", "settings")
_UNKNOWN = math.inf


@dataclass
class Repaired:
    """The result of rebuilding a database.

    rows: table → number of rows. from_folders: how many data sets and runs only their folders
        listed.
    copy_of: the day of the backup that was used, as 2026-01-31; "" if none was used.
    unlisted: folders, as "runs/…", that stay in place and cannot be listed.
    gone: names of data sets and runs whose folder is missing.
    changed: how many rows of the old database are quarantined because they changed on the disk.
    trash: the new folder of the old database; None if there was none.
    """

    rows: Counter[str] = field(default_factory=Counter)
    from_folders: int = 0
    copy_of: str = ""
    unlisted: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    changed: int = 0
    trash: Path | None = None


def repair(root: Path) -> Repaired | None:
    """Replace an unreliable database by a rebuilt one; return None if there is nothing to repair.
    Raises StoreError if the workspace cannot be written."""
    file = root / folders.DATABASE
    with _repair_lock(root):
        if examine(root, read_only=False) is None:
            return None
        rebuilt = file.with_name(f"{file.name}-new-{uuid.uuid4().hex[:8]}")
        try:
            repaired = rebuild(root, rebuilt)
            with in_words(file):
                old = [each for each in files_of(file) if each.exists()]
                repaired.trash = folders.to_trash(root, old) if old else None
                rebuilt.replace(file)
        finally:
            for each in files_of(rebuilt):
                each.unlink(missing_ok=True)
    return repaired


def rebuild(root: Path, target: Path) -> Repaired:
    """Create a database at `target`, which must not exist, for the folders of a workspace. The
    workspace is only read."""
    repaired = Repaired()
    Database(target)
    with (
        in_words(target),
        tempfile.TemporaryDirectory() as scratch,
        # Without foreign keys: rows come in any order, and replacing one must not delete others.
        closing(_open(target, "mode=rw")) as db,
    ):
        db.execute("BEGIN IMMEDIATE")
        for source in _sources(root, Path(scratch), repaired):
            with closing(source):
                _add(db, source)
        _add_recorded(db, root, repaired)
        _drop_missing(db, root, repaired)
        _drop_orphans(db)
        _stop_work(db)
        # A backup may be older than the migration that removes credentials.
        clean_rows(db)
        repaired.rows = Counter(
            {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in _COUNTED}  # noqa: S608
        )
        repaired.unlisted = _unlisted(db, root)
        db.execute("COMMIT")
    return repaired


def _sources(root: Path, scratch: Path, repaired: Repaired) -> Iterator[sqlite3.Connection]:
    """Yield the databases to read rows from, the newer first: the old database, and the newest
    sound backup."""
    sources: list[tuple[float, sqlite3.Connection]] = []
    file = root / folders.DATABASE
    for each in files_of(file)[:2]:
        # A copy: SQLite may write to a file that it opens.
        if each.is_file():
            shutil.copyfile(each, scratch / each.name)
    if (scratch / file.name).is_file():
        current = _open(scratch / file.name, "mode=rw")
        sources.append((_count(current), current))
        with suppress(*UNREADABLE):
            repaired.changed = sum(checksums.changed(current).values())
    copies = []
    for copy in checksums.backups(root):
        with closing(_open(copy, "mode=ro&immutable=1")) as db:
            copies.append((_count(db), copy.name, copy))
    # The latest by the count of backups, since the clock may have been set back.
    for count, _name, copy in sorted(copies, reverse=True):
        backup = _open(copy, "mode=ro&immutable=1")
        with suppress(*UNREADABLE):
            if checksums.is_sound(backup):
                sources.append((count, backup))
                repaired.copy_of = checksums.backup_day(copy)
                break
        backup.close()
    # A database whose count cannot be read is damaged, and not old.
    for _count_made, source in sorted(sources, key=itemgetter(0), reverse=True):
        yield source


def _open(file: Path, access: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{file.absolute().as_uri()}?{access}", uri=True, isolation_level=None)
    db.row_factory, db.text_factory = sqlite3.Row, checksums.readable
    checksums.teach(db)
    return db


def _count(db: sqlite3.Connection) -> float:
    """Return how many daily backups had been made of a database."""
    try:
        row = db.execute(
            "SELECT value FROM settings WHERE key = ?", (checksums.BACKUPS_MADE,)
        ).fetchone()
        return 0 if row is None else int(row[0])
    except (sqlite3.Error, ValueError):
        return _UNKNOWN


def _add(db: sqlite3.Connection, source: sqlite3.Connection) -> None:
    """Insert the rows of `source` that `db` lacks, if they are readable and match their
    checksums."""
    tables = db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    for (table,) in tables:
        columns = {row["name"] for row in db.execute(f"PRAGMA table_info({table})")}
        # From both ends: rows behind a damaged page can be read from the other end.
        for order in ("ASC", "DESC"):
            with suppress(*UNREADABLE):
                for row in source.execute(f"SELECT * FROM {table} ORDER BY rowid {order}"):  # noqa: S608
                    names = row.keys()
                    if not checksums.fits(names, tuple(row)):
                        continue
                    values = {name: row[name] for name in names if name in columns}
                    with suppress(sqlite3.IntegrityError):
                        insert(db, table, values)


def _drop_missing(db: sqlite3.Connection, root: Path, repaired: Repaired) -> None:
    """Delete rows of data sets and runs whose folder is missing."""
    for kind in folders.STORED:
        existing = {folders.relative(root, folder) for folder in folders.stored(root, kind)}
        for row in db.execute(f"SELECT id, name, folder FROM {kind}").fetchall():  # noqa: S608
            if row["folder"] not in existing:
                db.execute(f"DELETE FROM {kind} WHERE id = ?", (row["id"],))  # noqa: S608
                repaired.gone.append(str(row["name"]))


def _add_recorded(db: sqlite3.Connection, root: Path, repaired: Repaired) -> None:
    """Add the rows of the records, replacing others: a record is never older than a backup."""
    listed = _ids(db)
    for kind, values in folders.recorded_rows(root, folders.recorded(root), listed["datasets"]):
        insert(db, kind, values, "OR REPLACE")
        repaired.from_folders += values["id"] not in listed[kind]


def _ids(db: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the ids of the data sets and runs that a database lists."""
    return {
        kind: {row[0] for row in db.execute(f"SELECT id FROM {kind}")}  # noqa: S608
        for kind in folders.STORED
    }


def _drop_orphans(db: sqlite3.Connection) -> None:
    """Delete rows that belong to a missing data set or run."""
    of_data = ("runs", "jobs", "notes", "corrections", "run_notes", "pins")
    for table in (*of_data, "label_plans", "label_notes", "judges"):
        db.execute(f"DELETE FROM {table} WHERE dataset_id NOT IN (SELECT id FROM datasets)")  # noqa: S608
    for table in ("explanations", "run_notes", "pins"):
        db.execute(f"DELETE FROM {table} WHERE run_id NOT IN (SELECT id FROM runs)")  # noqa: S608
    db.execute("DELETE FROM judged_pairs WHERE judge_id NOT IN (SELECT id FROM judges)")


def _stop_work(db: sqlite3.Connection) -> None:
    """Stop all unfinished work: a job in an old backup may have been done or deleted since."""
    db.execute(
        "UPDATE jobs SET state = 'done', stage = 'waiting', cancel = 0, worker = NULL, "
        "problem = NULL, finished = coalesce(finished, ?) WHERE id IN (SELECT id FROM runs)",
        (now(),),
    )
    for table in ("jobs", "explanations", "judges"):
        db.execute(
            f"UPDATE {table} SET state = 'interrupted', worker = NULL, finished = ? "  # noqa: S608
            "WHERE state IN ('queued', 'running')",
            (now(),),
        )


def _unlisted(db: sqlite3.Connection, root: Path) -> list[str]:
    named = named_folders(db)
    every = [
        *(folder for kind in folders.STORED for folder in folders.stored(root, kind)),
        *folders.jobs(root),
    ]
    return [name for folder in every if (name := folders.relative(root, folder)) not in named]


@contextmanager
def _repair_lock(root: Path) -> Iterator[None]:
    """Prevent other repairs of the same workspace. The lock ends with this process at the latest;
    its file stays, because another process may be waiting for it."""
    file = root / f"{folders.DATABASE}-repair"
    with in_words(file), closing(sqlite3.connect(file, timeout=60.0, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield


# Checks of the database of a workspace: it exists, is intact, and lists the folders.
#
# Otherwise, nothing in the workspace is deleted or written before a repair.

_MISSING = "The database of the workspace {folder} is missing."
_EMPTY = "The database of the workspace {folder} is empty."
_DAMAGED = "The database of the workspace {folder} is damaged: {reason}"
_OLDER = (
    "The database of the workspace {folder} is older than its folders, or belongs to another "
    "workspace. Data sets and runs that it does not list: {n}."
)


def examine(root: Path, *, read_only: bool) -> StoreError | None:
    """Return the problem of the database; None if there is none, or if there is no workspace yet.

    Raises StoreError if the database cannot be read for another reason, such as permissions, and if
    the folder contains other files but no workspace.
    """
    # The folders first: a process that creates a workspace writes folders after the database.
    file = root / folders.DATABASE
    with in_words(file):
        by_kind = folders.recorded(root)
        ours = any(any(folders.stored(root, kind)) for kind in folders.STORED)
        ours = ours or bool(checksums.backups(root))
        size = file.stat().st_size if file.exists() else None
    if size:
        return _examine_file(root, by_kind, ours=ours, read_only=read_only)
    if ours:
        return _trouble(root, _MISSING if size is None else _EMPTY)
    if size is None and not read_only:
        folders.refuse_foreign(root)
    return None


def _examine_file(
    root: Path, by_kind: Mapping[str, list[Path]], *, ours: bool, read_only: bool
) -> StoreError | None:
    file = root / folders.DATABASE
    access = access_to(file) if read_only else "mode=rw"
    with in_words(file):
        # Before SQLite reads it: SQLite deletes the log when it closes the database.
        if checksums.log_is_damaged(file):
            unread = Phrase("changes in its log {file} cannot be read.", file=f"{file.name}-wal")
            return _trouble(root, _DAMAGED, reason=unread)
        try:
            with closing(open_for_reading(file, access)) as db:
                if not checksums.pages_fit(db):
                    unfit = Phrase("database pages are inconsistent.")
                    return _trouble(root, _DAMAGED, reason=unfit)
                version = version_of(db)
                if version > len(migrations.MIGRATIONS):
                    # It is refused later, when it is opened.
                    return None
                if not version:
                    return _trouble(root, _EMPTY) if ours else None
                if not checksums.schema_fits(db):
                    unlike = Phrase("its tables were changed.")
                    return _trouble(root, _DAMAGED, reason=unlike)
                if rows := checksums.changed(db):
                    changed = Phrase(
                        "rows that have changed since they were written: {n} (in {tables}). "
                        "They are quarantined.",
                        n=sum(rows.values()),
                        tables=", ".join(rows),
                    )
                    return _trouble(root, _DAMAGED, reason=changed)
                listed = _ids(db)
        except UNREADABLE as error:
            if is_damage(error):
                return _trouble(root, _DAMAGED, reason=first_sentence(str(error)))
            raise
    unknown = {
        kind: [each for each in by_kind[kind] if folders.id_of(each) not in listed[kind]]
        for kind in folders.STORED
    }
    # A folder whose row was just deleted has no record.
    lacking = folders.recorded_rows(root, unknown, listed["datasets"])
    return _trouble(root, _OLDER, n=len(lacking)) if lacking else None


def _trouble(root: Path, template: str, **params: object) -> StoreError:
    return StoreError(
        template,
        remedy="Nothing in the workspace is deleted, and it is read-only. To repair it, close "
        "other programs that use it and run: rankdash workspace repair",
        folder=str(root),
        **params,
    )
