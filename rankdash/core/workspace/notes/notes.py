"""What an analyst remarks on a query: tags and a note, by data set and query."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankdash.core.base.errors import DataError, StoreError
from rankdash.core.workspace.failures import refuse_unknown
from rankdash.core.workspace.notes.corrections import tidy_name
from rankdash.core.workspace.rows import now, read_json
from rankdash.core.workspace.workspace import Workspace

MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 4_000


@dataclass(frozen=True)
class Note:
    """The remarks on one query. `changed` is ISO 8601 in UTC, "" where nothing was remarked; `who`
    is "" where nobody was logged in. unread: why the tags are not here; None where they are."""

    query_id: str
    tags: tuple[str, ...] = ()
    text: str = ""
    changed: str = ""
    who: str = ""
    unread: StoreError | None = None


class Notes:
    """The notes of a workspace; they go with their data set. Every method raises StoreError where
    the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def all(self, dataset_id: str) -> list[Note]:
        """Every note of a data set, by query id."""
        with self._database.reading() as db:
            return [
                _note(row)
                for row in db.execute(
                    "SELECT * FROM notes WHERE dataset_id = ? ORDER BY query_id", (dataset_id,)
                )
            ]

    def of(self, dataset_id: str, query_id: str) -> Note:
        """The note of one query; an empty one where there is none."""
        with self._database.reading() as db:
            row = db.execute(
                "SELECT * FROM notes WHERE dataset_id = ? AND query_id = ?", (dataset_id, query_id)
            ).fetchone()
        return _note(row) if row is not None else Note(query_id)

    def keep(
        self, dataset_id: str, query_id: str, tags: Iterable[str], text: str, who: str = ""
    ) -> Note:
        """Replace the remarks on a query; without a tag and a word there are none. Returns the note
        as it is kept. who: the name it is signed with.

        Raises DataError where there are more than `MOST_TAGS` tags, a tag is longer than
        `LONGEST_TAG` or the note longer than `LONGEST_NOTE` characters.
        """
        note = Note(query_id, tidy(tags), text.strip(), now(), tidy_name(who))
        _refuse_too_much(note)
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            if note.tags or note.text:
                db.execute(
                    "INSERT OR REPLACE INTO notes "
                    "(dataset_id, query_id, tags, note, changed, who) VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        *(dataset_id, query_id, json.dumps(note.tags)),
                        *(note.text, note.changed, note.who),
                    ),
                )
            else:
                db.execute(
                    "DELETE FROM notes WHERE dataset_id = ? AND query_id = ?",
                    (dataset_id, query_id),
                )
        return note


def tidy(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags, each once whatever its case, blanks made single, empty ones left out."""
    found: dict[str, str] = {}
    for tag in tags:
        clean = " ".join(tag.split())
        if clean:
            found.setdefault(clean.casefold(), clean)
    return tuple(found.values())


def tags_in_use(notes: Sequence[Note]) -> list[str]:
    """Every tag of the notes once, in alphabetical order."""
    return sorted(tidy(tag for note in notes for tag in note.tags), key=str.casefold)


def _refuse_too_much(note: Note) -> None:
    if len(note.tags) > MOST_TAGS:
        raise DataError(
            "A query can have at most {most} tags.",
            remedy="Remove one before adding another.",
            most=MOST_TAGS,
        )
    if any(len(tag) > LONGEST_TAG for tag in note.tags):
        raise DataError(
            "A tag can have at most {most} characters.",
            remedy="Put the rest into the note.",
            most=LONGEST_TAG,
        )
    refuse_long(note.text)


def refuse_long(text: str) -> None:
    """Raises DataError for a note of more than `LONGEST_NOTE` characters."""
    if len(text) > LONGEST_NOTE:
        raise DataError(
            "A note can have at most {most} characters.", remedy="Shorten it.", most=LONGEST_NOTE
        )


def _note(row: sqlite3.Row) -> Note:
    tags, unread = tags_of(row)
    return Note(row["query_id"], tags, row["note"], row["changed"], row["who"], unread)


def tags_of(row: Mapping[str, Any] | sqlite3.Row) -> tuple[tuple[str, ...], StoreError | None]:
    """The tags of a row; none, and why, where they cannot be read."""
    try:
        return read_json(row, "tags", tuple[str, ...]), None
    except StoreError as error:
        return (), error
