"""The study of a page, with all that a report says beside its numbers."""

from __future__ import annotations

from dataclasses import replace

from rankdash.analysis.labels.check import CheckReport
from rankdash.store.notes.notes import Notes
from rankdash.study.study import Study
from rankdash.ui.state.server import workspace


def for_report(study: Study) -> Study:
    """With what the check noticed, and the notes on queries."""
    check = workspace().check_report(study.stored_id)
    return replace(
        study,
        check=CheckReport.from_json(check) if check not in ("", "{}") else None,
        notes={note.query_id: note for note in Notes(workspace()).all(study.stored_id)},
        corrections=study.corrections if study.corrected else 0,
    )
