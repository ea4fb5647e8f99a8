"""Movements of documents between two rankings: moves, and flows between ranges of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.data.arrays import (
    Flags,
    Integers,
    offsets_from,
    owners,
    places,
    places_in,
    rearranged,
    sort_codes,
)
from rankdash.core.data.overlap import places_of
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, Judged

Ranks = npt.NDArray[np.int32]

NOT_RANKED = 0
"""The rank of a document that a ranking lacks."""


@dataclass(frozen=True, eq=False)
class Pairing:
    """The documents of the queries that two rankings share. N documents, by query, then by rank
    before; documents that only the second ranking has come last, by rank after.

    before, after: the two rankings.
    query_ids: (Q,) object array of str, in the order of the first ranking.
    offsets:   (Q + 1,) the first document of each query.
    row_before, row_after: (N,) the row in the ranking, -1 if it lacks the document.
    only_before, only_after: the number of queries that only one of the rankings has.
    """

    before: Ranking
    after: Ranking
    query_ids: npt.NDArray[np.object_]
    offsets: Integers
    row_before: npt.NDArray[np.int32]
    row_after: npt.NDArray[np.int32]
    only_before: int
    only_after: int

    @property
    def query(self) -> Integers:
        """The query of each document, (N,)."""
        return owners(self.offsets)

    @cached_property
    def in_both(self) -> Flags:
        """Flags of documents that both rankings have, (N,)."""
        return (self.row_before >= 0) & (self.row_after >= 0)

    @cached_property
    def rank_before(self) -> Ranks:
        """Ranks from 1, (N,); `NOT_RANKED` if the ranking lacks the document."""
        return _ranks(self.before, self.row_before)

    @cached_property
    def rank_after(self) -> Ranks:
        """The same for the second ranking."""
        return _ranks(self.after, self.row_after)

    @cached_property
    def docs(self) -> npt.NDArray[np.int32]:
        """The position of each document in the documents of the first ranking, then of the second,
        (N,)."""
        here = self.row_before >= 0
        docs = np.empty(len(here), dtype=np.int32)
        docs[here] = self.before.docs[self.row_before[here]]
        docs[~here] = self.after.docs[self.row_after[~here]] + len(self.before.documents)
        return docs


def pair(before: Ranking, after: Ranking) -> Pairing:
    """Find every document of the shared queries in both rankings."""
    here = np.array([query in after.positions for query in before.query_ids], dtype=bool)
    shared = np.flatnonzero(here)
    at_after = np.array(
        [after.positions[query] for query in before.query_ids[shared]], dtype=np.int64
    )
    offsets_before, rows_before = rearranged(np.diff(before.offsets), shared)
    offsets_after, rows_after = rearranged(np.diff(after.offsets), at_after)
    query_before, query_after = owners(offsets_before), owners(offsets_after)
    docs = places_in(before.documents, after.documents)[after.docs[rows_after]]
    in_before = np.flatnonzero(docs >= 0)
    there, matches = places_of(before, shared[query_after[in_before]], docs[in_before])
    in_both = in_before[matches]
    added = np.ones(len(rows_after), dtype=bool)
    added[in_both] = False
    partner = np.full(len(before.docs), -1, dtype=np.int64)
    partner[there] = rows_after[in_both]
    query = np.concatenate([query_before, query_after[added]])
    row_before = np.concatenate([rows_before, np.full(int(added.sum()), -1)])
    row_after = np.concatenate([partner[rows_before], rows_after[added]])
    if added.any():
        by_query = sort_codes(query, max(len(shared), 1))
        row_before, row_after = row_before[by_query], row_after[by_query]
    return Pairing(
        before=before,
        after=after,
        query_ids=before.query_ids[shared],
        offsets=offsets_from(np.bincount(query, minlength=len(shared))),
        row_before=row_before.astype(np.int32),
        row_after=row_after.astype(np.int32),
        only_before=len(before.query_ids) - len(shared),
        only_after=len(after.query_ids) - len(shared),
    )


@dataclass(frozen=True, eq=False)
class Moves:
    """The ranks before and after of every document of Q shared queries. N documents, by query.

    query_ids: (Q,) object array of str. query: (N,) the query of each document.
    names:     (D,) object array of str, ids of documents. docs: (N,) the position of each there.
    before, after: (N,) ranks from 1; `NOT_RANKED` if a ranking lacks the document.
    relevant:  (N,) whether its label reaches the threshold.
    unranked:  the number of relevant documents of these queries that neither ranking has.
    only_before, only_after: the number of queries that only one of the rankings has.
    """

    query_ids: npt.NDArray[np.object_]
    query: npt.NDArray[np.int32]
    names: npt.NDArray[np.object_]
    docs: npt.NDArray[np.int32]
    before: Ranks
    after: Ranks
    relevant: Flags
    unranked: int
    only_before: int
    only_after: int

    @cached_property
    def in_both(self) -> Flags:
        """Flags of documents that both rankings have, (N,)."""
        return (self.before > NOT_RANKED) & (self.after > NOT_RANKED)

    @cached_property
    def up(self) -> Ranks:
        """The number of ranks that each document rose, (N,); negative if it fell, 0 if a ranking
        lacks it (see `in_both`)."""
        return np.where(self.in_both, self.before - self.after, 0).astype(np.int32)

    def frame(self, rows: Flags | Integers) -> pd.DataFrame:
        """Return some of the documents: query_id, doc_id, before and after (float, NaN if a ranking
        lacks the document), up (NaN likewise), relevant."""
        both = self.in_both[rows]
        return pd.DataFrame(
            {
                "query_id": self.query_ids[self.query[rows]],
                "doc_id": self.names[self.docs[rows]],
                "before": _or_nan(self.before[rows], self.before[rows] > NOT_RANKED),
                "after": _or_nan(self.after[rows], self.after[rows] > NOT_RANKED),
                "up": _or_nan(self.up[rows], both),
                "relevant": self.relevant[rows],
            }
        )


def moves(paired: Pairing, before: Judged, after: Judged, threshold: float) -> Moves:
    """Return the moves of every document between two rankings of the same queries.

    paired: of the rankings, each as from `with_ties`. before, after: their joins with the labels.
        threshold: the lowest label of a relevant document. Ranks count every document, labelled or
        not.
    """
    # One more row for documents without a rank: index -1 selects it.
    was, now = (
        np.append(_relevant_rows(len(ranking), judged, threshold), False)
        for ranking, judged in ((paired.before, before), (paired.after, after))
    )
    relevant = was[paired.row_before] | now[paired.row_after]
    return Moves(
        query_ids=paired.query_ids,
        query=paired.query.astype(np.int32),
        names=np.concatenate([paired.before.doc_ids, paired.after.doc_ids]),
        docs=paired.docs,
        before=paired.rank_before,
        after=paired.rank_after,
        relevant=relevant,
        unranked=_relevant_labels(paired.query_ids, before, threshold) - int(relevant.sum()),
        only_before=paired.only_before,
        only_after=paired.only_after,
    )


def with_ties(ranking: Ranking, conventions: Conventions) -> Ranking:
    """Return the ranking with ties in the order that the metrics use."""
    return ranking.with_ties(conventions.order_rule(ranking.ties), conventions.score_precision)


def _relevant_rows(size: int, judged: Judged, threshold: float) -> Flags:
    """Return flags of the rows of a ranking with a relevant document, (size,)."""
    flags = np.zeros(size, dtype=bool)
    chosen = judged.label >= threshold
    flags[judged.starts[judged.query[chosen]] + judged.rank[chosen] - 1] = True
    return flags


def _relevant_labels(queries: npt.NDArray[np.object_], judged: Judged, threshold: float) -> int:
    """Return how many documents are labelled relevant for these queries, ranked or not."""
    shared = set(queries)
    chosen = np.array([query in shared for query in judged.query_ids], dtype=bool)
    relevant = judged.pool_label >= threshold
    return int((relevant & chosen[owners(judged.pool_offsets)]).sum())


def _ranks(ranking: Ranking, row: npt.NDArray[np.int32]) -> Ranks:
    # As in `moves`, index -1 selects "not ranked".
    return np.append(places(ranking.offsets).astype(np.int32), np.int32(NOT_RANKED))[row]


def _or_nan(values: Ranks, ranked: Flags) -> npt.NDArray[np.float64]:
    return np.where(ranked, values, np.nan).astype(np.float64)


# Counts of moves: from which ranks to which, how far, and into and out of the first k.

BINS = ("1", "2–3", "4–5", "6–10", "11–20", "> 20")
UNRANKED = "unranked"
"""The name of the bin, or band, of documents that a ranking lacks."""

_NAMES = (*BINS, UNRANKED)
_STARTS = np.array([1, 2, 4, 6, 11, 21])

STEPS = ("−21…", "−20…−11", "−10…−6", "−5…−3", "−2…−1", "0", "1…2", "3…5", "6…10", "11…20", "21…")
"""Distances of moves: ranks up, negative for down; the first and the last are open."""

_STEP_STARTS = np.array([-20, -10, -5, -2, 0, 1, 3, 6, 11, 21])


def transitions(moves: Moves, *, relevant_only: bool) -> pd.DataFrame:
    """Return how many documents moved from each bin of ranks (rows) to each (columns).

    The bins are `BINS`; if a ranking lacks a document, `UNRANKED` is the last row or column.
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
    """Return flags of the documents in one cell of `transitions`, (N,). They moved from the bin
    `start` to the bin `end`."""
    cell: npt.NDArray[np.bool_] = (_bins(moves.before) == _NAMES.index(start)) & (
        _bins(moves.after) == _NAMES.index(end)
    )
    return cell & moves.relevant if relevant_only else cell


