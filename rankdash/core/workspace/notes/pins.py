"""The run of a data set that others are compared with by default: its pinned baseline."""

from __future__ import annotations

from rankdash.core.workspace.failures import dataset_of_run
from rankdash.core.workspace.rows import now
from rankdash.core.workspace.workspace import Workspace


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
