"""A metric against its cutoff: does the gain hold further down the list?"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.analysis.significance import LEVEL
from rankdash.charts import intervals, style

_HEIGHT = 340
# So faint that four bands over each other leave every line in sight.
_BAND = 0.13
_EDGE = 0.45


@dataclass(frozen=True)
class Labels(style.Labels):
    x: str = "cutoff k"
    y: str = "{metric} at k"
    baseline: str = "{system} (baseline)"
    interval: str = "{level:g}% interval of the mean"
    alt: str = "{metric} against the cutoff k. {curves}"
    alt_curve: str = "{system}: {first} at {first_k}, {last} at {last_k}."
    alt_value: str = "{value} ({low} to {high})"


def figure(
    curve: pd.DataFrame,
    metric: str,
    baseline: str,
    ink: style.Ink,
    labels: Labels | None = None,
    *,
    k: int | None = None,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """One line a system, told apart by colour, dash and symbol; k on a log axis. Behind all lines
    a translucent band for each system that has intervals, its edges in the line's dash.

    curve: system, k and mean, and where there are intervals low and high. metric: its
    title, without a cutoff. k: the chosen cutoff, which is marked. level: of the intervals.
    names: system → the name shown.
    """
    labels = labels or Labels()
    systems = list(pd.unique(curve["system"]))
    marks = style.marks(systems, baseline)
    ordered = sorted(systems, key=lambda system: system != baseline)
    chart = go.Figure()
    banded = _banded(curve)
    for name in ordered:
        _add_band(chart, banded[banded["system"] == name], marks[name])
    for name in ordered:
        own = curve[curve["system"] == name]
        shown, mark = style.short(names.get(name, name)), marks[name]
        chart.add_scatter(
            x=own["k"],
            y=own["mean"],
            mode="lines+markers",
            name=labels.baseline.format(system=shown) if name == baseline else shown,
            line={"color": mark.colour, "dash": mark.dash, "width": 2},
            marker={
                "color": mark.colour,
                "symbol": mark.symbol,
                "size": 9,
                "line": {"color": mark.colour, "width": 2},
            },
            cliponaxis=False,
            hovertext=[_hover(row) for row in own.to_dict("records")],
            hovertemplate="%{hovertext}",
        )
    if len(banded):
        intervals.add_key(
            chart,
            labels.interval.format(level=100 * level),
            "square",
            style.faded(ink.muted, 2 * _BAND),
        )
    cutoffs = sorted(set(curve["k"]))
    if k in cutoffs:
        chart.add_vline(x=k, line={"color": ink.line, "width": 1, "dash": "dot"}, layer="below")
    return style.finish(
        chart,
        ink,
        _HEIGHT,
        {
            "hovermode": "x unified",
            "xaxis": {
                "title": {"text": labels.x},
                "type": "log",
                "tickvals": cutoffs,
                "ticktext": [f"<b>{each}</b>" if each == k else str(each) for each in cutoffs],
                "minor": {"ticks": ""},
            },
            "yaxis": {
                "title": {"text": labels.y.format(metric=style.short(metric))},
                "tickformat": ".2f",
                "range": _range(curve),
                "zeroline": False,
            },
        },
    )


def alt(
    curve: pd.DataFrame,
    metric: str,
    labels: Labels | None = None,
    *,
    names: Mapping[str, str] = style.NO_NAMES,
) -> str:
    """What the chart says, in words."""
    labels = labels or Labels()
    curves = []
    for name, own in curve.groupby("system", sort=False):
        first, last = own.iloc[0], own.iloc[-1]
        curves.append(
            labels.alt_curve.format(
                system=names.get(str(name), str(name)),
                first=_value(first.to_dict(), labels),
                first_k=first["k"],
                last=_value(last.to_dict(), labels),
                last_k=last["k"],
            )
        )
    return labels.alt.format(metric=metric, curves=" ".join(curves)).strip()


def _banded(curve: pd.DataFrame) -> pd.DataFrame:
    """The rows that have an interval."""
    if not {"low", "high"} <= set(curve.columns):
        return curve.iloc[:0]
    return curve.dropna(subset=["low", "high"])


def _add_band(chart: go.Figure, own: pd.DataFrame, mark: style.Mark) -> None:
    there, back = own.sort_values("k"), own.sort_values("k", ascending=False)
    if own.empty:
        return
    chart.add_scatter(
        x=[*there["k"], *back["k"]],
        y=[*there["high"], *back["low"]],
        mode="lines",
        fill="toself",
        fillcolor=style.faded(mark.colour, _BAND),
        line={"color": style.faded(mark.colour, _EDGE), "width": 1, "dash": mark.dash},
        hoverinfo="skip",
        showlegend=False,
    )


def _hover(row: Mapping[Hashable, object]) -> str:
    low, high = (float(str(row.get(end, math.nan))) for end in ("low", "high"))
    value = style.number(float(str(row["mean"])))
    if math.isnan(low) or math.isnan(high):
        return value
    return f"{value} ({style.number(low)}…{style.number(high)})"


def _value(row: Mapping[Hashable, object], labels: Labels) -> str:
    """A mean in words, with its interval where there is one."""
    low, high = (float(str(row.get(end, math.nan))) for end in ("low", "high"))
    value = style.number(float(str(row["mean"])))
    if math.isnan(low) or math.isnan(high):
        return value
    return labels.alt_value.format(value=value, low=style.number(low), high=style.number(high))


def _range(curve: pd.DataFrame) -> list[float]:
    """The reach of the data with room to see it, never so narrow that noise looks like news."""
    values = curve.filter(items=["mean", "low", "high"]).to_numpy(dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    if not len(values):
        return [0.0, 1.0]
    low, high = float(values.min()), float(values.max())
    room = max(0.08 * (high - low), 0.025)
    return [max(low - room, -0.01), high + room]
