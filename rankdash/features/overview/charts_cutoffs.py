"""A metric against its cutoff: does the gain hold further down the list?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import LEVEL
from rankdash.kit.drawing import draw, intervals, style

_HEIGHT = 340
# So faint that four bands over each other leave every line in sight.
_BAND = 0.13
_EDGE = 0.45
_HOVER = "{value} ({low}…{high})"


def figure(
    curve: pd.DataFrame,
    metric: str,
    baseline: str,
    ink: style.Ink,
    *,
    k: int | None = None,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
    marks: Mapping[str, style.Mark] | None = None,
) -> go.Figure:
    """One line a system, told apart by colour, dash and symbol; k on a log axis. Behind all lines
    a translucent band for each system that has intervals, its edges in the line's dash.

    curve: system, k and mean, and where there are intervals low and high. metric: its
    title, without a cutoff. k: the chosen cutoff, which is marked. level: of the intervals.
    names: system → the name shown. marks: system → its mark.
    """
    curves = _curves(curve)
    marks = marks or style.marks_in_order(curves, baseline)
    ordered = sorted(curves, key=lambda system: system != baseline)
    bands = [band for name in ordered for band in _band(curves[name], marks[name])]
    lines = []
    for name in ordered:
        shown = style.short(names.get(name, name))
        own = _("{system} (baseline)", system=shown) if name == baseline else shown
        lines.append(_line(curves[name], marks[name], own))
    traces = [*bands, *lines]
    if bands:
        words = _("{level:g}% interval of the mean", level=100 * level)
        traces.append(intervals.key(words, "square", style.faded(ink.muted, 2 * _BAND)))
    cutoffs = sorted({point.k for points in curves.values() for point in points})
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        shapes=[draw.upright(k, ink.line, "dot", layer="below")] if k in cutoffs else [],
        hovermode="x unified",
        xaxis=style.axis(
            _("cutoff k"),
            type="log",
            tickvals=cutoffs,
            ticktext=[f"<b>{each}</b>" if each == k else str(each) for each in cutoffs],
            minor={"ticks": ""},
        ),
        yaxis=style.axis(
            _("{metric} at k", metric=style.short(metric)),
            tickformat=".2f",
            # Most metrics end at 1, a sum of gains such as DCG does not.
            range=style.reach(_ends(curves), 0.08, 0.025, -0.01, 1.0),
            zeroline=False,
        ),
    )


def alt(curve: pd.DataFrame, metric: str, *, names: Mapping[str, str] = style.NO_NAMES) -> str:
    """What the chart says, in words."""
    sentences = [
        _(
            "{system}: {first} at {first_k}, {last} at {last_k}.",
            system=names.get(name, name),
            first=_value(points[0], _("{value} ({low} to {high})")),
            first_k=points[0].k,
            last=_value(points[-1], _("{value} ({low} to {high})")),
            last_k=points[-1].k,
        )
        for name, points in _curves(curve).items()
    ]
    return _(
        "{metric} by the cutoff k. {curves}", metric=metric, curves=" ".join(sentences)
    ).strip()


class _Point(NamedTuple):
    """low and high are NaN without an interval."""

    k: int
    mean: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        return not (math.isnan(self.low) or math.isnan(self.high))


def _curves(curve: pd.DataFrame) -> dict[str, list[_Point]]:
    """system → its points, both in the order of the frame."""
    missing = [math.nan] * len(curve)
    ends = (curve[end].tolist() if end in curve else missing for end in ("low", "high"))
    points = zip(curve["k"].tolist(), curve["mean"].tolist(), *ends, strict=True)
    curves: dict[str, list[_Point]] = {}
    for system, values in zip(curve["system"].tolist(), points, strict=True):
        curves.setdefault(system, []).append(_Point(*values))
    return curves


def _line(points: Sequence[_Point], mark: style.Mark, name: str) -> style.Trace:
    return draw.scatter(
        [point.k for point in points],
        [point.mean for point in points],
        name=name,
        cliponaxis=False,
        hover=[_value(point, _HOVER) for point in points],
        hovertemplate="%{hovertext}",
        **draw.curve(mark),
    )


def _band(points: Sequence[_Point], mark: style.Mark) -> list[style.Trace]:
    """Around the points that have an interval; none where none has."""
    there = sorted(point for point in points if point.has_interval)
    if not there:
        return []
    k, low, high = ([getattr(point, name) for point in there] for name in ("k", "low", "high"))
    edge = {"color": style.faded(mark.colour, _EDGE), "width": 1, "dash": mark.dash}
    return [draw.band(k, low, high, mark.colour, _BAND, edge)]


def _value(point: _Point, template: str) -> str:
    """A mean for the eye, by the template with its interval where there is one."""
    value = style.number(point.mean)
    if not point.has_interval:
        return value
    return template.format(value=value, low=style.number(point.low), high=style.number(point.high))


def _ends(curves: Mapping[str, Sequence[_Point]]) -> list[float]:
    return [end for points in curves.values() for point in points for end in point[1:]]
