"""Runs over time: a metric with its interval, and under it how fast they were and what failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from rankdash.core.base.i18n import brief, enumerated, level_percent, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import LEVEL
from rankdash.kit.drawing import draw, style

_MEAN, _MS, _FAILED = 240, 110, 80
_GAP = 26
_FURNITURE = 70
_MOST_NUMBERS = 12
_NOTE = 70
_DAYS_APART = 4
_MOST_SERIES = 6
_LEAST_ROOM = 0.025
_BESIDE = 0.6
# The share of the panel that is kept at its foot for runs that are not compared.
_FOOT = 0.12


@dataclass(frozen=True)
class TrendPoint:
    """One run. number: as the table has it. when and day: the time it was made, for the hover and
    for the axis. series: the index of the runs it is joined with, None where it was made once.
    mean with low…high (NaN where there is none) rests on n queries. compared: whether it stands on
    the line. p95_ms: NaN where not measured. note: what a person wrote about it."""

    number: int
    name: str
    when: str
    day: str
    series: int | None
    mean: float
    low: float
    high: float
    n: int
    compared: bool
    p95_ms: float
    failed: int
    note: str = ""


@dataclass(frozen=True)
class Across:
    """A line across: the mean of what the runs are compared with, or the like. name: as it is
    shown, with what it is."""

    name: str
    mean: float


def _trend_alt(points: Sequence[TrendPoint], metric: str, across: Sequence[Across]) -> str:
    sentences = []
    lines = [f"{line.name} {style.number(line.mean)}" for line in across]
    if lines:
        sentences.append(_("Horizontal lines: {lines}.", lines=enumerated(lines)))
    compared = [point for point in points if point.compared and math.isfinite(point.mean)]
    if compared:
        best = max(compared, key=lambda point: point.mean)
        sentences.append(
            _(
                (
                    "First {first_name}: {first}; last {last_name}: {last}; highest "
                    "{best_name}: {best}."
                ),
                first_name=compared[0].name,
                first=style.number(compared[0].mean),
                last_name=compared[-1].name,
                last=style.number(compared[-1].mean),
                best_name=best.name,
                best=style.number(best.mean),
            )
        )
    if len(compared) < len(points):
        apart = sum(not point.compared for point in points)
        sentences.append(_("Not compared, with too few queries: {n}.", n=apart))
    return ngettext(
        "{metric} of {n} run over time. {told}",
        "{metric} of {n} runs over time. {told}",
        len(points),
        metric=metric,
        told=" ".join(sentences),
    ).strip()


@draw.chart(_trend_alt)
def trend_chart(
    ink: style.Ink,
    points: Sequence[TrendPoint],
    metric: str,
    across: Sequence[Across],
    *,
    series: Sequence[str] = (),
    level: float = LEVEL,
) -> go.Figure:
    """Runs in equal steps, because many are made in an hour and then none for weeks. Those of one
    series are joined by a line. Where a run was timed or failed on a query there is a panel for it.

    points: oldest first. metric: its title. across: the first is what runs are compared with.
    series: the names of the series. level: of the intervals.
    """
    compared = [point for point in points if point.compared and math.isfinite(point.mean)]
    across = [line for line in across if math.isfinite(line.mean)]
    means = [line.mean for line in across]
    values = (each for point in compared for each in (point.mean, point.low, point.high))
    known = [*values, *means]
    low, high = style.reach(known, 0.1, _LEAST_ROOM, -0.01)
    apart = [point for point in points if not point.compared]
    if apart:
        low -= _FOOT * (high - low)
    traces = _across(points, across, ink) + _means(points, metric, series, ink)
    if any(math.isfinite(point.low) for point in compared):
        words = _("{level} interval of the mean", level=level_percent(level))
        traces.append(draw.key(words, "line-ns", ink.muted))
    if apart:
        foot = low + _FOOT / 2 * (high - low)
        traces.append(_apart(apart, foot, metric, ink))
    timed = any(math.isfinite(point.p95_ms) for point in points)
    failures = any(point.failed for point in points)
    heights = [_MEAN, *([_MS] if timed else []), *([_FAILED] if failures else [])]
    total = sum(heights) + _GAP * (len(heights) - 1)
    domains = _domains(heights)
    axes: dict[str, dict[str, object]] = {
        "yaxis": style.axis(
            style.short(metric),
            domain=domains[0],
            tickformat=".2f",
            range=[low, high],
            zeroline=False,
        )
    }
    if timed:
        traces.append(_times(points, ink))
        ends = draw.reach([point.p95_ms for point in points], 0.1)
        axes["yaxis2"] = style.axis(
            _("p95 ms"), **draw.log_axis(ends, short=True), domain=domains[1]
        )
    if failures:
        name = f"yaxis{len(axes) + 1}"
        traces.append(_failures(points, name))
        axes[name] = style.axis(
            _("failed"), domain=domains[-1], rangemode="tozero", nticks=3, tickformat=",d"
        )
    lowest = list(axes)[-1].replace("axis", "")
    return style.finish(
        traces,
        ink,
        total + _FURNITURE,
        **axes,
        xaxis=style.axis(
            _("run, oldest first; the numbers are those of the table"),
            **_ticks(points),
            anchor=lowest,
            range=[points[0].number - _BESIDE, points[-1].number + _BESIDE] if points else [0, 1],
        ),
        bargap=0.6,
    )


def _means(
    points: Sequence[TrendPoint], metric: str, series: Sequence[str], ink: style.Ink
) -> list[style.Trace]:
    """A trace for each series that has a mark of its own, and one for all other runs."""
    looks = style.marks_in_order(str(place) for place in range(len(series)))
    joined: dict[int, list[TrendPoint]] = {}
    others: list[TrendPoint] = []
    for point in points:
        if not point.compared or not math.isfinite(point.mean):
            continue
        if point.series is not None and point.series < _MOST_SERIES:
            joined.setdefault(point.series, []).append(point)
        else:
            others.append(point)
    traces = [
        _line(line_points, style.short(series[place]), looks[str(place)], metric)
        for place, line_points in sorted(joined.items())
    ]
    if others:
        name = _("other runs") if joined else _("runs")
        mark = style.Mark(ink.muted, "circle-open", "solid")
        traces.append({**_line(others, name, mark, metric), "mode": "markers"})
    return traces


def _line(points: Sequence[TrendPoint], name: str, mark: style.Mark, metric: str) -> style.Trace:
    return draw.scatter(
        [point.number for point in points],
        [point.mean for point in points],
        name=name,
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [_known(point.high - point.mean) for point in points],
            "arrayminus": [_known(point.mean - point.low) for point in points],
            "color": style.faded(mark.colour, 0.7),
            "thickness": 1.5,
            "width": 4,
        },
        cliponaxis=False,
        hover=[_said(point, metric) for point in points],
        **draw.curve(mark),
    )


def _across(
    points: Sequence[TrendPoint], lines: Sequence[Across], ink: style.Ink
) -> list[style.Trace]:
    """Named in the legend, with their value: on the line itself a label would cover the runs."""
    ends = [points[0].number - _BESIDE, points[-1].number + _BESIDE] if points else []
    # The baseline's first.
    looks = [(ink.text, "dot"), (ink.muted, "dash"), (ink.muted, "longdashdot")]
    return [
        draw.scatter(
            ends,
            [line.mean] * len(ends),
            "lines",
            name=f"{style.short(line.name, 40)} {style.number(line.mean)}",
            line={"color": colour, "dash": dash, "width": 2},
        )
        for line, (colour, dash) in zip(lines, looks, strict=False)
    ]


def _apart(points: Sequence[TrendPoint], floor: float, metric: str, ink: style.Ink) -> style.Trace:
    """At the foot of the panel: a run that has a time and no place beside the others."""
    return draw.scatter(
        [point.number for point in points],
        [floor] * len(points),
        "markers",
        name=_("too few queries: not compared"),
        marker={"symbol": "x-thin", "size": 9, "line": {"color": ink.muted, "width": 2}},
        hover=[_said(point, metric) for point in points],
    )


def _times(points: Sequence[TrendPoint], ink: style.Ink) -> style.Trace:
    timed = [point for point in points if math.isfinite(point.p95_ms)]
    return draw.scatter(
        [point.number for point in timed],
        [point.p95_ms for point in timed],
        "markers",
        yaxis="y2",
        marker=draw.marker(ink.text, "line-ew", 12, width=3),
        hover=[
            f"{_heading(point)}<br>{_('p95 {ms} ms', ms=brief(point.p95_ms))}" for point in timed
        ],
    )


def _failures(points: Sequence[TrendPoint], axis: str) -> style.Trace:
    return draw.bar(
        [point.number for point in points],
        [point.failed for point in points],
        yaxis=axis.replace("axis", ""),
        marker={"color": style.WORSE},
        hover=[f"{_heading(point)}<br>{_('{n:,} failed', n=point.failed)}" for point in points],
    )


def _heading(point: TrendPoint) -> str:
    return f"{point.number} · <b>{style.whole(point.name)}</b><br>{style.short(point.when)}"


def _said(point: TrendPoint, metric: str) -> str:
    interval = math.isfinite(point.low) and math.isfinite(point.high)
    template = (
        _("{metric} {value} ({low}…{high}) over {queries}")
        if interval
        else _("{metric} {value} over {queries}")
    )
    value = template.format(
        metric=style.short(metric),
        value=style.number(point.mean),
        low=style.number(point.low),
        high=style.number(point.high),
        queries=style.queries(point.n),
    )
    note = f"<br>{style.short(point.note, _NOTE)}" if point.note else ""
    return f"{_heading(point)}<br>{value}{note}"


def _known(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _domains(heights: Sequence[int]) -> list[list[float]]:
    """From top to bottom, as shares of the plot from its foot."""
    total = sum(heights) + _GAP * (len(heights) - 1)
    domains, top = [], float(total)
    for height in heights:
        domains.append([max(top - height, 0) / total, top / total])
        top -= height + _GAP
    return domains


def _ticks(points: Sequence[TrendPoint]) -> dict[str, object]:
    """Numbers as far as there is room, and the day under the first run of a day, not too near to
    the one before."""
    step = -(-len(points) // _MOST_NUMBERS) or 1
    room = max(-(-len(points) // _DAYS_APART), 1)
    ticks: dict[int, str] = {}
    last_day, dated = "", -math.inf
    for place in range(0, len(points), step):
        point = points[place]
        ticks[point.number] = str(point.number)
        if point.day != last_day and place - dated >= room:
            ticks[point.number] += f"<br>{style.short(point.day)}"
            last_day, dated = point.day, place
    return {
        "tickmode": "array",
        "tickvals": list(ticks),
        "ticktext": list(ticks.values()),
        "tickangle": 0,
    }
