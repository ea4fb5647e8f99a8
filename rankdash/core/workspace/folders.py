"""The folders of a workspace: one per stored item, named by its row. Only folders that rankdash
made are ever moved or deleted; they are recognised by the form of their name and by a file that
only rankdash writes.

    datasets/<id>-<token>/, runs/<id>-<token>/   tables, with a record or a mark next to them
    jobs/<id>/                                   tables of batches, journals of fetches
    fetches/                                     journals of fetches without a data set yet
    trash/                                       swept or replaced folders, for 30 days
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rankdash.core.base import files
from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import checksums
from rankdash.core.workspace.checksums import BACKUPS
from rankdash.core.workspace.failures import HOME_REMEDY, in_words

DATABASE = "rankdash.sqlite"
_RESERVE, _RESERVE_BYTES = f"{DATABASE}-reserve", 2_000_000
_ROOM_FOR_RESERVE = 10 * _RESERVE_BYTES

# Next to the tables: the record once a row names the folder, the mark before and after that.
RECORD, UNFINISHED = "rankdash-record.json", "rankdash-unfinished"
_TABLES = {"datasets": "candidates-queries.parquet", "runs": "ranking-queries.parquet"}
STORED = tuple(_TABLES)

_NAME = re.compile(r"(?P<id>.+)-[0-9a-f]{8}")
_PART = re.compile(
    r"(\d{20}-[0-9a-f]{8}\.parquet|\.\d{20}-[0-9a-f]{8}\.parquet\.[0-9a-f]{8}"
    r"|(journal|repeat-\d+)\.jsonl)"
)
FETCHES = "fetches"
_FETCH = re.compile(r"[0-9a-f]{16}\.jsonl?")

# Files of operating systems, and files of rankdash from before the workspace exists.
_NO_CONTENT = {".ds_store", "desktop.ini", "thumbs.db", "lost+found", ".directory"}
_NO_CONTENT |= {".gitkeep", ".gitignore", "cache"}
_MOST_NAMED = 3

# A folder without a row is either left over from a crash, or another process is filling it and
# writes its row last. No save takes this long.
SWEEP_AFTER_SECONDS = 15 * 60


def new_folder(root: Path, kind: str, name: str) -> Path:
    """Create a folder that no other save will use, marked as unfinished."""
    folder = root / kind / f"{name}-{uuid.uuid4().hex[:8]}"
    with in_words(folder):
        folder.mkdir(parents=True)
        (folder / UNFINISHED).touch()
    return folder


def stored(root: Path, kind: str) -> Iterator[Path]:
    """Yield the folders of data sets or runs that rankdash made, listed or not."""
    for folder in _below(root / kind):
        if _is_stored(folder, kind):
            yield folder


def jobs(root: Path) -> Iterator[Path]:
    """Yield the folders of jobs that contain results."""
    for folder in _below(root / "jobs"):
        if _is_job(folder) and any(folder.iterdir()):
            yield folder


def id_of(folder: Path) -> str:
    """Return the id of the data set or run in a folder, by its name."""
    return folder.name.rpartition("-")[0]


def remove(root: Path, named: Iterable[str]) -> None:
    """Delete folders that no row names; folders that cannot be deleted now are swept later."""
    for each in named:
        folder = root / each
        kind = folder.parent.name
        if folder.is_symlink() or not folder.is_dir():
            continue
        if _is_job(folder) if kind == "jobs" else _is_stored(folder, kind):
            shutil.rmtree(folder, ignore_errors=True)


def abandoned(root: Path) -> list[str]:
    """Return folders without a record, unchanged for long enough to rule out a save in progress."""
    limit = time.time() - SWEEP_AFTER_SECONDS
    unfinished = [
        folder
        for kind in STORED
        for folder in stored(root, kind)
        if (folder / UNFINISHED).is_file() and not (folder / RECORD).is_file()
    ]
    stale = []
    for folder in (*unfinished, *jobs(root)):
        with suppress(FileNotFoundError):
            if folder.stat().st_mtime < limit:
                stale.append(relative(root, folder))
    return stale


def sweep(root: Path, candidates: Iterable[str], named: Collection[str]) -> None:
    """Move folders that no row names to the trash; folders that cannot be moved stay."""
    unnamed = [root / folder for folder in candidates if folder not in named]
    if unnamed:
        with suppress(OSError):
            to_trash(root, unnamed)


def on_read_only_disk(root: Path) -> bool:
    """Return whether the workspace is on a disk that is mounted read-only."""
    if not hasattr(os, "statvfs"):
        return False
    with suppress(OSError):
        return bool(os.statvfs(root).f_flag & os.ST_RDONLY)
    return False


def keep_reserve(root: Path) -> None:
    """Reserve some disk space, so that something can be deleted when the disk is full: deleting
    rows needs space too."""
    file = root / _RESERVE
    with suppress(OSError):
        if not file.exists() and shutil.disk_usage(root).free > _ROOM_FOR_RESERVE:
            # Random bytes, which no file system compresses.
            file.write_bytes(os.urandom(_RESERVE_BYTES))


def release_reserve(root: Path) -> None:
    """Free the space that `keep_reserve` reserved."""
    with in_words(root / _RESERVE):
        (root / _RESERVE).unlink(missing_ok=True)


def refuse_foreign(root: Path) -> None:
    """Raise StoreError if a folder without a workspace contains other files."""
    with in_words(root):
        existing = sorted(
            entry.name
            for entry in root.iterdir()
            if entry.name.casefold() not in _NO_CONTENT
            and not entry.name.startswith((DATABASE, "scores.sqlite"))
            and not _is_rankdash_folder(entry)
        )
    if existing:
        more = ", …" if len(existing) > _MOST_NAMED else ""
        raise StoreError(
            "The folder {folder} contains files but no workspace ({names}). Nothing in it was "
            "changed.",
            remedy=HOME_REMEDY,
            folder=str(root),
            names=", ".join(existing[:_MOST_NAMED]) + more,
        )


def relative(root: Path, folder: Path) -> str:
    """Return the folder as rows name it: "datasets/0123abcd-…", with "/" on every system."""
    return folder.relative_to(root).as_posix()


def _below(parent: Path) -> list[Path]:
    if not parent.is_dir():
        return []
    with in_words(parent):
        return sorted(each for each in parent.iterdir() if each.is_dir() and not each.is_symlink())


def _is_stored(folder: Path, kind: str) -> bool:
    if kind not in _TABLES or not _NAME.fullmatch(folder.name):
        return False
    return any((folder / name).is_file() for name in (RECORD, UNFINISHED, _TABLES[kind]))


def _is_job(folder: Path) -> bool:
    try:
        return all(_PART.fullmatch(each.name) for each in folder.iterdir())
    except OSError:
        return False


def _is_rankdash_folder(entry: Path) -> bool:
    """Return whether it is a folder that rankdash makes, and contains nothing else."""
    if not entry.is_dir():
        return False
    if entry.name == "jobs":
        return all(_is_job(each) for each in entry.iterdir())
    if entry.name == FETCHES:
        return all(_FETCH.fullmatch(each.name) for each in entry.iterdir())
    if entry.name == TRASH:
        return all(_TRASH_NAME.fullmatch(each.name) for each in entry.iterdir())
    return entry.name in (*STORED, BACKUPS) and not any(entry.iterdir())


def fetch_journal(root: Path, name: str) -> Path:
    """Return the journal of a fetch, and delete files of fetches that are 30 days old. name: 16
    hexadecimal digits."""
    folder = root / FETCHES
    with in_words(folder):
        folder.mkdir(exist_ok=True)
    limit = time.time() - _EMPTY_AFTER.total_seconds()
    for file in folder.iterdir():
        with suppress(OSError):
            if _FETCH.fullmatch(file.name) and file.stat().st_mtime < limit:
                file.unlink()
    return folder / f"{name}.jsonl"


# Swept or replaced files, in trash/<time>-<token>/, deleted after 30 days.

TRASH = "trash"
_EMPTY_AFTER = timedelta(days=30)

_TRASH_NAME = re.compile(r"(?P<time>\d{8}T\d{6}Z)-[0-9a-f]{8}")
_TRASH_TIME = "%Y%m%dT%H%M%SZ"


def to_trash(root: Path, paths: Iterable[Path]) -> Path:
    """Move files and folders of the workspace to the trash; return their new folder.

    Raises OSError if one cannot be moved; those before it were moved.
    """
    place = root / TRASH / f"{datetime.now(UTC).strftime(_TRASH_TIME)}-{uuid.uuid4().hex[:8]}"
    for path in paths:
        target = place / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Another process may have moved it.
        with suppress(FileNotFoundError):
            path.rename(target)
    return place


def empty_trash(root: Path) -> None:
    """Delete everything that was moved to the trash more than 30 days ago."""
    for place in _below(root / TRASH):
        # By the name: copying changes the times of files. A folder without a date stays.
        if match := _TRASH_NAME.fullmatch(place.name):
            with suppress(ValueError):
                moved = datetime.strptime(match["time"], _TRASH_TIME).replace(tzinfo=UTC)
                if moved < datetime.now(UTC) - _EMPTY_AFTER:
                    shutil.rmtree(place, ignore_errors=True)


# The record of a folder: a copy of its row, next to its tables.
#
# With it, the row can be restored if the database is lost. A record is written after its row and
# removed before it, so a record without a row means that the database lost the row, and never an
# interrupted save or delete.

_FORMAT, _VERSION = "rankdash record", 1
_NUMBER = (int, float, type(None))
_COLUMNS: dict[str, dict[str, Any]] = {
    "datasets": dict.fromkeys(("id", "name", "created", "source", "first_stage", "report"), str)
    | {"candidates_name": str}
    | dict.fromkeys(("queries", "documents", "labels"), int),
    "runs": dict.fromkeys(
        ("id", "dataset_id", "name", "reranker", "settings", "machine", "created"), str
    )
    | dict.fromkeys(("queries_done", "queries_failed", "queries_skipped"), int)
    | dict.fromkeys(("load_ms", "p50_ms", "p95_ms", "pairs_per_second"), _NUMBER)
    | {"depth": (int, type(None))},
}
# Columns that rows and records of an older version lack, with their defaults.
_LATER = {"candidates_name": ""}
_JSON = ("report", "settings", "machine")

_RecordRow = dict[str, object]


def write_record(folder: Path, kind: str, row: sqlite3.Row) -> None:
    """Write the record of a folder that a row names. Raises OSError if that fails."""
    complete = _LATER | dict(row)
    values = {name: complete[name] for name in _COLUMNS[kind]}
    text = json.dumps(
        {
            "format": _FORMAT,
            "version": _VERSION,
            "kind": kind,
            "row": values,
            "checksum": _checksum(values),
        }
    )
    with files.completed(folder / RECORD) as target:
        target.write(text.encode("ascii"))
    (folder / UNFINISHED).unlink(missing_ok=True)


def _checksum(values: Mapping[str, object]) -> int:
    return checksums.of([json.dumps(values, sort_keys=True)])


def has_record(folder: Path) -> bool:
    return (folder / RECORD).is_file()


def withdraw_record(folder: Path) -> None:
    """Mark a folder as unnamed by any row. Call it before the row is deleted."""
    with in_words(folder):
        if has_record(folder):
            (folder / RECORD).replace(folder / UNFINISHED)
        elif folder.is_dir():
            (folder / UNFINISHED).touch()


def recorded(root: Path) -> dict[str, list[Path]]:
    """Return kind → the folders that have a record."""
    return {
        kind: [folder for folder in stored(root, kind) if has_record(folder)] for kind in STORED
    }


def recorded_rows(
    root: Path, by_kind: Mapping[str, Collection[Path]], datasets: Collection[str]
) -> list[tuple[str, _RecordRow]]:
    """Return (kind, row) of each record that can be read, data sets first; runs only if their data
    set has a record too or is one of `datasets`."""
    rows: list[tuple[str, _RecordRow]] = []
    dataset_ids: set[object] = set(datasets)
    for kind in STORED:
        for folder in by_kind[kind]:
            with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
                row = _values(folder, kind)
                if kind == "datasets":
                    dataset_ids.add(row["id"])
                if kind == "datasets" or row["dataset_id"] in dataset_ids:
                    rows.append((kind, {**row, "folder": relative(root, folder)}))
    return rows


def _values(folder: Path, kind: str) -> _RecordRow:
    """Return the row in a record. Raises ValueError, LookupError or TypeError if it is not a
    record."""
    record: Any = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    row = {name: (_LATER | record["row"])[name] for name in _COLUMNS[kind]}
    sound = (
        record["format"] == _FORMAT
        # A record of an earlier version has no checksum.
        and record.get("checksum") in (None, _checksum(record["row"]))
        and record["kind"] == kind
        and row["id"] == id_of(folder)
        and all(isinstance(row[name], types) for name, types in _COLUMNS[kind].items())
    )
    if not sound:
        raise ValueError(folder)
    for name in _JSON:
        json.loads(str(row.get(name, "{}")))
    return row
