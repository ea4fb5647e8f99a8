"""Data sets and runs deleted: their rows first, then their folders."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import folders, records
from rankdash.core.workspace.database import Database
from rankdash.core.workspace.failures import is_full
from rankdash.core.workspace.rows import find


def delete_dataset(root: Path, database: Database, dataset_id: str) -> None:
    """With its runs and jobs. Raises StoreError where there is no such data set."""

    def found(db: sqlite3.Connection) -> list[str]:
        row = find(db, "datasets", dataset_id, "folder")
        rows = db.execute(
            "SELECT folder FROM runs WHERE dataset_id = ? "
            "UNION ALL SELECT 'jobs/' || id FROM jobs WHERE dataset_id = ?",
            (dataset_id, dataset_id),
        )
        return [row["folder"], *(each["folder"] for each in rows)]

    _delete(root, database, found, [("DELETE FROM datasets WHERE id = ?", dataset_id)])


def delete_run(root: Path, database: Database, run_id: str) -> None:
    """With the record of the job that made it. Raises StoreError where there is no such run."""
    statements = [
        ("DELETE FROM runs WHERE id = ?", run_id),
        ("DELETE FROM jobs WHERE id = ? AND state = 'done'", run_id),
    ]

    def found(db: sqlite3.Connection) -> list[str]:
        return [find(db, "runs", run_id, "folder")["folder"], f"jobs/{run_id}"]

    _delete(root, database, found, statements)


def _delete(
    root: Path,
    database: Database,
    found: Callable[[sqlite3.Connection], list[str]],
    statements: Sequence[tuple[str, str]],
) -> None:
    def delete() -> list[str]:
        with database.writing() as db:
            gone = found(db)
            for named in gone:
                if not named.startswith("jobs/"):
                    records.withdraw(root / named)
            for statement, key in statements:
                db.execute(statement, (key,))
        return gone

    try:
        gone = delete()
    except StoreError as error:
        if not is_full(error):
            raise
        folders.release_reserve(root)
        gone = delete()
    folders.remove(root, gone)
