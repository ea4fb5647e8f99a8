"""What a folder says of itself: a copy of its row, beside its tables.

With it the row can be written again where the database is lost. A record is written after its row
and taken away before it, so that a record without a row means a database that lost the row, and
never a save or a delete that was cut short.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rankdash.core.base import files
from rankdash.core.workspace import checksums, folders
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.folders import RECORD, UNFINISHED

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
# What rows and records of an older version lack.
_LATER = {"candidates_name": ""}
_JSON = ("report", "settings", "machine")

Row = dict[str, object]


def keep(folder: Path, kind: str, row: sqlite3.Row) -> None:
    """Write the record of a folder that a row names. Raises OSError where that fails."""
    known = _LATER | dict(row)
    values = {name: known[name] for name in _COLUMNS[kind]}
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


def is_kept(folder: Path) -> bool:
    return (folder / RECORD).is_file()


def withdraw(folder: Path) -> None:
    """Mark a folder as one that no row will name. Call it before the row is deleted."""
    with in_words(folder):
        if is_kept(folder):
            (folder / RECORD).replace(folder / UNFINISHED)
        elif folder.is_dir():
            (folder / UNFINISHED).touch()


def kept(root: Path) -> dict[str, list[Path]]:
    """Kind → the folders that have a record."""
    return {
        kind: [folder for folder in folders.stored(root, kind) if is_kept(folder)]
        for kind in folders.STORED
    }


def rows_of(
    root: Path, found: Mapping[str, Collection[Path]], datasets: Collection[str]
) -> list[tuple[str, Row]]:
    """(kind, row) of each record that can be read, data sets first; of runs those whose data set
    has a record too or is one of `datasets`."""
    rows = [(kind, row) for kind in folders.STORED for row in _read(root, kind, found[kind])]
    known = {*datasets, *(row["id"] for kind, row in rows if kind == "datasets")}
    return [(kind, row) for kind, row in rows if kind == "datasets" or row["dataset_id"] in known]


def _read(root: Path, kind: str, found: Collection[Path]) -> list[Row]:
    rows = []
    for folder in found:
        try:
            values = _values(folder, kind)
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            continue
        rows.append({**values, "folder": folders.relative(root, folder)})
    return rows


def _values(folder: Path, kind: str) -> Row:
    """Raises ValueError, LookupError or TypeError where the record is none."""
    told: Any = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    row = {name: (_LATER | told["row"])[name] for name in _COLUMNS[kind]}
    sound = (
        told["format"] == _FORMAT
        # A record of an earlier version has no checksum.
        and told.get("checksum") in (None, _checksum(told["row"]))
        and told["kind"] == kind
        and row["id"] == folders.id_of(folder)
        and all(isinstance(row[name], types) for name, types in _COLUMNS[kind].items())
    )
    if not sound:
        raise ValueError(folder)
    for name in _JSON:
        json.loads(str(row.get(name, "{}")))
    return row
