"""Where the latencies of each system lie, as boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from rankdash.core.base.i18n import brief
from rankdash.core.base.i18n import gettext as _
from rankdash.core.statistics.bootstrap import FloatArray
from rankdash.kit.drawing import draw, style

_ROW = 64
_FURNITURE = 96
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Spread:
    """One system. ordered: its latencies in milliseconds, ascending."""

    system: str
    name: str
    ordered: FloatArray


def figure(
    spreads: Sequence[Spread], marks: Mapping[str, style.Mark], ink: style.Ink, *, target_ms: float
) -> go.Figure:
    """A box for each system: half of its queries, its median, and whiskers to p5 and p95; the
    fastest and the slowest as dots. A dashed line at the target. marks: system → its mark."""
    rows = list(range(len(spreads)))[::-1]
    traces: list[style.Trace] = []
    ends = [target_ms]
    for row, spread in zip(rows, spreads, strict=True):
        colour = marks[spread.system].colour
        low, first, middle, third, high = (float(each) for each in _quantiles(spread))
        extremes = [float(spread.ordered[0]), float(spread.ordered[-1])]
        ends += extremes
        traces += [
            {
                "type": "box",
                "orientation": "h",
                "y": [row],
                "lowerfence": [low],
                "q1": [first],
                "median": [middle],
                "q3": [third],
                "upperfence": [high],
                "line": {"color": colour, "width": 2},
                "fillcolor": style.faded(colour, 0.18),
                "width": 0.5,
                "showlegend": False,
                "hoverinfo": "skip",
            },
            draw.scatter(
                [*extremes, middle],
                [row] * 3,
                "markers",
                marker={
                    "color": [colour, colour, "rgba(0,0,0,0)"],
                    "symbol": ["circle-open", "circle-open", "circle"],
                    "size": 7,
                },
                hover=[_hover(spread)] * 3,
            ),
        ]
    return style.finish(
        traces,
        ink,
        len(spreads) * _ROW + _FURNITURE,
        shapes=[draw.target_line(target_ms, ink)],
        xaxis=style.axis(
            _("milliseconds for one query (log scale)"),
            **draw.log_axis(draw.reach(ends, 0.06)),
        ),
        yaxis=style.row_labels(
            ink,
            tickvals=rows,
            ticktext=[style.short(spread.name, 20) for spread in spreads],
            range=[-0.6, max(len(spreads), 1) - 0.4],
        ),
    )


def alt(spreads: Sequence[Spread]) -> str:
    """What the chart says, in words."""
    if not spreads:
        return _("No latency was measured.")
    sentences = [
        _(
            "{name}: half between {p25} and {p75}, 90% between {p5} and {p95}.",
            name=each.name,
            **_words(each),
        )
        for each in spreads
    ]
    return _("Latencies in milliseconds. {systems}", systems=" ".join(sentences))


def _quantiles(spread: Spread) -> FloatArray:
    return np.quantile(spread.ordered, _SHARES)


def _words(spread: Spread) -> dict[str, str]:
    names = [f"p{share * 100:.0f}" for share in _SHARES]
    return dict(zip(names, map(brief, _quantiles(spread)), strict=True))


def _hover(spread: Spread) -> str:
    name = style.whole(spread.name)
    return _(
        ("{name} ({queries})<br>p5 {p5} · p25 {p25} · p50 {p50} · p75 {p75} · p95 {p95} ms"),
        name=name,
        queries=style.queries(len(spread.ordered)),
        **_words(spread),
    )
