"""A forest: the mean change in each group of queries, with its interval."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.analysis.significance import LEVEL
from rankdash.charts import intervals, style

_ROW = 26
# The legend has up to six entries, which stand below each other where the chart is narrow.
_FURNITURE = 150
_NAME_WIDTH = 22
_LEAST_ROOM = 0.02


@dataclass(frozen=True)
class Labels(style.Labels):
    x: str = "mean change in {metric}"
    side: str = "change (queries)"
    better: str = "proven gain"
    worse: str = "proven loss"
    unproven: str = "not proven"
    small: str = "few queries"
    interval: str = "{level:g}% interval"
    significant: str = "corrected p ≤ {p:g}"
    hover: str = "{delta} ({n} queries)"
    hover_interval: str = "{level:g}% interval {interval}"
    hover_p: str = "corrected p {p}"
    alt: str = "Mean change in {metric} by group of queries. {rows}"
    alt_row: str = "{value}: {delta}, {n} queries."
    alt_interval: str = "{value}: {delta} ({level:g}% interval {interval}{mark}), {n} queries."
    alt_proven: str = ", proven"
    alt_empty: str = "No group of queries can be compared."


def figure(
    table: pd.DataFrame,
    metric: str,
    ink: style.Ink,
    labels: Labels | None = None,
    *,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """A row for each group: its mean change, an interval as a whisker, change and number of
    queries at the side. Proven changes carry a star and a colour; groups marked small are hollow.

    table: one row for each group, in the order drawn: segment (what the queries are grouped by),
    value (the group), n, delta, low, high, p_corrected, small (bool). Numbers that do not exist
    are NaN. Rows of more than one segment stand under its name. metric: its title. level: of the
    intervals, and 1 - level of the significance. names: segment or value → the name shown.
    """
    labels = labels or Labels()
    rows = _place(table, level)
    chart = go.Figure()
    chart.add_vline(x=0, line={"color": ink.line, "width": 2}, layer="below")
    for kind, name, symbol, colour in (
        (1, labels.better, "circle", style.BETTER),
        (-1, labels.worse, "square", style.WORSE),
        (0, labels.unproven, "diamond", ink.muted),
    ):
        part = rows[rows["kind"] == kind]
        intervals.add_whiskers(chart, part["low"], part["high"], part["row"], colour)
        symbols = np.where(part["small"], f"{symbol}-open", symbol)
        chart.add_scatter(
            x=part["delta"],
            y=part["row"],
            mode="markers",
            name=name,
            showlegend=len(part) > 0,
            marker={
                "color": colour,
                "symbol": symbols,
                "size": 10,
                "opacity": 1,
                "line": {"color": colour, "width": 2},
            },
            cliponaxis=False,
            customdata=part["value"].to_numpy(dtype=object),
            hovertext=[_hover(row, names, labels, level) for row in part.to_dict("records")],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    _add_keys(chart, rows, ink, labels, level)
    # An axis is drawn only where something stands on it.
    chart.add_scatter(x=[None], y=[None], yaxis="y2", hoverinfo="skip", showlegend=False)
    last = rows["row"].max() if len(rows) else 0
    scale = {
        "range": [last + 0.7, -1.7],
        "showgrid": False,
        "zeroline": False,
        "tickfont": {"color": ink.text},
    }
    return style.finish(
        chart,
        ink,
        round((last + 2) * _ROW) + _FURNITURE,
        {
            "yaxis": {**scale, **_left(rows, names)},
            "yaxis2": {**scale, **_right(rows, labels), "side": "right", "overlaying": "y"},
            "xaxis": {
                "title": {"text": labels.x.format(metric=style.short(metric))},
                "range": _range(rows),
                "tickformat": ".2~f",
                "nticks": 5,
                "showgrid": True,
                "gridcolor": ink.grid,
            },
        },
    )


def alt(
    table: pd.DataFrame,
    metric: str,
    labels: Labels | None = None,
    *,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
) -> str:
    """What the chart says, in words."""
    labels = labels or Labels()
    if table["delta"].isna().all():
        return labels.alt_empty
    rows = []
    for row in _place(table, level).to_dict("records"):
        interval = intervals.span(row["low"], row["high"])
        template = labels.alt_interval if interval else labels.alt_row
        value = names.get(row["value"], row["value"])
        rows.append(
            template.format(
                value=value,
                delta=style.signed(row["delta"]),
                level=100 * level,
                interval=interval,
                mark=labels.alt_proven if row["proven"] else "",
                n=row["n"],
            )
        )
    return labels.alt.format(metric=metric, rows=" ".join(rows))


def _place(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """The rows with `row` (headings take one too), proven, and kind: 1 proven gain, -1 proven
    loss, 0 neither."""
    placed = table.reset_index(drop=True)
    blocks = pd.factorize(placed["segment"])[0]
    headed = len(set(blocks)) > 1
    order = np.argsort(blocks, kind="stable")
    placed, blocks = placed.iloc[order].reset_index(drop=True), blocks[order]
    placed["row"] = np.arange(len(placed)) + (blocks + 1.0 if headed else 0.0)
    placed["headed"] = headed
    placed["proven"] = intervals.proven(placed["low"], placed["high"], placed["p_corrected"], level)
    placed["kind"] = np.where(placed["proven"], np.sign(placed["delta"]), 0)
    return placed


def _left(rows: pd.DataFrame, names: Mapping[str, str]) -> dict[str, object]:
    """The names of the groups, each segment's own in bold above its first."""
    ticks = {
        row: style.short(names.get(value, value), _NAME_WIDTH)
        for row, value in zip(rows["row"], rows["value"], strict=True)
    }
    for segment, own in rows[rows["headed"]].groupby("segment", sort=False):
        name = style.short(names.get(str(segment), str(segment)), _NAME_WIDTH)
        ticks[own["row"].min() - 1] = f"<b>{name}</b>"
    return {"tickvals": list(ticks), "ticktext": list(ticks.values())}


