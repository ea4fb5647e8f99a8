"""The traces, shapes and intervals of charts, as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec
from urllib.parse import quote

import plotly.graph_objects as go

from rankdash.core.base.i18n import brief, level_percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.text import columns, html_safe
from rankdash.core.words.verdicts import p_value
from rankdash.kit.drawing import style
from rankdash.kit.drawing.style import FONT, FONT_SIZE, Ink, Mark, Trace, faded


def scatter(
    x: Iterable[Any],
    y: Iterable[Any],
    mode: str,
    *,
    hover: Sequence[str] | None = None,
    **settings: Any,
) -> Trace:
    """Return points, lines or text. mode: as in plotly. hover: a text for each point; without it
    there are no hover labels. settings: of plotly; without a name there is no legend entry.

    Marks and text at the edge are drawn completely; lines are clipped there, unless the settings
    change this.
    """
    return {"mode": mode, "cliponaxis": "lines" in mode, **_trace("scatter", x, y, hover, settings)}


def bar(
    x: Iterable[Any], y: Iterable[Any], *, hover: Sequence[str] | None = None, **settings: Any
) -> Trace:
    """Return bars; see `scatter`."""
    return _trace("bar", x, y, hover, settings)


def _trace(kind: str, x: object, y: object, hover: Sequence[str] | None, settings: Trace) -> Trace:
    hover_settings = (
        {"hoverinfo": "skip"}
        if hover is None
        else {"hovertext": hover, "hovertemplate": "%{hovertext}<extra></extra>"}
    )
    unnamed = {} if "name" in settings else {"showlegend": False}
    return {"type": kind, "x": x, "y": y, **hover_settings, **unnamed, **settings}


def texts(
    x: Iterable[Any],
    y: Iterable[Any],
    text: Sequence[str],
    ink: Ink,
    side: str | Sequence[str] = "middle right",
    size: int = FONT_SIZE - 1,
) -> Trace:
    """Return text at points. side: of the point, as in plotly, one for all or one for each."""
    font = {"family": FONT, "size": size, "color": ink.text}
    return scatter(x, y, "text", text=text, textposition=side, textfont=font)


def band(
    x: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    colour: str,
    opacity: float,
    line: Trace,
    **settings: Any,
) -> Trace:
    """Return the area between two lines over the same x."""
    return scatter(
        [*x, *x[::-1]],
        [*high, *low[::-1]],
        "lines",
        fill="toself",
        fillcolor=faded(colour, opacity),
        line=line,
        **settings,
    )


def marker(
    colour: str, symbol: str | Sequence[str], size: float | Sequence[float], *, width: float = 2
) -> Trace:
    """Return marks of one colour, with an outline of the same colour so that marks that are only
    lines show too. width: of the outline, in pixels."""
    line = {"color": colour, "width": width}
    return {"color": colour, "symbol": symbol, "size": size, "opacity": 1, "line": line}


def upright(x: float, colour: str, dash: str, width: float = 1, **settings: object) -> Trace:
    """Return a shape: a vertical line through the whole chart."""
    ends = {"yref": "paper", "y0": 0, "y1": 1}
    line = {"color": colour, "width": width, "dash": dash}
    return {"type": "line", "x0": x, "x1": x, **ends, "line": line, **settings}


def note(x: float, y: float, text: str, colour: str, **settings: object) -> Trace:
    """Return an annotation: text at a position, without an arrow."""
    font = {"color": colour, "size": FONT_SIZE - 1}
    return {"x": x, "y": y, "text": text, "showarrow": False, "font": font, **settings}


# Labels at the ends of lines: their height, the width of a letter, and the length of the line to
# them, in pixels.
_LABEL, _LETTER, _LEADER = 16, 7, 22
_LABEL_WIDTH = 20


def end_labels(
    ends: Sequence[tuple[str, str, float]],
    reach: tuple[float, float],
    height: float,
    ink: Ink,
    **settings: object,
) -> tuple[list[Trace], Trace]:
    """Return names at the right of lines, with enough distance between them, each connected to the
    end of its line; and the margin for them.

    ends: name, colour and last value of each line. reach: of the vertical axis. height: of the
        plot, in pixels. settings: the horizontal position, as for `note`.
    """
    low, high = reach
    ordered = sorted(ends, key=lambda end: -end[2])
    pixels = [(high - value) / (high - low) * height for _name, _colour, value in ordered]
    spread: list[float] = []
    for pixel in pixels:
        spread.append(max(pixel, spread[-1] + _LABEL if spread else _LABEL / 2))
    limit = height - _LABEL / 2
    for place in reversed(range(len(spread))):
        spread[place] = min(spread[place], limit)
        limit = spread[place] - _LABEL
    names = [style.short(name, _LABEL_WIDTH) for name, _colour, _value in ordered]
    labels = [
        note(
            0, value, name, ink.text, xanchor="left", showarrow=True, arrowhead=0, arrowwidth=2,
            arrowcolor=colour, ax=_LEADER, ay=at - pixel, standoff=0,
        ) | settings
        for name, (_name, colour, value), pixel, at in zip(
            names, ordered, pixels, spread, strict=True
        )
    ]  # fmt: skip
    width = max(map(columns, names), default=0)
    return labels, {"r": _LEADER + _LETTER * min(width, _LABEL_WIDTH)} if labels else {}


def hatched(colour: str, shape: str, ink: Ink) -> Trace:
    """Return the marker of hatched bars, for missing or negative amounts: outlined, with lines on
    the background. shape: of the lines, as in plotly ("/", "\\", "x")."""
    return {
        "color": ink.background,
        "line": {"color": colour, "width": 1},
        "pattern": {
            "shape": shape,
            "fillmode": "overlay",
            "bgcolor": ink.background,
            "fgcolor": colour,
            "fgopacity": 1,
            "size": 6,
            "solidity": 0.3,
        },
    }


def solid(colour: str, ink: Ink, shape: str = "") -> Trace:
    """Return the marker of bars of one colour. shape: of thin lines on them in the colour of the
    background."""
    return {
        "color": colour,
        "line": {"width": 0},
        "pattern": {
            "shape": shape,
            "fillmode": "overlay",
            "fgcolor": ink.background,
            "size": 6,
            "solidity": 0.25,
        },
    }


def curve(mark: Mark) -> Trace:
    """Return the style of a line with points, in the mark of a system."""
    return {
        "mode": "lines+markers",
        "line": {"color": mark.colour, "dash": mark.dash, "width": 2},
        "marker": marker(mark.colour, mark.symbol, 9),
    }


# Charts before their colours are chosen, with their alternative texts.


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart for light and for dark pages. alt: its alternative text."""

    light: go.Figure
    dark: go.Figure
    alt: str


