"""A data set with other labels, kept beside the one that it was made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rankdash.core.base import names
from rankdash.core.base.findings import Finding
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import digest
from rankdash.core.readers.checks.check import check
from rankdash.core.workspace import RunRow
from rankdash.core.workspace.notes.corrections import Correction, Corrections
from rankdash.core.workspace.notes.notes import Notes
from rankdash.kit.widgets import address, stored
from rankdash.kit.widgets.server import workspace


def keep_beside(
    old: str,
    made: Dataset,
    noticed: Sequence[Finding],
    *,
    name: str,
    corrected: Callable[[float], float] = float,
) -> None:
    """Save `made` with the runs, notes and corrected labels of the data set `old`, and open it. The
    old one stays, so nothing is lost, and so does a run whose files are damaged.

    noticed: what the check report says beside its own findings. name: what a new data set is
    called; one that is there already keeps its name. corrected: a corrected label as it is there.
    """
    runs = [(row, workspace().run(row.id)) for row in stored.rows(old).values()]
    report = check(made, noticed, {run.name: run.ranking for _row, run in runs})
    there = {row.id: row.name for row in workspace().datasets()}
    new = workspace().save_dataset(made, source="upload", report_json=report.to_json())
    if new not in there:
        workspace().rename_dataset(new, names.free(name, there.values()))
    if new != old:
        known = {_origin(row) for row in workspace().runs(new)}
        for row, run in runs:
            if _origin(row) not in known:
                own = digest([new.encode(), run.id.encode()])
                workspace().save_run(replace(run, id=own, dataset_id=new))
        _carry_remarks(old, new, corrected)
    address.choose("data", new)
    for field in ("base", "system", "vs"):
        address.choose(field, None)


def _origin(row: RunRow) -> tuple[str, str, str]:
    """What tells the runs of a data set apart, whichever data set they were carried to."""
    return row.reranker, row.created, row.name


def _carry_remarks(old: str, new: str, corrected: Callable[[float], float]) -> None:
    """Notes and corrections go along, but for corrections that the new labels agree with."""
    notes, corrections = Notes(workspace()), Corrections(workspace())
    known = {note.query_id for note in notes.all(new)}
    for note in notes.all(old):
        if note.query_id not in known:
            notes.keep(new, note.query_id, note.tags, note.text)
    if not corrections.layer(new).count:
        carried = [_carried(each, corrected) for each in corrections.all(old)]
        corrections.restore(
            new,
            [
                each
                for each in carried
                if stored.uploaded_labels(new, each.query_id).get(each.doc_id) != each.label
            ],
        )


def _carried(correction: Correction, corrected: Callable[[float], float]) -> Correction:
    if correction.label is None:
        return correction
    return replace(correction, label=corrected(correction.label))
