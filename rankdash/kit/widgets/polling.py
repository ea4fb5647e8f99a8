"""How often a page looks what became of work that a worker does."""

from __future__ import annotations

from rankdash.core.workspace.jobs.explanations import ExplanationRow
from rankdash.core.workspace.jobs.judges import JudgeRow

_LIVE_SECONDS = 1.0
# A worker that fell silent is taken for dead; on a busy machine it may be heard of again.
_SILENT_SECONDS = 5.0


def seconds(row: ExplanationRow | JudgeRow | None) -> float | None:
    """Between two looks; None where nothing more happens by itself."""
    if row is None:
        return None
    if row.live:
        return _LIVE_SECONDS
    return _SILENT_SECONDS if row.state == "interrupted" and row.error is None else None