@dataclass(frozen=True)
class Drawing:
    """A chart before its colours are chosen. alt: its alternative text. title: its subject, if the
    chart does not name it."""

    draw: Callable[[Ink], go.Figure]
    alt: str
    title: str = ""

    def in_both_inks(self) -> Chart:
        light, dark = (self.draw(style.INKS[name]) for name in ("light", "dark"))
        return Chart(light, dark, self.alt)


P = ParamSpec("P")


def chart(
    alt: Callable[..., str],
) -> Callable[[Callable[Concatenate[Ink, P], go.Figure]], Callable[P, Drawing]]:
    """Return a decorator for functions that draw a chart in an ink; the decorated function returns
    the `Drawing` of its chart.

    alt: returns the alternative text, from the parameters of the chart that it names.
    """
    of_alt = signature(alt).parameters

    def with_words(figure: Callable[Concatenate[Ink, P], go.Figure]) -> Callable[P, Drawing]:
        of_chart = signature(figure)

        @wraps(figure)
        def drawing(*args: P.args, **named: P.kwargs) -> Drawing:
            values = of_chart.bind(None, *args, **named).arguments
            words = alt(**{name: value for name, value in values.items() if name in of_alt})
            return Drawing(lambda ink: figure(ink, *args, **named), words)

        return drawing

    return with_words


