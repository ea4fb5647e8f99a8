"""From which ranks to which: a cell for each pair of bins, with its count written in it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext
from rankdash.features.rank_shifts.shifts import UNRANKED
from rankdash.kit.drawing import draw, intervals, style

_ROW = 46
_FURNITURE = 130
_NAME_WIDTH = 26
# The strongest shade, as a share of the colour: text stays readable on it, light and dark.
_STRONGEST = 0.5
_COMPACT_FROM = 1_000
_LEAST_SHARE = 0.005


def figure(table: pd.DataFrame, before: str, after: str, ink: style.Ink) -> go.Figure:
    """Rows are ranks before, columns ranks after, each cell with its count and its share of the
    row. Below the diagonal documents moved up, above it down: told by place, by an arrow in the
    cell and by colour; the shade is the share of the row. The customdata of a cell are its row and
    its column.

    table: as from `shifts.transitions`. before, after: names of the systems.
    """
    rows, columns = list(table.index), list(table.columns)
    counts = table.to_numpy()
    totals = counts.sum(axis=1)
    sides = {name: _empty(len(rows), len(columns)) for name in ("up", "same", "down")}
    written: list[tuple[int, int, str]] = []
    hover = [["" for _ in columns] for _ in rows]
    for y, start in enumerate(rows):
        for x, end in enumerate(columns):
            count = int(counts[y, x])
            share = count / totals[y] if totals[y] else 0.0
            side = _side(start, end, rows, columns)
            sides[side][y][x] = share
            hover[y][x] = _(
                "from {before} to {after}: {n} ({share:.0%} of those at {before})",
                before=_bin(start),
                after=_bin(end),
                n=f"{count:,}",
                share=share,
            )
            written.append((y, x, _text(count, share, side)))
    colours = {"up": style.BETTER, "same": style.FIRST_STAGE, "down": style.WORSE}
    heats = [
        {
            "type": "heatmap",
            "z": shares,
            "zmin": 0,
            "zmax": 1,
            "colorscale": [
                [0, style.blended(colours[side], ink.background, 0.06)],
                [1, style.blended(colours[side], ink.background, _STRONGEST)],
            ],
            "showscale": False,
            "xgap": 3,
            "ygap": 3,
            "hoverinfo": "skip",
        }
        for side, shares in sides.items()
    ]
    texts = draw.scatter(
        [x for _, x, _ in written],
        [y for y, _, _ in written],
        "markers+text",
        text=[text for *_, text in written],
        # Cells of a heatmap cannot be clicked: unseen squares on them can.
        marker={"symbol": "square", "size": _ROW, "opacity": 0},
        selected={"marker": {"opacity": 0}, "textfont": {"color": ink.text}},
        unselected={"marker": {"opacity": 0}, "textfont": {"color": ink.text}},
        customdata=[[rows[y], columns[x]] for y, x, _ in written],
        hover=[hover[y][x] for y, x, _ in written],
        textfont={"family": style.FONT, "size": style.FONT_SIZE - 1, "color": ink.text},
    )
    keys = [
        intervals.key(name, symbol, colours[side])
        for side, symbol, name in (
            ("up", "triangle-up", _("moved up")),
            ("same", "square", _("about the same")),
            ("down", "triangle-down", _("moved down")),
        )
    ]
    axis = style.row_labels(ink, showline=False)
    return style.finish(
        [*heats, texts, *keys],
        ink,
        len(rows) * _ROW + _FURNITURE,
        xaxis=style.axis(
            _("rank in {system}", system=style.short(after, _NAME_WIDTH)),
            **axis,
            range=[-0.5, len(columns) - 0.5],
            tickvals=list(range(len(columns))),
            ticktext=[_bin(each) for each in columns],
            tickangle=0,
        ),
        yaxis=style.axis(
            _("rank in {system}", system=style.short(before, _NAME_WIDTH)),
            **axis,
            range=[len(rows) - 0.5, -0.5],
            tickvals=list(range(len(rows))),
            ticktext=[_bin(each) for each in rows],
        ),
    )


def alt(table: pd.DataFrame, before: str, after: str) -> str:
    """What the chart says, in words."""
    rows, columns = list(table.index), list(table.columns)
    totals, counts = {"up": 0, "same": 0, "down": 0}, table.to_numpy()
    for y, start in enumerate(rows):
        for x, end in enumerate(columns):
            totals[_side(start, end, rows, columns)] += int(counts[y, x])
    return ngettext(
        "Ranks in {before} (rows) and in {after} (columns) of {n} document: {up} moved to a higher "
        "band, {same} stayed in theirs, {down} moved to a lower one.",
        "Ranks in {before} (rows) and in {after} (columns) of {n} documents: {up} moved to a "
        "higher band, {same} stayed in theirs, {down} moved to a lower one.",
        sum(totals.values()),
        before=before,
        after=after,
        **totals,
    )


def _empty(rows: int, columns: int) -> list[list[float | None]]:
    return [[None] * columns for _ in range(rows)]


def _side(start: str, end: str, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Which way a document went; what is not ranked stands below everything."""
    order = [*(each for each in rows if each != UNRANKED), UNRANKED]
    one, other = order.index(start), order.index(end)
    return "same" if one == other else "up" if other < one else "down"


def _text(count: int, share: float, side: str) -> str:
    if not count:
        return "0"
    arrow = {"up": "▲", "same": "=", "down": "▼"}[side]
    part = f"{share:.0%}" if share >= _LEAST_SHARE else "&lt;1%"
    return f"{arrow} <b>{_compact(count)}</b><br>{part}"


def _compact(count: int) -> str:
    """A count that fits its cell; hover and table have it in full."""
    if count < _COMPACT_FROM:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 10 * _COMPACT_FROM else f"{count / 1000:,.0f}k"


def _bin(name: str) -> str:
    return _("none") if name == UNRANKED else name.replace(">", "&gt;")
