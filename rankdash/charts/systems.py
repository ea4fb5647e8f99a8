"""Systems × metrics against a named baseline: how far each moved, on one axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.charts import style

_ROW = 26
_FURNITURE = 110
_BLOCK_GAP = 0.7
_TICK_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_MOST_TICKS = 7


@dataclass(frozen=True)
class Labels(style.Labels):
    x: str = "mean over the queries that both systems have"
    baseline: str = "{system} (baseline)"
    hover: str = "{metric}: {before} → {after} ({delta}), {n} queries"
    alt: str = "Means of each system against the baseline {baseline}."
    alt_system: str = "{system}: {changes}."
    alt_change: str = "{metric} {before} to {after} ({delta})"


def figure(
    table: pd.DataFrame,
    baseline: str,
    ink: style.Ink,
    labels: Labels | None = None,
    *,
    names: Mapping[str, str] = style.NO_NAMES,
    titles: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """A block of rows for each metric, a row for each challenger: a hollow grey ring where the
    baseline stands, joined to the challenger's own mark by a line, dotted where it lost. The
    change is written beside it.

    table: as from `compare.systems_table`. names: system → the name shown; titles: metric spec →
    its title.
    """
    labels = labels or Labels()
    systems = list(pd.unique(table["system"]))
    challengers = [name for name in systems if name != baseline]
    marks = style.marks(systems, baseline)
    placed, ticks = _place(table, baseline, challengers)
    chart = go.Figure()
    _add_links(chart, placed[placed["delta"] >= 0], ink, "solid")
    _add_links(chart, placed[placed["delta"] < 0], ink, "dot")
    # The baseline last: its ring stays visible around a mark in the same place.
    for name in [*challengers, baseline]:
        own = placed[placed["system"] == name] if name != baseline else placed
        shown = style.short(names.get(name, name))
        mark = marks[name]
        text = [f"\u00a0{style.signed(delta)}\u00a0" for delta in own["delta"]]
        chart.add_scatter(
            x=own["before"] if name == baseline else own["after"],
            y=own["row"],
            mode="markers" if name == baseline else "markers+text",
            name=labels.baseline.format(system=shown) if name == baseline else shown,
            legendrank=1 if name == baseline else 2,
            marker={
                "color": mark.colour,
                "symbol": mark.symbol,
                "size": 11,
                "line": {"color": mark.colour, "width": 2},
            },
            text=None if name == baseline else text,
            textposition=["middle left" if d < 0 else "middle right" for d in own["delta"]],
            textfont={"family": style.FONT, "size": style.FONT_SIZE - 1, "color": ink.text},
            cliponaxis=False,
            customdata=np.full(len(own), name, dtype=object),
            hovertext=[_hover(row, names, titles, labels) for row in own.itertuples()],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    low, high = _reach(placed)
    chart.update_xaxes(title_text=labels.x, range=_padded(low, high), tickvals=_ticks(low, high))
    rows = placed["row"].max() + 1 if len(placed) else 1
    chart.update_yaxes(
        tickvals=list(ticks.values()),
        ticktext=[style.short(titles.get(metric, metric)) for metric in ticks],
        range=[rows - 0.3, -0.7],
        zeroline=False,
    )
    style.finish(chart, ink, round(rows * _ROW) + _FURNITURE)
    chart.update_yaxes(showgrid=False, tickfont_color=ink.text)
    chart.update_xaxes(showgrid=True, gridcolor=ink.grid)
    return chart


def alt(
    table: pd.DataFrame,
    baseline: str,
    labels: Labels | None = None,
    *,
    names: Mapping[str, str] = style.NO_NAMES,
    titles: Mapping[str, str] = style.NO_NAMES,
) -> str:
    """What the chart says, in words."""
    labels = labels or Labels()
    rows = table[table["system"] != baseline]
    changes = [
        labels.alt_system.format(
            system=names.get(str(system), str(system)),
            changes=", ".join(
                labels.alt_change.format(
                    metric=titles.get(row["metric"], row["metric"]),
                    before=style.number(row["before"]),
                    after=style.number(row["after"]),
                    delta=style.signed(row["delta"]),
                )
                for row in own.to_dict("records")
            ),
        )
        for system, own in rows.groupby("system", sort=False)
    ]
    return " ".join([labels.alt.format(baseline=names.get(baseline, baseline)), *changes])


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


def _hover(row: object, names: Mapping[str, str], titles: Mapping[str, str], labels: Labels) -> str:
    system, metric = str(getattr(row, "system", "")), str(getattr(row, "metric", ""))
    values = {name: getattr(row, name) for name in ("before", "after", "delta")}
    text = labels.hover.format(
        metric=style.short(titles.get(metric, metric)),
        before=style.number(values["before"]),
        after=style.number(values["after"]),
        delta=style.signed(values["delta"]),
        n=getattr(row, "paired", 0),
    )
    return f"{style.short(names.get(system, system), 60)}<br>{text}"


def _reach(placed: pd.DataFrame) -> tuple[float, float]:
    values = placed[["before", "after"]].to_numpy(dtype=np.float64).ravel()
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
