"""A metric against its cutoff: does the gain hold further down the list?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.charts import style

_HEIGHT = 340


@dataclass(frozen=True)
class Labels(style.Labels):
    x: str = "cutoff k"
    y: str = "{metric} at k"
    baseline: str = "{system} (baseline)"
    alt: str = "{metric} against the cutoff k. {curves}"
    alt_curve: str = "{system}: {first} at {first_k}, {last} at {last_k}."


def figure(
    curve: pd.DataFrame,
    metric: str,
    baseline: str,
    ink: style.Ink,
    labels: Labels | None = None,
    *,
    k: int | None = None,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """One line a system, told apart by colour, dash and symbol; k on a log axis.

    curve: as from `compare.by_cutoff`. metric: its title, without a cutoff. k: the chosen cutoff,
    which is marked. names: system → the name shown.
    """
    labels = labels or Labels()
    systems = list(pd.unique(curve["system"]))
    marks = style.marks(systems, baseline)
    chart = go.Figure()
    for name in sorted(systems, key=lambda system: system != baseline):
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
            hovertemplate="%{y:.3f}",
        )
    cutoffs = sorted(set(curve["k"]))
    if k in cutoffs:
        chart.add_vline(x=k, line={"color": ink.line, "width": 1, "dash": "dot"}, layer="below")
    chart.update_layout(hovermode="x unified")
    chart.update_xaxes(
        title_text=labels.x,
        type="log",
        tickvals=cutoffs,
        ticktext=[f"<b>{each}</b>" if each == k else str(each) for each in cutoffs],
        minor_ticks="",
    )
    chart.update_yaxes(
        title_text=labels.y.format(metric=style.short(metric)),
        tickformat=".2f",
        range=_range(curve),
        zeroline=False,
    )
    return style.finish(chart, ink, _HEIGHT)


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
                first=style.number(first["mean"]),
                first_k=first["k"],
                last=style.number(last["mean"]),
                last_k=last["k"],
            )
        )
    return labels.alt.format(metric=metric, curves=" ".join(curves)).strip()


def _range(curve: pd.DataFrame) -> list[float]:
    """The reach of the data with room to see it, never so narrow that noise looks like news."""
    values = curve["mean"].to_numpy(dtype=np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return [0.0, 1.0]
    low, high = float(values.min()), float(values.max())
    room = max(0.08 * (high - low), 0.025)
    return [max(low - room, -0.01), high + room]
