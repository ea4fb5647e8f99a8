"""How an interval and its significance are drawn, wherever a chart has them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from rankdash.charts import style

FloatArray = npt.NDArray[np.float64]

MARK = "*"
"""Written beside a proven change, in bold: read without colour, and by a screen reader."""

_ROUNDING = 1e-12
_CAP = 9
_WIDTH = 1.75
_LAST = 2000


def proven(low: pd.Series, high: pd.Series, p: pd.Series, level: float) -> npt.NDArray[np.bool_]:
    """Which changes are proven, by the rule of the verdict (`rankdash.analysis.verdict.decide`):
    the interval excludes 0 and the corrected p is at most 1 - level."""
    ends = np.column_stack([_floats(low), _floats(high)])
    apart = (ends > 0).all(axis=1) | (ends < 0).all(axis=1)
    return apart & (_floats(p) <= 1 - level + _ROUNDING)


def changed(delta: float, is_proven: bool) -> str:
    """A change as it is written in a chart."""
    text = style.signed(delta)
    return f"<b>{text}\u00a0{MARK}</b>" if is_proven else text


def span(low: float, high: float) -> str:
    """An interval of changes for the eye; "" where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{style.signed(low)}…{style.signed(high)}"


def chance(p: float) -> str:
    """A p value for the eye, however small; "" where there is none."""
    return f"{p:.2g}" if math.isfinite(p) else ""


def add_whiskers(
    chart: go.Figure, low: pd.Series, high: pd.Series, row: pd.Series, colour: str
) -> None:
    """A thin horizontal line with caps from low to high in each row; none where either is NaN."""
    ends = np.column_stack([_floats(low), _floats(high)])
    known = np.isfinite(ends).all(axis=1)
    if not known.any():
        return
    ends, rows = ends[known], _floats(row)[known]
    gap = np.full((len(rows), 1), np.nan)
    chart.add_scatter(
        x=np.hstack([ends, gap]).ravel(),
        y=np.column_stack([rows, rows, gap]).ravel(),
        mode="lines+markers",
        line={"color": colour, "width": _WIDTH},
        marker={
            "symbol": "line-ns",
            "size": _CAP,
            "opacity": 1,
            "line": {"color": colour, "width": _WIDTH},
        },
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )


def add_key(chart: go.Figure, name: str, symbol: str, colour: str) -> None:
    """A last line of the legend, that stands for no one mark."""
    chart.add_scatter(
        x=[None],
        y=[None],
        mode="markers",
        name=name,
        legendrank=_LAST,
        marker={
            "symbol": symbol,
            "size": 10,
            "color": colour,
            "line": {"color": colour, "width": _WIDTH},
        },
        hoverinfo="skip",
    )


def add_keys(chart: go.Figure, interval: str, significant: str, level: float, colour: str) -> None:
    """The lines of the legend that say what a whisker and the star are. interval and significant:
    templates with {level} in percent, and {p}."""
    add_key(chart, interval.format(level=100 * level), "line-ew", colour)
    add_key(chart, significant.format(p=round(1 - level, 6)), "asterisk-open", colour)


def _floats(values: pd.Series) -> FloatArray:
    return values.to_numpy(dtype=np.float64)
