"""The SQLite file of a workspace: one short-lived connection a call, so any thread may ask."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rankdash.errors import StoreError
from rankdash.store.backups import today
from rankdash.store.failures import in_words
from rankdash.store.migrations import migrate, refuse_other_versions

READ_ONLY = StoreError(
    "This workspace is open for reading only: nothing in it can be changed.",
    remedy="Start rankdash without RANKDASH_READ_ONLY to change it.",
)

# Longer than any of our transactions, so a wait that ends here means something else is wrong.
BUSY_SECONDS = 10.0


class Database:
    """`file` is the SQLite file; it is made, and brought up to date by `prepare`, when this is.

    read_only: the file has to be there and up to date, and nothing is written, not even beside it.
    refusal: what is raised then where something would be written.
    each_day: is called before the first write of a day, until it returns True.

    Every method raises StoreError where the file cannot be read or written.
    """

    def __init__(
        self,
        file: Path,
        prepare: Callable[[sqlite3.Connection, Path], None] = migrate,
        *,
        read_only: bool = False,
        refusal: StoreError = READ_ONLY,
        each_day: Callable[[], bool] = lambda: True,
    ) -> None:
        self.file = file
        self._read_only, self._refusal = read_only, refusal
        self._each_day, self._day = each_day, ""
        if read_only:
            with self.reading() as db:
                refuse_other_versions(db, file)
            return
        with in_words(file), closing(self._connect("mode=rwc")) as db:
            db.execute("PRAGMA journal_mode = WAL")
            prepare(db, file)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Rows come as `sqlite3.Row`."""
        with in_words(self.file), closing(self._connect(self._access)) as db:
            yield db

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start, so what it read stays true.

        durable: it is on the disk when this ends, and not only safe from a crash of this program.
        """
        self.refuse_read_only()
        self.begin_day()
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
        """Raise StoreError where nothing may be written."""
        if self._read_only:
            known = self._refusal
            raise StoreError(known.template, remedy=known.remedy, **known.params)

    def begin_day(self) -> None:
        """Do what is done once a day."""
        before, self._day = self._day, today()
        if before != self._day and not self._each_day():
            self._day = ""

    @property
    def _access(self) -> str:
        if not self._read_only:
            # A file deleted meanwhile is an error, not a new empty workspace.
            return "mode=rw"
        return access_to(self.file)

    def _connect(self, access: str) -> sqlite3.Connection:
        db = sqlite3.connect(
            f"{self.file.absolute().as_uri()}?{access}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
        )
        db.row_factory = sqlite3.Row
        try:
            db.execute("PRAGMA foreign_keys = ON")
            if not self._read_only:
                db.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            db.close()
            raise
        return db


def access_to(file: Path) -> str:
    """How to open a database that nothing may be written to, not even beside it."""
    # Reading a file with a log makes SQLite keep files beside it. Where no other program has
    # the workspace open there is no log, and the file can be read as one that never changes.
    log = file.with_name(f"{file.name}-wal")
    return "mode=ro" if log.exists() else "mode=ro&immutable=1"


def files_of(file: Path) -> list[Path]:
    """A SQLite file and those that SQLite keeps beside it."""
    return [file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")]
