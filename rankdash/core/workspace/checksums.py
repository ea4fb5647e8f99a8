"""A checksum in each row of the database, so that a value that changed on the disk is never used.

SQLite checks how its pages are linked, but not their content. Triggers update the checksum of every
changed row, with a function that each writing connection registers. Rows are verified when the
workspace is opened, when they are read whole (`SELECT *`) and before they are changed.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np

from rankdash.core.base.errors import Phrase
from rankdash.core.workspace.failures import damaged_database, in_words

COLUMN = "checksum"
"""The last column of a table whose rows have checksums."""

_FUNCTION = "row_checksum"
_SCHEMA = "checksums of the schema"
_packed = msgspec.msgpack.Encoder().encode


def of(values: Sequence[object]) -> int:
    """Return the checksum of a row without its own checksum."""
    return crc32(_packed(values))


def teach(db: sqlite3.Connection) -> None:
    """Register the checksum function, so that a connection can change rows with checksums."""
    db.create_function(_FUNCTION, -1, lambda *values: of(values), deterministic=True)
    # Only then may triggers use a function that a program registers.
    db.execute("PRAGMA trusted_schema = ON")


def seal(db: sqlite3.Connection, table: str) -> None:
    """Add checksums to the rows of a table, and triggers that update them. A migration that changes
    the columns of a table calls it again."""
    for name in ("is_sound", "added", "changed"):
        db.execute(f"DROP TRIGGER IF EXISTS {table}_{name}")
    if COLUMN in _columns(db, table):
        db.execute(f"ALTER TABLE {table} DROP COLUMN {COLUMN}")
    names = _columns(db, table)
    values, old = ", ".join(names), ", ".join(f"old.{name}" for name in names)
    # Computed by SQLite from the stored values: SQLite stores -0.0 as an integer.
    update = f"UPDATE {table} SET {COLUMN} = {_FUNCTION}({values})"  # noqa: S608 - all named by us
    db.execute(f"ALTER TABLE {table} ADD COLUMN {COLUMN} INTEGER")
    db.execute(update)
    db.execute(
        f"CREATE TRIGGER {table}_is_sound BEFORE UPDATE OF {values} ON {table} "
        f"WHEN old.{COLUMN} IS NOT {_FUNCTION}({old}) "
        "BEGIN SELECT RAISE(ABORT, 'a row has changed since it was written'); END"
    )
    for name, event in (("added", "INSERT"), ("changed", f"UPDATE OF {values}")):
        db.execute(
            f"CREATE TRIGGER {table}_{name} AFTER {event} ON {table} "
            f"BEGIN {update} WHERE rowid = new.rowid; END"
        )


def changed(db: sqlite3.Connection) -> dict[str, int]:
    """Return table → how many of its rows changed on the disk, for tables with such rows."""
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = [row[0] for row in rows if COLUMN in _columns(db, row[0])]
    counts = {table: _changed_rows(db, table) for table in tables}
    return {table: count for table, count in counts.items() if count}


def keep_schema(db: sqlite3.Connection) -> None:
    """Store the checksums of the tables, indexes and triggers."""
    row = (_SCHEMA, json.dumps(_schema(db)))
    db.execute("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", row)


def schema_fits(db: sqlite3.Connection) -> bool:
    """Return whether tables, indexes and triggers match the schema that `keep_schema` stored, if it
    was called; additional ones are allowed."""
    row = db.execute("SELECT value FROM settings WHERE key = ?", (_SCHEMA,)).fetchone()
    try:
        return row is None or json.loads(row[0]).items() <= _schema(db).items()
    except ValueError:
        return False


def fits(names: Sequence[str], values: Sequence[object]) -> bool:
    """Return whether a row matches its checksum; True for a table without checksums."""
    return names[-1] != COLUMN or values[-1] == of(values[:-1])


def checked(file: Path) -> Callable[[sqlite3.Cursor, tuple[object, ...]], sqlite3.Row]:
    """Return the `row_factory` of a connection that only reads: it raises StoreError for a row that
    does not match its checksum. file: of the database."""

    def row_of(cursor: sqlite3.Cursor, values: tuple[object, ...]) -> sqlite3.Row:
        if cursor.description[-1][0] == COLUMN and values[-1] != of(values[:-1]):
            raise damaged_database(file, Phrase("a row has changed since it was written."))
        return sqlite3.Row(cursor, values)

    return row_of


def _schema(db: sqlite3.Connection) -> dict[str, int]:
    rows = db.execute("SELECT name, type, tbl_name, sql FROM sqlite_master").fetchall()
    return {row[0]: of(tuple(row)) for row in rows}


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def _changed_rows(db: sqlite3.Connection, table: str) -> int:
    before = db.text_factory
    rows = db.cursor()
    rows.row_factory = None
    query = f"SELECT * FROM {table}"  # noqa: S608 - one of our tables
    try:
        return sum(row[-1] != of(row[:-1]) for row in rows.execute(query))
    except sqlite3.OperationalError:
        # A damaged text that is not UTF-8.
        db.text_factory = readable
        return sum(row[-1] != of(row[:-1]) for row in rows.execute(query))
    finally:
        db.text_factory = before


def readable(text: bytes) -> str:
    """Return a text of a database that may be damaged, as its `text_factory`."""
    return text.decode("utf-8", "replace")


# Backups of the database: before each migration and on each day of use; the last seven remain.
#
# Notes, corrected labels, scenarios and pins are stored nowhere else.

BACKUPS = "backups"
BACKUPS_KEPT = 7
BACKUPS_MADE = "backups made"
"""The setting that counts daily backups: of two databases, the one with the higher count is newer.
"""

_BACKUP_NAME = re.compile(r"rankdash-(?P<day>\d{8})T\d{12}Z-[0-9a-f]{8}\.sqlite")


def backups(root: Path) -> list[Path]:
    """Return the backups, the oldest first."""
    with in_words(root / BACKUPS):
        entries = (root / BACKUPS).iterdir() if (root / BACKUPS).is_dir() else ()
        return sorted(each for each in entries if _BACKUP_NAME.fullmatch(each.name))


def backup_day(copy: Path) -> str:
    """Return the day of a backup, as 2026-01-31, in UTC."""
    day = copy.name.partition("-")[2]
    return f"{day[:4]}-{day[4:6]}-{day[6:8]}"


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def backup_is_due(root: Path) -> bool:
    """Return whether there is no backup of today."""
    return not any(backup_day(copy) == today() for copy in backups(root))


def make_backup(file: Path) -> None:
    """Back up a database in WAL mode, which others may use at the same time; do nothing if it is
    damaged, because a damaged backup must not replace a sound one.

    Raises sqlite3.Error or OSError if it cannot be copied.
    """
    moment = today().replace("-", "") + datetime.now(UTC).strftime("T%H%M%S%fZ")
    name = f"rankdash-{moment}-{uuid.uuid4().hex[:8]}.sqlite"
    folder = file.parent / BACKUPS
    folder.mkdir(exist_ok=True)
    part = folder / f".{name}"
    try:
        with (
            closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)) as db,
            closing(sqlite3.connect(part, isolation_level=None)) as copy,
        ):
            db.backup(copy)
            sound = is_sound(copy)
            # A single file, in any journal mode of the database.
            copy.execute("PRAGMA journal_mode = DELETE")
        if sound:
            part.replace(folder / name)
    finally:
        part.unlink(missing_ok=True)
    # Not the new one, whose name is an older one if the clock was set back.
    others = [each for each in backups(file.parent) if each.name != name]
    for old in others[: 1 - BACKUPS_KEPT]:
        old.unlink(missing_ok=True)


def is_sound(db: sqlite3.Connection) -> bool:
    """Return whether the pages are consistent and the rows match their checksums. Raises
    sqlite3.Error if the database cannot be read at all."""
    return pages_fit(db) and schema_fits(db) and not changed(db)


def pages_fit(db: sqlite3.Connection) -> bool:
    """Return whether SQLite's check finds no problem. Raises sqlite3.Error if it cannot read at
    all.

    Not quick_check, which does not compare indexes with their tables: a changed entry of an index
    hides a row.
    """
    return bool(db.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok")


# The write-ahead log (`-wal`) next to a SQLite database, and whether all of it can still be read.
#
# SQLite reads the log of a killed process up to the first frame with a wrong checksum, and drops
# the others without an error. The number of committed frames is in the index of the log (`-shm`),
# which a killed process also leaves. Formats: https://sqlite.org/walformat.html

_HEADER, _FRAME_HEADER, _INDEX = 32, 24, 48
_MAGIC = 0x377F0683
"""The magic number in big-endian words; without its last bit the words are little-endian."""
# In a separate process, because closing a file drops SQLite's locks on it in the same process.
_READ = f"import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read(2 * {_INDEX}))"

_Words = np.ndarray[Any, np.dtype[np.uint32]]


def log_is_damaged(file: Path) -> bool:
    """Return whether changes that were committed to the log of a database cannot be read. False
    without a log or without an index. Raises OSError if the log cannot be read."""
    # Twice: another process may restart the log while it is read.
    return _log_is_damaged(file) and _log_is_damaged(file)


def _log_is_damaged(file: Path) -> bool:
    log = file.with_name(f"{file.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return False
    # The index first: another process may append to the log.
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
        # The log was restarted: its content is in the database.
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
    """Return the number of committed frames, and the salts of their log; 0 if the number is
    unknown."""
    command = [sys.executable, "-ISc", _READ, str(index)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        # This user may not run the Python interpreter.
        return 0, b""
    one, other = done.stdout[:_INDEX], done.stdout[_INDEX:]
    words = np.frombuffer(one, np.uint32)
    if len(one) < _INDEX or one != other or not _follows(words[:10], words[10:]):
        return 0, b""
    return int(words[4]), one[32:40]


def _follows(words: _Words, stored: _Words) -> bool:
    """Return whether the stored checksums match the words, starting from zero."""
    return bool((_checksums(words[None], np.zeros((1, 2), np.uint32)) == stored).all())


def _checksums(words: _Words, before: _Words) -> _Words:
    """Return the two checksums of each row of 32-bit words that follows the checksums `before`.

    SQLite adds up in turn; the result is a sum of the words with Fibonacci numbers as weights.
    """
    count = words.shape[1]
    weights = [0, 1]
    while len(weights) < count + 2:
        weights.append((weights[-1] + weights[-2]) & 0xFFFFFFFF)
    falling = np.array(weights[::-1], np.uint32)
    terms = np.hstack([before[:, 1:], words]).astype(np.uint32)
    terms[:, 1] += before[:, 0]
    return terms @ np.stack([falling[1:], falling[:-1]], axis=1)
