"""What an analyst remarks on a query: tags and a note, by data set and query."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankdash.core.base.errors import DataError, StoreError
from rankdash.core.workspace.failures import dataset_of_run, refuse_unknown
from rankdash.core.workspace.notes.corrections import Pair, tidy_name
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


# What an analyst writes about a run: what changed, and why it was made.


@dataclass(frozen=True)
class RunNote:
    """The note on one run. `changed` is ISO 8601 in UTC, "" where there is none; `who` is "" where
    nobody was logged in."""

    run_id: str
    text: str = ""
    changed: str = ""
    who: str = ""


class RunNotes:
    """The notes on the runs of a workspace; each goes with its run. Every method raises StoreError
    where the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def all(self, dataset_id: str) -> dict[str, RunNote]:
        """Run id → its note, for the runs of a data set that have one."""
        with self._database.reading() as db:
            return {
                row["run_id"]: _run_note(row)
                for row in db.execute("SELECT * FROM run_notes WHERE dataset_id = ?", (dataset_id,))
            }

    def of(self, run_id: str) -> RunNote:
        """The note on one run; an empty one where there is none."""
        with self._database.reading() as db:
            row = db.execute("SELECT * FROM run_notes WHERE run_id = ?", (run_id,)).fetchone()
        return _run_note(row) if row is not None else RunNote(run_id)

    def keep(self, run_id: str, text: str, who: str = "") -> RunNote:
        """Replace the note on a run; without a word there is none. Returns it as it is kept. who:
        the name it is signed with.

        Raises DataError where it is longer than `notes.LONGEST_NOTE` characters, and StoreError
        where there is no such run.
        """
        note = RunNote(run_id, text.strip(), now(), tidy_name(who))
        refuse_long(note.text)
        with self._database.writing() as db:
            dataset_id = dataset_of_run(db, run_id)
            if not note.text:
                db.execute("DELETE FROM run_notes WHERE run_id = ?", (run_id,))
                return RunNote(run_id)
            db.execute(
                "INSERT OR REPLACE INTO run_notes (run_id, dataset_id, note, changed, who) "
                "VALUES (?, ?, ?, ?, ?)",
                (run_id, dataset_id, note.text, note.changed, note.who),
            )
        return note


def _run_note(row: sqlite3.Row) -> RunNote:
    return RunNote(row["run_id"], row["note"], row["changed"], row["who"])


# What people remark on a pair of query and document while they label.

LONGEST_LABEL_NOTE = 500


class LabelNotes:
    """The remarks of a workspace; they go with their data set. Every method raises StoreError where
    the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def of(self, dataset_id: str, pair: Pair, who: str) -> str:
        """What a person remarked on a pair; "" where that is nothing."""
        with self._database.reading() as db:
            row = db.execute(
                "SELECT * FROM label_notes WHERE dataset_id = ? AND query_id = ? AND doc_id = ? "
                "AND who = ?",
                (dataset_id, *pair, tidy_name(who)),
            ).fetchone()
        return "" if row is None else str(row["note"])

    def all(self, dataset_id: str) -> dict[Pair, dict[str, str]]:
        """Pair → name → what this person remarked; names in order."""
        found: dict[Pair, dict[str, str]] = {}
        with self._database.reading() as db:
            for row in db.execute(
                "SELECT * FROM label_notes WHERE dataset_id = ? ORDER BY who", (dataset_id,)
            ):
                found.setdefault((row["query_id"], row["doc_id"]), {})[row["who"]] = row["note"]
        return found

    def keep(self, dataset_id: str, pair: Pair, who: str, note: str) -> None:
        """Replace what a person remarked on a pair, up to `LONGEST_LABEL_NOTE` characters in one
        line; nothing takes it away."""
        text = " ".join(note.split())[:LONGEST_LABEL_NOTE]
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            db.execute(
                "DELETE FROM label_notes WHERE dataset_id = ? AND query_id = ? AND doc_id = ? "
                "AND who = ?",
                (dataset_id, *pair, tidy_name(who)),
            )
            if text:
                db.execute(
                    "INSERT INTO label_notes (dataset_id, query_id, doc_id, who, note) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (dataset_id, *pair, tidy_name(who), text),
                )


# The run of a data set that others are compared with by default: its pinned baseline.


class Pins:
    """The pinned baselines of a workspace, one a data set; a pin goes with its run. Every method
    raises StoreError where the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def of(self, dataset_id: str) -> str | None:
        """The id of the pinned run; None where the first stage is the baseline."""
        with self._database.reading() as db:
            row = db.execute(
                "SELECT run_id FROM pins WHERE dataset_id = ?", (dataset_id,)
            ).fetchone()
        return None if row is None else str(row["run_id"])

    def pin(self, run_id: str) -> None:
        """Make a run the baseline of its data set, in place of the one that was.

        Raises StoreError where there is no such run.
        """
        with self._database.writing() as db:
            dataset_id = dataset_of_run(db, run_id)
            db.execute(
                "INSERT OR REPLACE INTO pins (dataset_id, run_id, pinned) VALUES (?, ?, ?)",
                (dataset_id, run_id, now()),
            )

    def unpin(self, dataset_id: str) -> None:
        """Let the first stage be the baseline again; nothing happens where it is."""
        with self._database.writing() as db:
            db.execute("DELETE FROM pins WHERE dataset_id = ?", (dataset_id,))
