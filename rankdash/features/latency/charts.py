"""The chart of latencies."""

from __future__ import annotations

from rankdash.core.study import latency as study_latency
from rankdash.core.study.study import Study
from rankdash.features.latency import charts_latency_ecdf as latency_chart
from rankdash.kit.drawing import style
from rankdash.kit.drawing.draw import Drawing

_TARGET_MS = 500.0


def latency(study: Study, target_ms: float | None = None) -> Drawing | None:
    """The share of queries answered within a time; None where nothing was measured."""
    curves = [
        latency_chart.Curve(system, study.name(system), times.steps, times.summary)
        for system, times in study_latency.timed(study).items()
    ]
    if not curves:
        return None
    marks = style.marks(study.places, study.baseline)
    target = latency_target(study) if target_ms is None else target_ms
    return Drawing(
        lambda ink: latency_chart.figure(curves, marks, ink, target_ms=target),
        latency_chart.alt(curves),
    )


def latency_target(study: Study) -> float:
    """What 95 % of the queries should be answered within, in milliseconds."""
    return _TARGET_MS if study.money is None else study.money.assumptions.latency_target_ms
