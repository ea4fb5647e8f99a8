"""From rows to ordered lists: group rows by id and sort by score.

Ids travel as Arrow text, which groups a million of them in milliseconds and compares them byte by
byte, as C programs such as trec_eval do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rankdash.core.data import ragged
from rankdash.core.data.coded import Coded, arrow_integers, come_in_runs, run_starts
from rankdash.core.data.ragged import Flags, Floats, Integers
from rankdash.core.data.ties import (
    ScorePrecision,
    Ties,
    descending_ids,
    stored_scores,
    tie_order,
    tied_groups,
)


def text_array(ids: Sequence[str] | pd.Series[Any] | npt.NDArray[Any]) -> Any:
    """The ids as one Arrow text array. Ids that are not text become text ("7" for 7)."""
    if isinstance(ids, pd.Series):
        series = ids
    else:
        series = pd.Series(np.asarray(ids, dtype=object), dtype=object)
    if not isinstance(series.dtype, pd.StringDtype):
        series = series.astype("str")
    array = pa.array(series)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows grouped by id.

    ids:     (G,) Arrow text, in the order of first appearance.
    offsets: (G + 1,) where each group starts in the grouped order.
    rows:    (N,) the row at each grouped position; None when rows came grouped.
    """

    ids: Any
    offsets: Integers
    rows: Integers | None

    def arrange(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(N,) row values in grouped order."""
        return values if self.rows is None else values[self.rows]


def coded(ids: Sequence[str] | pd.Series[Any] | npt.NDArray[Any] | Coded) -> Coded:
    """The ids as codes; those that are codes as they are."""
    return ids if isinstance(ids, Coded) else Coded.of(text_array(ids))


def group_rows(ids: Any) -> Groups:
    """Group (N,) ids: Arrow text, or `Coded` without missing ones. Rows keep their order within a
    group."""
    if not isinstance(ids, Coded):
        if come_in_runs(ids):
            starts = run_starts(ids)
            named = ids.take(arrow_integers(starts))
            if len(pc.unique(named)) == len(named):
                return Groups(named, np.append(starts, len(ids)), None)
        ids = Coded.of(ids)
    codes = ids.codes
    counts = np.bincount(codes, minlength=len(ids.texts))
    # Codes come in the order of first appearance, so in runs they only rise.
    rows = None if (codes[1:] >= codes[:-1]).all() else ragged.sort_codes(codes, len(ids.texts))
    return Groups(ids.texts, ragged.offsets_from(counts), rows)


@dataclass(frozen=True, eq=False)
class Ordered:
    """Rows by group and score, ties settled.

    rows:   (N,) the row at each position.
    scores: (N,) descending within a group, but for scores that the precision tells not apart.
    tied:   (G,) whether two rows of the group share a score.
    """

    rows: Integers
    scores: Floats
    tied: Flags


def order_rows(
    groups: Groups,
    scores: Floats,
    ids_of: Any,
    ties: Ties,
    precision: ScorePrecision = "float64",
) -> Ordered:
    """Order grouped rows by (N,) finite score, descending.

    ids_of: called with (R,) rows, gives their document ids as Arrow text; None where ties are
        "stable".
    precision: how finely scores are told apart when ties are found.
    """
    ranked = groups.arrange(scores)
    rows = groups.rows
    if not ragged.descend(ranked, groups.offsets):
        order = ragged.argsort_descending(ranked, groups.offsets)
        ranked = ranked[order]
        rows = order if rows is None else rows[order]
    rows = np.arange(len(scores)) if rows is None else rows.copy()
    positions, runs = ragged.equal_runs(stored_scores(ranked, precision), groups.offsets)
    if len(positions):
        tied_rows = rows[positions]

        def by_id() -> Integers:
            return descending_ids(ids_of(tied_rows))

        rows[positions] = tied_rows[tie_order(runs, ties, tied_rows, by_id)]
    return Ordered(rows, ranked, tied_groups(positions, groups.offsets))


def best_places(scores: npt.NDArray[Any], count: int) -> npt.NDArray[np.intp]:
    """The places of the `count` highest of (n,) scores, best first, equal ones in their order.
    Sorts no more than those."""
    kept = np.arange(len(scores))
    if len(scores) > count:
        kept = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
    best: npt.NDArray[np.intp] = kept[np.argsort(-scores[kept], kind="stable")][:count]
    return best
