"""Which documents a ladder draws, and where each of them stands in each column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankdash.features.queries.ladder import Ladder

MOST_NOTABLE, MOST_DOCUMENTS = 24, 40
# The column of the best order there can be.
IDEAL = "ideal"
_MOST_HEIGHTS = 90
_MANY_ROWS = 24

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Drawn:
    """The documents drawn and where their nodes stand.

    columns: one for each system, and one for the ideal order where it has any of them.
    ranks:   (D, C) float, NaN where a column lacks the document.
    heights: (D, C) float, 0 at the top; NaN where there is no node.
    rows:    how many heights there are.
    cut:     the height of the line below the first k; NaN where nothing stands on one side of it.
    close:   whether the rows are many.
    """

    source: Ladder
    columns: tuple[str, ...]
    ranks: FloatArray
    heights: FloatArray
    rows: int
    cut: float

    @property
    def close(self) -> bool:
        return self.rows > _MANY_ROWS

    @property
    def systems(self) -> int:
        return len(self.source.systems)


def shown(ladder: Ladder, *, every: bool = False) -> Ladder:
    """The documents worth drawing, at most `MOST_NOTABLE`.

    Those that are relevant, cross k or move far near the top (see `Ladder.telling`); every: all
    that some system has among its first k, at most `MOST_DOCUMENTS`. Where there are more, the
    relevant come first, then those that cross k, then those that moved farthest.
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


def directions(before: FloatArray, after: FloatArray) -> npt.NDArray[np.int8]:
    """1 risen, -1 fallen, 0 same; a document that a ranking lacks stands below all others."""
    one, other = (np.where(np.isnan(ranks), np.inf, ranks) for ranks in (before, after))
    return (other < one).astype(np.int8) - (other > one).astype(np.int8)


def placed(ladder: Ladder) -> Drawn:
    """Above the cut a row for each rank that is drawn anywhere; below it the documents of a column
    in their order, those that it lacks last."""
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
