"""How documents with equal scores are ordered, and how finely scores are told apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from rankdash.core.data.coded import numbers_of
from rankdash.core.data.ragged import Flags, Floats, Integers

Ties = Literal["trec", "stable"]
ScorePrecision = Literal["float64", "float32"]


def tie_order(
    runs: Integers, ties: Ties, given: Integers, by_id: Callable[[], Integers]
) -> Integers:
    """(T,) the order of tied rows: by run of equal scores, then by the rule.

    runs:  (T,) which run of equal scores each row is in.
    given: (T,) the place of each row in what the ranking was made from ("stable" keeps it).
    by_id: gives their (T,) places when document ids descend ("trec", as trec_eval does).
    """
    key = given if ties == "stable" else by_id()
    return np.argsort(runs * (int(key.max()) + 1) + key)


def descending_ids(texts: Any) -> Integers:
    """(N,) the place of each id when ids are sorted by their bytes, the last id first."""
    order = numbers_of(pc.array_sort_indices(texts, order="descending"))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def tied_groups(positions: Integers, offsets: Integers) -> Flags:
    """(G,) whether a group holds one of the tied positions."""
    tied = np.zeros(len(offsets) - 1, dtype=bool)
    tied[np.searchsorted(offsets, positions, side="right") - 1] = True
    return tied


def stored_scores(scores: Floats, precision: ScorePrecision) -> npt.NDArray[np.floating[Any]]:
    """The scores as a program with this precision holds them."""
    with np.errstate(over="ignore"):
        return scores.astype(precision, copy=False)
