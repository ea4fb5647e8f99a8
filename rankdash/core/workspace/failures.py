"""Errors of the disk and of SQLite as StoreErrors that name the file and a remedy."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from rankdash.core.base.errors import Phrase, StoreError
from rankdash.core.base.files import FULL

_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_FOLDER = {errno.EEXIST, errno.ENOTDIR}

HOME_REMEDY = "Set RANKDASH_HOME to an empty or new folder."

_FULL_DISK = "Not enough disk space to write {file}: {free} MB are free."
# The files that SQLite creates before a write need less than this.
_LEAST_ROOM = 1_000_000

# The low byte of an SQLite error code is its family.
_FAMILY = 0xFF


@contextmanager
def in_words(file: Path) -> Iterator[None]:
    """Turn errors of `file` inside the block into StoreErrors."""
    try:
        yield
    except sqlite3.Error as error:
        raise _from_sqlite(file, error) from error
    except OSError as error:
        raise _from_system(file, error) from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(file, str(error)) from error


def damaged(file: Path, reason: str) -> StoreError:
    return StoreError(
        "The workspace file {file} is damaged: {reason}",
        remedy="Restore it from a backup, add the files of its data set again, or delete its "
        "data set or run.",
        file=str(file),
        reason=reason if isinstance(reason, Phrase) else first_sentence(reason),
    )


def unreadable(column: str, reason: str) -> StoreError:
    """Return the error for JSON of a row that rankdash did not write."""
    return StoreError(
        "The stored {column} cannot be read: {reason}",
        remedy="Delete it, or import it again from a workspace file.",
        column=column,
        reason=first_sentence(reason),
    )


def is_full(error: StoreError) -> bool:
    """Return whether the error was raised because the disk is full."""
    return error.template == _FULL_DISK


def _full(file: Path) -> StoreError:
    return StoreError(
        _FULL_DISK,
        remedy="Free some space, or set RANKDASH_HOME to an empty or new folder on another "
        "disk, and try again. Until then you can view the workspace, export it to another disk, "
        "and delete data sets and runs.",
        file=str(file),
        free=f"{(_free(file) or 0) / 1e6:,.1f}",
    )


def _free(file: Path) -> int | None:
    """Return the free bytes on the disk of a file; None if unknown."""
    for folder in file.parents:
        try:
            return shutil.disk_usage(folder).free
        except FileNotFoundError:
            continue
        except OSError:
            break
    return None


def _refused(file: Path, reason: str) -> StoreError:
    return StoreError(
        "The workspace file {file} cannot be written: {reason}",
        remedy="Allow writing there, or set RANKDASH_HOME to your own empty or new folder.",
        file=str(file),
        reason=first_sentence(reason),
    )


def _missing(file: Path) -> StoreError:
    return StoreError(
        "The workspace file {file} is missing.",
        remedy="If it was deleted by hand, delete the data set or run it belonged to and add it "
        "again. If it is the database, or the workspace was moved, start rankdash again: "
        "it deletes nothing and lists what it finds.",
        file=str(file),
    )


def _from_system(file: Path, error: OSError) -> StoreError:
    named = Path(error.filename) if isinstance(error.filename, str) else file
    if error.errno in FULL:
        return _full(named)
    if error.errno in _REFUSED:
        return _refused(named, error.strerror or str(error))
    if isinstance(error, FileNotFoundError):
        return _missing(named)
    if error.errno in _NO_FOLDER:
        return StoreError(
            "The workspace needs a folder at {file}, but a file exists there.",
            remedy="Move the file away, or set RANKDASH_HOME to an empty or new folder.",
            file=str(named),
        )
    return damaged(named, error.strerror or str(error))


def _from_sqlite(file: Path, error: sqlite3.Error) -> StoreError:
    family = family_of(error)
    # SQLite does not always report why it could not create or enlarge a file.
    files = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
    free = _free(file) if family in files else None
    if family == sqlite3.SQLITE_FULL or (free is not None and free < _LEAST_ROOM):
        return _full(file)
    if family in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return _refused(file, str(error))
    if family == sqlite3.SQLITE_CANTOPEN:
        return _missing(file) if _is_missing(file) else _refused(file, str(error))
    if family == sqlite3.SQLITE_IOERR:
        return StoreError(
            "The workspace file {file} cannot be read or written on this disk: {reason}",
            remedy="Check that the disk is connected and has room, and try again.",
            file=str(file),
            reason=first_sentence(str(error)),
        )
    if family in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(
            "The workspace file {file} has been in use by another program for too long.",
            remedy="Try again; if it persists, close the other programs that use this workspace.",
            file=str(file),
        )
    return damaged_database(file, first_sentence(str(error)))


def damaged_database(file: Path, reason: str) -> StoreError:
    return StoreError(
        "The workspace file {file} is damaged: {reason}",
        remedy="Leave it where it is and start rankdash again: it deletes nothing, lists what it "
        "finds and offers a repair.",
        file=str(file),
        reason=reason,
    )


UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""The errors of reading a damaged database: SQLite's messages may not be valid UTF-8."""


def is_damage(error: BaseException | None) -> bool:
    """Return whether the content of a database is wrong, rather than inaccessible."""
    # SQLITE_ERROR: a statement of rankdash fails if the names of tables or columns are damaged.
    damage = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
    if isinstance(error, sqlite3.Error):
        return family_of(error) in damage
    return isinstance(error, UnicodeDecodeError)


def family_of(error: sqlite3.Error) -> int:
    """Return the kind of a SQLite error, such as SQLITE_IOERR, without its details."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & _FAMILY


def _is_missing(file: Path) -> bool:
    try:
        return not file.exists()
    except OSError:
        # The folder is not accessible.
        return False


def first_sentence(reason: str) -> str:
    """Return the first line of a library's message, with a full stop."""
    first = reason.strip().splitlines()[0] if reason.strip() else "unreadable"
    return first if first.endswith(".") else f"{first}."
