"""Shared style of all charts: colours, ink for light and dark pages, and escaped text.

All settings are explicit: plotly figures ignore most of a theme, and a report has none. Colour is
    never the only distinction; every coloured mark also has its own shape, dash, pattern or
    position.
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

# All have a contrast of 3:1 on white and on dark; the first three and WORSE are from the palette of
# Okabe & Ito (2008).
BETTER = "#0072B2"
WORSE = "#D55E00"
FIRST_STAGE = "#7F7F7F"
SYSTEMS = (
    *(BETTER, "#009E73", "#CC79A7", "#8A6D1B"),
    *("#7E57C2", "#0A8FA8", "#A0522D", "#6B7FD7"),
)

# The app includes the first font; a file that is opened elsewhere uses the fonts of the system,
# Latin fonts before those made for Chinese text.
FONT = (
    "'Source Sans', -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, 'PingFang SC', "
    "'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"
)
FONT_SIZE = 13
# Colours repeat from the ninth system, with other shapes. All marks are filled: a hollow mark means
# not proven. The baseline is a ring with a dot.
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
"""The margin of a chart without labels at its left: a legend is as wide as the plot and begins at
the left edge, and the buttons of the chart are at the right edge."""

NO_NAMES: Mapping[str, str] = MappingProxyType({})
"""The names of ids that are shown unchanged."""

Trace = dict[str, Any]
"""A trace as plain data."""


@dataclass(frozen=True)
class Ink:
    """The colours that depend on the background.

    background: behind marks and text; the figure itself is transparent.
    text: names and values. muted: axes and secondary texts. grid: lines behind the data.
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
    """The colour, symbol and dash of one system in all charts."""

    colour: str
    symbol: str
    dash: str


def marks(places: Mapping[str, int], baseline: str = "") -> dict[str, Mark]:
    """Return system → its mark: the baseline a grey ring with a dot, the others distinguished by
    colour and shape.

    places: system → its number among all systems of the data set (`Study.places`), so that a system
        looks the same on every page and in every comparison.
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
    """Return name → its mark, for names that are not systems of a data set, in their order."""
    others = [name for name in names if name != baseline]
    return marks({**{name: at for at, name in enumerate(others)}, baseline: 0}, baseline)


def faded(colour: str, opacity: float) -> str:
    """Return a translucent colour. colour: #RRGGBB. opacity: 0 to 1."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return f"rgba({red},{green},{blue},{opacity:g})"


def blended(colour: str, background: str, share: float) -> str:
    """Return a colour mixed with a background, itself opaque. colour, background: #RRGGBB. share:
    of the colour, 0 to 1."""
    pairs = zip(
        *(bytes.fromhex(each.removeprefix("#")) for each in (colour, background)), strict=True
    )
    return "#" + "".join(f"{round(share * one + (1 - share) * other):02X}" for one, other in pairs)


def short(text: str, width: int = 28) -> str:
    """Return text from the data, escaped, and truncated in its middle to `width` columns (see
    `rankdash.core.base.text.middle`).

    Plotly renders a subset of HTML, including links, so all text from the data must be escaped.
    """
    return html_safe(base_text.middle(text, width))


def whole(text: str, width: int = _HOVER_WIDTH) -> str:
    """Return a complete name, such as for a hover label: escaped, on lines of at most `width`
    columns."""
    return "<br>".join(map(html_safe, base_text.lines(text, width)))


def number(value: float, digits: int = 3) -> str:
    """Return a value as a chart writes it.

    The minus sign is U+2212, as on plotly's axes. Texts and tables write "-", as Streamlit's tables
    and number fields do: their numbers are copied into other programs.
    """
    return i18n.number(value, digits).replace("-", "−")


def queries(n: int) -> str:
    """Return the number of queries, in the reader's language."""
    return ngettext("{n} query", "{n} queries", n)


def signed(value: float, digits: int = 3) -> str:
    """Return a change as a chart writes it, with its sign."""
    return i18n.signed(value, digits).replace("-", "−")


def ticks(highest: float) -> str:
    """Return the number format of an axis up to `highest`: 200k, but 0.5 and never 500m."""
    return "~s" if highest >= 1000 else ",.3~f"


class _Figure(go.Figure):  # type: ignore[misc]
    """A figure whose traces and layout become plotly objects only when they are accessed: sending
    them needs plain data, and creating the objects takes as long as sending them."""

    def __init__(self, data: list[Trace], layout: Trace) -> None:
        self.__dict__["_plain"] = (data, layout)

    def __getattr__(self, name: str) -> Any:
        # A missing attribute is one of the figure that is not created yet.
        plain = self.__dict__.pop("_plain", None)
        self.__dict__.pop("_sent", None)
        if plain is None:
            raise AttributeError(name)
        super().__init__(*plain, _validate=False)
        return getattr(self, name)

    def to_dict(self) -> dict[str, Any]:
        if "_plain" not in self.__dict__:
            created: dict[str, Any] = super().to_dict()
            return created
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
    """Return a copy of plain data, with the arrays in its dictionaries as plotly sends them.
    Plotly's own search for arrays takes several times as long."""
    if isinstance(value, dict):
        return {key: _sent(each) if key == "range" else _array(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sent(each) if isinstance(each, _NESTED) else each for each in value]
    return value


def _array(value: Any) -> Any:
    if not hasattr(value, "__array__"):
        return _sent(value)
    wrapped = {"": value}
    convert_to_base64(wrapped)
    return wrapped[""]


def finish(traces: Iterable[Trace], ink: Ink, height: int, **layout: object) -> go.Figure:
    """Return the figure, with all settings that a theme would otherwise define.

    layout: the settings of this chart, nested; they override the common ones.
    height: pixels, at the least. Margins grow with the labels and the legend, so that neither is
        clipped; in a narrow chart the legend has a line for each entry, and scrolls if it would
        take more than half of the height.
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
    # A second axis is drawn only if the layout of the chart has one.
    axes = {"xaxis", "yaxis", *(name for name in layout if "axis" in name)}
    axis_settings = {name: across if name.startswith("x") else upward for name in axes}
    # Created in one step: `update_layout` walks every path, which is slow on a page of charts. So
    # is plotly's check of every value, which tests perform. An empty template, because plotly's own
    # would be sent along.
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
    """Return the ends of an axis that includes all finite values (0 to 1 without any), with room on
    both sides: a share of the distance between them, at least `least`, so that noise does not look
    large.

    lowest: the lowest start of the axis. highest: the highest end of the axis, unless a value is
        beyond it.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return [0.0, 1.0]
    low, high = min(finite), max(finite)
    room = max(share * (high - low), least)
    return [max(low - room, lowest), high + room if high > highest else min(high + room, highest)]


def axis(title: str, **settings: object) -> dict[str, object]:
    """Return the layout of an axis with a title."""
    return {"title": {"text": title}, **settings}


def row_labels(ink: Ink, **axis: object) -> dict[str, object]:
    """Return the layout of an axis whose ticks name the rows of a chart."""
    return {"showgrid": False, "zeroline": False, "tickfont": {"color": ink.text}, **axis}
