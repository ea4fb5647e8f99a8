"""Charts of a judge beside people's labels."""

from __future__ import annotations

import math

import pandas as pd

from rankdash.core.study.judged import verdicts
from rankdash.core.study.study import Study
from rankdash.core.words.judged import three_ways as three_ways_of
from rankdash.features.judge import charts_label_curve as label_curve_chart
from rankdash.kit.drawing import group_changes as segments_chart
from rankdash.kit.drawing.draw import Drawing


def three_ways(study: Study, challenger: str) -> Drawing | None:
    """The change by people alone, by the judge alone and corrected; None without a judge."""
    if study.judge is None:
        return None
    found = verdicts(study, study.judge)[challenger]
    ways = three_ways_of(found.three)
    # Nothing is proven by a judge alone.
    p = [found.three.people.p, math.nan, found.p]
    table = pd.DataFrame(
        {
            "segment": found.judge,
            "value": [title for title, _change in ways],
            "n": [change.n for _title, change in ways],
            "delta": [change.mean for _title, change in ways],
            "low": [change.low for _title, change in ways],
            "high": [change.high for _title, change in ways],
            "p_corrected": p,
            "small": False,
        }
    )
    title, level = study.measure.title, study.statistics.level
    return Drawing(
        lambda ink: segments_chart.figure(table, title, ink, level=level, corrected=False),
        segments_chart.alt(table, title, level=level),
    )


def label_curve(study: Study, challenger: str) -> Drawing | None:
    """What labelling more queries would bring, without the judge and with it; None where nothing
    can be corrected."""
    if study.judge is None:
        return None
    found = verdicts(study, study.judge)[challenger]
    curves, title = {found.judge: found.three.curve()}, study.measure.title
    if not found.three.enough or not found.three.corrected.error > 0:
        return None
    return Drawing(
        lambda ink: label_curve_chart.figure(curves, title, ink),
        label_curve_chart.alt(curves, title),
    )
