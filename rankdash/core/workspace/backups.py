"""Copies of the database: before each migration and once a day in use, the last seven kept.

What people wrote (notes, corrected labels, scenarios, pins) is nowhere else.
"""

from __future__ import annotations

import re
import sqlite3
import uuid
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from rankdash.core.workspace import checksums
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.folders import BACKUPS

KEPT = 7
MADE = "backups made"
"""The setting that counts daily copies: of two databases the one with the higher count is newer."""

_NAME = re.compile(r"rankdash-(?P<day>\d{8})T\d{12}Z-[0-9a-f]{8}\.sqlite")


def listed(root: Path) -> list[Path]:
    """The copies, the oldest first."""
    with in_words(root / BACKUPS):
        found = (root / BACKUPS).iterdir() if (root / BACKUPS).is_dir() else ()
        return sorted(each for each in found if _NAME.fullmatch(each.name))


def day_of(copy: Path) -> str:
    """The day on which a copy was made, as 2026-01-31, in UTC."""
    day = copy.name.partition("-")[2]
    return f"{day[:4]}-{day[4:6]}-{day[6:8]}"


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def is_due(root: Path) -> bool:
    """Whether no copy was made today."""
    return not any(day_of(copy) == today() for copy in listed(root))


def make(file: Path) -> None:
    """Copy a database in WAL mode, which others may use meanwhile; unless it is damaged: a copy of
    damage must not replace a sound one.

    Raises sqlite3.Error or OSError where it cannot be copied.
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
            # One file, whatever the mode of the database.
            copy.execute("PRAGMA journal_mode = DELETE")
        if sound:
            part.replace(folder / name)
    finally:
        part.unlink(missing_ok=True)
    # Not the one that was just made, which is an older one by its name if the clock was set back.
    others = [each for each in listed(file.parent) if each.name != name]
    for old in others[: 1 - KEPT]:
        old.unlink(missing_ok=True)


def is_sound(db: sqlite3.Connection) -> bool:
    """Whether its pages fit together and its rows are as they were written. Raises sqlite3.Error
    where it cannot be read at all."""
    return pages_fit(db) and checksums.schema_fits(db) and not checksums.changed(db)


def pages_fit(db: sqlite3.Connection) -> bool:
    """Whether SQLite finds nothing wrong. Raises sqlite3.Error where it cannot read at all.

    Not quick_check, which does not compare indexes with their tables: a changed entry of an index
    hides a row.
    """
    return bool(db.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok")
