"""A chart of quality against cost or latency, with the Pareto-optimal systems."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from rankdash.core.base import text as base_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.kit.drawing import draw, style

_LETTER, _LINE, _OFF = 7.0, 16.0, 10.0
_CORNERS = {
    "top right": (1, 1),
    "bottom right": (1, -1),
    "top left": (-1, 1),
    "bottom left": (-1, -1),
    "top center": (0, 2),
    "bottom center": (0, -2),
}
# The distance of the axis beyond its ends, as a share of the values: names have to fit.
_BEFORE, _AFTER = 0.08, 1.2
# Above this ratio of the largest to the smallest value, a linear axis would squeeze most points
# into a corner.
_WIDE_RANGE = 20.0
# The position of 0 on a logarithmic axis, in powers of ten below the smallest value.
_BELOW = 0.6
_ROOM = 0.08
# A name that overlaps another one by at least this share is shown only in the hover label.
_COVERED = 0.05
# The width of the plot on a phone, in pixels.
_PHONE = 270.0
_NOT_ON_PHONE = "\u200b"
"""The last letter of a name that does not fit on a phone."""

PHONE_STYLE = f"""@media screen and (max-width: 639px) {{
.textpoint text[data-unformatted$="{_NOT_ON_PHONE}"] {{ display: none; }} }}"""
"""The style sheet of a page with charts, which hides these names on a phone."""

_Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class FrontierPoint:
    """One system. x: its cost or latency, 0 or more. low, high: the interval of its quality, NaN
    for none. front: whether it is Pareto-optimal. A point without x or quality (NaN) is not drawn.
    """

    name: str
    mark: style.Mark
    x: float
    quality: float
    front: bool
    low: float = math.nan
    high: float = math.nan

    @property
    def known(self) -> bool:
        return math.isfinite(self.x) and math.isfinite(self.quality)


@dataclass(frozen=True)
class Size:
    """The size of a chart. height: of the chart; across, upward: of its plot, approximately; all in
    pixels. name: the maximum width of a name next to a mark, in columns."""

    height: int
    across: float
    upward: float
    name: int


PAGE = Size(360, 520.0, 260.0, 28)
"""The size of a chart as wide as a page."""


def _frontier_alt(
    points: Sequence[FrontierPoint],
    metric: str,
    x_title: str,
    *,
    written: Callable[[float], str] = str,
) -> str:
    sentences = [
        _(
            "{name}: {quality} at {x}, {state}.",
            name=point.name,
            quality=style.number(point.quality),
            x=written(point.x),
            state=_p("state", "Pareto-optimal") if point.front else _p("state", "dominated"),
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


@draw.chart(_frontier_alt)
def frontier_chart(
    ink: style.Ink,
    points: Sequence[FrontierPoint],
    metric: str,
    x_title: str,
    *,
    written: Callable[[float], str] = str,
    size: Size = PAGE,
) -> go.Figure:
    """Draw each system in its own mark, with its interval; Pareto-optimal systems have their name
    in bold, and are joined by a line. The best are drawn last, on top.

    metric, x_title: titles. written: formats x.
    """
    drawn = sorted((point for point in points if point.known), key=lambda point: point.x)
    across = Across.of(drawn)
    corner_of = dict(zip(drawn, corners(drawn, across, size), strict=True))
    front = [point for point in drawn if point.front]
    traces: list[style.Trace] = []
    if front:
        traces.append(
            draw.scatter(
                [across.place(point.x) for point in front],
                [point.quality for point in front],
                "lines",
                line={"color": ink.muted, "dash": "dot", "width": 1.5, "shape": "hv"},
                name=_("Pareto-optimal (name in bold)"),
                showlegend=True,
            )
        )
    for point in sorted(drawn, key=lambda each: each.quality):
        shown = style.short(point.name, size.name)
        traces.append(
            draw.scatter(
                [across.place(point.x)],
                [point.quality],
                "markers+text",
                **named(f"<b>{shown}</b>" if point.front else shown, corner_of[point]),
                textfont={"color": ink.text if point.front else ink.muted},
                error_y=error(point),
                marker=draw.marker(point.mark.colour, point.mark.symbol, 11),
                hover=[
                    _(
                        "{name}<br>{metric} {quality}<br>{x}",
                        name=style.whole(point.name),
                        metric=style.short(metric),
                        quality=style.number(point.quality),
                        x=style.short(written(point.x), 40),
                    )
                ],
            )
        )
    return style.finish(
        traces,
        ink,
        size.height,
        xaxis=style.axis(style.short(x_title, 60), **across.layout()),
        yaxis=style.axis(style.short(metric), tickformat=".2f", zeroline=False),
    )


@dataclass(frozen=True)
class Across:
    """The horizontal axis: logarithmic for a wide range of values, with a separate position for 0.

    least, most: the smallest value above 0, and the largest.
    """

    least: float
    most: float

    @classmethod
    def of(cls, points: Sequence[FrontierPoint]) -> Across:
        values = [point.x for point in points if point.x > 0]
        return cls(min(values, default=1.0), max(values, default=1.0))

    @property
    def logarithmic(self) -> bool:
        return self.most > _WIDE_RANGE * self.least

    def place(self, x: float) -> float:
        """Return the position of a value, in the units of the axis."""
        return x if x > 0 or not self.logarithmic else self._zero

    def share(self, x: float) -> float:
        """Return the position of a value from the left, 0 to 1."""
        start, end = self._ends
        at = self.place(x)
        return ((math.log10(at) if self.logarithmic else at) - start) / (end - start)

    def along(self, n: int) -> list[float]:
        """Return n evenly spaced values along the axis, from 0 to its end."""
        end = self._ends[1]
        if self.logarithmic:
            return [float(value) for value in np.geomspace(self._zero, 10**end, n)]
        return [float(value) for value in np.linspace(0.0, end, n)]

    def layout(self) -> dict[str, object]:
        start, end = self._ends
        if not self.logarithmic:
            return {"range": [start, end], "zeroline": False, "showgrid": True}
        layout = draw.log_axis((start, end), short=True)
        ticks = [
            (at, text)
            for at, text in zip(layout["tickvals"], layout["ticktext"], strict=True)
            if at > 2 * self._zero
        ]
        return {
            **layout,
            "tickvals": [self._zero, *(at for at, _text in ticks)],
            "ticktext": ["0", *(text for _at, text in ticks)],
        }

    @property
    def _zero(self) -> float:
        return float(self.least * 10**-_BELOW)

    @property
    def _ends(self) -> tuple[float, float]:
        """The ends, in powers of ten if the axis is logarithmic."""
        if not self.logarithmic:
            return -_BEFORE * self.most, _AFTER * self.most
        low, high = math.log10(self._zero), math.log10(self.most)
        return low - _ROOM * (high - low), high + 2 * _ROOM * (high - low)


def _upright(points: Sequence[FrontierPoint]) -> tuple[float, float]:
    """Return the lowest quality that is drawn, including intervals, and the range of quality."""
    ends = [end for point in points for end in (point.quality, point.low, point.high)]
    drawn = [end for end in ends if math.isfinite(end)]
    low, high = min(drawn, default=0.0), max(drawn, default=0.0)
    return low, (high - low) or 1.0


@dataclass(frozen=True)
class Beside:
    """The position of a name: at a corner of its mark, "" for no name. phone: whether it is also
    shown on a phone."""

    corner: str
    phone: bool


def corners(points: Sequence[FrontierPoint], across: Across, size: Size) -> list[Beside]:
    """Return for each point the corner at which its name overlaps least with other names, marks
    with their intervals, and the edges; none if it would cover another name."""
    ends = [(_finite(point.low, point), _finite(point.high, point)) for point in points]
    low, tall = _upright(points)
    shares = [across.share(point.x) for point in points]
    heights = [(point.quality - low) / tall * size.upward for point in points]
    # Names and the objects that they should not cover, on a page and on a phone.
    names: dict[float, list[_Box]] = {width: [] for width in (size.across, _PHONE)}
    marks: dict[float, list[_Box]] = {
        width: [
            (
                share * width - 8,
                (below - low) / tall * size.upward - 4,
                share * width + 8,
                (above - low) / tall * size.upward + 4,
            )
            for share, (below, above) in zip(shares, ends, strict=True)
        ]
        for width in names
    }
    chosen: dict[int, Beside] = {}
    # The best first: of two close points, the upper one then has its name above.
    for at in sorted(range(len(points)), key=lambda n: (not points[n].front, -points[n].quality)):
        length = _LETTER * min(base_text.columns(points[at].name), size.name)
        boxes: dict[float, dict[str, _Box]] = {}
        trouble: dict[float, dict[str, float]] = {}
        for width in names:
            x, y = shares[at] * width, heights[at]
            others = [
                height
                for n, height in enumerate(heights)
                if n != at and abs(shares[n] * width - x) < _OFF
            ]
            boxes[width] = {name: _box(x, y, length, *side) for name, side in _CORNERS.items()}
            trouble[width] = {
                name: _overlap(box, [*names[width], *marks[width]], width)
                + _misplaced(box, y, others)
                for name, box in boxes[width].items()
            }
        spare = _COVERED * length * _LINE
        on_page = trouble[size.across]
        good = [name for name in _CORNERS if on_page[name] <= min(on_page.values()) + spare]
        corner = min(good, key=lambda name: trouble[_PHONE][name])
        free = [
            _overlap(boxes[width][corner], names[width], end) <= spare
            for width, end in ((size.across, math.inf), (_PHONE, _PHONE))
        ]
        chosen[at] = Beside(corner if free[0] else "", all(free))
        for width, is_there in zip(names, (free[0], all(free)), strict=True):
            if is_there:
                names[width].append(boxes[width][corner])
    return [chosen[at] for at in range(len(points))]


def named(text: str, position: Beside) -> style.Trace:
    """Return the settings of a point with a name at a corner (`corners`)."""
    shown = text if position.phone else text + _NOT_ON_PHONE
    return {
        "text": [shown if position.corner else ""],
        "textposition": [position.corner or "top center"],
    }


def _finite(end: float, point: FrontierPoint) -> float:
    return end if math.isfinite(end) else point.quality


def _box(x: float, y: float, width: float, side: int, up: int) -> _Box:
    """Return (left, bottom, right, top) of a name next to a mark."""
    left = {1: x + _OFF, -1: x - _OFF - width, 0: x - width / 2}[side]
    bottom = y + (4.0 if up > 0 else -4.0 - _LINE) * (2 if side == 0 else 1)
    return left, bottom, left + width, bottom + _LINE


def _overlap(box: _Box, occupied: Sequence[_Box], across: float) -> float:
    """Return the area of a name that overlaps other objects, or is outside the chart, in square
    pixels."""
    left, bottom, right, top = box
    off = max(right - across, 0.0) + max(-left, 0.0)
    return _LINE * off + sum(
        max(min(right, other[2]) - max(left, other[0]), 0.0)
        * max(min(top, other[3]) - max(bottom, other[1]), 0.0)
        for other in occupied
    )


def _misplaced(box: _Box, mark_height: float, others: Sequence[float]) -> float:
    """Return the area of a name, in square pixels, if it is nearer to another mark above or below
    than to its own mark; otherwise 0. mark_height, others: vertical positions of the marks."""
    left, bottom, right, top = box
    middle = (bottom + top) / 2
    nearer = any(abs(middle - each) < abs(middle - mark_height) for each in others)
    return (right - left) * (top - bottom) if nearer else 0.0


def error(point: FrontierPoint) -> style.Trace:
    """Return the error bars of the interval, if there is one."""
    return {
        "type": "data",
        "array": [_reach(point.high - point.quality)],
        "arrayminus": [_reach(point.quality - point.low)],
        "color": style.faded(point.mark.colour, 0.5),
        "thickness": 1.5,
        "width": 4,
    }


def _reach(length: float) -> float:
    return max(length, 0.0) if math.isfinite(length) else 0.0
