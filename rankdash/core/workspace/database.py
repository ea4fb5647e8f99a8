"""The SQLite file of a workspace: one short-lived connection a call, so any thread may ask, or one
for all that a thread reads in a block."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import checksums
from rankdash.core.workspace.backups import today
from rankdash.core.workspace.failures import family_of, in_words, is_full
from rankdash.core.workspace.migrations import (
    MIGRATIONS,
    migrate,
    refuse_other_versions,
    version_of,
)

READ_ONLY = StoreError(
    "This workspace is open for reading only: nothing in it can be changed.",
    remedy="Start rankdash without RANKDASH_READ_ONLY to change it.",
)

# Longer than any of our transactions, so a wait that ends here means something else is wrong.
BUSY_SECONDS = 10.0

_NOTHING_BESIDE = {
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL),
}


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
        self._held = threading.local()
        self._checked = checksums.checked(file)
        if read_only:
            with self.reading() as db:
                refuse_other_versions(db, file)
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
        """Rows come as `sqlite3.Row`; what `SELECT *` reads is as it was written, or StoreError."""
        held: list[sqlite3.Connection] | None = getattr(self._held, "connections", None)
        with in_words(self.file):
            db = held.pop() if held else open_for_reading(self.file, self._access)
            db.row_factory = self._checked
            try:
                yield db
            finally:
                if held is None:
                    db.close()
                else:
                    held.append(db)

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """What this thread reads within is read by one connection, which sees what others write
        meanwhile: to open one takes thirty times as long as to ask it. A database that nothing may
        be written to is opened each time, as it may change unseen."""
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
        while held := getattr(self._held, "connections", None):
            held.pop().close()

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start, so what it read stays true.

        durable: it is on the disk when this ends, and not only safe from a crash of this program.
        """
        self.refuse_read_only()
        self.begin_day()
        # On a full disk it may be one that does not see what is written.
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
        """Raise StoreError where nothing may be written."""
        if self._read_only:
            known = self._refusal
            raise StoreError(known.template, remedy=known.remedy, **known.params)

    def begin_day(self) -> None:
        """Do what is done once a day."""
        before, self._day = self._day, today()
        if before != self._day and not self._each_day():
            self._day = ""

    def _is_current(self, prepare: Callable[[sqlite3.Connection, Path], None]) -> bool:
        """Whether the file can be read as it is: a full disk is no reason to hide what is there."""
        try:
            with self.reading() as db:
                return prepare is migrate and version_of(db) == len(MIGRATIONS)
        except StoreError:
            return False

    @property
    def _access(self) -> str:
        if not self._read_only:
            # A file deleted meanwhile is an error, not a new empty workspace.
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
    """A connection that only reads. Raises sqlite3.Error where there is none to be had.

    Where SQLite cannot keep its files beside the database, on a full disk or one that is mounted
    for reading, the database is read without them, with what the log holds. Nobody can write to it
    then but a program that was at it before the disk was full.
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
        # The first question is what opens the files.
        db.execute("PRAGMA schema_version").fetchone()
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


# The log (`-wal`) that SQLite keeps beside a database, and whether all that was stored in it can
# still be read.
#
# SQLite reads the log of a killed process up to the first frame whose checksum does not fit, and
# drops the others without an error. How many frames were committed is in the index of the log
# (`-shm`), which a killed process leaves too. Formats: https://sqlite.org/walformat.html

_HEADER, _FRAME_HEADER, _INDEX = 32, 24, 48
_MAGIC = 0x377F0683
"""In big-endian words; without the last bit the words are little-endian."""
# To close a file drops the locks that SQLite has on it in the same process.
_READ = f"import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read(2 * {_INDEX}))"

_Words = np.ndarray[Any, np.dtype[np.uint32]]


def is_damaged(file: Path) -> bool:
    """Return whether changes that were committed to the log of a database cannot be read. False
    without a log or without an index. Raises OSError if the log cannot be read."""
    # Twice: another process may begin the log anew while it is read.
    return _is_damaged(file) and _is_damaged(file)


def _is_damaged(file: Path) -> bool:
    log = file.with_name(f"{file.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return False
    # The index first: another process may add to the log meanwhile.
    committed, salts = _index(file.with_name(f"{file.name}-shm"))
    if not committed:
        return False
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return False
    first = content[:_HEADER].ljust(_HEADER, b"\0")
    header = np.frombuffer(first, ">u4")
    order = ">u4" if header[0] & 1 else "<u4"
    if header[0] | 1 != _MAGIC or not _follows(np.frombuffer(first, order)[:6], header[6:]):
        return True
    if first[16:24] != salts:
        # The log begins anew: what was in it is in the database.
        return False
    size = _FRAME_HEADER + int(header[2])
    if len(content) < _HEADER + committed * size:
        return True
    frames = np.frombuffer(content, np.uint8, committed * size, _HEADER).reshape(committed, size)
    fields = frames[:, :_FRAME_HEADER].copy().view(">u4")
    words = np.hstack([frames[:, :8], frames[:, _FRAME_HEADER:]]).view(order)
    before = np.vstack([header[6:], fields[:-1, 4:]])
    read = (fields[:, 2:4] == header[4:6]) & (_checksums(words, before) == fields[:, 4:])
    return not bool(read.all())


def _index(index: Path) -> tuple[int, bytes]:
    """Return the number of committed frames, and the salts of their log; 0 if it is not known."""
    command = [sys.executable, "-ISc", _READ, str(index)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        # Python lies where this user may not start it.
        return 0, b""
    one, other = done.stdout[:_INDEX], done.stdout[_INDEX:]
    words = np.frombuffer(one, np.uint32)
    if len(one) < _INDEX or one != other or not _follows(words[:10], words[10:]):
        return 0, b""
    return int(words[4]), one[32:40]


def _follows(words: _Words, stored: _Words) -> bool:
    """Return whether the stored checksums are those of the words, with nothing before."""
    return bool((_checksums(words[None], np.zeros((1, 2), np.uint32)) == stored).all())


def _checksums(words: _Words, before: _Words) -> _Words:
    """Return the two checksums of each row of 32-bit words that follows the checksums `before`.

    SQLite adds up in turn; that is a sum of the words with Fibonacci numbers as weights.
    """
    count = words.shape[1]
    weights = [0, 1]
    while len(weights) < count + 2:
        weights.append((weights[-1] + weights[-2]) & 0xFFFFFFFF)
    falling = np.array(weights[::-1], np.uint32)
    terms = np.hstack([before[:, 1:], words]).astype(np.uint32)
    terms[:, 1] += before[:, 0]
    return terms @ np.stack([falling[1:], falling[:-1]], axis=1)
