"""What all charts share: colours, ink for light and dark, text that is safe to draw.

Nothing is left to a theme: plotly figures ignore most of it, and a report has none. Colour never
speaks alone; every mark that has one also has a shape, a dash, a pattern or a place of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go
from plotly.basedatatypes import convert_to_base64

from rankdash.core.base import i18n
from rankdash.core.base import text as base_text
from rankdash.core.base.i18n import ngettext
from rankdash.core.base.text import html_safe

_NESTED = (dict, list, tuple)

# All reach 3:1 on white and on dark; the first three and WORSE are from the palette of Okabe & Ito
# (2008).
BETTER = "#0072B2"
WORSE = "#D55E00"
FIRST_STAGE = "#7F7F7F"
SYSTEMS = (
    *(BETTER, "#009E73", "#CC79A7", "#8A6D1B"),
    *("#7E57C2", "#0A8FA8", "#A0522D", "#6B7FD7"),
)

# The app brings the first; a file that is opened elsewhere takes what the system has, Latin letters
# before those fonts whose Latin letters are made for Chinese text.
FONT = (
    "'Source Sans', -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, 'PingFang SC', "
    "'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"
)
FONT_SIZE = 13
# From the ninth system on the colours come again, on shapes unlike the first of that colour. All
# are filled: a hollow mark is not proven. The baseline is a ring with a dot.
_SYMBOLS = (
    *("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon"),
    *("triangle-down", "star-diamond", "bowtie", "hourglass"),
    *("pentagon", "triangle-left", "diamond-wide", "star-square"),
)
_DASHES = (
    *("solid", "dash", "dashdot", "longdash", "longdashdot"),
    *("2px,2px", "12px,3px,3px,3px,3px,3px", "6px,2px"),
)
_GAP = 12
_LEGEND_LINE = 20
_HOVER_WIDTH = 60

CLEAR_OF_CAMERA: Mapping[str, int] = MappingProxyType({"r": 76})
"""The margin of a chart that has no labels at its left: a legend is as wide as the plot and begins
at the left edge, and the buttons of the chart stand at the right one."""

NO_NAMES: Mapping[str, str] = MappingProxyType({})
"""For ids that are shown as they are."""

Trace = dict[str, Any]
"""A trace as plain data."""


@dataclass(frozen=True)
class Ink:
    """The colours that depend on the background.

    background: what marks and text are read against; the figure itself is transparent.
    text: names and values. muted: axes and what is beside the point. grid: lines behind the data.
    line: zero lines and thresholds. hover: the background of the hover label.
    """

    background: str
    text: str
    muted: str
    grid: str
    line: str
    hover: str


INKS = {
    "light": Ink(
        background="#FFFFFF",
        text="#1F2933",
        muted="#52606D",
        grid="#E4E7EB",
        line="#7B8794",
        hover="#F4F6F8",
    ),
    "dark": Ink(
        background="#0E1117",
        text="#E6EAF0",
        muted="#A9B4C2",
        grid="#2A313C",
        line="#8792A2",
        hover="#1A1F29",
    ),
}


@dataclass(frozen=True)
class Mark:
    """How one system looks wherever it is drawn."""

    colour: str
    symbol: str
    dash: str


def marks(places: Mapping[str, int], baseline: str = "") -> dict[str, Mark]:
    """system → its mark: the baseline a grey ring with a dot, the others told apart by colour and
    shape.

    places: system → its number among all systems of the data set (`Study.places`), so that a system
    looks the same on every page, whatever it is compared with.
    """
    return {
        system: Mark(FIRST_STAGE, "circle-open-dot", "dot")
        if system == baseline
        else Mark(
            SYSTEMS[place % len(SYSTEMS)],
            _SYMBOLS[place % len(_SYMBOLS)],
            _DASHES[place % len(_DASHES)],
        )
        for system, place in places.items()
    }


def marks_in_order(names: Iterable[str], baseline: str = "") -> dict[str, Mark]:
    """The same for what has no place of its own, in the order given."""
    others = [name for name in names if name != baseline]
    return marks({**{name: at for at, name in enumerate(others)}, baseline: 0}, baseline)


def faded(colour: str, opacity: float) -> str:
    """A colour (#RRGGBB) that lets through what is behind it. opacity: 0 to 1."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return f"rgba({red},{green},{blue},{opacity:g})"


def blended(colour: str, background: str, share: float) -> str:
    """A colour (#RRGGBB) mixed with a background, itself opaque. share: of the colour, 0 to 1."""
    pairs = zip(
        *(bytes.fromhex(each.removeprefix("#")) for each in (colour, background)), strict=True
    )
    return "#" + "".join(f"{round(share * one + (1 - share) * other):02X}" for one, other in pairs)


def short(text: str, width: int = 28) -> str:
    """Text from the data, escaped, and cut in its middle to `width` columns (see
    `rankdash.core.base.text.middle`).

    Plotly draws a part of HTML, links included, so nothing from the data may reach it unescaped.
    """
    return html_safe(base_text.middle(text, width))


def whole(text: str, width: int = _HOVER_WIDTH) -> str:
    """A name that is not cut, as for a hover label: escaped, and on as many lines of `width`
    columns as it takes."""
    return "<br>".join(map(html_safe, base_text.lines(text, width)))


def number(value: float, digits: int = 3) -> str:
    """Return a value as a chart writes it.

    The minus sign is U+2212, as on plotly's axes. Texts and tables write "-", as Streamlit's tables
    and number fields do: there, numbers are copied into other programs.
    """
    return i18n.number(value, digits).replace("-", "−")


def queries(n: int) -> str:
    """How many, in the reader's language."""
    return ngettext("{n} query", "{n} queries", n)


def signed(value: float, digits: int = 3) -> str:
    """Return a change as a chart writes it, with its sign."""
    return i18n.signed(value, digits).replace("-", "−")


def ticks(highest: float) -> str:
    """How an axis up to `highest` writes its numbers: 200k, but 0.5 and never 500m."""
    return "~s" if highest >= 1000 else ",.3~f"


class _Figure(go.Figure):  # type: ignore[misc]
    """A figure whose traces and layout become objects when somebody asks for one: to be sent, they
    are wanted as plain data, and to make objects of them takes as long as to send them."""

    def __init__(self, data: list[Trace], layout: Trace) -> None:
        self.__dict__["_plain"] = (data, layout)

    def __getattr__(self, name: str) -> Any:
        # What is not there is what the figure would have, were it made.
        plain = self.__dict__.pop("_plain", None)
        self.__dict__.pop("_sent", None)
        if plain is None:
            raise AttributeError(name)
        super().__init__(*plain, _validate=False)
        return getattr(self, name)

    def to_dict(self) -> dict[str, Any]:
        if "_plain" not in self.__dict__:
            made: dict[str, Any] = super().to_dict()
            return made
        sent = self.__dict__.get("_sent")
        if sent is None:
            data, layout = self.__dict__["_plain"]
            sent = {"data": _sent(data), "layout": _sent(layout)}
            # A page sends the same figure at each rerun.
            self.__dict__["_sent"] = sent
        return {"data": [{**trace} for trace in sent["data"]], "layout": {**sent["layout"]}}

    def __reduce__(self) -> tuple[type[go.Figure], tuple[dict[str, Any]]]:
        return go.Figure, (self.to_dict(),)


def _sent(value: Any) -> Any:
    """A copy of plain data, with the arrays in its dictionaries as plotly sends them. To copy all
    of it and have plotly look for the arrays takes several times as long."""
    if isinstance(value, dict):
        return {key: _sent(each) if key == "range" else _array(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sent(each) if isinstance(each, _NESTED) else each for each in value]
    return value


def _array(value: Any) -> Any:
    if not hasattr(value, "__array__"):
        return _sent(value)
    alone = {"": value}
    convert_to_base64(alone)
    return alone[""]


def finish(traces: Iterable[Trace], ink: Ink, height: int, **layout: object) -> go.Figure:
    """The figure, with everything set that a theme would otherwise leave to chance.

    layout: what this chart wants of its layout, nested; it wins over the common look.

    height: pixels, at the least. Margins grow with the labels and the legend, so that neither is
    cut off; where the chart is narrow the legend has a line for each entry, and scrolls when it
    would take more than half of the height.
    """
    data = list(traces)
    entries = sum(bool(each.get("name")) and each.get("showlegend") is not False for each in data)
    height = max(height, 2 * (entries * _LEGEND_LINE + _GAP))
    font = {"family": FONT, "size": FONT_SIZE, "color": ink.text}
    quiet = {**font, "size": FONT_SIZE - 1, "color": ink.muted}
    common = {
        "height": height,
        "font": font,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 16, "t": _GAP, "b": _GAP, "pad": 4},
        "hoverlabel": {
            "bgcolor": ink.hover,
            "bordercolor": ink.line,
            "font": font,
            "align": "left",
        },
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": ink.muted, "activecolor": ink.text},
        "legend": {
            "orientation": "h",
            "xref": "container",
            "x": 0,
            "xanchor": "left",
            "yref": "container",
            "y": 1,
            "yanchor": "top",
            "font": font,
            "bgcolor": "rgba(0,0,0,0)",
            "itemclick": False,
            "itemdoubleclick": False,
        },
    }
    axis = {
        "automargin": True,
        "tickfont": quiet,
        "title": {"font": quiet},
        "linecolor": ink.line,
        "zerolinecolor": ink.line,
        "gridcolor": ink.grid,
        "fixedrange": True,
    }
    across = {**axis, "showgrid": False, "zeroline": False}
    upward = {**axis, "showline": False}
    # A second axis is drawn only where the layout of the chart asks for one.
    axes = {"xaxis", "yaxis", *(name for name in layout if "axis" in name)}
    axis_settings = {name: across if name.startswith("x") else upward for name in axes}
    # Made at once: `update_layout` and its kin walk every path, which a page of charts feels. So
    # does plotly's check of every value, which tests make. Its own template would be sent along.
    empty: dict[str, object] = {"template": {}}
    drawn = _merged(_merged({**empty, **common}, axis_settings), layout)
    return _Figure(data, drawn)


def _merged(base: Mapping[str, object], extra: Mapping[str, object]) -> dict[str, object]:
    result = dict(base)
    for name, value in extra.items():
        old = result.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[name] = _merged(old, value)
        else:
            result[name] = value
    return result


def reach(
    values: Iterable[float],
    share: float,
    least: float,
    lowest: float = -math.inf,
    highest: float = math.inf,
) -> list[float]:
    """The ends of an axis that holds all finite values, 0 to 1 where there are none, with room on
    both sides: a share of what lies between them, at least so much that noise does not look like
    news. lowest: where the axis begins at the lowest. highest: where it ends at the highest, unless
    a value lies beyond."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return [0.0, 1.0]
    low, high = min(known), max(known)
    room = max(share * (high - low), least)
    return [max(low - room, lowest), high + room if high > highest else min(high + room, highest)]


def axis(title: str, **settings: object) -> dict[str, object]:
    """The layout of an axis with a title."""
    return {"title": {"text": title}, **settings}


def row_labels(ink: Ink, **axis: object) -> dict[str, object]:
    """The layout of an axis whose ticks name the rows of a chart."""
    return {"showgrid": False, "zeroline": False, "tickfont": {"color": ink.text}, **axis}
