"""Every query's change by reranking against the margin of the first stage."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import enumerated
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import TIE_BAND
from rankdash.core.statistics.alignment import direction
from rankdash.kit.drawing import draw, style

_HEIGHT = 380
MOST_POINTS = 1200
"""With more queries, neighbouring ones share a mark; its size grows with their number."""

_GRID = 28
_LARGEST, _SMALLEST = 20.0, 5.0


def _margins_alt(
    pairs: pd.DataFrame, margin: pd.Series[float], means: pd.DataFrame, metric: str
) -> str:
    points = _points(pairs, margin)
    if points.empty:
        return _("No query has both a change and a margin.")
    return _(
        (
            "Change in {metric} of {queries} against the first stage's margin. Mean change from "
            "the tenth with the smallest to the tenth with the largest margin: {means}."
        ),
        metric=metric,
        queries=style.queries(len(points)),
        means=enumerated(style.signed(delta) for delta in means["delta"]),
    )


@draw.chart(_margins_alt)
def margins_chart(
    ink: style.Ink,
    pairs: pd.DataFrame,
    margin: pd.Series[float],
    means: pd.DataFrame,
    metric: str,
    *,
    threshold: float | None = None,
    tie_band: float = TIE_BAND,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """Draw a mark for each query, or above `MOST_POINTS` for each group of neighbours; a line
    through the means; a dashed line at the threshold of the rule.

    pairs: as from `compare.paired`. margin: query id → margin. means: as from `skipping.by_margin`.
        metric: its title. names: query id → the text shown for it. The customdata of a mark is the
        query id, unescaped; None for a group.
    """
    points = _points(pairs, margin)
    single = len(points) <= MOST_POINTS
    marks = points.assign(n=1) if single else _gathered(points)
    sign = direction(marks["delta"].to_numpy(), tie_band)
    several = {n: style.queries(n) for n in set(marks["n"].tolist()) if n > 1}
    traces: list[style.Trace] = []
    for value, name, colour, symbol in (
        (1, _p("chart", "helped"), style.BETTER, "triangle-up"),
        (0, _p("chart", "same"), ink.muted, "circle"),
        (-1, _p("chart", "hurt"), style.WORSE, "triangle-down"),
    ):
        part = marks[sign == value]
        hover = [
            _hover_margins(row, names, several) for row in part.itertuples(index=False, name="Mark")
        ]
        traces.append(
            draw.scatter(
                part["margin"].tolist(),
                part["delta"].tolist(),
                "markers",
                name=name,
                showlegend=len(part) > 0,
                marker={
                    "color": colour,
                    "symbol": symbol,
                    "size": 9 if single else _sizes(part["n"].to_numpy(), int(marks["n"].max())),
                    "opacity": 1,
                    # So that overlapping marks are distinguishable.
                    "line": {"color": ink.background, "width": 1},
                },
                customdata=[
                    query if n == 1 else None
                    for query, n in zip(part["query_id"], part["n"], strict=True)
                ],
                hover=hover,
            )
        )
    if len(means):
        traces.append(
            draw.scatter(
                means["margin"].tolist(),
                means["delta"].tolist(),
                "lines+markers",
                name=_("mean of a tenth of the queries"),
                line={"color": ink.text, "width": 2.5},
                marker={"color": ink.text, "symbol": "square", "size": 7},
                hover=[
                    _(
                        "{part}: {value}",
                        part=_("mean of a tenth of the queries"),
                        value=f"{style.signed(delta)} (n = {n:,})",
                    )
                    for delta, n in zip(means["delta"], means["n"], strict=True)
                ],
            )
        )
    if threshold is not None:
        reach = _reach(points["delta"])
        traces.append(
            draw.scatter(
                [threshold, threshold],
                reach,
                "lines",
                name=_("skip at {threshold} or more", threshold=style.number(threshold)),
                line={"color": ink.text, "width": 1.5, "dash": "dash"},
            )
        )
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        margin=style.CLEAR_OF_CAMERA,
        xaxis=style.axis(
            _("the first stage's margin, as a share of its score range"),
            tickformat=".2~f",
            rangemode="tozero",
        ),
        yaxis=style.axis(
            _("change in {metric}", metric=style.short(metric)),
            tickformat=".2~f",
            range=_reach(points["delta"]),
            zeroline=True,
        ),
    )


def _points(pairs: pd.DataFrame, margin: pd.Series[float]) -> pd.DataFrame:
    changes = pairs[["query_id", "delta"]]
    gap = margin.reindex(changes["query_id"]).to_numpy()
    return changes.assign(margin=gap).dropna().reset_index(drop=True)


def _gathered(points: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each cell of a grid that contains queries: their means, and n queries.

    Directions never share a cell: a change of 0 is on the border of a separate cell.
    """
    cells = []
    for name in ("margin", "delta"):
        values = points[name].to_numpy()
        width = max(float(np.ptp(values)) / _GRID, 1e-9)
        cells.append(np.sign(values) * np.ceil(np.abs(values) / width))
    gathered = points.groupby(cells, sort=False)
    return (
        gathered[["margin", "delta"]]
        .mean()
        .assign(n=gathered.size(), query_id=gathered["query_id"].first())
        .reset_index(drop=True)
    )


def _sizes(n: np.ndarray, most: int) -> list[float]:
    """Return the sizes of marks; the area is proportional to the number of queries."""
    return [max(_SMALLEST, _LARGEST * math.sqrt(each / max(most, 1))) for each in n.tolist()]


def _hover_margins(row: object, names: Mapping[str, str], several: Mapping[int, str]) -> str:
    """Return the tooltip of a mark. several: number of queries of a mark → that in words."""
    query, margin, delta, n = (getattr(row, each) for each in ("query_id", "margin", "delta", "n"))
    place = f"{style.number(margin)} · {style.signed(delta)}"
    if n > 1:
        return f"{several[n]}<br>{place}"
    return f"{style.short(names.get(query, query), 60)}<br>{place}"


def _reach(delta: pd.Series[float]) -> list[float]:
    low, high = (float(delta.min()), float(delta.max())) if len(delta) else (0.0, 0.0)
    room = max(0.06 * (high - low), 0.02)
    return [min(low - room, -0.05), max(high + room, 0.05)]
