"""The traces, shapes and intervals that charts are made of, as plain data."""

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
    """Points, lines or text. mode: as plotly writes it. hover: a text for each point; without one
    the pointer finds nothing. settings: of plotly; without a name the legend leaves it out.

    Marks and text at the edge are whole, lines are cut off there unless settings say otherwise.
    """
    return {"mode": mode, "cliponaxis": "lines" in mode, **_trace("scatter", x, y, hover, settings)}


def bar(
    x: Iterable[Any], y: Iterable[Any], *, hover: Sequence[str] | None = None, **settings: Any
) -> Trace:
    """Bars; see `scatter`."""
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
    """Text at points. side: of the point, as plotly writes it, one for all or one for each."""
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
    """What lies between two lines over the same x."""
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
    """Marks of one colour, outlined in it so that those which are only lines show too. width: of
    the outline, in pixels."""
    line = {"color": colour, "width": width}
    return {"color": colour, "symbol": symbol, "size": size, "opacity": 1, "line": line}


def upright(x: float, colour: str, dash: str, width: float = 1, **settings: object) -> Trace:
    """A shape: a line from the foot to the top of the chart."""
    ends = {"yref": "paper", "y0": 0, "y1": 1}
    line = {"color": colour, "width": width, "dash": dash}
    return {"type": "line", "x0": x, "x1": x, **ends, "line": line, **settings}


def note(x: float, y: float, text: str, colour: str, **settings: object) -> Trace:
    """An annotation: text at a place, without an arrow."""
    font = {"color": colour, "size": FONT_SIZE - 1}
    return {"x": x, "y": y, "text": text, "showarrow": False, "font": font, **settings}


# Labels at the ends of lines: how high, and how long a line leads to them, in pixels.
_LABEL, _LETTER, _LEADER = 16, 7, 22
_LABEL_WIDTH = 20


def end_labels(
    ends: Sequence[tuple[str, str, float]],
    reach: tuple[float, float],
    height: float,
    ink: Ink,
    **settings: object,
) -> tuple[list[Trace], Trace]:
    """Return names at the right of lines, as far from each other as they are high, each led to the
    end of its line, and the margin that has room for them.

    ends: name, colour and last value of each line. reach: of the axis upward. height: of the plot,
    in pixels. settings: the place across, as of `note`.
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
    """The marker of bars for what did not come about or counts against: outlined, and lines on the
    background. shape: of the lines, as plotly writes it ("/", "\\", "x")."""
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
    """The marker of bars of one colour. shape: of thin lines on it in the background's."""
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
    """How a line through its points is drawn in the mark of a system."""
    return {
        "mode": "lines+markers",
        "line": {"color": mark.colour, "dash": mark.dash, "width": 2},
        "marker": marker(mark.colour, mark.symbol, 9),
    }


# Charts before they have an ink, with what they say.


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart in the ink of a light and of a dark page. alt: what it says, in words."""

    light: go.Figure
    dark: go.Figure
    alt: str


@dataclass(frozen=True)
class Drawing:
    """A chart before it has an ink. alt: what it says, in words. title: what it is about, where it
    does not say so itself."""

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
    """Turn a function that draws a chart in an ink into one that returns its `Drawing`.

    alt: what the chart says, in words, from those parameters of the chart that it names.
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


# The mark of a system as a small picture, for tables and texts beside the charts.

_SIDE = 16
_RADIUS = 6.0
_LINE = 2.0
# Points of plotly's symbols on a unit circle or square, y downward.
_CROSS = ((-1, -0.35), (-0.35, -0.35), (-0.35, -1), (0.35, -1), (0.35, -0.35), (1, -0.35))


def _corners(n: int, outer: float = 1.0, inner: float = 1.0) -> tuple[tuple[float, float], ...]:
    """n points around the middle from the top on, every second one at the inner distance."""
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
    """The address of an SVG picture of 16 × 16 pixels, the picture itself inside."""
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


# Times on a log axis: where the ticks stand, and the line of a target.

_FASTEST = 1e-3
_DECADES_WITH_STEPS = 2.6


def reach(values: Iterable[float], room: float) -> tuple[float, float]:
    """The ends of a log axis that holds all values, as powers of ten. room: on either side, as a
    share of what lies between them."""
    powers = [math.log10(max(value, _FASTEST)) for value in values if math.isfinite(value)]
    low, high = min(powers, default=0.0), max(powers, default=1.0)
    more = max((high - low) * room, 0.12)
    return low - more, high + more


def log_axis(ends: tuple[float, float], *, short: bool = False) -> dict[str, Any]:
    """The layout of an axis from one power of ten to the other, ticks at 1, 2 and 5 of each power,
    or where there are many powers for its length at those alone. short: as a part of a chart."""
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
    """A dashed line across the chart at a time on the axis "x", "y", "y2" …"""
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


# How an interval and its significance are drawn, wherever a chart has them.

MARK = "*"
"""Written beside a proven change, in bold: read without colour, and by a screen reader."""

_CAP = 9
_WIDTH = 1.75
_LAST = 2000


def p_limit(corrected: bool) -> str:
    """The words of a key for what is significant. corrected: whether p allows for the other
    comparisons."""
    return _("corrected p ≤ {p:g}") if corrected else _("p ≤ {p:g}")


def p_text(corrected: bool, p: str) -> str:
    """A p in a hover label."""
    return _("corrected p {p}", p=p) if corrected else _("p {p}", p=p)


def changed(delta: float, is_proven: bool) -> str:
    """A change as it is written in a chart."""
    text = style.signed(delta)
    return f"<b>{text}\u00a0{MARK}</b>" if is_proven else text


def span(low: float, high: float) -> str:
    """An interval of changes for the eye; "" where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{style.signed(low)}…{style.signed(high)}"


def chance(p: float) -> str:
    """A p value for a hover label; "" where there is none."""
    return html_safe(p_value(p)) if math.isfinite(p) else ""


def whiskers(
    low: Sequence[float], high: Sequence[float], row: Sequence[float], colour: str
) -> list[style.Trace]:
    """A thin horizontal line with caps from low to high in each row, as one trace; none where
    either is NaN, and no trace where none is left."""
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
    """A last line of the legend, that stands for no one mark."""
    return scatter(
        [None],
        [None],
        "markers",
        name=name,
        legendrank=_LAST,
        marker=marker(colour, symbol, 10, width=_WIDTH),
    )


def keys(interval: str, significant: str, level: float, colour: str) -> list[style.Trace]:
    """The lines of the legend that say what a whisker and the star are. interval and significant:
    templates with {level} in percent, and {p}."""
    return [
        key(interval.format(level=level_percent(level)), "line-ew", colour),
        key(significant.format(p=round(1 - level, 6)), "asterisk-open", colour),
    ]
