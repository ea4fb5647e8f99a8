"""Charts of the latency of a query: its distribution, its spread, what it grows with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import brief
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import SEED
from rankdash.core.data.arrays import Floats
from rankdash.core.study import latency as study_latency
from rankdash.core.study.latency import Fit, LatencySummary
from rankdash.core.study.study import Study
from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import Drawing

_TARGET_MS = 500.0


def latency(study: Study, target_ms: float | None = None) -> Drawing | None:
    """The share of queries answered within a time; None where nothing was measured."""
    curves = [
        Curve(system, study.name(system), times.steps, times.summary)
        for system, times in study_latency.timed(study).items()
    ]
    if not curves:
        return None
    marks = style.marks(study.places, study.baseline)
    target = latency_target(study) if target_ms is None else target_ms
    return latency_ecdf_chart(curves, marks, target_ms=target)


def latency_target(study: Study) -> float:
    """What 95 % of the queries should be answered within, in milliseconds."""
    return _TARGET_MS if study.money is None else study.money.assumptions.latency_target_ms


# The share of queries that are answered within a time, and the percentiles in a strip below.
#
# The percentiles have a row for each system, so that their labels lie on no curve.

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


def _latency_ecdf_alt(curves: Sequence[Curve]) -> str:
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


@draw.chart(_latency_ecdf_alt)
def latency_ecdf_chart(
    ink: style.Ink, curves: Sequence[Curve], marks: Mapping[str, style.Mark], *, target_ms: float
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


def _percentiles(summary: LatencySummary) -> list[tuple[str, float, float]]:
    """Name, share, milliseconds."""
    percentiles = [
        ("p50", 0.5, summary.p50),
        ("p95", 0.95, summary.p95),
        ("p99", 0.99, summary.p99),
    ]
    return [(name, share, ms) for name, share, ms in percentiles if ms is not None]


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
    percentiles = _percentiles(curve.summary)
    return draw.scatter(
        [ms for _, _, ms in percentiles],
        [row] * len(percentiles) if lower else [share for _, share, _ in percentiles],
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
    traces = []
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
        traces.append(
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
    return traces


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


# Where the latencies of each system lie, as boxes.

_ROW_SPREAD = 64
_FURNITURE_SPREAD = 96
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Spread:
    """One system. ordered: its latencies in milliseconds, ascending."""

    system: str
    name: str
    ordered: Floats


def _latency_spread_alt(spreads: Sequence[Spread]) -> str:
    if not spreads:
        return _("No latency was measured.")
    sentences = [
        _(
            "{name}: half between {p25} and {p75}, 90% between {p5} and {p95}.",
            name=each.name,
            **_words(each),
        )
        for each in spreads
    ]
    return _("Latencies in milliseconds. {systems}", systems=" ".join(sentences))


@draw.chart(_latency_spread_alt)
def latency_spread_chart(
    ink: style.Ink, spreads: Sequence[Spread], marks: Mapping[str, style.Mark], *, target_ms: float
) -> go.Figure:
    """A box for each system: half of its queries, its median, and whiskers to p5 and p95; the
    fastest and the slowest as dots. A dashed line at the target. marks: system → its mark."""
    rows = list(range(len(spreads)))[::-1]
    traces: list[style.Trace] = []
    ends = [target_ms]
    for row, spread in zip(rows, spreads, strict=True):
        colour = marks[spread.system].colour
        low, first, middle, third, high = (float(each) for each in _quantiles(spread))
        extremes = [float(spread.ordered[0]), float(spread.ordered[-1])]
        ends += extremes
        traces += [
            {
                "type": "box",
                "orientation": "h",
                "y": [row],
                "lowerfence": [low],
                "q1": [first],
                "median": [middle],
                "q3": [third],
                "upperfence": [high],
                "line": {"color": colour, "width": 2},
                "fillcolor": style.faded(colour, 0.18),
                "width": 0.5,
                "showlegend": False,
                "hoverinfo": "skip",
            },
            draw.scatter(
                [*extremes, middle],
                [row] * 3,
                "markers",
                marker={
                    "color": [colour, colour, "rgba(0,0,0,0)"],
                    "symbol": ["circle-open", "circle-open", "circle"],
                    "size": 7,
                },
                hover=[_hover(spread)] * 3,
            ),
        ]
    return style.finish(
        traces,
        ink,
        len(spreads) * _ROW_SPREAD + _FURNITURE_SPREAD,
        shapes=[draw.target_line(target_ms, ink)],
        xaxis=style.axis(
            _("milliseconds for one query (log scale)"),
            **draw.log_axis(draw.reach(ends, 0.06)),
        ),
        yaxis=style.row_labels(
            ink,
            tickvals=rows,
            ticktext=[style.short(spread.name, 20) for spread in spreads],
            range=[-0.6, max(len(spreads), 1) - 0.4],
        ),
    )


def _quantiles(spread: Spread) -> Floats:
    return np.quantile(spread.ordered, _SHARES)


def _words(spread: Spread) -> dict[str, str]:
    names = [f"p{share * 100:.0f}" for share in _SHARES]
    return dict(zip(names, map(brief, _quantiles(spread)), strict=True))


def _hover(spread: Spread) -> str:
    name = style.whole(spread.name)
    return _(
        ("{name} ({queries})<br>p5 {p5} · p25 {p25} · p50 {p50} · p75 {p75} · p95 {p95} ms"),
        name=name,
        queries=style.queries(len(spread.ordered)),
        **_words(spread),
    )


# Latency against what a query asks of the system: its documents, or its tokens.

MOST_MARKS = 1000
"""Of more queries, all systems together, a share is drawn by chance."""

RULES_OF_THUMB = pd.DataFrame(
    {
        "documents": [20, 50, 100, 200],
        "p50": [80, 200, 400, 800],
        "p95": [120, 300, 600, 1200],
        "p99": [150, 400, 800, 1500],
    }
)
"""Milliseconds by documents reranked, as tutorials copy them from each other; no measurement."""

_HEIGHT = 400
_LINE_POINTS = 40


@dataclass(frozen=True)
class Cloud:
    """One system. points: x (documents or tokens) and ms, a row a query. fit: None for no line."""

    system: str
    name: str
    points: pd.DataFrame
    fit: Fit | None


def _latency_fit_alt(clouds: Sequence[Cloud], against: Literal["documents", "tokens"]) -> str:
    sentences = []
    for cloud in clouds:
        fit = cloud.fit
        if fit is None:
            sentences.append(
                _(
                    "{name}: {queries}, no line.",
                    name=cloud.name,
                    queries=style.queries(len(cloud.points)),
                )
            )
            continue
        sentences.append(
            _(
                "{name}: about {first} ms at {low:,} and {last} ms at {high:,}.",
                name=cloud.name,
                first=brief(fit.at(fit.first)),
                low=int(fit.first),
                last=brief(fit.at(fit.last)),
                high=int(fit.last),
            )
        )
    title = (
        _("documents of the query") if against == "documents" else _("tokens read for the query")
    )
    return _("Latency against {x}. {systems}", x=title, systems=" ".join(sentences))


@draw.chart(_latency_fit_alt)
def latency_fit_chart(
    ink: style.Ink,
    clouds: Sequence[Cloud],
    marks: Mapping[str, style.Mark],
    against: Literal["documents", "tokens"],
    *,
    rules: bool = False,
) -> go.Figure:
    """A mark for each query on a log axis, and each system's line, which bends there unless it goes
    through 0. rules: whether the rules of thumb are drawn (by documents only). marks: system → its
    mark."""
    title = (
        _("documents of the query") if against == "documents" else _("tokens read for the query")
    )
    share = min(1.0, MOST_MARKS / max(sum(len(cloud.points) for cloud in clouds), 1))
    traces: list[style.Trace] = []
    lines: list[style.Trace] = []
    for cloud in clouds:
        mark = marks[cloud.system]
        traces.append(_queries(cloud, mark, share, title))
        if cloud.fit is not None:
            lines.append(_line_fit(cloud.fit, mark))
    # In front of every query.
    traces += lines
    times = [float(ms) for cloud in clouds for ms in cloud.points["ms"]]
    farthest = max((float(cloud.points["x"].max()) for cloud in clouds), default=1.0)
    if rules and against == "documents":
        near = RULES_OF_THUMB[RULES_OF_THUMB["documents"] <= max(2.2 * farthest, 50)]
        traces += _rules(near, ink)
        times += [*near["p50"].astype(float), *near["p95"].astype(float)]
        farthest = max(farthest, float(near["documents"].max()))
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        xaxis=style.axis(title, range=_across(clouds, farthest), tickformat=",~d"),
        yaxis=style.axis(
            _("milliseconds for one query"),
            **draw.log_axis(draw.reach(times, 0.08)),
        ),
    )


def _across(clouds: Sequence[Cloud], farthest: float) -> list[float]:
    """From 0, unless that would leave much of the chart empty."""
    nearest = min((float(cloud.points["x"].min()) for cloud in clouds), default=0.0)
    room = 0.05 * (farthest - nearest if nearest > 0.4 * farthest else farthest)
    return [nearest - max(room, 1.0) if nearest > 0.4 * farthest else 0.0, farthest + max(room, 1)]


def _queries(cloud: Cloud, mark: style.Mark, share: float, title: str) -> style.Trace:
    points = cloud.points
    if share < 1:
        points = points.sample(frac=share, random_state=SEED)
    name = style.whole(cloud.name)
    return draw.scatter(
        points["x"].tolist(),
        points["ms"].tolist(),
        "markers",
        name=style.short(cloud.name),
        marker={
            "color": mark.colour,
            "symbol": mark.symbol,
            "size": 7,
            "opacity": 0.55,
            "line": {"color": mark.colour, "width": 1},
        },
        hover=[
            _(
                "{name}<br>{x}: {value:,}<br>{ms} ms",
                name=name,
                x=title,
                value=int(x),
                ms=brief(ms),
            )
            for x, ms in zip(points["x"], points["ms"], strict=True)
        ],
    )


def _line_fit(fit: Fit, mark: style.Mark) -> style.Trace:
    x = np.linspace(fit.first, fit.last, _LINE_POINTS)
    ms = fit.intercept + fit.slope * x
    # Below 0 there is no time, and a log axis has no place for it.
    drawn = ms > 0
    return draw.scatter(
        x[drawn].tolist(),
        ms[drawn].tolist(),
        "lines",
        line={"color": mark.colour, "dash": mark.dash, "width": 2.5},
    )


def _rules(near: pd.DataFrame, ink: style.Ink) -> list[style.Trace]:
    documents = near["documents"].tolist()
    return [
        draw.scatter(
            documents,
            near[percentile].tolist(),
            "lines+markers",
            name=_("rules of thumb from tutorials, {percentile}", percentile=percentile),
            line={"color": ink.muted, "dash": dash, "width": 1.5},
            marker={"color": ink.muted, "symbol": symbol, "size": 9},
            hover=[
                _(
                    "rule of thumb from tutorials<br>{n} documents: {percentile} {ms} ms",
                    n=n,
                    percentile=percentile,
                    ms=brief(ms),
                )
                for n, ms in zip(documents, near[percentile], strict=True)
            ],
        )
        for percentile, dash, symbol in (
            ("p50", "dot", "line-ew-open"),
            ("p95", "longdash", "x-thin-open"),
        )
    ]