def _bins(rank: Ranks, starts: npt.NDArray[np.int64] = _STARTS) -> npt.NDArray[np.int64]:
    """Return the bin of each rank, for bins with these starts; the last one for `NOT_RANKED`."""
    bins = np.searchsorted(starts, np.arange(rank.max(initial=0) + 1), side="right") - 1
    bins[NOT_RANKED] = len(starts)
    return bins[rank]


def move_sizes(moves: Moves) -> pd.DataFrame:
    """Return how far the documents moved that both rankings have.

    One row for each of `STEPS`, in `step`; relevant and other: the number of documents;
    relevant_share and other_share: as a share of all such documents (NaN if there are none).
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
    """Relevant documents that entered, left or stayed in the first k ranks.

    stayed: among the first k before and after. entered, left: came in, dropped out. outside:
        ranked, but never among the first k. unranked: relevant by their label, and in neither
        ranking.
    bands: one row for each band of ranks below k, in `band` ("11–20"), the last `UNRANKED`: entered
        (how many came in from there), left (how many went there).
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
        """The number of documents labelled relevant for the shared queries."""
        return self.stayed + self.entered + self.left + self.outside + self.unranked


def flow(moves: Moves, k: int) -> Flow:
    """Return from which bands relevant documents came into the first k ranks, and to which bands
    they dropped out."""
    starts = np.array([k + 1, 2 * k + 1, 5 * k + 1])
    names = [_band(k + 1, 2 * k), _band(2 * k + 1, 5 * k), f"> {5 * k}", UNRANKED]

    relevant = np.flatnonzero(moves.relevant)
    before, after = moves.before[relevant], moves.after[relevant]
    was, now = ((rank > NOT_RANKED) & (rank <= k) for rank in (before, after))
    stayed, entered, dropped = (int(each.sum()) for each in (was & now, now & ~was, was & ~now))
    return Flow(
        k=k,
        stayed=stayed,
        entered=entered,
        left=dropped,
        outside=len(relevant) - stayed - entered - dropped,
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
