"""The chart of the labels of a data set."""

from __future__ import annotations

from rankdash.core.base.i18n import plain
from rankdash.core.readers.checks.check import CheckReport
from rankdash.features.data import charts_grades as grades_chart
from rankdash.kit.drawing.draw import Drawing


def grades(report: CheckReport) -> Drawing:
    """How many pairs carry each label."""
    bars = [
        (
            plain(bar.low) if bar.low == bar.high else f"{plain(bar.low)}…{plain(bar.high)}",
            bar.count,
        )
        for bar in report.label_histogram
    ]
    return Drawing(lambda ink: grades_chart.figure(bars, ink), grades_chart.alt(bars))
