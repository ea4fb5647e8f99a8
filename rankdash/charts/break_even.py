"""Where it pays: the net value over two assumptions, with the line where it is nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from rankdash.charts import style

_HEIGHT = 400


@dataclass(frozen=True)
class Axis:
    """One of the two assumptions. now: its present value; None where it is off the chart."""

    title: str
    values: Sequence[float]
    now: float | None
    logarithmic: bool = False


@dataclass(frozen=True)
class Labels(style.Labels):
    bar: str = "net value<br>a month"
    line: str = "break-even"
    now: str = "as it is now"
    hover: str = "{x_title}: {x}<br>{y_title}: {y}<br>{net}"
    alt: str = (
        "Net value a month over {x_title} (across) and {y_title} (upward). It pays in {share} of "
        "the chart, from {low} to {high}."
    )


def figure(
    net: npt.NDArray[np.float64],
    across: Axis,
    upward: Axis,
    ink: style.Ink,
    labels: Labels | None = None,
    *,
    money: Callable[[float], str] = str,
) -> go.Figure:
    """net: (upward, across). Pays: blue; does not: vermillion; the break-even line between them is
    drawn, so the sides are told apart without colour, and the present point is marked."""
    labels = labels or Labels()
    xs, ys = list(across.values), list(upward.values)
    # One far corner must not wash out the rest: the tenth that is farthest from 0 looks alike.
    reach = float(np.quantile(np.abs(net), 0.9)) or 1.0
    titles = style.short(across.title, 60), style.short(upward.title, 60)
    hover = [
        [
            labels.hover.format(
                x_title=titles[0], x=f"{x:,.6g}", y_title=titles[1], y=f"{y:,.6g}",
                net=style.short(money(float(net[row, column])), 40),
            )
            for column, x in enumerate(xs)
        ]
        for row, y in enumerate(ys)
    ]  # fmt: skip
    traces: list[style.Trace] = [
        {
            "type": "heatmap",
            "x": xs,
            "y": ys,
            "z": net,
            "zmin": -reach,
            "zmax": reach,
            "colorscale": [
                [0.0, style.WORSE],
                [0.5, ink.background],
                [1.0, style.BETTER],
            ],
            "hovertext": hover,
            "hovertemplate": "%{hovertext}<extra></extra>",
            "colorbar": {
                "title": {"text": labels.bar, "font": {"color": ink.muted}},
                "tickfont": {"color": ink.muted},
                "tickformat": style.ticks(reach),
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
                "name": labels.line,
                "showlegend": True,
            }
        )
    if across.now is not None and upward.now is not None:
        traces.append(
            {
                "type": "scatter",
                "x": [across.now],
                "y": [upward.now],
                "mode": "markers",
                "name": labels.now,
                "marker": {
                    "symbol": "circle-cross-open",
                    "size": 16,
                    "color": ink.text,
                    "line": {"color": ink.text, "width": 2},
                },
                "hovertemplate": labels.now + "<extra></extra>",
            }
        )
    return style.finish(
        go.Figure(traces),
        ink,
        _HEIGHT,
        {
            "xaxis": _axis(across, titles[0]),
            "yaxis": {**_axis(upward, titles[1]), "showgrid": False},
            "margin": {"t": 40},
        },
    )


def alt(
    net: npt.NDArray[np.float64],
    across: Axis,
    upward: Axis,
    labels: Labels | None = None,
    *,
    money: Callable[[float], str] = str,
) -> str:
    """What the chart says, in words."""
    labels = labels or Labels()
    return labels.alt.format(
        x_title=across.title,
        y_title=upward.title,
        share=f"{(net > 0).mean():.0%}",
        low=money(float(net.min())),
        high=money(float(net.max())),
    )


def _axis(axis: Axis, title: str) -> style.Trace:
    return {
        "title": {"text": title},
        "type": "log" if axis.logarithmic else "linear",
        "zeroline": False,
        "tickformat": style.ticks(max(axis.values)),
        "minor": {"ticks": ""},
    }
