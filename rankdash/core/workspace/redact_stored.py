"""What earlier versions kept of the answers of services, without the credentials in them.

They cut what a service said before they looked for the key in it, so that of a key that was
repeated across the cut the head was kept. Which key it was is not known any more: what looks like
one is hidden.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from rankdash.core.base.errors import StoreError
from rankdash.core.base.redaction import MARK, redact
from rankdash.core.workspace import backups, checksums
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.tables import read_table, write_table

_CUT_AT = 300
_CUT = re.compile(
    r"((?:answered [0-9]{3}|is not JSON|refused the request \([0-9]{3}\)): )"
    rf"(.{{{_CUT_AT}}})(?=[.\s]|\Z)"
)
# The word at the cut, of which the rest is unknown: it may be the head of a key.
_HEAD = re.compile(r"(?<![\w.~+/=%-])[\w.~+/=%-]+\Z", re.ASCII)


def clean(text: str) -> str:
    """A stored text without what looks like a credential, or like the head of one at a cut."""
    return redact(_CUT.sub(lambda found: found[1] + _HEAD.sub(MARK, found[2]), text))


def clean_workspace(db: sqlite3.Connection) -> None:
    """Clean the rows of a workspace and the files in its folder.

    A table is replaced as a whole or not at all, and cleaning twice is cleaning once: what was
    interrupted is done again. A file that cannot be read is left as it is.

    Raises StoreError where a file cannot be written.
    """
    clean_rows(db)
    root = Path(db.execute("PRAGMA database_list").fetchone()[2]).parent
    for copy in backups.listed(root):
        _clean_copy(copy)
    _clean_tables(root.glob("runs/*/queries.parquet"), reason=clean)
    _clean_tables(root.glob("runs/*/calls.parquet"), error=clean)
    _clean_tables(root.glob("jobs/*/*.parquet"), reason=clean, calls=_in_json)
    for name in ("worker.log", "worker.log.1"):
        _clean_log(root / name)


def clean_rows(db: sqlite3.Connection) -> None:
    """Clean the rows alone."""
    # What a row held is overwritten on the disk, not only given up.
    db.execute("PRAGMA secure_delete = ON")
    for table in ("jobs", "explanations"):
        query = f"SELECT id, problem FROM {table} WHERE problem IS NOT NULL"  # noqa: S608 - ours
        for row_id, problem in db.execute(query).fetchall():
            cleaned = _in_json(problem)
            if cleaned != problem:
                change = f"UPDATE {table} SET problem = ? WHERE id = ?"  # noqa: S608 - ours
                db.execute(change, (cleaned, row_id))


def _clean_copy(file: Path) -> None:
    """The rows of a copy of the database; one that cannot be read is left as it is."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(file, isolation_level=None)) as copy:
        checksums.teach(copy)
        copy.execute("BEGIN IMMEDIATE")
        clean_rows(copy)
        copy.execute("COMMIT")


def _clean_tables(files: Iterable[Path], **cleaners: Callable[[str], str]) -> None:
    """cleaners: by column."""
    for file in files:
        try:
            table = read_table(file)
        except StoreError:
            continue
        changed = False
        for name in cleaners.keys() & set(table.column_names):
            texts = table[name].to_pylist()
            cleaned = [text and cleaners[name](text) for text in texts]
            if cleaned != texts:
                place = table.column_names.index(name)
                column = pa.array(cleaned, type=table[name].type)
                table = table.set_column(place, table.schema.field(place), column)
                changed = True
        if changed:
            write_table(file, table)


def _clean_log(file: Path) -> None:
    """In place: a worker that is alive may hold it open."""
    if not file.exists():
        return
    with in_words(file), file.open("r+", encoding="utf-8", errors="surrogateescape") as log:
        text = log.read()
        cleaned = clean(text)
        if cleaned != text:
            log.seek(0)
            log.truncate()
            log.write(cleaned)


def _in_json(text: str) -> str:
    """The same JSON with every text in it cleaned; what is no JSON is cleaned as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return clean(text)
    cleaned = _within(value)
    return text if cleaned == value else json.dumps(cleaned)


def _within(value: Any) -> Any:
    if isinstance(value, dict):
        cleaned = {name: _within(each) for name, each in value.items()}
        said = value.get("said")
        # Of a refusal: what the service said, by itself.
        if isinstance(said, str) and len(said) == _CUT_AT:
            cleaned["said"] = redact(_HEAD.sub(MARK, said))
        return cleaned
    if isinstance(value, list):
        return [_within(each) for each in value]
    return clean(value) if isinstance(value, str) else value
