"""Charts of a decision: break-even and sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.i18n import quantity
from rankdash.core.data.arrays import Floats
from rankdash.core.study.costs import Choice
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.core.words.prices import money as amount_in
from rankdash.core.words.prices import symbol, unit
from rankdash.features.cost.sensitivity import GAIN, PRICE, input_value, net_grid, net_per_month
from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import Drawing

_HEIGHT = 400
_FAINT = 0.12
_TICKS = 3


@dataclass(frozen=True)
class Axis:
    """One of the two assumptions. now: its present value; None if it is off the chart."""

    title: str
    values: Sequence[float]
    now: float | None
    logarithmic: bool = False


def _break_even_alt(
    net: Floats,
    across: Axis,
    upward: Axis,
    *,
    period: str = "per month",
    money: Callable[[float], str] = str,
) -> str:
    return _(
        (
            "Net value {period} by {x_title} (across) and {y_title} (upward), from {low} to "
            "{high}. Reranking pays off in {share} of the chart."
        ),
        period=period,
        x_title=across.title,
        y_title=upward.title,
        share=f"{(net > 0).mean():.0%}",
        low=money(float(net.min())),
        high=money(float(net.max())),
    )


@draw.chart(_break_even_alt)
def break_even_chart(
    ink: style.Ink,
    net: Floats,
    across: Axis,
    upward: Axis,
    *,
    now: float = 0.0,
    period: str = "per month",
    money: Callable[[float], str] = str,
) -> go.Figure:
    """Draw the map of the net value. net: (upward, across), per `period`. now: the net value at the
    present point, to which the colour scale is fitted.

    Pays off: blue; does not: vermillion. The break-even line between them makes the sides
    distinguishable without colour, and the present point is marked.
    """
    xs, ys = list(across.values), list(upward.values)
    scale = _scale(net, now)
    reach = float(np.abs(net).max(initial=0.0)) or 1.0
    ticks = _ticks(scale, reach)
    titles = style.short(across.title, 60), style.short(upward.title, 60)
    # The map has about a thousand cells: shared text is formatted once.
    text = _("{x_title}: {x}<br>{y_title}: {y}<br>{net}")
    named = partial(text.format, x_title=titles[0], y_title=titles[1])
    x_texts, y_texts = ([quantity(value, 6) for value in values] for values in (xs, ys))
    hover = [
        [
            named(x=x, y=y, net=style.short(money(value), 40))
            for x, value in zip(x_texts, row, strict=True)
        ]
        for y, row in zip(y_texts, net.tolist(), strict=True)
    ]
    traces: list[style.Trace] = [
        {
            "type": "heatmap",
            "x": xs,
            "y": ys,
            # Logarithmic on both sides of 0, so that one extreme corner does not flatten the rest.
            "z": np.arcsinh(net / scale),
            "zmin": -float(np.arcsinh(reach / scale)),
            "zmax": float(np.arcsinh(reach / scale)),
            # The colour changes abruptly at 0, so that the side that pays off is visible
            # everywhere.
            "colorscale": [
                [0.0, style.WORSE],
                [0.5, style.blended(style.WORSE, ink.background, _FAINT)],
                [0.5, style.blended(style.BETTER, ink.background, _FAINT)],
                [1.0, style.BETTER],
            ],
            "hovertext": hover,
            "hovertemplate": "%{hovertext}<extra></extra>",
            "colorbar": {
                "title": {
                    "text": _("net value<br>{period}", period=style.short(period)),
                    "font": {"color": ink.muted},
                },
                "tickfont": {"color": ink.muted},
                "tickvals": [float(np.arcsinh(tick / scale)) for tick in ticks],
                "ticktext": [style.short(money(tick), 24) for tick in ticks],
                "outlinewidth": 0,
                "thickness": 12,
            },
        }
    ]
    if net.min(initial=np.inf) < 0 < net.max(initial=-np.inf):
        traces.append(
            {
                "type": "contour",
                "x": xs,
                "y": ys,
                "z": net,
                "contours": {"start": 0, "end": 0, "size": 1, "coloring": "none"},
                "line": {"color": ink.text, "width": 2, "dash": "dash"},
                "showscale": False,
                "hoverinfo": "skip",
                "name": _p("chart", "break-even"),
                "showlegend": True,
            }
        )
    if across.now is not None and upward.now is not None:
        traces.append(
            draw.scatter(
                [across.now],
                [upward.now],
                "markers",
                name=_("current settings"),
                marker=draw.marker(ink.text, "circle-cross-open", 16),
                hover=[_("current settings")],
            )
        )
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        xaxis=_axis(across, titles[0]),
        yaxis={**_axis(upward, titles[1]), "showgrid": False},
        margin={"t": 40},
    )


def _scale(net: Floats, now: float) -> float:
    """Return the net value up to which the colour scale is linear; above it, the scale is
    logarithmic. Default: a third of the present net value; if that is 0, the median of the
    chart."""
    return abs(now) / 3 or float(np.median(np.abs(net))) or 1.0


def _ticks(scale: float, reach: float) -> list[float]:
    """Return 0 and up to three powers of ten on each side, evenly spread."""
    highest = math.floor(math.log10(reach))
    lowest = min(math.ceil(math.log10(scale)), highest)
    step = max(math.ceil((highest - lowest + 1) / _TICKS), 1)
    powers = [10.0**power for power in range(highest, lowest - 1, -step)]
    return [*(-power for power in powers), 0.0, *powers[::-1]]


def _axis(axis: Axis, title: str) -> style.Trace:
    return style.axis(
        title,
        type="log" if axis.logarithmic else "linear",
        zeroline=False,
        tickformat=style.ticks(max(axis.values)),
        minor={"ticks": ""},
    )


# Map of break-even.

# Cells of the map along each axis.
_CELLS = 31

_BY_NAME = {each.name: each for each in ASSUMPTIONS}


@dataclass(frozen=True, eq=False)
class NetMap:
    """Net value over two inputs of a calculation. net: upward × across. now: present net value."""

    across: Axis
    upward: Axis
    net: Floats
    now: float

    def drawing(self, period: str, currency: str) -> Drawing:
        """Draw the map. period: the period of the amounts, in words."""
        written = partial(amount_in, currency=currency)
        grid = (self.net, self.across, self.upward)
        return break_even_chart(*grid, now=self.now, period=period, money=written)


def net_map(
    choice: Choice, scenario: Assumptions, across: str, upward: str, currency: str, months: int = 1
) -> NetMap | None:
    """Return the map over two of `sensitivity.INPUTS`; None without a price or a gain."""
    now = net_per_month(choice.option, scenario)
    if now is None:
        return None
    first, second = (_axis_charts(choice, scenario, name, currency) for name in (across, upward))
    net = net_grid(choice.option, scenario, (across, first.values), (upward, second.values))
    return NetMap(first, second, months * net, months * now)


def _axis_charts(choice: Choice, scenario: Assumptions, name: str, currency: str) -> Axis:
    """Return the axis of an assumption, from near 0 to a few times its present value, and long
    enough to include the break-even. If the value is 0, the axis is the range of the slider."""
    now = input_value(choice.option, scenario, name) or 0.0
    outcome = choice.outcome
    threshold = {
        PRICE: outcome.break_even_price,
        "elasticity": outcome.break_even_elasticity,
        "searches_per_day": outcome.break_even_searches,
    }.get(name)
    even = threshold.value if threshold is not None else None
    unit_of = symbol(currency) if name == PRICE else ""
    if name not in (PRICE, GAIN):
        unit_of = unit(_BY_NAME[name], currency)
    title = input_title(name)
    title = _("{title} ({unit})", title=title, unit=unit_of) if unit_of else title
    if name == GAIN:
        reach = max(abs(now) * 2, 0.05)
        return Axis(title, np.linspace(-reach / 4, reach, _CELLS).tolist(), now)
    if name == PRICE:
        high = max(2 * now, 2 * (even or 0.0), 0.1)
        return Axis(title, np.linspace(0, high, _CELLS).tolist(), now)
    each = _BY_NAME[name]
    if each.logarithmic and now > 0:
        reach = 100 * max(now, even or 0.0)
        low, high = max(min(now, even or now) / 100, each.least, 1e-9), min(reach, each.most)
        return Axis(title, np.geomspace(low, high, _CELLS).tolist(), now, True)
    # Neither the present point nor the break-even may be at an edge.
    high = max(1.3 * now, 2 * even) if even is not None and now > 0 else max(2 * now, each.high)
    high = min(high, each.most)
    return Axis(title, np.linspace(each.low, high, _CELLS).tolist(), now)


def input_title(name: str) -> str:
    """Return the title of one of `sensitivity.INPUTS`."""
    if name == PRICE:
        return _("Price of 1,000 searches")
    return _("Measured gain") if name == GAIN else _p("setting", _BY_NAME[name].title)


# Tornado: change of the result when one assumption changes and the others stay.

_ROW = 50
_TOP = 96
# Width of a line of a name, in columns of text.
_NAME_WIDTH = 28


@dataclass(frozen=True)
class Row:
    """One assumption. net_low, net_high: net value at its lower and upper value; low, high: these
    values as text."""

    name: str
    net_low: float
    net_high: float
    low: str
    high: str


def _tornado_alt(
    rows: Sequence[Row],
    net: float,
    *,
    period: str = "per month",
    money: Callable[[float], str] = str,
) -> str:
    sentences = [
        _(
            "{name} from {low} to {high}: {net_low} to {net_high}.",
            name=row.name,
            low=row.low,
            high=row.high,
            net_low=money(row.net_low),
            net_high=money(row.net_high),
        )
        for row in rows
    ]
    return _(
        "Net value {period}, now {net}, when one assumption changes. {swings}",
        period=period,
        net=money(net),
        swings=" ".join(sentences),
    ).strip()


@draw.chart(_tornado_alt)
def tornado_chart(
    ink: style.Ink,
    rows: Sequence[Row],
    net: float,
    *,
    period: str = "per month",
    money: Callable[[float], str] = str,
) -> go.Figure:
    """Draw one row for each assumption, with a bar on each side of the present net value.

    rows: the widest swing first. net: present net value. period: period of the amounts. money:
        formats an amount.
    Better is solid and right of the line; worse is hatched and left of it.
    """
    upward = list(reversed(rows))
    titles = [style.whole(row.name, _NAME_WIDTH) for row in upward]
    # At the ends of the bars, the values would overlap the titles.
    ticks = [
        f"{title}<br>{style.short(row.low, 14)} … {style.short(row.high, 14)}"
        for title, row in zip(titles, upward, strict=True)
    ]
    traces: list[style.Trace] = []
    for better in (True, False):
        spans = [_span(row, net, better) for row in upward]
        traces.append(
            draw.bar(
                [end - net for end, _ in spans],
                list(range(len(upward))),
                orientation="h",
                base=net,
                name=_("better than now") if better else _("worse than now"),
                marker=draw.solid(style.BETTER, ink)
                if better
                else draw.solid(style.WORSE, ink, "/"),
                hover=[
                    _(
                        "{name} = {value}: {net}",
                        name=title,
                        value=style.short(assumed, 40),
                        net=style.short(money(end), 40),
                    )
                    for title, (end, assumed) in zip(titles, spans, strict=True)
                ],
            )
        )
    reach = [net, 0.0, *(end for row in rows for end in (row.net_low, row.net_high))]
    room = 0.05 * (max(reach) - min(reach) or 1.0)
    return style.finish(
        traces,
        ink,
        _TOP + _ROW * len(rows),
        barmode="overlay",
        bargap=0.35,
        shapes=[draw.upright(0.0, ink.line, "dot"), draw.upright(net, ink.line, "solid")],
        annotations=[
            draw.note(
                net,
                1,
                _("now: {net}", net=style.short(money(net), 40)),
                ink.text,
                yref="paper",
                yanchor="bottom",
            )
        ],
        margin={"t": 62},
        xaxis=style.axis(
            _("net value {period}", period=style.short(period)),
            range=[min(reach) - room, max(reach) + room],
            showgrid=True,
            tickformat=style.ticks(max(map(abs, reach))),
        ),
        yaxis=style.row_labels(ink, tickvals=list(range(len(upward))), ticktext=ticks),
    )


def _span(row: Row, net: float, better: bool) -> tuple[float, str]:
    """Return the end of a row's bar on one side: its net value, and the assumption's value there.
    (`net`, "") if no end of the row is on this side."""
    ends = [(row.net_low, row.low), (row.net_high, row.high)]
    matching = [(end, assumed) for end, assumed in ends if (end > net if better else end < net)]
    if not matching:
        return net, ""
    return max(matching) if better else min(matching)
