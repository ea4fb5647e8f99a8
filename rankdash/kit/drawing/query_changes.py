"""Every change of a query, sorted, worst first: how many were hurt, and how badly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import plain
from rankdash.core.base.rules import TIE_BAND
from rankdash.core.data.arrays import Floats
from rankdash.core.statistics.alignment import counts, direction
from rankdash.core.study.study import Study
from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import Drawing


def changes(study: Study, challenger: str) -> Drawing:
    """Every query's change, worst first."""
    pairs, title = study.pairs(challenger), study.measure.title
    band = study.statistics.tie_band
    return deltas_chart(pairs, title, tie_band=band, names=study.dataset.query_names)


MOST_BARS = 1000
"""SVG bars beyond this make a page slow; above it, neighbours are drawn as one bar."""

_AGGREGATED_BARS = 400
_PATTERNED_BARS = 100
_HEIGHT = 340
_LEAST_REACH = 0.05


def _deltas_alt(frame: pd.DataFrame, metric: str, *, tie_band: float = TIE_BAND) -> str:
    delta = frame["delta"].dropna()
    if delta.empty:
        return _("No query can be compared.")
    tally = counts(frame, tie_band)
    return _(
        (
            "Change in {metric} for {queries}, worst first: {hurt} hurt (worst "
            "{worst}), {same} same, {helped} helped (best {best}). The mean change is "
            "{mean}."
        ),
        metric=metric,
        queries=style.queries(tally.queries),
        hurt=tally.hurt,
        same=tally.same,
        helped=tally.helped,
        worst=style.signed(float(delta.min())),
        best=style.signed(float(delta.max())),
        mean=style.signed(float(delta.mean())),
    )


@draw.chart(_deltas_alt)
def deltas_chart(
    ink: style.Ink,
    frame: pd.DataFrame,
    metric: str,
    *,
    tie_band: float = TIE_BAND,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """Bars down for hurt, up for helped, dots for the same; a dotted line at the mean.

    frame: as from `compare.paired`. metric: its title. names: query id → the text shown for it.

    The first item of each mark's customdata is the query id, unescaped; where a bar stands for
    several queries (above `MOST_BARS`), the one that changed most. The second is how many.
    """
    known = frame["delta"].notna().to_numpy()
    pairs = frame if known.all() else frame[known]
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    bars = _bars(pairs, tie_band)
    tally = counts(pairs, tie_band)
    few = len(bars) <= _PATTERNED_BARS
    traces: list[style.Trace] = []
    for sign, name, colour in (
        (-1, _("{n} hurt", n=tally.hurt), style.WORSE),
        (1, _("{n} helped", n=tally.helped), style.BETTER),
    ):
        part = [bar for bar in bars if bar.sign == sign]
        traces.append(
            draw.bar(
                width=np.array([bar.n * (0.85 if few else 1.0) for bar in part]),
                name=name,
                legendrank=1 if sign < 0 else 3,
                marker=draw.solid(colour, ink, "/" if sign < 0 and few else ""),
                **_pointed(part, names),
            )
        )
    traces.append(
        draw.scatter(
            mode="markers",
            name=_("{n} same (±{band})", n=tally.same, band=plain(tie_band)),
            legendrank=2,
            marker={"color": ink.muted, "symbol": "circle", "size": 4, "line": {"width": 0}},
            **_pointed([bar for bar in bars if bar.sign == 0], names),
        )
    )
    if len(delta):
        mean = float(delta.mean())
        traces.append(
            draw.scatter(
                [0.5, len(delta) + 0.5],
                [mean, mean],
                "lines",
                name=_("mean {delta}", delta=style.signed(mean)),
                legendrank=4,
                line={"color": ink.text, "width": 1.5, "dash": "dot"},
            )
        )
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        shapes=[_same(tie_band, ink)],
        barmode="overlay",
        bargap=0,
        xaxis=style.axis(_("queries, worst first"), range=[0, len(delta) + 1]),
        yaxis=style.axis(
            _("change in {metric}", metric=style.short(metric)),
            zeroline=True,
            tickformat=".2~f",
            range=_reach(delta),
        ),
    )


def _same(tie_band: float, ink: style.Ink) -> style.Trace:
    """The tie band, behind the bars."""
    return {
        "type": "rect",
        "xref": "x domain",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": -tie_band,
        "y1": tie_band,
        "fillcolor": ink.grid,
        "line": {"width": 0},
        "layer": "below",
    }


def _reach(delta: Floats) -> list[float]:
    """From the worst to the best change, and never so narrow that the tie band fills it."""
    low, high = (float(delta.min()), float(delta.max())) if len(delta) else (0.0, 0.0)
    room = 0.05 * (high - low)
    return [min(low - room, -_LEAST_REACH), max(high + room, _LEAST_REACH)]


class _Bar(NamedTuple):
    """One mark, for n queries that changed in one direction: delta is their mean, low and high
    their extremes; query_id, before and after are those of the one that changed most."""

    x: float
    n: int
    sign: int
    delta: float
    low: float
    high: float
    query_id: str
    before: float
    after: float


def _bars(pairs: pd.DataFrame, tie_band: float) -> list[_Bar]:
    """Worst first."""
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    order = np.argsort(delta, kind="stable")
    delta = delta[order]
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
    farthest = order[np.where(np.abs(low) > np.abs(high), starts, stops - 1)]
    columns = (
        (starts + stops + 1) / 2,
        n,
        sign[starts],
        np.add.reduceat(delta, starts) / n if len(starts) else delta,
        low,
        high,
        *(pairs[name].take(farthest) for name in ("query_id", "before", "after")),
    )
    return [_Bar(*values) for values in zip(*(each.tolist() for each in columns), strict=True)]


def _hover(bar: _Bar, names: Mapping[str, str]) -> str:
    if bar.n > 1:
        ends = {"low": style.signed(bar.low), "high": style.signed(bar.high)}
        return _("{n} queries, {low} to {high}", n=bar.n, **ends)
    change = f"{style.number(bar.before)} → {style.number(bar.after)} ({style.signed(bar.high)})"
    return f"{style.short(names.get(bar.query_id, bar.query_id), 60)}<br>{change}"


def _pointed(part: Sequence[_Bar], names: Mapping[str, str]) -> style.Trace:
    """Where marks stand, and what a click and a hover find in them."""
    return {
        # As arrays, because of their number: a list is checked and copied item by item.
        "x": np.array([bar.x for bar in part]),
        "y": np.array([bar.delta for bar in part]),
        "customdata": np.array([(bar.query_id, bar.n) for bar in part], dtype=object),
        "hover": [_hover(bar, names) for bar in part],
    }
