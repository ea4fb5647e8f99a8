"""The judges that the workspace holds, and their grades, read once for all sessions."""

from __future__ import annotations

import pandas as pd

from rankdash.core.data.judgements import Judgements
from rankdash.core.workspace.jobs.judges import JudgeRow, StoredJudges
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.stored import stored


def rows(dataset_id: str) -> dict[str, JudgeRow]:
    """id → judge, oldest first; those that wait or run included."""
    found = StoredJudges(workspace()).rows(stored(dataset_id))
    return {row.id: row for row in found}


def grades(row: JudgeRow) -> pd.DataFrame:
    """One row for each pair, as `StoredJudges.grades` gives them."""
    # What it said only changes with these.
    key = ("judge grades", row.id, row.graded, row.failed, row.started or "", row.finished or "")
    return cache(key, lambda: StoredJudges(workspace()).grades(row.id))


def from_fewer_answers(row: JudgeRow) -> int:
    """The number of pairs with a grade that fewer answers gave than were asked for."""
    asked, said = int(row.settings.get("repeats", 1)), grades(row)
    graded = said["answers"][said["grade"].notna()]
    return sum(sum(answer["grade"] is not None for answer in answers) < asked for answers in graded)


def judgements(row: JudgeRow) -> Judgements:
    """The same as the statistics take them."""
    return Judgements(row.name, (0.0, float(row.top)), grades(row), row.model)
