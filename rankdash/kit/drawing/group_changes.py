"""A forest: the mean change in each group of queries, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import level_percent
from rankdash.core.base.rules import LEVEL
from rankdash.core.statistics.verdict import is_proven
from rankdash.kit.drawing import draw, style

_ROW = 26
# The legend has up to six entries, which stand below each other where the chart is narrow.
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
    for row in _rows(table, level):
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
    """A row for each group: its mean change, an interval as a whisker, change and number of
    queries at the side. Proven changes carry a star and a colour; groups marked small are hollow.

    table: one row for each group, in the order drawn: segment (what the queries are grouped by),
    value (the group), n, delta, low, high, p_corrected, small (bool). Numbers that do not exist
    are NaN. Rows of more than one segment stand under its name. metric: its title. level: of the
    intervals, and 1 - level of the significance. corrected: whether p
    allows for the other groups. names: segment or value → the name shown.
    """
    rows = _rows(table, level)
    traces: list[style.Trace] = []
    for kind, name, symbol, colour in (
        (1, _("proven gain"), "circle", style.BETTER),
        (-1, _("proven loss"), "square", style.WORSE),
        (0, _("not proven"), "diamond", ink.muted),
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
                marker=draw.marker(
                    colour, [f"{symbol}-open" if row.small else symbol for row in part], 10
                ),
                customdata=[row.value for row in part],
                hover=[_hover(row, names, level, corrected) for row in part],
            )
        )
    traces += _keys(rows, ink, level, corrected)
    # An axis is drawn only where something stands on it.
    traces.append(draw.scatter([None], [None], "markers", yaxis="y2"))
    last = max((row.place for row in rows), default=0)
    scale = style.row_labels(ink, range=[last + 0.7, -1.7])
    return style.finish(
        traces,
        ink,
        round((last + 2) * _ROW) + _FURNITURE,
        shapes=[draw.upright(0, ink.line, "solid", width=2, layer="below")],
        yaxis={**scale, **_left(rows, names)},
        yaxis2={**scale, **_right(rows), "side": "right", "overlaying": "y"},
        xaxis=style.axis(
            _("mean change in {metric}", metric=style.short(metric)),
            range=_range(rows),
            tickformat=".2~f",
            nticks=5,
            showgrid=True,
        ),
    )


class _Row(NamedTuple):
    """One group. place: from the top, in rows; headed: whether its segment's name stands above.
    kind: 1 proven gain, -1 proven loss, 0 neither."""

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


def _rows(table: pd.DataFrame, level: float) -> list[_Row]:
    """Segment by segment; where there are several, the name of each takes a row too."""
    blocks: dict[str, list[dict[str, Any]]] = {}
    for values in zip(*(table[name].tolist() for name in _COLUMNS.values()), strict=True):
        group = dict(zip(_COLUMNS, values, strict=True))
        blocks.setdefault(str(group["segment"]), []).append(group)
    headed = len(blocks) > 1
    rows: list[_Row] = []
    for heading, block in enumerate(blocks.values(), start=1):
        for group in block:
            proven = is_proven(group["low"], group["high"], group["p"], level)
            place = len(rows) + (heading if headed else 0.0)
            rows.append(_Row(**group, place=place, headed=headed, proven=proven))
    return rows


def _left(rows: Sequence[_Row], names: Mapping[str, str]) -> dict[str, object]:
    """The names of the groups, each segment's own in bold above its first."""
    ticks: dict[float, str] = {}
    text: set[str] = set()
    for row in rows:
        if row.headed and row.segment not in text:
            text.add(row.segment)
            name = style.short(names.get(row.segment, row.segment), _NAME_WIDTH)
            ticks[row.place - 1] = f"<b>{name}</b>"
        ticks[row.place] = style.short(names.get(row.value, row.value), _NAME_WIDTH)
    return {"tickvals": list(ticks), "ticktext": list(ticks.values())}


def _right(rows: Sequence[_Row]) -> dict[str, object]:
    texts = [f"{draw.changed(row.delta, row.proven)} ({row.n:,})" for row in rows]
    return {
        "tickvals": [-1, *(row.place for row in rows)],
        "ticktext": [_("change (queries)"), *texts],
    }


def _keys(rows: Sequence[_Row], ink: style.Ink, level: float, corrected: bool) -> list[style.Trace]:
    found = []
    if any(row.small for row in rows):
        found.append(draw.key(_("few queries"), "circle-open", ink.text))
    if any(math.isfinite(row.low) for row in rows):
        found += draw.keys(_("{level} interval"), draw.p_limit(corrected), level, ink.text)
    return found


def _hover(row: _Row, names: Mapping[str, str], level: float, corrected: bool) -> str:
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


def _range(rows: Sequence[_Row]) -> list[float]:
    """The reach of changes and intervals, 0 always in it."""
    ends = (end for row in rows for end in (row.delta, row.low, row.high))
    return style.reach([0.0, *ends], 0.06, _LEAST_ROOM)
