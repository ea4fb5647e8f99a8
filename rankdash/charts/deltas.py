"""Every query's change, sorted, worst first: how many were hurt, and how badly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.analysis.compare import TIE_BAND, counts, direction
from rankdash.charts import style

MOST_BARS = 1000
"""SVG bars beyond this make a page slow; above it, neighbours are drawn as one bar."""

_AGGREGATED_BARS = 400
_PATTERNED_BARS = 100
_HEIGHT = 340
_LEAST_REACH = 0.05


@dataclass(frozen=True)
class Labels(style.Labels):
    x: str = "queries, worst first"
    y: str = "change in {metric}"
    helped: str = "{n} helped"
    same: str = "{n} same (±{band:g})"
    hurt: str = "{n} hurt"
    mean: str = "mean {delta}"
    group: str = "{n} queries, {low} to {high}"
    alt: str = (
        "Change in {metric} for {queries} queries, worst first: {hurt} hurt (worst {worst}), "
        "{same} same, {helped} helped (best {best}). The mean change is {mean}."
    )
    alt_empty: str = "No query can be compared."


def figure(
    frame: pd.DataFrame,
    metric: str,
    ink: style.Ink,
    labels: Labels | None = None,
    *,
    tie_band: float = TIE_BAND,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """Bars down for hurt, up for helped, dots for the same; a dotted line at the mean.

    frame: as from `compare.paired`. metric: its title. names: query id → the text shown for it.

    The first item of each mark's customdata is the query id, unescaped; where a bar stands for
    several queries (above `MOST_BARS`), the one that changed most. The second is how many.
    """
    labels = labels or Labels()
    pairs = frame.dropna(subset="delta")
    bars = _bars(pairs, tie_band)
    tally = counts(pairs, tie_band)
    hover = [_hover(bar, names, labels) for bar in bars.itertuples()]
    bars = bars.assign(hover=np.array(hover, dtype=object))
    chart = go.Figure()
    for sign, name, colour in (
        (-1, labels.hurt.format(n=tally.hurt), style.WORSE),
        (1, labels.helped.format(n=tally.helped), style.BETTER),
    ):
        part = bars[bars["sign"] == sign]
        patterned = sign < 0 and len(bars) <= _PATTERNED_BARS
        chart.add_bar(
            x=part["x"],
            y=part["delta"],
            width=part["n"] * (0.85 if len(bars) <= _PATTERNED_BARS else 1.0),
            name=name,
            legendrank=1 if sign < 0 else 3,
            marker={
                "color": colour,
                "line": {"width": 0},
                "pattern": {
                    "shape": "/" if patterned else "",
                    "fillmode": "overlay",
                    "fgcolor": ink.background,
                    "size": 6,
                    "solidity": 0.25,
                },
            },
            **_pointed(part),
        )
    same = bars[bars["sign"] == 0]
    chart.add_scatter(
        x=same["x"],
        y=same["delta"],
        mode="markers",
        name=labels.same.format(n=tally.same, band=tie_band),
        legendrank=2,
        marker={"color": ink.muted, "symbol": "circle", "size": 4, "line_width": 0},
        **_pointed(same),
    )
    if len(pairs):
        mean = float(pairs["delta"].mean())
        chart.add_scatter(
            x=[0.5, len(pairs) + 0.5],
            y=[mean, mean],
            mode="lines",
            name=labels.mean.format(delta=style.signed(mean)),
            legendrank=4,
            line={"color": ink.text, "width": 1.5, "dash": "dot"},
            hoverinfo="skip",
        )
    chart.add_hrect(y0=-tie_band, y1=tie_band, fillcolor=ink.grid, line_width=0, layer="below")
    return style.finish(
        chart,
        ink,
        _HEIGHT,
        {
            "barmode": "overlay",
            "bargap": 0,
            "xaxis": {"title": {"text": labels.x}, "range": [0, len(pairs) + 1]},
            "yaxis": {
                "title": {"text": labels.y.format(metric=style.short(metric))},
                "zeroline": True,
                "tickformat": ".2~f",
                "range": _reach(pairs),
            },
        },
    )


def alt(
    frame: pd.DataFrame,
    metric: str,
    labels: Labels | None = None,
    *,
    tie_band: float = TIE_BAND,
) -> str:
    """What the chart says, in words."""
    labels = labels or Labels()
    delta = frame["delta"].dropna()
    if delta.empty:
        return labels.alt_empty
    tally = counts(frame, tie_band)
    return labels.alt.format(
        metric=metric,
        queries=tally.queries,
        hurt=tally.hurt,
        same=tally.same,
        helped=tally.helped,
        worst=style.signed(float(delta.min())),
        best=style.signed(float(delta.max())),
        mean=style.signed(float(delta.mean())),
    )


def _reach(pairs: pd.DataFrame) -> list[float]:
    """From the worst to the best change, and never so narrow that the tie band fills it."""
    delta = pairs["delta"]
    low, high = (float(delta.min()), float(delta.max())) if len(delta) else (0.0, 0.0)
    room = 0.05 * (high - low)
    return [min(low - room, -_LEAST_REACH), max(high + room, _LEAST_REACH)]


def _bars(pairs: pd.DataFrame, tie_band: float) -> pd.DataFrame:
    """One row for each mark, worst first: x, n queries, sign, delta (their mean), low, high, and
    query_id, before and after of the one that changed most."""
    order = np.argsort(pairs["delta"].to_numpy(), kind="stable")
    delta = pairs["delta"].to_numpy()[order]
    sign = direction(delta, tie_band)
    size = 1 if len(delta) <= MOST_BARS else -(-len(delta) // _AGGREGATED_BARS)
    # Blocks start anew with each direction: no bar stands for both hurt and helped.
    turns = np.flatnonzero(np.diff(sign, prepend=np.int8(2)))
    ends = np.append(turns, len(delta))[1:]
    starts = np.concatenate(
        [np.arange(a, b, size) for a, b in zip(turns, ends, strict=True)] or [np.zeros(0, int)]
    ).astype(np.int64)
    stops = np.append(starts, len(delta))[1:]
    n = stops - starts
    # Sorted, so the ends of a block are its extremes; the one farther from 0 changed most.
    low, high = delta[starts], delta[stops - 1]
    farthest = pairs.iloc[order[np.where(np.abs(low) > np.abs(high), starts, stops - 1)]]
    return pd.DataFrame(
        {
            "x": (starts + stops + 1) / 2,
            "n": n,
            "sign": sign[starts],
            "delta": np.add.reduceat(delta, starts) / n if len(starts) else delta,
            "low": low,
            "high": high,
            "query_id": farthest["query_id"].to_numpy(dtype=object),
            "before": farthest["before"].to_numpy(),
            "after": farthest["after"].to_numpy(),
        }
    )


def _hover(bar: object, names: Mapping[str, str], labels: Labels) -> str:
    n, low, high = (getattr(bar, name) for name in ("n", "low", "high"))
    if n > 1:
        return labels.group.format(n=n, low=style.signed(low), high=style.signed(high))
    query, before, after = (getattr(bar, name) for name in ("query_id", "before", "after"))
    change = f"{style.number(before)} → {style.number(after)} ({style.signed(high)})"
    return f"{style.short(names.get(query, query), 60)}<br>{change}"


def _pointed(part: pd.DataFrame) -> dict[str, object]:
    """What a click and a hover find in a mark."""
    return {
        "customdata": part[["query_id", "n"]].to_numpy(dtype=object),
        "hovertext": part["hover"],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
