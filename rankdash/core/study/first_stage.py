"""Systems against the first stage, and the loss that leaving it in place may cost."""

from __future__ import annotations

from dataclasses import replace

from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE


def first_stage_kind(study: Study, challenger: str) -> str:
    """The kind of verdict on a challenger against the first stage, among all systems chosen: the
    study's own where that is its baseline."""
    based = replace(
        study,
        baseline=FIRST_STAGE,
        challengers=tuple(system for system in study.chosen if system != FIRST_STAGE),
        # Other metrics count for the correction alone.
        others=() if study.statistics.family == "metric" else study.others,
    )
    return str(based.comparison.row(challenger, study.spec)["verdict"])


TOLERANCE = 0.01
"""The acceptable loss, as a share of the mean of reranking everything."""
