"""The share of queries that are answered within a time, and the percentiles in a strip below.

The percentiles have a row for each system, so that their labels lie on no curve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import brief
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.latency import LatencySummary
from rankdash.kit.drawing import draw, style

_CURVES = 270
_ROW = 76
_FURNITURE = 84
_ROOM = 0.17
"""Of the width of the axis on either side, for the labels of the outermost percentiles."""


@dataclass(frozen=True)
class Curve:
    """One system. steps: ms and share, as from `study.latency.ecdf`."""

    system: str
    name: str
    steps: pd.DataFrame
    summary: LatencySummary


def figure(
    curves: Sequence[Curve], marks: Mapping[str, style.Mark], ink: style.Ink, *, target_ms: float
) -> go.Figure:
    """A step curve for each system on a log axis, its p50, p95 and, where it is known, p99 marked
    on it and written below; a dashed line at the target. marks: system → its mark."""
    traces: list[style.Trace] = []
    notes: list[dict[str, object]] = []
    for place, curve in enumerate(curves):
        row = float(len(curves) - 1 - place)
        mark = marks[curve.system]
        traces += [
            _line(curve, mark),
            *_interval(curve, row, mark),
            _points(curve, row, mark, ink, lower=False),
            _points(curve, row, mark, ink, lower=True),
        ]
        notes += _written(curve, row, ink)
    slow = [float(curve.steps["ms"].iloc[-1]) for curve in curves]
    fast = [float(curve.steps["ms"].iloc[0]) for curve in curves]
    ends = draw.reach([target_ms, *slow, *fast], _ROOM)
    strip = max(len(curves), 1) * _ROW
    height = _CURVES + strip + _FURNITURE
    share = strip / (_CURVES + strip)
    notes.append(
        draw.note(
            math.log10(target_ms),
            0.02,
            _("target {ms} ms", ms=brief(target_ms)),
            ink.muted,
            yref="y domain",
            xanchor="left" if math.log10(target_ms) < sum(ends) / 2 else "right",
            yanchor="bottom",
        )
    )
    return style.finish(
        traces,
        ink,
        height,
        annotations=notes,
        shapes=[draw.target_line(target_ms, ink)],
        xaxis=style.axis(
            _("milliseconds for one query (log scale)"), **draw.log_axis(ends), anchor="y2"
        ),
        yaxis=style.axis(
            _("share of queries answered"),
            domain=[share + 0.05, 1],
            tickformat=".0%",
            tickvals=[0, 0.25, 0.5, 0.75, 0.95],
            range=[0, 1.03],
            zeroline=False,
        ),
        yaxis2=style.row_labels(
            ink,
            domain=[0, share],
            tickvals=list(range(len(curves)))[::-1],
            ticktext=[style.short(curve.name, 20) for curve in curves],
            range=[-0.6, max(len(curves), 1) - 0.4],
        ),
    )


def alt(curves: Sequence[Curve]) -> str:
    """What the chart says, in words."""
    if not curves:
        return _("No latency was measured.")
    sentences = [
        _(
            "{name}: p50 {p50} ms, p95 {p95} ms, {queries}.",
            name=curve.name,
            p50=brief(curve.summary.p50),
            p95=brief(math.nan if curve.summary.p95 is None else curve.summary.p95),
            queries=style.queries(curve.summary.n),
        )
        for curve in curves
    ]
    return _("Share of queries answered within a time. {systems}", systems=" ".join(sentences))


def _percentiles(summary: LatencySummary) -> list[tuple[str, float, float]]:
    """Name, share, milliseconds."""
    found = [("p50", 0.5, summary.p50), ("p95", 0.95, summary.p95), ("p99", 0.99, summary.p99)]
    return [(name, share, ms) for name, share, ms in found if ms is not None]


def _line(curve: Curve, mark: style.Mark) -> style.Trace:
    name = style.whole(curve.name)
    ms, share = curve.steps["ms"].tolist(), curve.steps["share"].tolist()
    return draw.scatter(
        [*ms[:1], *ms],
        [0.0, *share],
        "lines",
        line={"color": mark.colour, "dash": mark.dash, "width": 2, "shape": "hv"},
        hover=[
            _(
                "{name}<br>{share:.1%} within {ms} ms",
                name=name,
                share=each,
                ms=brief(at),
            )
            for at, each in zip([*ms[:1], *ms], [0.0, *share], strict=True)
        ],
    )


def _points(
    curve: Curve, row: float, mark: style.Mark, ink: style.Ink, *, lower: bool
) -> style.Trace:
    """The percentiles on the curve, or in its row of the strip."""
    found = _percentiles(curve.summary)
    return draw.scatter(
        [ms for _, _, ms in found],
        [row] * len(found) if lower else [share for _, share, _ in found],
        "markers",
        yaxis="y2" if lower else "y",
        marker={
            "color": mark.colour,
            "symbol": mark.symbol,
            "size": 9,
            "line": {"color": mark.colour if "open" in mark.symbol else ink.background, "width": 1},
        },
    )


def _interval(curve: Curve, row: float, mark: style.Mark) -> list[style.Trace]:
    """A bar from the lower to the upper end of what p50 and p95 may be; open where unknown, none
    where both ends are."""
    summary, slowest = curve.summary, float(curve.steps["ms"].iloc[-1])
    found = []
    for name, value, (low, high) in (
        ("p50", summary.p50, summary.p50_interval),
        ("p95", summary.p95, summary.p95_interval),
    ):
        if value is None or not (math.isfinite(low) or math.isfinite(high)):
            continue
        hover = _(
            "{name}<br>{percentile}: {ms} ms ({low} … {high})",
            name=style.whole(curve.name),
            percentile=name,
            ms=brief(value),
            low=brief(low),
            high=brief(high),
        )
        found.append(
            draw.scatter(
                [
                    low if math.isfinite(low) else value,
                    high if math.isfinite(high) else slowest,
                ],
                [row, row],
                "lines",
                yaxis="y2",
                line={"color": style.faded(mark.colour, 0.35), "width": 9},
                hover=[hover, hover],
            )
        )
    return found


def _written(curve: Curve, row: float, ink: style.Ink) -> list[dict[str, object]]:
    """p50 ends above its mark, p95 begins there, p99 begins below its own: never on each other."""
    sides = {"p50": ("right", 9), "p95": ("left", 9), "p99": ("left", -9)}
    return [
        draw.note(
            math.log10(max(ms, 1e-6)),
            row,
            f"{name} <b>{brief(ms)}</b>",
            ink.text,
            yref="y2",
            xanchor=sides[name][0],
            yanchor="bottom" if sides[name][1] > 0 else "top",
            yshift=sides[name][1] - (2 if sides[name][1] > 0 else -2),
            xshift=-2 if sides[name][0] == "right" else 4,
        )
        for name, _, ms in _percentiles(curve.summary)
    ]
