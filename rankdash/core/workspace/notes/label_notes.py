"""What people remark on a pair of query and document while they label."""

from __future__ import annotations

from rankdash.core.workspace.failures import refuse_unknown
from rankdash.core.workspace.notes.corrections import Pair, tidy_name
from rankdash.core.workspace.workspace import Workspace

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
