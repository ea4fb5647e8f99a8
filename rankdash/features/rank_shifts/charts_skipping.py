"""The share of queries that are not reranked against what that costs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import LEVEL
from rankdash.kit.drawing import draw, intervals, style

_HEIGHT = 380
_BAND, _EDGE = 0.15, 0.5


def figure(
    curve: pd.DataFrame,
    metric: str,
    tolerance: float,
    ink: style.Ink,
    *,
    chosen: float | None = None,
    level: float = LEVEL,
) -> go.Figure:
    """The change of the mean with its band, beside that of skipping at random; a dashed line at the
    acceptable loss, and a mark on the rule chosen.

    curve: as in `skipping.Skipping`. metric: its title. chosen: the threshold of the rule.
    """
    share, change = curve["share"].tolist(), curve["change"].tolist()
    known = curve.dropna(subset=["low", "high"])
    traces: list[style.Trace] = []
    if len(known):
        there = known["share"].tolist()
        ends = known["low"].tolist(), known["high"].tolist()
        edge = {"color": style.faded(style.BETTER, _EDGE), "width": 1}
        traces.append(draw.band(there, *ends, style.BETTER, _BAND, edge))
    traces += [
        draw.scatter(
            share,
            change,
            "lines",
            name=_("queries with the largest score margin first"),
            line={"color": style.BETTER, "width": 2.5},
            hover=[_hover(row) for row in curve.to_dict("records")],
        ),
        draw.scatter(
            share,
            curve["random"].tolist(),
            "lines",
            name=_("queries picked at random"),
            line={"color": style.FIRST_STAGE, "width": 2, "dash": "dot"},
        ),
        draw.scatter(
            [0, 1],
            [-tolerance, -tolerance],
            "lines",
            name=_("acceptable loss: {tolerance}", tolerance=style.number(tolerance)),
            line={"color": style.WORSE, "width": 1.5, "dash": "dash"},
        ),
    ]
    if chosen is not None:
        row = curve[curve["threshold"] == chosen].iloc[0]
        traces.append(
            draw.scatter(
                [row["share"]],
                [row["change"]],
                "markers",
                name=_("largest share within it: {share:.0%}", share=row["share"]),
                marker={
                    "color": ink.text,
                    "symbol": "diamond",
                    "size": 13,
                    "line": {"color": ink.background, "width": 2},
                },
                hover=[_hover(row.to_dict())],
            )
        )
    if len(known):
        words = _("{level:g}% interval", level=100 * level)
        traces.append(intervals.key(words, "square", style.faded(style.BETTER, 2 * _BAND)))
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        xaxis=style.axis(_("share of queries not reranked"), tickformat=".0%", range=[-0.01, 1.01]),
        yaxis=style.axis(
            _("change in mean {metric}", metric=style.short(metric)),
            tickformat=".3~f",
            zeroline=True,
            nticks=6,
        ),
    )


def alt(curve: pd.DataFrame, metric: str, tolerance: float) -> str:
    """What the chart says, in words."""
    chosen = curve.iloc[[round(place * (len(curve) - 1) / 4) for place in range(5)]]
    points = [
        _(
            "{share:.0%}: {change} (at random {random}).",
            share=row["share"],
            change=style.signed(row["change"]),
            random=style.signed(row["random"]),
        )
        for row in chosen.drop_duplicates("threshold").to_dict("records")
    ]
    return _(
        (
            "Change in mean {metric} against the share of queries not reranked, largest score "
            "margin first. {points} Acceptable loss: up to {tolerance}."
        ),
        metric=metric,
        points=" ".join(points),
        tolerance=style.number(tolerance),
    )


def _hover(row: Mapping[Hashable, Any]) -> str:
    return _(
        "{share:.0%} from a margin of {threshold} on: {change} ({span})",
        share=row["share"],
        threshold=style.number(row["threshold"]),
        change=style.signed(row["change"]),
        span=intervals.span(row["low"], row["high"]) or "–",
    )