# The mark of a system as a small picture, for tables and texts next to the charts.

_SIDE = 16
_RADIUS = 6.0
_LINE = 2.0
# Points of plotly's symbols on a unit circle or square, y downward.
_CROSS = ((-1, -0.35), (-0.35, -0.35), (-0.35, -1), (0.35, -1), (0.35, -0.35), (1, -0.35))


def _corners(n: int, outer: float = 1.0, inner: float = 1.0) -> tuple[tuple[float, float], ...]:
    """Return n points around the centre, clockwise from the top, every second one at the inner
    distance."""
    return tuple(
        (reach * math.sin(turn * math.tau / n), -reach * math.cos(turn * math.tau / n))
        for turn in range(n)
        for reach in [outer if turn % 2 == 0 else inner]
    )


_POLYGONS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    "diamond": _corners(4, 1.1, 1.1),
    "diamond-wide": _corners(4, 0.75, 1.2),
    "triangle-up": ((0, -1), (1, 0.8), (-1, 0.8)),
    "triangle-down": ((0, 1), (1, -0.8), (-1, -0.8)),
    "triangle-left": ((-1, 0), (0.8, -1), (0.8, 1)),
    "cross": (*_CROSS, *((-x, -y) for x, y in _CROSS)),
    "pentagon": _corners(5),
    "hexagon": _corners(6),
    "star": _corners(10, 1.15, 0.5),
    "star-diamond": _corners(8, 1.25, 0.6),
    "star-square": _corners(8, 0.5, 1.25),
    "bowtie": ((-1, -0.85), (1, 0.85), (1, -0.85), (-1, 0.85)),
    "hourglass": ((-0.85, -1), (0.85, 1), (-0.85, 1), (0.85, -1)),
}


def mark_image(mark: Mark) -> str:
    """Return a data URI of an SVG picture of 16 × 16 pixels."""
    shape, middle = mark.symbol, _SIDE / 2
    if shape == "circle-open-dot":
        drawn = (
            f"<circle cx='{middle}' cy='{middle}' r='{_RADIUS}' fill='none' "
            f"stroke='{mark.colour}' stroke-width='{_LINE}'/>"
            f"<circle cx='{middle}' cy='{middle}' r='1.5' fill='{mark.colour}'/>"
        )
    elif shape == "circle":
        drawn = f"<circle cx='{middle}' cy='{middle}' r='{_RADIUS}' fill='{mark.colour}'/>"
    else:
        turned = f" transform='rotate(45 {middle} {middle})'" if shape == "x" else ""
        points = " ".join(
            f"{middle + _RADIUS * x:.2f},{middle + _RADIUS * y:.2f}"
            for x, y in _POLYGONS["cross" if shape == "x" else shape]
        )
        drawn = f"<polygon points='{points}'{turned} fill='{mark.colour}'/>"
    size = f"width='{_SIDE}' height='{_SIDE}' viewBox='0 0 {_SIDE} {_SIDE}'"
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{drawn}</svg>"
    return f"data:image/svg+xml,{quote(svg)}"


# Times on a log axis: the positions of the ticks, and the line of a target.

_FASTEST = 1e-3
_DECADES_WITH_STEPS = 2.6


def reach(values: Iterable[float], room: float) -> tuple[float, float]:
    """Return the ends of a log axis that includes all values, as powers of ten. room: on either
    side, as a share of the distance between them."""
    powers = [math.log10(max(value, _FASTEST)) for value in values if math.isfinite(value)]
    low, high = min(powers, default=0.0), max(powers, default=1.0)
    more = max((high - low) * room, 0.12)
    return low - more, high + more


