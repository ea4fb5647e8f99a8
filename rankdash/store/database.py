"""The SQLite file of a workspace: one short-lived connection a call, so any thread may ask."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rankdash.store.failures import in_words
from rankdash.store.migrations import migrate

# Longer than any of our transactions, so a wait that ends here means something else is wrong.
BUSY_SECONDS = 10.0


class Database:
    """`file` is the SQLite file; it is made, and brought up to date by `prepare`, when this is.

    Every method raises StoreError where the file cannot be read or written.
    """

    def __init__(
        self, file: Path, prepare: Callable[[sqlite3.Connection, Path], None] = migrate
    ) -> None:
        self.file = file
        with in_words(file), closing(self._connect("rwc")) as db:
            db.execute("PRAGMA journal_mode = WAL")
            prepare(db, file)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Rows come as `sqlite3.Row`."""
        with in_words(self.file), closing(self._connect("rw")) as db:
            yield db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start, so what it read stays true."""
        with in_words(self.file), closing(self._connect("rw")) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def _connect(self, mode: str) -> sqlite3.Connection:
        # mode=rw: a file deleted meanwhile is an error, not a new empty workspace.
        db = sqlite3.connect(
            f"{self.file.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
        )
        db.row_factory = sqlite3.Row
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            db.close()
            raise
        return db
