"""Where it pays: the net value over two assumptions, with the line where it is nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import quantity
from rankdash.kit.drawing import draw, style

_HEIGHT = 400
_FAINT = 0.12
_TICKS = 3


@dataclass(frozen=True)
class Axis:
    """One of the two assumptions. now: its present value; None where it is off the chart."""

    title: str
    values: Sequence[float]
    now: float | None
    logarithmic: bool = False


def figure(
    net: npt.NDArray[np.float64],
    across: Axis,
    upward: Axis,
    ink: style.Ink,
    *,
    now: float = 0.0,
    period: str = "a month",
    money: Callable[[float], str] = str,
) -> go.Figure:
    """net: (upward, across), for the period that `period` says. now: what it is at the present
    point, which the colours are fitted to.

    Pays: blue; does not: vermillion; the break-even line between them is
    drawn, so the sides are told apart without colour, and the present point is marked."""
    xs, ys = list(across.values), list(upward.values)
    scale = _scale(net, now)
    reach = float(np.abs(net).max(initial=0.0)) or 1.0
    ticks = _ticks(scale, reach)
    titles = style.short(across.title, 60), style.short(upward.title, 60)
    # A thousand cells: what they share is written once.
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
            # In powers of ten on both sides of 0: one far corner must not wash out the rest.
            "z": np.arcsinh(net / scale),
            "zmin": -float(np.arcsinh(reach / scale)),
            "zmax": float(np.arcsinh(reach / scale)),
            # The sides meet at 0 without fading into each other: what pays is seen everywhere.
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
                "name": _("break-even"),
                "showlegend": True,
            }
        )
    if across.now is not None and upward.now is not None:
        traces.append(
            draw.scatter(
                [across.now],
                [upward.now],
                "markers",
                name=_("as it is now"),
                marker=draw.marker(ink.text, "circle-cross-open", 16),
                hover=[_("as it is now")],
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


def _scale(net: npt.NDArray[np.float64], now: float) -> float:
    """Below about this size colours grow evenly, above it by powers of ten; from the present net,
    or from the middle of the chart where that is nothing."""
    return abs(now) / 3 or float(np.median(np.abs(net))) or 1.0


def _ticks(scale: float, reach: float) -> list[float]:
    """0 and at most three powers of ten to either side, evenly spread."""
    highest = math.floor(math.log10(reach))
    lowest = min(math.ceil(math.log10(scale)), highest)
    step = max(math.ceil((highest - lowest + 1) / _TICKS), 1)
    powers = [10.0**power for power in range(highest, lowest - 1, -step)]
    return [*(-power for power in powers), 0.0, *powers[::-1]]


def alt(
    net: npt.NDArray[np.float64],
    across: Axis,
    upward: Axis,
    *,
    period: str = "a month",
    money: Callable[[float], str] = str,
) -> str:
    """What the chart says, in words."""
    return _(
        (
            "Net value {period} over {x_title} (across) and {y_title} (upward). It "
            "pays in {share} of the chart, from {low} to {high}."
        ),
        period=period,
        x_title=across.title,
        y_title=upward.title,
        share=f"{(net > 0).mean():.0%}",
        low=money(float(net.min())),
        high=money(float(net.max())),
    )


def _axis(axis: Axis, title: str) -> style.Trace:
    return style.axis(
        title,
        type="log" if axis.logarithmic else "linear",
        zeroline=False,
        tickformat=style.ticks(max(axis.values)),
        minor={"ticks": ""},
    )