def log_axis(ends: tuple[float, float], *, short: bool = False) -> dict[str, Any]:
    """Return the layout of an axis from one power of ten to another, with ticks at 1, 2 and 5 of
    each power, or only at the powers if there are many. short: whether the axis is short."""
    low, high = ends
    most = _DECADES_WITH_STEPS / (2 if short else 1)
    steps = (1, 2, 5) if high - low < most else (1,)
    ticks = [
        step * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for step in steps
        if low <= math.log10(step * 10.0**power) <= high
    ]
    return {
        "type": "log",
        "range": [low, high],
        "tickvals": ticks,
        "ticktext": [brief(tick) for tick in ticks],
        "showgrid": True,
        "zeroline": False,
    }


def target_line(target_ms: float, ink: style.Ink, axis: str = "x") -> dict[str, object]:
    """Return a dashed line across the chart at a time on the axis "x", "y", "y2" …"""
    other = "x" if axis.startswith("y") else "y"
    along, across = axis[0], other
    return {
        "type": "line",
        f"{along}ref": axis,
        f"{along}0": target_ms,
        f"{along}1": target_ms,
        f"{across}ref": "paper",
        f"{across}0": 0,
        f"{across}1": 1,
        "layer": "below",
        "line": {"color": ink.muted, "width": 1.5, "dash": "dash"},
    }


# Intervals and their significance in all charts.

MARK = "*"
"""The mark of a proven change, which is also bold: legible without colour, and read by screen
readers."""

_CAP = 9
_WIDTH = 1.75
_LAST = 2000


def p_limit(corrected: bool) -> str:
    """Return the legend text of the significance level. corrected: whether p is corrected for the
    other comparisons."""
    return _("corrected p ≤ {p:g}") if corrected else _("p ≤ {p:g}")


def p_text(corrected: bool, p: str) -> str:
    """Return a p value for a hover label."""
    return _("corrected p {p}", p=p) if corrected else _("p {p}", p=p)


def changed(delta: float, is_proven: bool) -> str:
    """Return a change as a chart writes it."""
    text = style.signed(delta)
    return f"<b>{text}\u00a0{MARK}</b>" if is_proven else text


def span(low: float, high: float) -> str:
    """Return an interval of changes as text; "" if there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{style.signed(low)}…{style.signed(high)}"


def chance(p: float) -> str:
    """Return a p value as text for a hover label; "" if there is none."""
    return html_safe(p_value(p)) if math.isfinite(p) else ""


def whiskers(
    low: Sequence[float], high: Sequence[float], row: Sequence[float], colour: str
) -> list[style.Trace]:
    """Return one trace of thin horizontal lines with caps from low to high in each row; rows with
    NaN are omitted, and an empty list is returned if none remains."""
    x: list[float] = []
    y: list[float] = []
    for start, end, place in zip(low, high, row, strict=True):
        if math.isfinite(start) and math.isfinite(end):
            x += (start, end, math.nan)
            y += (place, place, math.nan)
    if not x:
        return []
    return [
        scatter(
            x,
            y,
            "lines+markers",
            line={"color": colour, "width": _WIDTH},
            marker={
                "symbol": "line-ns",
                "size": _CAP,
                "opacity": 1,
                "line": {"color": colour, "width": _WIDTH},
            },
            cliponaxis=False,
        )
    ]


def key(name: str, symbol: str, colour: str) -> style.Trace:
    """Return a last entry of the legend, without data in the chart."""
    return scatter(
        [None],
        [None],
        "markers",
        name=name,
        legendrank=_LAST,
        marker=marker(colour, symbol, 10, width=_WIDTH),
    )


def keys(interval: str, significant: str, level: float, colour: str) -> list[style.Trace]:
    """Return the legend entries that explain the whisker and the star. interval and significant:
    templates with {level} in percent, and {p}."""
    return [
        key(interval.format(level=level_percent(level)), "line-ew", colour),
        key(significant.format(p=round(1 - level, 6)), "asterisk-open", colour),
    ]
