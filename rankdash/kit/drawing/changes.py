"""Charts of the changes of all queries, worst first, and of the mean change in each group of
queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import level_percent, plain
from rankdash.core.base.rules import LEVEL, TIE_BAND
from rankdash.core.data.arrays import Floats
from rankdash.core.metrics.evaluation import mean_of_known
from rankdash.core.statistics.alignment import counts, direction, weights_in
from rankdash.core.statistics.verdict import is_proven
from rankdash.core.study.study import Study
from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import Drawing


def changes(study: Study, challenger: str) -> Drawing:
    """Return the chart of every query's change, worst first."""
    pairs, title = study.pairs(challenger), study.measure.title
    band = study.statistics.tie_band
    return deltas_chart(pairs, title, tie_band=band, names=study.dataset.query_names)


MOST_BARS = 1000
"""The limit of separate bars: more SVG bars make a page slow, so neighbours are merged into one
bar."""

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
        mean=_mean_text(frame),
    )


def _mean(pairs: pd.DataFrame) -> float:
    return mean_of_known(pairs["delta"].to_numpy(dtype=np.float64), weights_in(pairs))


def _mean_text(pairs: pd.DataFrame) -> str:
    mean = style.signed(_mean(pairs))
    return mean if weights_in(pairs) is None else _("{metric} per search", metric=mean)


@draw.chart(_deltas_alt)
def deltas_chart(
    ink: style.Ink,
    frame: pd.DataFrame,
    metric: str,
    *,
    tie_band: float = TIE_BAND,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """Draw bars down for hurt, up for helped, dots for the same, and a dotted line at the mean.

    frame: as from `compare.paired`. metric: its title. names: query id → the text shown for it.

    The first item of each mark's customdata is the query id, unescaped; for a merged bar (above
    `MOST_BARS`), the id of the query that changed most. The second is the number of queries.
    """
    comparable = frame["delta"].notna().to_numpy()
    pairs = frame if comparable.all() else frame[comparable]
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
        mean = _mean(pairs)
        traces.append(
            draw.scatter(
                [0.5, len(delta) + 0.5],
                [mean, mean],
                "lines",
                name=_("mean {delta}", delta=_mean_text(pairs)),
                legendrank=4,
                line={"color": ink.text, "width": 1.5, "dash": "dot"},
            )
        )
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        shapes=[_unchanged(tie_band, ink)],
        barmode="overlay",
        bargap=0,
        xaxis=style.axis(_("queries, worst first"), range=[0, len(delta) + 1]),
        yaxis=style.axis(
            _("change in {metric}", metric=style.short(metric)),
            zeroline=True,
            tickformat=".2~f",
            range=_change_reach(delta),
        ),
    )


def _unchanged(tie_band: float, ink: style.Ink) -> style.Trace:
    """Return the tie band, behind the bars."""
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


def _change_reach(delta: Floats) -> list[float]:
    """Return the range from the worst to the best change, always wider than the tie band."""
    low, high = (float(delta.min()), float(delta.max())) if len(delta) else (0.0, 0.0)
    room = 0.05 * (high - low)
    return [min(low - room, -_LEAST_REACH), max(high + room, _LEAST_REACH)]