def _right(rows: pd.DataFrame, labels: Labels) -> dict[str, object]:
    texts = [
        f"{intervals.changed(row['delta'], row['proven'])} ({row['n']:,})"
        for row in rows.to_dict("records")
    ]
    return {"tickvals": [-1, *rows["row"]], "ticktext": [labels.side, *texts]}


def _add_keys(
    chart: go.Figure, rows: pd.DataFrame, ink: style.Ink, labels: Labels, level: float
) -> None:
    if rows["small"].any():
        intervals.add_key(chart, labels.small, "circle-open", ink.text)
    if rows["low"].notna().any():
        intervals.add_keys(chart, labels.interval, labels.significant, level, ink.text)


def _hover(
    row: Mapping[Hashable, object], names: Mapping[str, str], labels: Labels, level: float
) -> str:
    value, low, high = str(row["value"]), float(str(row["low"])), float(str(row["high"]))
    delta, p = float(str(row["delta"])), float(str(row["p_corrected"]))
    lines = [
        style.short(names.get(value, value), 60),
        labels.hover.format(delta=style.signed(delta), n=row["n"]),
    ]
    if interval := intervals.span(low, high):
        lines.append(labels.hover_interval.format(level=100 * level, interval=interval))
    if chance := intervals.chance(p):
        lines.append(labels.hover_p.format(p=chance))
    return "<br>".join(lines)


def _range(rows: pd.DataFrame) -> list[float]:
    """The reach of changes and intervals, 0 always in it."""
    ends = rows[["delta", "low", "high"]].to_numpy(dtype=np.float64).ravel()
    ends = np.append(ends[np.isfinite(ends)], 0.0)
    room = max(0.06 * float(np.ptp(ends)), _LEAST_ROOM)
    return [float(ends.min()) - room, float(ends.max()) + room]
