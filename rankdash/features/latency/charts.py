"""Charts of query latency: percentiles and distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import brief, enumerated, level_percent, number, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import LEVEL
from rankdash.core.base.text import columns
from rankdash.core.study import latency as study_latency
from rankdash.core.study.latency import LatencySummary, OnTarget, Times, on_target
from rankdash.core.study.leaderboard import standings
from rankdash.core.study.study import Study
from rankdash.core.words.latency import without_p95
from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import Drawing

_TARGET_MS = 500.0


def latency(study: Study, target_ms: float | None = None) -> Drawing | None:
    """Draw the percentiles of each system with the target; None without measured latencies."""
    target = latency_target(study) if target_ms is None else target_ms
    systems = rows(study, target)
    return latency_rows_chart(*_drawn_from(study, systems, target)) if systems else None


def distribution(study: Study, target_ms: float) -> Drawing:
    """Draw the share of queries that each system answers within a time."""
    return latency_ecdf_chart(*_drawn_from(study, rows(study, target_ms), target_ms))


def _drawn_from(
    study: Study, systems: Sequence[Row], target_ms: float
) -> tuple[Sequence[Row], Mapping[str, style.Mark], float, float]:
    marks = style.marks(study.places, study.baseline)
    return systems, marks, target_ms, study.statistics.level


def latency_target(study: Study) -> float:
    """Return the target for p95, in milliseconds."""
    return _TARGET_MS if study.money is None else study.money.assumptions.latency_target_ms


def timed(study: Study) -> dict[str, Times]:
    """Return the systems with measured latencies, in leaderboard order."""
    times = study_latency.timed(study)
    return {row.system: times[row.system] for row in standings(study) if row.system in times}


@dataclass(frozen=True)
class Row:
    """One system. steps: ms and share, as from `study.latency.ecdf`. met: None if fewer than
    `FEWEST_TIMED` queries were timed. noise: what disturbed the measurement, in one or two
    words."""

    system: str
    name: str
    steps: pd.DataFrame
    summary: LatencySummary
    met: OnTarget | None = None
    noise: str = ""

    @property
    def sure(self) -> bool:
        return self.met is not None and self.met.kind in ("meets", "misses")

    @property
    def answer(self) -> str:
        """Short text: whether the system meets the target."""
        if self.met is None:
            return without_p95(self.summary.n)
        return {
            "meets": _("target met"),
            "likely": _("probably met"),
            "unlikely": _("probably missed"),
            "misses": _("target missed"),
        }[self.met.kind]

    @property
    def slowest(self) -> float:
        return float(self.steps["ms"].iloc[-1])


def rows(study: Study, target_ms: float) -> list[Row]:
    """Return a row for each system with measured latencies, in leaderboard order."""
    inverted = {
        system
        for each in study_latency.inversions(study)
        for system in (each.deeper, each.shallower)
    }
    systems = []
    for system, times in timed(study).items():
        noise = _p("state", "disturbed") if system in inverted else ""
        if study_latency.busy(study, system):
            noise = _("busy machine")
        late, level = times.apart.timed_out, study.statistics.level
        met = on_target(times.ordered, target_ms, timed_out=late, level=level)
        systems.append(Row(system, study.name(system), times.steps, times.summary, met, noise))
    return systems


def _facts(row: Row, target_ms: float) -> list[str]:
    """Return the percentiles of a system and its result against the target, as texts."""
    summary, facts = row.summary, []
    for name, value, (low, high) in (
        ("p50", summary.p50, summary.p50_interval),
        ("p95", summary.p95, summary.p95_interval),
        ("p99", summary.p99, (math.nan, math.nan)),
    ):
        if value is None:
            continue
        values = {"percentile": name, "ms": brief(value), "low": brief(low), "high": brief(high)}
        if math.isfinite(low) and math.isfinite(high):
            facts.append(_("{percentile} {ms} ms ({low} … {high})", **values))
        elif math.isfinite(low):
            facts.append(_("{percentile} {ms} ms (at least {low})", **values))
        else:
            facts.append(_("{percentile} {ms} ms", **values))
    if row.met is not None:
        facts.append(
            _(
                "{within} of {queries} within {ms} ms",
                within=number(row.met.within, 0),
                queries=style.queries(row.met.n),
                ms=brief(target_ms),
            )
        )
    return [*facts, row.answer, *([row.noise] if row.noise else [])]


def _hover(row: Row, target_ms: float) -> str:
    return "<br>".join([style.whole(row.name), *_facts(row, target_ms)])


class _Scale:
    """Axis of milliseconds: linear from 0, or logarithmic if times differ more than tenfold."""

    def __init__(self, times: Sequence[float]) -> None:
        known = [each for each in times if math.isfinite(each) and each > 0]
        low, high = min(known), max(known)
        self.log = high > _LINEAR * low
        self.middle = math.sqrt(low * high) if self.log else high / 2
        title = _("milliseconds for one query (log scale)")
        if self.log:
            layout = draw.log_axis(draw.reach(known, _ROOM))
        else:
            title = _("milliseconds for one query")
            layout = {"range": [0, (1 + _ROOM) * high], "showgrid": True}
            layout |= {"tickvals": _round_ticks(high), "tickformat": ",.3~f"}
        self.axis: dict[str, Any] = style.axis(title, **layout)

    def at(self, ms: float) -> float:
        """Return the coordinate of an annotation on the axis."""
        return math.log10(max(ms, 1e-6)) if self.log else ms

    def share(self, ms: float) -> float:
        """Return the horizontal position of a time, from 0 to 1."""
        low, high = self.axis["range"]
        return float((self.at(ms) - low) / (high - low))


_LINEAR, _ROOM = 10, 0.04


def _round_ticks(highest: float) -> list[float]:
    """Return up to six ticks from 0."""
    unit: float = 10.0 ** math.floor(math.log10(highest))
    step = next(unit * each for each in (0.2, 0.5, 1, 2) if 5.0 * unit * each >= highest)
    return [step * place for place in range(math.floor(highest / step) + 1)]


def _target(target_ms: float, scale: _Scale, ink: style.Ink) -> dict[str, Any]:
    """Return the dashed line of the target, with its label at the bottom of the chart."""
    words = draw.note(
        scale.at(target_ms),
        0,
        _("target {ms} ms", ms=brief(target_ms)),
        ink.muted,
        yref="y domain",
        xanchor="left" if target_ms < scale.middle else "right",
        yanchor="bottom",
    )
    return {"shapes": [draw.target_line(target_ms, ink)], "annotations": [words]}


# One row for each system: name and answer above a bar from p50 to p95.

_ROW = 50
_FURNITURE = 110
# Share of the height of a row, from its middle.
_NAME_AT, _BAR_AT, _BAR = 0.26, -0.18, 0.28
# Longest name with its answer on a phone; names are not shortened below the second number.
_COLUMNS, _FEWEST_COLUMNS = 50, 18
_MARGIN = {"l": 8, "r": 16}
# Share of a phone's plot that the percentiles take.
_NUMBERS = 0.45


# Rows that are not selected are not faded.
_UNFADED: Mapping[str, Any] = {"unselected": {"marker": {"opacity": 1}}}


def _latency_rows_alt(systems: Sequence[Row], target_ms: float) -> str:
    return _(
        "Latency of a query in milliseconds. {systems}",
        systems=" ".join(
            _("{name}: {facts}.", name=each.name, facts=enumerated(_facts(each, target_ms)))
            for each in systems
        ),
    )


@draw.chart(_latency_rows_alt)
def latency_rows_chart(
    ink: style.Ink,
    systems: Sequence[Row],
    marks: Mapping[str, style.Mark],
    target_ms: float,
    level: float = LEVEL,
) -> go.Figure:
    """Draw a row for each system: a bar from p50 to p95 (hatched if the measurement was disturbed),
    the interval of p95 as a line, and the target as a dashed line. The mark at p95 is hollow if too
    few queries decide about the target. marks: system → its mark."""
    ends = [each.p95_interval for each in (row.summary for row in systems)]
    times = [time for row in systems for time in (row.summary.p50, row.summary.p95 or math.nan)]
    slowest = [row.slowest for row in systems if row.summary.p95 is not None]
    scale = _Scale([target_ms, *times, *(time for pair in ends for time in pair), *slowest])
    places = [len(systems) - 1.0 - place for place in range(len(systems))]
    traces = [_areas(systems, places, scale, target_ms, ink)]
    target = _target(target_ms, scale, ink)
    for row, at in zip(systems, places, strict=True):
        traces += _row_traces(row, at + _BAR_AT, marks[row.system], ink)
        target["annotations"] += _row_words(row, at, scale, ink)
    traces += _row_keys(systems, level, ink)
    return style.finish(
        traces,
        ink,
        len(systems) * _ROW + _FURNITURE,
        **target,
        barmode="overlay",
        margin=_MARGIN,
        xaxis=scale.axis,
        yaxis={"visible": False, "range": [-0.8, max(len(systems), 1) - 0.5]},
    )


def _areas(
    systems: Sequence[Row],
    places: Sequence[float],
    scale: _Scale,
    target_ms: float,
    ink: style.Ink,
) -> style.Trace:
    """Return a clickable area for each row; a selected row is grey."""
    start, end = (10**each if scale.log else each for each in scale.axis["range"])
    return draw.bar(
        [end - start] * len(systems),
        places,
        orientation="h",
        base=[start] * len(systems),
        width=[1] * len(systems),
        marker={"color": "rgba(0,0,0,0)", "line": {"width": 0}},
        selected={"marker": {"color": ink.grid, "opacity": 1}},
        customdata=[row.system for row in systems],
        hover=[_hover(row, target_ms) for row in systems],
    )


def _row_traces(row: Row, at: float, mark: style.Mark, ink: style.Ink) -> list[style.Trace]:
    summary, sure = row.summary, row.sure
    value = summary.p50 if summary.p95 is None else summary.p95
    # A hollow mark means an uncertain answer here, not another system.
    symbol = mark.symbol.removesuffix("-dot").removesuffix("-open") + ("" if sure else "-open")
    point = draw.scatter(
        [value], [at], "markers", marker=draw.marker(mark.colour, symbol, 11), **_UNFADED
    )
    if summary.p95 is None:
        return [point]
    soft = style.blended(mark.colour, ink.background, 0.4)
    bar = draw.bar(
        [summary.p95 - summary.p50],
        [at],
        orientation="h",
        base=[summary.p50],
        width=[_BAR],
        marker=draw.hatched(mark.colour, "/", ink) if row.noise else draw.solid(soft, ink),
        **_UNFADED,
    )
    low, high = summary.p95_interval
    line = draw.scatter(
        [low if math.isfinite(low) else value, high if math.isfinite(high) else row.slowest],
        [at, at],
        "lines+markers",
        line={"color": mark.colour, "width": 2},
        # Without an upper end (too few queries), the interval continues beyond the slowest query.
        marker={
            "symbol": ["line-ns", "line-ns" if math.isfinite(high) else "triangle-right"],
            "size": 10,
            "color": mark.colour,
            "opacity": 1,
            "line": {"color": mark.colour, "width": 2},
        },
        cliponaxis=False,
        **_UNFADED,
    )
    return [bar, line, point] if math.isfinite(low) else [bar, point]


def _row_words(row: Row, at: float, scale: _Scale, ink: style.Ink) -> list[style.Trace]:
    """Return the name with the answer, and the percentiles next to the bar if there is room for
    them, else next to the name."""
    summary, end = row.summary, row.summary.p50
    numbers = f"p50 {brief(summary.p50)}"
    if summary.p95 is not None:
        low, high = summary.p95_interval
        farthest = high if math.isfinite(high) else row.slowest if math.isfinite(low) else 0
        end = max(farthest, summary.p95)
        numbers += f" · p95 <b>{brief(summary.p95)}</b>"
    words = [row.answer, *filter(None, [row.noise])]
    room = _COLUMNS - sum(columns(each) + 3 for each in words)
    place: dict[str, Any] = {"y": at + _BAR_AT}
    if scale.share(summary.p50) >= _NUMBERS:
        place |= {"x": scale.at(summary.p50), "xanchor": "right", "xshift": -8}
    elif scale.share(end) <= 1 - _NUMBERS:
        place |= {"x": scale.at(end), "xanchor": "left", "xshift": 10}
    else:
        place = {"x": 1, "xref": "paper", "xanchor": "right", "xshift": _MARGIN["r"]}
        place["y"] = at + _NAME_AT
        room -= columns(numbers)
    header = " · ".join([f"<b>{style.short(row.name, max(room, _FEWEST_COLUMNS))}</b>", *words])
    left = {"xref": "paper", "xanchor": "left", "xshift": -_MARGIN["l"]}
    return [
        draw.note(0, at + _NAME_AT, header, ink.text, bgcolor=ink.background, **left),
        draw.note(0, 0, numbers, ink.text, bgcolor=ink.background) | place,
    ]


def _row_keys(systems: Sequence[Row], level: float, ink: style.Ink) -> list[style.Trace]:
    keys = [
        draw.key(_("p50 to p95"), "square", style.blended(ink.muted, ink.background, 0.4)),
        draw.key(_("p95, {level} interval", level=level_percent(level)), "line-ew", ink.text),
    ]
    if any(not row.sure for row in systems):
        keys.append(draw.key(_("too few queries to be sure"), "circle-open", ink.text))
    if any(row.noise for row in systems):
        shaded = draw.bar(
            [None],
            [None],
            name=_("disturbed measurement"),
            legendrank=3000,
            marker=draw.hatched(ink.text, "/", ink),
        )
        keys.append(shaded)
    return keys


# Empirical distribution of the latency.

_FEWEST_ROWS = 5


def _latency_ecdf_alt(systems: Sequence[Row], target_ms: float) -> str:
    title = _("Share of queries answered within a time.")
    return paragraph([title, _latency_rows_alt(systems, target_ms)])


@draw.chart(_latency_ecdf_alt)
def latency_ecdf_chart(
    ink: style.Ink,
    systems: Sequence[Row],
    marks: Mapping[str, style.Mark],
    target_ms: float,
    level: float = LEVEL,
) -> go.Figure:
    """Draw a step curve for each system with p50 and p95 marked, and the target as a dashed line.
    Its height equals `latency_rows_chart`, which it replaces. marks: system → its mark."""
    times = [float(ms) for row in systems for ms in (row.steps["ms"].iloc[0], row.slowest)]
    scale = _Scale([target_ms, *times])
    traces = [
        trace
        for row in systems
        for trace in _curve(row, marks[row.system], _hover(row, target_ms), ink)
    ]
    return style.finish(
        traces,
        ink,
        max(len(systems), _FEWEST_ROWS) * _ROW + _FURNITURE,
        **_target(target_ms, scale, ink),
        xaxis=scale.axis,
        yaxis=style.axis(
            _("share of queries answered"),
            tickformat=".0%",
            tickvals=[0, 0.25, 0.5, 0.75, 0.95],
            range=[0, 1.03],
            zeroline=False,
        ),
    )


def _curve(row: Row, mark: style.Mark, hover: str, ink: style.Ink) -> list[style.Trace]:
    ms, share = row.steps["ms"].tolist(), row.steps["share"].tolist()
    steps = list(zip([*ms[:1], *ms], [0.0, *share], strict=True))
    name = " · ".join([style.short(row.name), *filter(None, [row.noise])])
    marked = [(row.summary.p50, 0.5), *([(row.summary.p95, 0.95)] if row.summary.p95 else [])]
    outline = mark.colour if "open" in mark.symbol else ink.background
    line = draw.scatter(
        [at for at, _share in steps],
        [each for _ms, each in steps],
        "lines",
        line={"color": mark.colour, "width": 2, "shape": "hv"},
        hover=[
            _(
                "{name}<br>{share:.1%} within {ms} ms",
                name=style.whole(row.name),
                share=each,
                ms=brief(at),
            )
            for at, each in steps
        ],
    )
    points = draw.scatter(
        [at for at, _share in marked],
        [each for _ms, each in marked],
        "markers",
        name=name,
        customdata=[row.system] * len(marked),
        marker={
            "color": mark.colour,
            "symbol": mark.symbol,
            "size": 9,
            "line": {"color": outline, "width": 1},
        },
        hover=[hover] * len(marked),
    )
    return [line, points]
