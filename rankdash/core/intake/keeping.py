"""What was read, into a workspace: stored once, and said where it is there already."""

from __future__ import annotations

from dataclasses import dataclass

from rankdash.core.base import names
from rankdash.core.readers.loading import Loaded
from rankdash.core.workspace import Workspace


@dataclass(frozen=True)
class Kept:
    """What became of the files of a data set.

    dataset_id: the stored data set.
    was_here: whether an equal one was stored before; it keeps its name and its check report.
    added: the names of the systems that were stored now.
    """

    dataset_id: str
    was_here: bool = False
    added: tuple[str, ...] = ()


def keep(workspace: Workspace, loaded: Loaded) -> Kept:
    """Store a data set under a free name, with the systems that came with it. Of one that is there
    already (its content is equal) only the systems that it lacks are stored.

    Raises StoreError where the workspace cannot be written.
    """
    dataset = loaded.dataset
    others = {row.id: row.name for row in workspace.datasets()}
    was_here = dataset.id in others
    if not was_here:
        workspace.save_dataset(dataset, source="upload", report_json=loaded.report.to_json())
        if dataset.name in others.values():
            workspace.rename_dataset(dataset.id, names.free(dataset.name, others.values()))
    stored = {row.id for row in workspace.runs(dataset.id)}
    added = [run for run in loaded.runs if run.id not in stored]
    for run in added:
        workspace.save_run(run)
    return Kept(dataset.id, was_here, tuple(run.name for run in added))
