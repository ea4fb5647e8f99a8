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

from rankdash.ranking import ragged
from rankdash.ranking.ragged import Flags, Floats, Integers
from rankdash.ranking.ties import (
    ScorePrecision,
    Ties,
    descending_ids,
    stored_scores,
    tie_order,
    tied_groups,
)

# Comparing each id with the one before pays when ids come in runs of several rows; a sample of
# shorter runs means that rows are mixed, and they are grouped by code.
_ROWS_A_RUN = 4
_SAMPLE = 4096


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


def objects(texts: Any) -> npt.NDArray[np.object_]:
    """An Arrow text array as an object array of str."""
    result: npt.NDArray[np.object_] = texts.to_numpy(zero_copy_only=False)
    return result.astype(object, copy=False)


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


def group_rows(texts: Any) -> Groups:
    """Group (N,) Arrow text. Rows keep their order within a group."""
    starts = _starts(texts.slice(0, _SAMPLE))
    if len(texts) <= _SAMPLE or len(starts) * _ROWS_A_RUN <= _SAMPLE:
        starts = _starts(texts)
        ids = texts.take(pa.array(starts))
        if len(pc.unique(ids)) == len(ids):
            return Groups(ids, np.append(starts, len(texts)), None)
    encoded = pc.dictionary_encode(texts)
    codes = encoded.indices.to_numpy()
    offsets = ragged.offsets_from(np.bincount(codes, minlength=len(encoded.dictionary)))
    rows = ragged.sort_codes(codes, len(encoded.dictionary))
    return Groups(encoded.dictionary, offsets, rows)


def _starts(texts: Any) -> Integers:
    """The rows that differ from the row before, the first row among them."""
    changes = pc.not_equal(texts.slice(1), texts.slice(0, max(len(texts) - 1, 0)))
    first = np.zeros(min(len(texts), 1), dtype=np.int64)
    return np.concatenate([first, np.flatnonzero(changes.to_numpy(zero_copy_only=False)) + 1])


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
    texts: Any,
    ties: Ties,
    precision: ScorePrecision = "float64",
) -> Ordered:
    """Order grouped rows by (N,) finite score, descending; `texts` are the rows' (N,) document ids
    (None where ties are "stable").

    precision: how finely scores are told apart when ties are found.
    """
    arranged = groups.arrange(scores)
    order = ragged.argsort_descending(arranged, groups.offsets)
    ranked = arranged[order]
    rows = order if groups.rows is None else groups.rows[order]
    positions, runs = ragged.equal_runs(stored_scores(ranked, precision), groups.offsets)
    if len(positions):
        tied_rows = rows[positions]

        def by_id() -> Integers:
            return descending_ids(texts.take(pa.array(tied_rows)))

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
