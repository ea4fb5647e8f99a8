"""What an analyst writes about a run: what changed, and why it was made."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from rankdash.core.workspace.failures import dataset_of_run
from rankdash.core.workspace.notes.corrections import tidy_name
from rankdash.core.workspace.notes.notes import refuse_long
from rankdash.core.workspace.rows import now
from rankdash.core.workspace.workspace import Workspace


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
                row["run_id"]: _note(row)
                for row in db.execute("SELECT * FROM run_notes WHERE dataset_id = ?", (dataset_id,))
            }

    def of(self, run_id: str) -> RunNote:
        """The note on one run; an empty one where there is none."""
        with self._database.reading() as db:
            row = db.execute("SELECT * FROM run_notes WHERE run_id = ?", (run_id,)).fetchone()
        return _note(row) if row is not None else RunNote(run_id)

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


def _note(row: sqlite3.Row) -> RunNote:
    return RunNote(row["run_id"], row["note"], row["changed"], row["who"])
