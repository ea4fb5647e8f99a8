"""The chart of the ranks of a query's documents, system by system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from rankdash.core.base.i18n import enumerated, ngettext, plain
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import columns, fits
from rankdash.core.data.arrays import Flags, Floats
from rankdash.features.queries.ladder import Ladder
from rankdash.kit.drawing import draw, style

# Heights of a row in pixels: few rows, many rows. The second one is still legible at cutoff 50.
_ROW, _CLOSE_ROW = 26, 17
_FURNITURE = 110
_TEXT_LINE = 20
# Narrow enough for a phone: names on both sides take two thirds of the width.
_NAME_WIDTH, _CLOSE_NAME_WIDTH = 24, 16
_HEADING_WIDTHS = {1: 24, 2: 16, 3: 15}
# How many characters fit into one line of headings on a phone, by the number of columns.
_ONE_LINE = {3: 8, 4: 8, 5: 6}
# Above the first number of columns, nodes are small. Above the second one, headings are upright,
# and only the tooltip shows the ranks that documents moved from and to.
_ROOMY, _MOST_LEVEL = 4, 6
_UPRIGHT_WIDTH, _UPRIGHT_LETTER = 20, 7
# The largest number of columns with document names on both sides.
_NAMED_TWICE = 3
_FADED = 0.3

Flags = Flags


def _ladder_alt(
    ladder: Ladder, *, titles: Mapping[str, str] = style.NO_NAMES, every: bool = False
) -> str:
    names = [titles.get(each, each) for each in ladder.systems]
    second = ladder.in_focus
    move = directions(ladder.ranks[:, 0], ladder.ranks[:, second])[ladder.relevant]
    crosses, inside = ladder.crosses[:, second], ladder.inside[:, second]
    return ngettext(
        "Ranks of {n} document in {systems}. From {before} to {after}, of the relevant documents "
        "{risen} rose, {fallen} fell and {held} stayed. Of all documents, {enters} entered the "
        "top {k} and {leaves} dropped out.",
        "Ranks of {n} documents in {systems}. From {before} to {after}, of the relevant documents "
        "{risen} rose, {fallen} fell and {held} stayed. Of all documents, {enters} entered the "
        "top {k} and {leaves} dropped out.",
        len(shown(ladder, every=every)),
        systems=enumerated(names),
        before=names[0],
        after=names[second],
        risen=int((move > 0).sum()),
        fallen=int((move < 0).sum()),
        held=int((move == 0).sum()),
        enters=int((crosses & inside).sum()),
        leaves=int((crosses & ~inside).sum()),
        k=ladder.k,
    )


@draw.chart(_ladder_alt)
def ladder_chart(
    ink: style.Ink,
    ladder: Ladder,
    *,
    titles: Mapping[str, str] = style.NO_NAMES,
    names: Mapping[str, str] = style.NO_NAMES,
    focus: str | None = None,
    every: bool = False,
) -> go.Figure:
    """Draw a column for each system and one for the ideal order, with rank 1 on top.

    A node shows the rank. Its shape shows relevance (filled circle: relevant; square: not; wide
    diamond: no label), as does the weight of the lines. The dash of a line shows the direction
    (solid: risen, dashed: fallen, dotted: same rank); lines of relevant documents also show it by
    colour. The focus is strong, everything else is faint. Documents outside of the first k are
    below the cutoff line. ▲ next to a node is the rank from which a document entered, ▼ the rank to
    which it dropped; with many columns only the tooltip shows them.

    Heights are ranks as long as they fit, so that a level line is an unchanged rank; ranks without
    a document are omitted.

    titles: system id → its name. names: document id → the text shown for it. focus: the document to
        follow; without it, the change from the first to the second system is in focus. every: see
        `shown`. The customdata of a node is its document id, unescaped.
    """
    drawn = placed(shown(ladder, every=every))
    heads = {**titles, IDEAL: _p("chart", "ideal")}
    hover = _hovers(drawn, heads, names)
    traces = [
        *_lines(drawn, ink, focus),
        *_nodes(drawn, ink, focus, hover),
        _cut(drawn, ink),
    ]
    last = len(drawn.columns) - 1
    scale = style.row_labels(
        ink,
        range=[drawn.rows - 0.4, -0.7],
        tickfont={"color": ink.text, "size": 11 if drawn.close else 13},
    )
    row = _CLOSE_ROW if drawn.close else _ROW
    heads_height = _heads_height(drawn, heads)
    return style.finish(
        traces,
        ink,
        round((drawn.rows + 0.3) * row) + _FURNITURE + heads_height,
        annotations=[*_headings(drawn, heads, ink), *_beside(drawn, ink)],
        margin={"t": heads_height},
        yaxis={**scale, **_ticks(drawn, 0, names)},
        yaxis2={**scale, **_ticks(drawn, last, names), "side": "right", "overlaying": "y"},
        xaxis={
            "range": [-0.12, last + 0.12] if last else [-0.5, 0.5],
            "showticklabels": False,
            "showline": False,
        },
        legend={"y": 0, "yanchor": "bottom"},
    )


def _lines(drawn: Drawn, ink: style.Ink, focus: str | None) -> Iterator[dict[str, object]]:
    relevant = drawn.source.relevant
    looks = (
        (True, 1, _p("chart", "risen"), style.BETTER, "solid", 3),
        (True, -1, _p("chart", "fallen"), style.WORSE, "dash", 3),
        (True, 0, _("same rank"), ink.text, "dot", 3),
        (False, 1, _p("chart", "risen"), ink.line, "solid", 1.2),
        (False, -1, _p("chart", "fallen"), ink.line, "dash", 1.2),
        (False, 0, _("same rank"), ink.line, "dot", 1.2),
    )
    parts: dict[tuple[bool, int, bool], tuple[list[float], list[float]]] = {}
    for column in range(drawn.systems - 1):
        move = directions(drawn.ranks[:, column], drawn.ranks[:, column + 1])
        for row in range(len(drawn.source)):
            strong = bool(column == 0 if focus is None else drawn.source.doc_ids[row] == focus)
            x, y = parts.setdefault((bool(relevant[row]), int(move[row]), strong), ([], []))
            x += [column, column + 1, np.nan]
            y += [drawn.heights[row, column], drawn.heights[row, column + 1], np.nan]
    named = set()
    # The legend shows the strongest line of each direction.
    for kind, direction, name, colour, dash, width in looks:
        for strong in (True, False):
            x, y = parts.get((kind, direction, strong), ([], []))
            if x:
                yield draw.scatter(
                    x,
                    y,
                    "lines",
                    name=name,
                    showlegend=name not in named,
                    opacity=1 if strong else _FADED,
                    line={"color": colour, "dash": dash, "width": width},
                )
                named.add(name)
    if drawn.columns[-1] == IDEAL:
        yield _to_ideal(drawn, ink)


def _to_ideal(drawn: Drawn, ink: style.Ink) -> dict[str, object]:
    rows = np.flatnonzero(~np.isnan(drawn.ranks[:, -1]))
    last = len(drawn.columns) - 1
    gap = np.full(len(rows), np.nan)
    ends = np.column_stack([drawn.heights[rows, last - 1], drawn.heights[rows, last], gap])
    return draw.scatter(
        np.tile([last - 1.0, float(last), np.nan], len(rows)),
        ends.ravel(),
        "lines",
        line={"color": ink.line, "dash": "dot", "width": 1},
    )


def _nodes(
    drawn: Drawn, ink: style.Ink, focus: str | None, hover: Sequence[str]
) -> Iterator[dict[str, object]]:
    relevant, unjudged = drawn.source.relevant, np.isnan(drawn.source.label)
    last = len(drawn.columns) - 1
    for chosen, name, symbol, wide, fill, line, text in (
        (relevant, _p("chart", "relevant"), "circle", 2, ink.text, ink.text, ink.background),
        (~relevant & ~unjudged, _("not relevant"), "square", 0, ink.background, ink.line,
         ink.muted),
        (unjudged, _("no label"), "diamond-wide", 5, ink.background, ink.line, ink.muted),
    ):  # fmt: skip
        rows, columns = np.nonzero(chosen[:, None] & ~np.isnan(drawn.heights))
        for axis, on in (("y", columns < max(last, 1)), ("y2", columns == last)):
            if not on.any() or (axis == "y2" and last == 0):
                continue
            row, column = rows[on], columns[on]
            ranks = drawn.ranks[row, column]
            docs = drawn.source.doc_ids[row]
            strong = np.ones(len(row)) if focus is None else np.where(docs == focus, 1, _FADED)
            yield draw.scatter(
                column.astype(np.float64),
                drawn.heights[row, column],
                "markers+text",
                yaxis=axis,
                name=name,
                showlegend=axis == "y",
                text=[_("–") if np.isnan(rank) else f"{rank:.0f}" for rank in ranks],
                textfont={"color": text, "size": drawn.font},
                marker={
                    "color": fill,
                    "symbol": symbol,
                    "size": drawn.node + wide,
                    "opacity": strong,
                    "line": {"color": line, "width": 1},
                },
                customdata=docs,
                hover=[hover[each] for each in row],
            )


def _beside(drawn: Drawn, ink: style.Ink) -> Iterator[dict[str, object]]:
    """Yield notes next to nodes: the rank from which a document entered the first k (left), or the
    rank to which the second system moved it out of them (right)."""
    if len(drawn.columns) > _MOST_LEVEL:
        return
    crosses, inside = drawn.source.crosses, drawn.source.inside
    ranks = drawn.ranks
    places = [
        (row, column, -1, f"▲{_rank(ranks[row, 0])}")
        for row, column in zip(*np.nonzero(crosses & inside), strict=True)
    ]
    if drawn.systems > 1:
        for row in np.flatnonzero(crosses[:, 1] & ~inside[:, 1]):
            places.append((row, 0, 1, f"▼{_rank(ranks[row, 1])}"))
    for row, column, side, text in places:
        yield draw.note(
            int(column),
            float(drawn.heights[row, column]),
            text,
            ink.text,
            # In pixels, so that it never covers the node, however narrow the chart is.
            xanchor="right" if side < 0 else "left",
            xshift=side * (drawn.node / 2 + 1),
            font={"color": ink.text, "size": drawn.font},
            bgcolor=ink.background,
            borderpad=0,
        )


def _rank(rank: float) -> str:
    return "–" if np.isnan(rank) else f"{rank:.0f}"


def _cut(drawn: Drawn, ink: style.Ink) -> dict[str, object]:
    return draw.scatter(
        [-0.12, max(len(drawn.columns) - 1, 0) + 0.12],
        [drawn.cut, drawn.cut],
        "lines",
        name=_("cutoff {k}", k=drawn.source.k),
        showlegend=bool(np.isfinite(drawn.cut)),
        line={"color": ink.text, "width": 1, "dash": "longdashdot"},
    )


def _ticks(drawn: Drawn, column: int, names: Mapping[str, str]) -> dict[str, object]:
    """Return the names of documents next to their nodes, relevant ones in bold. With many columns,
    only the first one has names: the right side has no room."""
    if column and len(drawn.columns) > _NAMED_TWICE:
        return {"showticklabels": False}
    width = _CLOSE_NAME_WIDTH if drawn.close or len(drawn.columns) > 3 else _NAME_WIDTH
    values, texts = [], []
    for row in np.flatnonzero(~np.isnan(drawn.heights[:, column])):
        doc = drawn.source.doc_ids[row]
        text = style.short(names.get(doc, doc), width)
        values.append(drawn.heights[row, column])
        texts.append(f"<b>{text}</b>" if drawn.source.relevant[row] else text)
    return {"tickvals": values, "ticktext": texts}


def _levels(drawn: Drawn, titles: Mapping[str, str]) -> int:
    """Return in how many lines the headings of columns are arranged so that none overlaps
    another."""
    count = len(drawn.columns)
    width = _ONE_LINE.get(count, 0)
    named = (titles.get(each, each) for each in drawn.columns)
    if count < 3 or all(fits(name, width) for name in named):
        return 1
    return 2 if count == 3 else 3


def _heads_height(drawn: Drawn, titles: Mapping[str, str]) -> int:
    if len(drawn.columns) <= _MOST_LEVEL:
        return _levels(drawn, titles) * _TEXT_LINE + 4
    longest = max(columns(titles.get(each, each)) for each in drawn.columns)
    return min(longest, _UPRIGHT_WIDTH) * _UPRIGHT_LETTER + 8


def _headings(drawn: Drawn, titles: Mapping[str, str], ink: style.Ink) -> list[dict[str, object]]:
    upright = len(drawn.columns) > _MOST_LEVEL
    levels = 1 if upright else _levels(drawn, titles)
    width = _UPRIGHT_WIDTH if upright else _HEADING_WIDTHS[levels]
    size = style.FONT_SIZE - 2 if upright else style.FONT_SIZE
    return [
        {
            "x": column,
            "y": 1,
            "yref": "paper",
            "yanchor": "bottom",
            # In pixels: rows get lower if a narrow chart has a longer legend.
            "yshift": (levels - 1 - column % levels) * _TEXT_LINE,
            "text": f"<b>{style.short(titles.get(each, each), width)}</b>",
            "font": {"color": ink.text, "size": size},
            "showarrow": False,
            **({"textangle": -90, "borderpad": 0} if upright else {}),
        }
        for column, each in enumerate(drawn.columns)
    ]


def _hovers(drawn: Drawn, titles: Mapping[str, str], names: Mapping[str, str]) -> list[str]:
    """Return the tooltip of each document: its name, its rank in every column, its label."""
    texts = []
    for row, doc in enumerate(drawn.source.doc_ids):
        label = drawn.source.label[row]
        places = [
            _("{system}: {rank}", system=style.short(titles.get(each, each), 30), rank=_rank(rank))
            for each, rank in zip(drawn.columns, drawn.ranks[row], strict=True)
        ]
        grade = _("no label") if np.isnan(label) else _("label {label}", label=plain(label))
        texts.append("<br>".join([style.short(names.get(doc, doc), 60), *places, grade]))
    return texts


# Which documents a ladder draws, and at which height in each column.

MOST_NOTABLE, MOST_DOCUMENTS = 24, 40
# The column of the best possible order.
IDEAL = "ideal"
_MOST_HEIGHTS = 90
_MANY_ROWS = 24


@dataclass(frozen=True, eq=False)
class Drawn:
    """The documents of the chart and the positions of their nodes.

    columns: one for each system, and one for the ideal order if it contains any of the documents.
    ranks:   (D, C) float, NaN if a column lacks the document.
    heights: (D, C) float, 0 at the top; NaN if there is no node.
    rows:    the number of heights.
    cut:     the height of the line below the first k; NaN if one side of it is empty.
    close:   whether the rows are many.
    """

    source: Ladder
    columns: tuple[str, ...]
    ranks: Floats
    heights: Floats
    rows: int
    cut: float

    @property
    def close(self) -> bool:
        return self.rows > _MANY_ROWS

    @property
    def node(self) -> int:
        """Width of a node, in pixels."""
        if len(self.columns) > _MOST_LEVEL:
            return 13
        return 15 if self.close or len(self.columns) > _ROOMY else 19

    @property
    def font(self) -> int:
        """Font size of the ranks."""
        return 11 if self.node > 15 else 9

    @property
    def systems(self) -> int:
        return len(self.source.systems)


def shown(ladder: Ladder, *, every: bool = False) -> Ladder:
    """Return the documents worth drawing, at most `MOST_NOTABLE`.

    These are documents that are relevant, cross k or move far near the top (see `Ladder.telling`);
    with `every`, all that some system ranks among its first k, at most `MOST_DOCUMENTS`. If there
    are more, relevant documents come first, then those that cross k, then those that moved
    farthest.
    """
    rows = ladder.near if every else ladder.telling
    most = MOST_DOCUMENTS if every else MOST_NOTABLE
    if int(rows.sum()) > most:
        pair = ladder.in_focus
        move = np.nan_to_num(np.abs(ladder.ranks[:, pair] - ladder.ranks[:, 0]), nan=np.inf)
        order = np.lexsort((-move, ~ladder.crosses[:, pair], ~ladder.relevant, ~rows))
        rows = np.zeros(len(ladder), dtype=bool)
        rows[order[:most]] = True
    return ladder.picked(rows)


def directions(before: Floats, after: Floats) -> npt.NDArray[np.int8]:
    """Return the direction of each document's move: 1 up, -1 down, 0 same. A document without a
    rank is after all others."""
    one, other = (np.where(np.isnan(ranks), np.inf, ranks) for ranks in (before, after))
    return (other < one).astype(np.int8) - (other > one).astype(np.int8)


def placed(ladder: Ladder) -> Drawn:
    """Return the position of each node. Above the cutoff line, there is a row for each rank of any
    document; below it, documents are in their order, those without a rank last."""
    ranks = ladder.ranks
    columns = ladder.systems
    if bool((~np.isnan(ladder.ideal)).any()):
        ranks = np.column_stack([ranks, ladder.ideal])
        columns = (*columns, IDEAL)
    heights = np.full(ranks.shape, np.nan)
    within = ranks <= ladder.k
    used = np.unique(ranks[within])
    if len(used) > _MOST_HEIGHTS:
        for column in range(len(columns)):
            inside = np.flatnonzero(within[:, column])
            heights[inside[np.argsort(ranks[inside, column])], column] = np.arange(len(inside))
        top = int(within.sum(axis=0).max())
    else:
        heights[within] = np.searchsorted(used, ranks[within])
        top = len(used)
    rows = top
    for column, name in enumerate(columns):
        below = ~within[:, column]
        if name == IDEAL:
            below &= ~np.isnan(ranks[:, column])
        outside = np.flatnonzero(below)
        heights[outside[np.argsort(ranks[outside, column])], column] = top + np.arange(len(outside))
        rows = max(rows, top + len(outside))
    return Drawn(ladder, columns, ranks, heights, rows, top - 0.5 if 0 < top < rows else np.nan)
