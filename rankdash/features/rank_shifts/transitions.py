"""Moves counted: from which ranks to which, how far, and into and out of the first k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.features.rank_shifts.shifts import NOT_RANKED, Moves, Ranks

BINS = ("1", "2–3", "4–5", "6–10", "11–20", "> 20")
UNRANKED = "unranked"
"""The name of the bin, or band, of what a ranking lacks."""

_NAMES = (*BINS, UNRANKED)
_STARTS = np.array([1, 2, 4, 6, 11, 21])

STEPS = ("−21…", "−20…−11", "−10…−6", "−5…−3", "−2…−1", "0", "1…2", "3…5", "6…10", "11…20", "21…")
"""How far a document moved: ranks up, negative for down; the first and the last are open."""

_STEP_STARTS = np.array([-20, -10, -5, -2, 0, 1, 3, 6, 11, 21])


def transitions(moves: Moves, *, relevant_only: bool) -> pd.DataFrame:
    """How many documents went from each bin of ranks (rows) to each (columns).

    The bins are `BINS` and, where a ranking lacks a document, `UNRANKED` as the last row or column.
    """
    chosen = np.flatnonzero(moves.relevant) if relevant_only else slice(None)
    size = len(_NAMES)
    cells = _bins(moves.before[chosen]) * size + _bins(moves.after[chosen])
    counts = np.bincount(cells, minlength=size * size).reshape(size, size)
    names = list(_NAMES)
    table = pd.DataFrame(counts, index=names, columns=names)
    rows = names if counts[-1].any() else names[:-1]
    columns = names if counts[:, -1].any() else names[:-1]
    return table.loc[rows, columns]


def went(moves: Moves, start: str, end: str, *, relevant_only: bool) -> npt.NDArray[np.bool_]:
    """(N,) the documents that a cell of `transitions` counts: from the bin `start` to `end`."""
    cell: npt.NDArray[np.bool_] = (_bins(moves.before) == _NAMES.index(start)) & (
        _bins(moves.after) == _NAMES.index(end)
    )
    return cell & moves.relevant if relevant_only else cell


def _bins(rank: Ranks, starts: npt.NDArray[np.int64] = _STARTS) -> npt.NDArray[np.int64]:
    """The bin of each rank, of those that start there; the last one for `NOT_RANKED`."""
    bins = np.searchsorted(starts, np.arange(rank.max(initial=0) + 1), side="right") - 1
    bins[NOT_RANKED] = len(starts)
    return bins[rank]


def move_sizes(moves: Moves) -> pd.DataFrame:
    """How far the documents moved that both rankings have.

    One row for each of `STEPS`, in `step`; relevant and other: how many documents; relevant_share
    and other_share: of all such documents (NaN where there is none).
    """
    low, high = int(moves.up.min(initial=0)), int(moves.up.max(initial=0))
    step = np.searchsorted(_STEP_STARTS, np.arange(low, high + 1), side="right")[moves.up - low]
    columns: dict[str, object] = {"step": STEPS}
    for name, chosen in (
        ("relevant", moves.in_both & moves.relevant),
        ("other", moves.in_both & ~moves.relevant),
    ):
        counts = np.bincount(step[chosen], minlength=len(STEPS))
        total = int(counts.sum())
        columns[name] = counts
        columns[f"{name}_share"] = counts / total if total else np.full(len(STEPS), np.nan)
    return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class Flow:
    """Relevant documents and the first k ranks.

    stayed: among the first k before and after. entered, left: came in, dropped out. outside:
        ranked, but never among the first k. unranked: relevant by their label, and in neither
        ranking.
    bands: one row for each band of ranks below k, in `band` ("11–20"), the last `UNRANKED`:
        entered (how many came in from there), left (how many went there).
    """

    k: int
    stayed: int
    entered: int
    left: int
    outside: int
    unranked: int
    bands: pd.DataFrame

    @property
    def before(self) -> int:
        return self.stayed + self.left

    @property
    def after(self) -> int:
        return self.stayed + self.entered

    @property
    def total(self) -> int:
        """All documents labelled relevant for the shared queries."""
        return self.stayed + self.entered + self.left + self.outside + self.unranked


def flow(moves: Moves, k: int) -> Flow:
    """Where relevant documents that came into the first k came from, and where those that dropped
    out of it went."""
    starts = np.array([k + 1, 2 * k + 1, 5 * k + 1])
    names = [_band(k + 1, 2 * k), _band(2 * k + 1, 5 * k), f"> {5 * k}", UNRANKED]

    relevant = np.flatnonzero(moves.relevant)
    before, after = moves.before[relevant], moves.after[relevant]
    was, now = ((rank > NOT_RANKED) & (rank <= k) for rank in (before, after))
    stayed, entered, left = (int(each.sum()) for each in (was & now, now & ~was, was & ~now))
    return Flow(
        k=k,
        stayed=stayed,
        entered=entered,
        left=left,
        outside=len(relevant) - stayed - entered - left,
        unranked=moves.unranked,
        bands=pd.DataFrame(
            {
                "band": names,
                "entered": np.bincount(_bins(before[now & ~was], starts), minlength=len(names)),
                "left": np.bincount(_bins(after[was & ~now], starts), minlength=len(names)),
            }
        ),
    )


def _band(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"
