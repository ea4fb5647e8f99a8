"""The traces and shapes that charts are made of, as plain data.

A figure is made of all of its traces at once: each `add_trace` walks the whole figure again, which
a page of six charts feels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

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
    said = (
        {"hoverinfo": "skip"}
        if hover is None
        else {"hovertext": hover, "hovertemplate": "%{hovertext}<extra></extra>"}
    )
    unnamed = {} if "name" in settings else {"showlegend": False}
    return {"type": kind, "x": x, "y": y, **said, **unnamed, **settings}


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