class _Bar(NamedTuple):
    """One mark, for n queries that changed in one direction: delta is their mean, low and high
    their extremes; query_id, before and after belong to the query that changed most."""

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
    """Return the bars, worst first."""
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    order = np.argsort(delta, kind="stable")
    delta = delta[order]
    sign = direction(delta, tie_band)
    size = 1 if len(delta) <= MOST_BARS else -(-len(delta) // _AGGREGATED_BARS)
    # Blocks restart with each direction, so that a bar never contains both hurt and helped queries.
    turns = np.flatnonzero(np.diff(sign, prepend=np.int8(2)))
    ends = np.append(turns, len(delta))[1:]
    starts = np.concatenate(
        [np.arange(a, b, size) for a, b in zip(turns, ends, strict=True)] or [np.zeros(0, int)]
    ).astype(np.int64)
    stops = np.append(starts, len(delta))[1:]
    n = stops - starts
    # Sorted, so the ends of a block are its extremes; the end farther from 0 changed most.
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


def _hover_of_query(bar: _Bar, names: Mapping[str, str]) -> str:
    if bar.n > 1:
        ends = {"low": style.signed(bar.low), "high": style.signed(bar.high)}
        return _("{n} queries, {low} to {high}", n=bar.n, **ends)
    change = f"{style.number(bar.before)} → {style.number(bar.after)} ({style.signed(bar.high)})"
    return f"{style.short(names.get(bar.query_id, bar.query_id), 60)}<br>{change}"


def _pointed(part: Sequence[_Bar], names: Mapping[str, str]) -> style.Trace:
    """Return the positions of marks, and the data for clicks and hover texts."""
    return {
        # As arrays, because there are many: a list is checked and copied item by item.
        "x": np.array([bar.x for bar in part]),
        "y": np.array([bar.delta for bar in part]),
        "customdata": np.array([(bar.query_id, bar.n) for bar in part], dtype=object),
        "hover": [_hover_of_query(bar, names) for bar in part],
    }


# A forest plot: the mean change in each group of queries, with its interval.

_ROW = 26
# The legend has up to six entries, which are below each other if the chart is narrow.
_FURNITURE = 150
_NAME_WIDTH = 22
_LEAST_ROOM = 0.02
_COLUMNS = {
    **{name: name for name in ("segment", "value", "n", "delta", "low", "high")},
    "p": "p_corrected",
    "small": "small",
}


def _group_changes_alt(
    table: pd.DataFrame,
    metric: str,
    *,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
) -> str:
    if table["delta"].isna().all():
        return _("No group of queries can be compared.")
    sentences = []
    for row in _group_rows(table, level):
        interval = draw.span(row.low, row.high)
        template = (
            _("{value}: {delta} ({level} interval {interval}{mark}), {queries}.")
            if interval
            else _("{value}: {delta}, {queries}.")
        )
        sentences.append(
            template.format(
                value=names.get(row.value, row.value),
                delta=style.signed(row.delta),
                level=level_percent(level),
                interval=interval,
                mark=_(", proven") if row.proven else "",
                queries=style.queries(row.n),
            )
        )
    return _(
        "Mean change in {metric} by group of queries. {rows}",
        metric=metric,
        rows=" ".join(sentences),
    )


@draw.chart(_group_changes_alt)
def group_changes_chart(
    ink: style.Ink,
    table: pd.DataFrame,
    metric: str,
    *,
    level: float = LEVEL,
    corrected: bool = True,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """Draw a row for each group: its mean change, an interval as a whisker, and the change and
    number of queries at the side. Proven changes have a star and a colour, the others are hollow;
    groups marked small are labelled.

    table: one row for each group, in the order drawn: segment (the grouping of the queries), value
        (the group), n, delta, low, high, p_corrected, small (bool). Missing numbers are NaN. If
        there are several segments, each has a heading row.
    metric: its title. level: of the intervals, and 1 - level of the significance. corrected:
        whether p is corrected for the other groups. names: segment or value → the name shown.
    """
    rows = _group_rows(table, level)
    traces: list[style.Trace] = []
    for kind, name, symbol, colour in (
        (1, _("proven gain"), "circle", style.BETTER),
        (-1, _("proven loss"), "square", style.WORSE),
        (0, _("not proven"), "circle-open", ink.muted),
    ):
        part = [row for row in rows if row.kind == kind]
        places = [row.place for row in part]
        ends = [row.low for row in part], [row.high for row in part]
        traces += draw.whiskers(*ends, places, colour)
        traces.append(
            draw.scatter(
                [row.delta for row in part],
                places,
                "markers",
                name=name,
                showlegend=len(part) > 0,
                marker=draw.marker(colour, symbol, 10),
                customdata=[row.value for row in part],
                hover=[_hover_of_group(row, names, level, corrected) for row in part],
            )
        )
    traces += _group_keys(rows, ink, level, corrected)
    # An axis is drawn only if a trace uses it.
    traces.append(draw.scatter([None], [None], "markers", yaxis="y2"))
    last = max((row.place for row in rows), default=0)
    scale = style.row_labels(ink, range=[last + 0.7, -1.7])
    return style.finish(
        traces,
        ink,
        round((last + 2) * _ROW) + _FURNITURE,
        shapes=[draw.upright(0, ink.line, "solid", width=2, layer="below")],
        yaxis={**scale, **_left_margin(rows, names)},
        yaxis2={**scale, **_right_margin(rows), "side": "right", "overlaying": "y"},
        xaxis=style.axis(
            _("mean change in {metric}", metric=style.short(metric)),
            range=_group_range(rows),
            tickformat=".2~f",
            nticks=5,
            showgrid=True,
        ),
    )


class _GroupRow(NamedTuple):
    """One group. place: the row from the top; headed: whether its segment has a heading. kind: 1
    proven gain, -1 proven loss, 0 neither."""

    segment: str
    value: str
    n: int
    delta: float
    low: float
    high: float
    p: float
    small: bool
    place: float
    headed: bool
    proven: bool

    @property
    def kind(self) -> int:
        return (1 if self.delta > 0 else -1) if self.proven else 0


def _group_rows(table: pd.DataFrame, level: float) -> list[_GroupRow]:
    """Return the rows by segment; if there are several, each heading takes a row too."""
    blocks: dict[str, list[dict[str, Any]]] = {}
    for values in zip(*(table[name].tolist() for name in _COLUMNS.values()), strict=True):
        group = dict(zip(_COLUMNS, values, strict=True))
        blocks.setdefault(str(group["segment"]), []).append(group)
    headed = len(blocks) > 1
    rows: list[_GroupRow] = []
    for heading, block in enumerate(blocks.values(), start=1):
        for group in block:
            proven = is_proven(group["low"], group["high"], group["p"], level)
            place = len(rows) + (heading if headed else 0.0)
            rows.append(_GroupRow(**group, place=place, headed=headed, proven=proven))
    return rows


def _left_margin(rows: Sequence[_GroupRow], names: Mapping[str, str]) -> dict[str, object]:
    """Return the names of the groups, with the name of each segment in bold above its first
    group."""
    ticks: dict[float, str] = {}
    text: set[str] = set()
    for row in rows:
        if row.headed and row.segment not in text:
            text.add(row.segment)
            name = style.short(names.get(row.segment, row.segment), _NAME_WIDTH)
            ticks[row.place - 1] = f"<b>{name}</b>"
        ticks[row.place] = style.short(names.get(row.value, row.value), _NAME_WIDTH)
    return {"tickvals": list(ticks), "ticktext": list(ticks.values())}


def _right_margin(rows: Sequence[_GroupRow]) -> dict[str, object]:
    texts = [
        f"{draw.changed(row.delta, row.proven)} "
        + (_("({n}: few)", n=row.n) if row.small else f"({row.n:,})")
        for row in rows
    ]
    return {
        "tickvals": [-1, *(row.place for row in rows)],
        "ticktext": [_("change (queries)"), *texts],
    }


def _group_keys(
    rows: Sequence[_GroupRow], ink: style.Ink, level: float, corrected: bool
) -> list[style.Trace]:
    traces = []
    if any(math.isfinite(row.low) for row in rows):
        traces += draw.keys(_("{level} interval"), draw.p_limit(corrected), level, ink.text)
    return traces


def _hover_of_group(row: _GroupRow, names: Mapping[str, str], level: float, corrected: bool) -> str:
    lines = [
        style.short(names.get(row.value, row.value), 60),
        _("{delta} ({queries})", delta=style.signed(row.delta), queries=style.queries(row.n)),
    ]
    if interval := draw.span(row.low, row.high):
        lines.append(
            _("{level} interval {interval}", level=level_percent(level), interval=interval)
        )
    if chance := draw.chance(row.p):
        lines.append(draw.p_text(corrected, p=chance))
    return "<br>".join(lines)


def _group_range(rows: Sequence[_GroupRow]) -> list[float]:
    """Return the range of changes and intervals, including 0."""
    ends = (end for row in rows for end in (row.delta, row.low, row.high))
    return style.reach([0.0, *ends], 0.06, _LEAST_ROOM)
