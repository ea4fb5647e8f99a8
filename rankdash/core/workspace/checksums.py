"""A checksum in each row of the database, so that a value that changed on the disk is never read as
the one that was written.

SQLite checks how its pages fit together, and not what is in them. Triggers keep the checksum of
every row in step with it, through a function that each connection that writes is taught. Rows are
checked when the workspace is opened, when they are read whole (`SELECT *`) and before they are
changed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from zlib import crc32

import msgspec

from rankdash.core.base.errors import Phrase
from rankdash.core.workspace.failures import damaged_database

COLUMN = "checksum"
"""The last column of a table whose rows are checked."""

_FUNCTION = "row_checksum"
_SCHEMA = "checksums of the schema"
_packed = msgspec.msgpack.Encoder().encode


def of(values: Sequence[object]) -> int:
    """The checksum of a row without its own."""
    return crc32(_packed(values))


def teach(db: sqlite3.Connection) -> None:
    """Let a connection change rows that are checked."""
    db.create_function(_FUNCTION, -1, lambda *values: of(values), deterministic=True)
    # A function that a program adds may be used by triggers only then.
    db.execute("PRAGMA trusted_schema = ON")


def seal(db: sqlite3.Connection, table: str) -> None:
    """Give the rows of a table their checksums, from now on too. A step that changes the columns of
    a table calls it again."""
    for name in ("is_sound", "added", "changed"):
        db.execute(f"DROP TRIGGER IF EXISTS {table}_{name}")
    if COLUMN in _columns(db, table):
        db.execute(f"ALTER TABLE {table} DROP COLUMN {COLUMN}")
    names = _columns(db, table)
    values, old = ", ".join(names), ", ".join(f"old.{name}" for name in names)
    # As it is stored: SQLite makes an integer of -0.0.
    own = f"UPDATE {table} SET {COLUMN} = {_FUNCTION}({values})"  # noqa: S608 - all named by us
    db.execute(f"ALTER TABLE {table} ADD COLUMN {COLUMN} INTEGER")
    db.execute(own)
    db.execute(
        f"CREATE TRIGGER {table}_is_sound BEFORE UPDATE OF {values} ON {table} "
        f"WHEN old.{COLUMN} IS NOT {_FUNCTION}({old}) "
        "BEGIN SELECT RAISE(ABORT, 'a row has changed since it was written'); END"
    )
    for name, event in (("added", "INSERT"), ("changed", f"UPDATE OF {values}")):
        db.execute(
            f"CREATE TRIGGER {table}_{name} AFTER {event} ON {table} "
            f"BEGIN {own} WHERE rowid = new.rowid; END"
        )


def changed(db: sqlite3.Connection) -> dict[str, int]:
    """Table → how many of its rows are not as they were written; only of those that have any."""
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = [row[0] for row in rows if COLUMN in _columns(db, row[0])]
    found = {table: _changed_rows(db, table) for table in tables}
    return {table: count for table, count in found.items() if count}


def keep_schema(db: sqlite3.Connection) -> None:
    """Keep the checksums of what the tables, indexes and triggers are."""
    row = (_SCHEMA, json.dumps(_schema(db)))
    db.execute("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", row)


def schema_fits(db: sqlite3.Connection) -> bool:
    """Whether tables, indexes and triggers are what `keep_schema` kept, if it did; others may be
    there too."""
    row = db.execute("SELECT value FROM settings WHERE key = ?", (_SCHEMA,)).fetchone()
    try:
        return row is None or json.loads(row[0]).items() <= _schema(db).items()
    except ValueError:
        return False


def fits(names: Sequence[str], values: Sequence[object]) -> bool:
    """Whether a row is as it was written; one of a table that is not checked is."""
    return names[-1] != COLUMN or values[-1] == of(values[:-1])


def checked(file: Path) -> Callable[[sqlite3.Cursor, tuple[object, ...]], sqlite3.Row]:
    """Return the `row_factory` of a connection that only reads: it raises StoreError for a row that
    is not as it was written. file: of the database."""

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
    question = f"SELECT * FROM {table}"  # noqa: S608 - one of our tables
    try:
        return sum(row[-1] != of(row[:-1]) for row in rows.execute(question))
    except sqlite3.OperationalError:
        # A text that is no UTF-8 any more.
        db.text_factory = readable
        return sum(row[-1] != of(row[:-1]) for row in rows.execute(question))
    finally:
        db.text_factory = before


def readable(text: bytes) -> str:
    """A text of a database that may be damaged, as its `text_factory`."""
    return text.decode("utf-8", "replace")
