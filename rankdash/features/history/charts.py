"""Runs over time: a line for each system, and panels for latency and failed queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import plotly.graph_objects as go
from babel.dates import format_skeleton

from rankdash.core.base.i18n import brief, enumerated, language, level_percent, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import LEVEL
from rankdash.kit.drawing import draw, style

_MEAN, _MS, _FAILED = 290, 80, 60
# In pixels, above each panel, for its title.
_GAP = 34
_FURNITURE = 90
_NOTE = 70
_LEAST_ROOM = 0.025
# Share of the panel at its bottom for runs that are not compared.
_FOOT = 0.12
# Most lines with their names at their ends; the lines with the highest last values have them.
_MOST_LINES = 16
# Least distance of two runs as a share of the time axis: runs often come in groups within an hour.
_APART = 0.008
_DAY = 86400
# At least this many seconds on each side of the runs, so that at least one tick is drawn.
_ROOM = 1.5
_SECONDS, _MINUTES, _HOURS = (1, 2, 5, 10, 20, 30), (1, 2, 5, 10, 15, 30), (1, 3, 6, 12)
_DAYS = (1, 2, 7, 14, 30, 91, 182, 365, 1826)
_MOST_TICKS = 5


@dataclass(frozen=True)
class TrendPoint:
    """A run as a point of the chart.

    number: as in the table. when: time of the run as text; seconds: since 1970. low, high: interval
        of the mean, NaN without one. n: number of queries in the mean. compared: on the line.
        p95_ms: NaN if not measured. note: the user's note on the run.
    """

    number: int
    name: str
    when: str
    seconds: float
    mean: float
    low: float
    high: float
    n: int
    compared: bool
    p95_ms: float
    failed: int
    note: str = ""

    @property
    def drawn(self) -> bool:
        return self.compared and math.isfinite(self.mean)


@dataclass(frozen=True)
class TrendLine:
    """The runs of one system, oldest first. mark: of the newest run."""

    name: str
    mark: style.Mark
    points: Sequence[TrendPoint]


@dataclass(frozen=True)
class Across:
    """A horizontal line, such as the mean of the baseline. name: shown in the legend, with its
    role."""

    name: str
    mean: float


def _trend_alt(lines: Sequence[TrendLine], metric: str, across: Sequence[Across]) -> str:
    sentences = []
    means = [f"{line.name} {style.number(line.mean)}" for line in across]
    if means:
        sentences.append(_("Horizontal lines: {lines}.", lines=enumerated(means)))
    points = _points(lines)
    compared = [point for point in points if point.drawn]
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
        sentences.append(_("Not compared because of too few queries: {n}.", n=apart))
    return ngettext(
        "{metric} of {n} run over time. {details}",
        "{metric} of {n} runs over time. {details}",
        len(points),
        metric=metric,
        details=" ".join(sentences),
    ).strip()


def _points(lines: Sequence[TrendLine]) -> list[TrendPoint]:
    """Return every run, oldest first."""
    return sorted((each for line in lines for each in line.points), key=lambda each: each.number)


@draw.chart(_trend_alt)
def trend_chart(
    ink: style.Ink,
    lines: Sequence[TrendLine],
    metric: str,
    across: Sequence[Across],
    *,
    level: float = LEVEL,
) -> go.Figure:
    """Draw a line for each system over time, with its name at its end.

    Latencies and failed queries have a panel each if there are any.

    metric: title. across: the baseline's line first. level: of the intervals.
    """
    points = _points(lines)
    places = _places(points)
    ends = _time_reach(places)
    compared = [point for point in points if point.drawn]
    across = [line for line in across if math.isfinite(line.mean)]
    values = (each for point in compared for each in (point.mean, point.low, point.high))
    low, high = style.reach([*values, *(line.mean for line in across)], 0.1, _LEAST_ROOM, -0.01)
    apart = [point for point in points if not point.compared]
    if apart:
        low -= _FOOT * (high - low)
    traces = _across(ends, across, ink)
    for line in lines:
        traces += _line(line, places, ends[1], metric)
    if any(math.isfinite(point.low) for point in compared):
        words = _("{level} interval of the mean", level=level_percent(level))
        traces.append(draw.key(words, "line-ns", ink.muted))
    if apart:
        foot = low + _FOOT / 2 * (high - low)
        traces.append(_apart(apart, places, foot, metric, ink))
    panels: list[tuple[str, int, dict[str, object]]] = [
        (metric, _MEAN, {"tickformat": ".2f", "range": [low, high], "zeroline": False})
    ]
    if any(math.isfinite(point.p95_ms) for point in points):
        traces += [each for line in lines for each in _times(line, places)]
        reach = draw.reach([point.p95_ms for point in points], 0.1)
        panels.append((_("p95 ms"), _MS, draw.log_axis(reach, short=True)))
    if any(point.failed for point in points):
        traces.append(_failures(points, places, f"y{len(panels) + 1}"))
        scale = {"rangemode": "tozero", "nticks": 3, "tickformat": ",d"}
        panels.append((_p("chart", "failed"), _FAILED, scale))
    total = sum(height + _GAP for _title, height, _scale in panels)
    axes, notes, top = {}, [], float(total)
    for place, (title, height, scale) in enumerate(panels, start=1):
        top -= _GAP
        name = f"yaxis{place}" if place > 1 else "yaxis"
        axes[name] = {**scale, "domain": [max(top - height, 0) / total, top / total]}
        settings = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        notes.append(
            draw.note(0, top / total, f"<b>{style.short(title)}</b>", ink.text, **settings)
        )
        top -= height
    named = [(line, [point for point in line.points if point.drawn]) for line in lines]
    named = [(line, drawn) for line, drawn in named if drawn]
    named = sorted(named, key=lambda each: -each[1][-1].mean)[:_MOST_LINES]
    newest = [(line.name, line.mark.colour, drawn[-1].mean) for line, drawn in named]
    labels, room = draw.end_labels(newest, (low, high), _MEAN, ink, x=1, xref="x domain")
    for label, (_named, drawn) in zip(labels, named, strict=True):
        # The name of a single run is beside its mark.
        if len(drawn) == 1:
            label.update(x=places[drawn[0].number], xref="x")
    return style.finish(
        traces,
        ink,
        total + _FURNITURE,
        **axes,
        annotations=[*notes, *labels],
        margin=room,
        xaxis=style.axis("", **_ticks(ends), anchor=name.replace("axis", ""), range=ends),
        bargap=0.6,
    )


def _places(points: Sequence[TrendPoint]) -> dict[int, float]:
    """Return run number → position in seconds, so that no two runs are drawn too close together."""
    times = [point.seconds for point in points]
    gap = _APART * (max(times, default=0.0) - min(times, default=0.0))
    places, least = dict[int, float](), 0.0
    for point in points:
        places[point.number] = max(point.seconds, least)
        least = places[point.number] + gap
    return places


def _time_reach(places: dict[int, float]) -> list[float]:
    first, last = min(places.values(), default=0.0), max(places.values(), default=0.0)
    room = max(0.03 * (last - first), _ROOM) if last > first else 1800.0
    return [first - room, last + room]


def _line(line: TrendLine, places: dict[int, float], end: float, metric: str) -> list[style.Trace]:
    """Draw the line, and a faint dotted one from its newest run to its name at the right end: not
    for a single run, which has no trend."""
    points = [point for point in line.points if point.drawn]
    if not points:
        return []
    last = points[-1]
    faint = {"color": style.faded(line.mark.colour, 0.5), "width": 1, "dash": "dot"}
    to_name = draw.scatter([places[last.number], end], [last.mean] * 2, "lines", line=faint)
    return [
        *([to_name] if len(points) > 1 else []),
        draw.scatter(
            [places[point.number] for point in points],
            [point.mean for point in points],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [_or_zero(point.high - point.mean) for point in points],
                "arrayminus": [_or_zero(point.mean - point.low) for point in points],
                "color": style.faded(line.mark.colour, 0.5),
                "thickness": 1.5,
                "width": 3,
            },
            cliponaxis=False,
            hover=[_hover_text(point, metric) for point in points],
            **draw.curve(line.mark),
        ),
    ]


def _across(ends: Sequence[float], lines: Sequence[Across], ink: style.Ink) -> list[style.Trace]:
    """Draw horizontal lines with name and value in the legend, because labels would cover the
    runs."""
    # The baseline's line first.
    looks = [(ink.text, "dot"), (ink.muted, "dash"), (ink.muted, "longdashdot")]
    return [
        draw.scatter(
            ends,
            [line.mean] * 2,
            "lines",
            name=f"{style.short(line.name, 40)} {style.number(line.mean)}",
            line={"color": colour, "dash": dash, "width": 2},
        )
        for line, (colour, dash) in zip(lines, looks, strict=False)
    ]


def _apart(
    points: Sequence[TrendPoint],
    places: dict[int, float],
    floor: float,
    metric: str,
    ink: style.Ink,
) -> style.Trace:
    """Draw the runs that are not compared at the bottom of the panel: their means are of other
    queries."""
    return draw.scatter(
        [places[point.number] for point in points],
        [floor] * len(points),
        "markers",
        name=_("too few queries: not compared"),
        marker={"symbol": "x-thin", "size": 9, "line": {"color": ink.muted, "width": 2}},
        hover=[_hover_text(point, metric) for point in points],
    )


def _times(line: TrendLine, places: dict[int, float]) -> list[style.Trace]:
    timed = [point for point in line.points if math.isfinite(point.p95_ms)]
    trace = draw.scatter(
        [places[point.number] for point in timed],
        [point.p95_ms for point in timed],
        yaxis="y2",
        hover=[
            f"{_heading(point)}<br>{_('p95 {ms} ms', ms=brief(point.p95_ms))}" for point in timed
        ],
        **draw.curve(line.mark),
    )
    return [trace] if timed else []


def _failures(points: Sequence[TrendPoint], places: dict[int, float], axis: str) -> style.Trace:
    failed = [point for point in points if point.failed]
    return draw.bar(
        [places[point.number] for point in failed],
        [point.failed for point in failed],
        yaxis=axis,
        marker={"color": style.WORSE},
        hover=[f"{_heading(point)}<br>{_('{n:,} failed', n=point.failed)}" for point in failed],
    )


def _heading(point: TrendPoint) -> str:
    return f"{point.number} · <b>{style.whole(point.name)}</b><br>{style.short(point.when)}"


def _hover_text(point: TrendPoint, metric: str) -> str:
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


def _or_zero(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _ticks(ends: Sequence[float]) -> dict[str, object]:
    """Return round times between the first and the last run, as dates only if they are days
    apart."""
    units = ((1, _SECONDS), (60, _MINUTES), (3600, _HOURS), (_DAY, _DAYS))
    steps = [unit * n for unit, counts in units for n in counts]
    step = next((each for each in steps if (ends[1] - ends[0]) / each <= _MOST_TICKS), steps[-1])
    skeleton = (
        "Hms" if step < 60 else "Hm" if step < _DAY else "MMMd" if step < 91 * _DAY else "yMMM"
    )
    ticks = [
        place * step for place in range(math.ceil(ends[0] / step), math.floor(ends[1] / step) + 1)
    ]
    texts = []
    for place, tick in enumerate(ticks):
        moment = datetime.fromtimestamp(tick, UTC)
        text = format_skeleton(skeleton, moment, locale=language())
        if step < _DAY and place == 0:
            text += "<br>" + format_skeleton("MMMd", moment, locale=language())
        texts.append(text)
    return {"tickmode": "array", "tickvals": ticks, "ticktext": texts}
