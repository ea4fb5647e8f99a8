"""Systems × metrics against a named baseline: how far each moved, on one axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.analysis.significance import LEVEL
from rankdash.charts import intervals, style

_ROW = 26
_FURNITURE = 110
# What the words for whisker and star take of the legend.
_KEYS = 30
# Of the widest change, written beside the last mark.
_MARGIN = 44
_TITLE_WIDTH = 22
_BLOCK_GAP = 0.7
_TICK_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_MOST_TICKS = 7


@dataclass(frozen=True)
class Labels(style.Labels):
    x: str = "mean over the queries that both systems have"
    baseline: str = "{system} (baseline)"
    interval: str = "{level:g}% interval of the change"
    significant: str = "corrected p ≤ {p:g}"
    hover: str = "{metric}: {before} → {after} ({delta}), {n} queries"
    hover_interval: str = "{level:g}% interval {interval}"
    hover_p: str = "corrected p {p}"
    alt: str = "Means of each system against the baseline {baseline}."
    alt_system: str = "{system}: {changes}."
    alt_change: str = "{metric} {before} to {after} ({delta})"
    alt_interval: str = (
        "{metric} {before} to {after} ({delta}, {level:g}% interval {interval}{mark})"
    )
    alt_proven: str = ", proven"


def figure(
    table: pd.DataFrame,
    baseline: str,
    ink: style.Ink,
    labels: Labels | None = None,
    *,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
    titles: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """A block of rows for each metric, a row for each challenger: a hollow grey ring where the
    baseline stands, joined to the challenger's own mark by a line, dotted where it lost. The
    change is written beside it; around the mark runs the interval of the change, and a proven
    change is bold and has a star.

    table: as the frame of `statistics.compare`, or one without the columns of its
    intervals. level: of the intervals, and 1 - level of the significance. names: system → the
    name shown; titles: metric spec → its title.
    """
    labels = labels or Labels()
    systems = list(pd.unique(table["system"]))
    challengers = [name for name in systems if name != baseline]
    marks = style.marks(systems, baseline)
    placed, ticks = _place(_with_ends(table, level), baseline, challengers)
    chart = go.Figure()
    _add_links(chart, placed[placed["delta"] >= 0], ink, "solid")
    _add_links(chart, placed[placed["delta"] < 0], ink, "dot")
    # The baseline last: its ring stays visible around a mark in the same place.
    for name in [*challengers, baseline]:
        own = placed[placed["system"] == name] if name != baseline else placed
        shown = style.short(names.get(name, name))
        mark = marks[name]
        if name != baseline:
            intervals.add_whiskers(chart, own["low"], own["high"], own["row"], mark.colour)
        chart.add_scatter(
            x=own["before"] if name == baseline else own["after"],
            y=own["row"],
            mode="markers",
            name=labels.baseline.format(system=shown) if name == baseline else shown,
            legendrank=1 if name == baseline else 2,
            marker={
                "color": mark.colour,
                "symbol": mark.symbol,
                "size": 11,
                "opacity": 1,
                "line": {"color": mark.colour, "width": 2},
            },
            cliponaxis=False,
            customdata=np.full(len(own), name, dtype=object),
            hovertext=[_hover(row, names, titles, labels, level) for row in own.itertuples()],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    _add_changes(chart, placed[placed["system"] != baseline], ink)
    keyed = bool(placed["low"].notna().any()) and bool(challengers)
    if keyed:
        intervals.add_keys(chart, labels.interval, labels.significant, level, ink.text)
    low, high = _reach(placed)
    rows = placed["row"].max() + 1 if len(placed) else 1
    words = [style.short(titles.get(metric, metric), _TITLE_WIDTH) for metric in ticks]
    return style.finish(
        chart,
        ink,
        round(rows * _ROW) + _FURNITURE + (_KEYS if keyed else 0),
        {
            "margin": {"r": _MARGIN},
            "xaxis": {
                "showgrid": True,
                "gridcolor": ink.grid,
                "title": {"text": labels.x},
                "range": _padded(low, high),
                "tickvals": _ticks(low, high),
            },
            "yaxis": {
                "tickvals": list(ticks.values()),
                "ticktext": words,
                "range": [rows - 0.3, -0.7],
                "zeroline": False,
                "showgrid": False,
                "tickfont": {"color": ink.text},
            },
        },
    )


def alt(
    table: pd.DataFrame,
    baseline: str,
    labels: Labels | None = None,
    *,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
    titles: Mapping[str, str] = style.NO_NAMES,
) -> str:
    """What the chart says, in words."""
    labels = labels or Labels()
    rows = _with_ends(table, level)
    changes = [
        labels.alt_system.format(
            system=names.get(str(system), str(system)),
            changes=", ".join(_in_words(row, titles, labels, level) for row in own.itertuples()),
        )
        for system, own in rows[rows["system"] != baseline].groupby("system", sort=False)
    ]
    return " ".join([labels.alt.format(baseline=names.get(baseline, baseline)), *changes])


def _with_ends(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """The table with where a whisker ends, low and high (NaN without an interval), and proven."""
    missing = pd.Series(np.nan, index=table.index)
    low, high, p = (
        table.get(column, missing) for column in ("delta_low", "delta_high", "p_corrected")
    )
    return table.assign(
        low=table["before"] + low,
        high=table["before"] + high,
        interval=[intervals.span(*ends) for ends in zip(low, high, strict=True)],
        proven=intervals.proven(low, high, p, level),
        p_corrected=p,
    )


def _place(
    table: pd.DataFrame, baseline: str, challengers: list[str]
) -> tuple[pd.DataFrame, dict[str, float]]:
    """The rows to draw with their `row`, and metric → the middle of its block.

    Where there is no challenger, the baseline has a row of its own.
    """
    drawn = challengers or [baseline]
    order = {name: place for place, name in enumerate(drawn)}
    metrics = {metric: place for place, metric in enumerate(pd.unique(table["metric"]))}
    block = len(drawn) + _BLOCK_GAP
    placed = table[table["system"].isin(drawn)].copy()
    placed["row"] = placed["metric"].map(metrics) * block + placed["system"].map(order)
    middle = (len(drawn) - 1) / 2
    return placed, {metric: place * block + middle for metric, place in metrics.items()}


def _add_links(chart: go.Figure, rows: pd.DataFrame, ink: style.Ink, dash: str) -> None:
    gap = np.full(len(rows), np.nan)
    chart.add_scatter(
        x=np.column_stack([rows["before"], rows["after"], gap]).ravel(),
        y=np.column_stack([rows["row"], rows["row"], gap]).ravel(),
        mode="lines",
        line={"color": ink.line, "width": 2, "dash": dash},
        hoverinfo="skip",
        showlegend=False,
    )


def _add_changes(chart: go.Figure, rows: pd.DataFrame, ink: style.Ink) -> None:
    """Each change beside its mark, on the far side from the baseline and outside the interval."""
    lost = rows["delta"] < 0
    texts = map(intervals.changed, rows["delta"], rows["proven"])
    room = "\u00a0" * 4
    chart.add_scatter(
        x=np.where(lost, rows[["after", "low"]].min(axis=1), rows[["after", "high"]].max(axis=1)),
        y=rows["row"],
        mode="text",
        text=[
            f"{text}{room}" if left else f"{room}{text}"
            for text, left in zip(texts, lost, strict=True)
        ],
        textposition=np.where(lost, "middle left", "middle right"),
        textfont={"family": style.FONT, "size": style.FONT_SIZE - 1, "color": ink.text},
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )


def _values(row: Any, titles: Mapping[str, str], level: float) -> dict[str, object]:
    """What the templates of hover and words need of a row."""
    return {
        "metric": titles.get(row.metric, row.metric),
        "before": style.number(row.before),
        "after": style.number(row.after),
        "delta": style.signed(row.delta),
        "n": row.paired,
        "level": 100 * level,
        "interval": row.interval,
        "p": intervals.chance(row.p_corrected),
    }


def _in_words(row: Any, titles: Mapping[str, str], labels: Labels, level: float) -> str:
    template = labels.alt_interval if row.interval else labels.alt_change
    mark = labels.alt_proven if row.proven else ""
    return template.format(**_values(row, titles, level), mark=mark)


def _hover(
    row: Any, names: Mapping[str, str], titles: Mapping[str, str], labels: Labels, level: float
) -> str:
    values = _values(row, titles, level)
    values["metric"] = style.short(str(values["metric"]))
    lines = [style.short(names.get(row.system, row.system), 60), labels.hover.format(**values)]
    if row.interval:
        lines.append(labels.hover_interval.format(**values))
    if values["p"]:
        lines.append(labels.hover_p.format(**values))
    return "<br>".join(lines)


def _reach(placed: pd.DataFrame) -> tuple[float, float]:
    values = placed[["before", "after", "low", "high"]].to_numpy(dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)


def _padded(low: float, high: float) -> list[float]:
    """Room at both ends for the changes that are written beside the marks."""
    room = max(0.16 * (high - low), 0.02)
    return [low - room, high + room]


def _ticks(low: float, high: float) -> list[float]:
    """Round values over the reach of the data, and none that a metric cannot have."""
    first, last = _padded(low, high)
    step = next((s for s in _TICK_STEPS if (last - first) / s <= _MOST_TICKS), _TICK_STEPS[-1])
    ticks = np.arange(np.ceil(first / step), np.floor(last / step) + 1) * step
    return [round(float(tick), 2) for tick in ticks if -1e-9 <= tick <= 1 + 1e-9]
