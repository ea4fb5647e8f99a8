"""Quality against what it takes, money or time: which options no other beats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from rankdash.charts import draw, style
from rankdash.i18n import gettext as _

_HEIGHT = 360

# The plot of a page's width, about, in pixels: enough to keep names apart.
_WIDE, _HIGH = 520.0, 260.0
_NAME = 28
_LETTER, _LINE, _OFF = 7.0, 16.0, 10.0
_CORNERS = {
    "top right": (1, 1),
    "bottom right": (1, -1),
    "top left": (-1, 1),
    "bottom left": (-1, -1),
    "top center": (0, 2),
    "bottom center": (0, -2),
}
# How far the axis goes on beyond its ends, as a share of what is drawn: names have to fit.
_BEFORE, _AFTER = 0.08, 1.2
_Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class FrontierPoint:
    """One option. x: what it takes. low, high: the interval of its quality, NaN for none. front:
    whether no other beats it. A point without x or quality (NaN) is not drawn."""

    name: str
    x: float
    quality: float
    front: bool
    low: float = math.nan
    high: float = math.nan

    @property
    def known(self) -> bool:
        return math.isfinite(self.x) and math.isfinite(self.quality)


def figure(
    points: Sequence[FrontierPoint],
    metric: str,
    x_title: str,
    ink: style.Ink,
    *,
    target: float | None = None,
    written: Callable[[float], str] = str,
) -> go.Figure:
    """One mark an option, those that no other beats joined by a line.

    target: the highest x that will do; beyond it options are grey and crossed out. metric, x_title:
        titles. written: x in words.
    """
    drawn = sorted((point for point in points if point.known), key=lambda point: point.x)
    corners = dict(zip(drawn, _corners(drawn, target), strict=True))
    traces: list[style.Trace] = []
    front = [point for point in drawn if point.front]
    if len(front) > 1:
        traces.append(
            draw.scatter(
                [point.x for point in front],
                [point.quality for point in front],
                "lines",
                line={"color": ink.line, "dash": "dot", "width": 1, "shape": "hv"},
            )
        )
    for state, look in _looks(ink).items():
        own = [point for point in drawn if _state(point, target) == state]
        if not own:
            continue
        traces.append(
            draw.scatter(
                [point.x for point in own],
                [point.quality for point in own],
                "markers+text",
                text=[style.short(point.name, _NAME) for point in own],
                textposition=[corners[point] for point in own],
                textfont={"color": look["colour"] if state == "outside" else ink.text},
                error_y=_error(own, look["colour"]),
                marker=draw.marker(look["colour"], look["symbol"], 12),
                name=look["name"],
                hover=[
                    _(
                        "{name}<br>{metric} {quality}<br>{x}",
                        name=style.whole(point.name),
                        metric=style.short(metric),
                        quality=style.number(point.quality),
                        x=style.short(written(point.x), 40),
                    )
                    for point in own
                ],
            )
        )
    highest = _highest(drawn, target)
    if target is not None:
        # Named in the legend: beside the line its words would meet those of an option.
        traces.append(
            draw.scatter(
                [None],
                [None],
                "lines",
                line=draw.upright(target, ink.line, "dash")["line"],
                name=_("target {value}", value=style.short(written(target), 24)),
                showlegend=True,
            )
        )
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        shapes=[] if target is None else [draw.upright(target, ink.line, "dash")],
        xaxis=style.axis(
            style.short(x_title, 60),
            range=[-_BEFORE * (highest or 1.0), _AFTER * (highest or 1.0)],
            zeroline=False,
            showgrid=True,
        ),
        yaxis=style.axis(style.short(metric), tickformat=".2f", zeroline=False),
    )


def alt(
    points: Sequence[FrontierPoint],
    metric: str,
    x_title: str,
    *,
    target: float | None = None,
    written: Callable[[float], str] = str,
) -> str:
    """What the chart says, in words."""
    words = {
        "front": _("Pareto-optimal"),
        "beaten": _("dominated"),
        "outside": _("over the target"),
    }
    sentences = [
        _(
            "{name}: {quality} at {x}, {state}.",
            name=point.name,
            quality=style.number(point.quality),
            x=written(point.x),
            state=words[_state(point, target)],
        )
        for point in points
        if point.known
    ]
    return _(
        "{metric} against {x_title}. {options}",
        metric=metric,
        x_title=x_title,
        options=" ".join(sentences),
    ).strip()


def _corners(points: Sequence[FrontierPoint], target: float | None) -> list[str]:
    """For each point, at which of its corners its name runs into the least: the other names, the
    marks and their intervals, and the edges."""
    if not points:
        return []
    right = _highest(points, target) or 1.0
    ends = [(_finite(point.low, point), _finite(point.high, point)) for point in points]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    tall = (high - low) or 1.0
    across = _WIDE / (_BEFORE + _AFTER)
    places = [
        ((point.x / right + _BEFORE) * across, (point.quality - low) / tall * _HIGH)
        for point in points
    ]
    taken: list[_Box] = [
        (x - 8, (below - low) / tall * _HIGH - 4, x + 8, (above - low) / tall * _HIGH + 4)
        for (x, _y), (below, above) in zip(places, ends, strict=True)
    ]
    if target is not None:
        line = (target / right + _BEFORE) * across
        taken.append((line - 2, 0.0, line + 2, _HIGH))
    chosen: dict[int, str] = {}
    # The best first: of two that lie close the upper one then has its name above.
    for at in sorted(range(len(points)), key=lambda each: -points[each].quality):
        point, (x, y) = points[at], places[at]
        width = _LETTER * min(len(point.name), _NAME)
        boxes = {name: _box(x, y, width, *side) for name, side in _CORNERS.items()}
        best = min(boxes, key=lambda name: _trouble(boxes[name], taken))
        taken.append(boxes[best])
        chosen[at] = best
    return [chosen[at] for at in range(len(points))]


def _highest(points: Sequence[FrontierPoint], target: float | None) -> float:
    return max([*(point.x for point in points), target or 0.0], default=1.0)


def _finite(end: float, point: FrontierPoint) -> float:
    return end if math.isfinite(end) else point.quality


def _box(x: float, y: float, width: float, side: int, up: int) -> _Box:
    """(left, bottom, right, top) of a name beside a mark."""
    left = {1: x + _OFF, -1: x - _OFF - width, 0: x - width / 2}[side]
    bottom = y + (4.0 if up > 0 else -4.0 - _LINE) * (2 if side == 0 else 1)
    return left, bottom, left + width, bottom + _LINE


def _trouble(box: _Box, taken: Sequence[_Box]) -> float:
    """How much of a name lies over something else, or off the chart, in square pixels."""
    left, bottom, right, top = box
    off = max(right - _WIDE, 0.0) + max(-left, 0.0)
    return _LINE * off + sum(
        max(min(right, other[2]) - max(left, other[0]), 0.0)
        * max(min(top, other[3]) - max(bottom, other[1]), 0.0)
        for other in taken
    )


def _looks(ink: style.Ink) -> dict[str, dict[str, str]]:
    return {
        "front": {"name": _("Pareto-optimal"), "symbol": "circle", "colour": style.BETTER},
        "beaten": {"name": _("dominated"), "symbol": "diamond", "colour": style.SYSTEMS[2]},
        "outside": {"name": _("over the target"), "symbol": "x-thin", "colour": ink.muted},
    }


def _state(point: FrontierPoint, target: float | None) -> str:
    if target is not None and point.x > target:
        return "outside"
    return "front" if point.front else "beaten"


def _error(points: Sequence[FrontierPoint], colour: str) -> style.Trace:
    """The intervals, as far as there are any."""
    return {
        "type": "data",
        "array": [_reach(point.high - point.quality) for point in points],
        "arrayminus": [_reach(point.quality - point.low) for point in points],
        "color": style.faded(colour, 0.5),
        "thickness": 1.5,
        "width": 4,
    }


def _reach(length: float) -> float:
    return max(length, 0.0) if math.isfinite(length) else 0.0
