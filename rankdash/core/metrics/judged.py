"""`Judged`: a ranking joined with labels. The costly step, done once for all metrics.

The result is small: the ranked positions with a label above 0, and those with any label. A new
cutoff, threshold, gain or metric needs no other data.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.rules import Conventions, Negative, ScorePrecision, TieRule
from rankdash.core.data import arrays as data_arrays
from rankdash.core.data.arrays import (
    Coded,
    Flags,
    Floats,
    Integers,
    offsets_from,
    places,
    places_in,
    sort_codes,
)
from rankdash.core.data.overlap import places_of
from rankdash.core.data.ranking import Groups, Ranking, coded, group_rows


@dataclass(frozen=True, eq=False)
class Judged:
    """Q labelled queries joined with their ranked lists.

    query_ids: (Q,) object array of str, the labelled queries, in the order of the labels.
    present: (Q,) bool, whether the ranking contains the query.
    lengths: (Q,) number of ranked documents; 0 if not present.
    starts: (Q,) start of the query's list in the N ranked rows.
    tied: (Q,) bool, whether two of its documents share a score.
    query, rank, judged_rank, label: (J,) ranked positions with a label above 0, by query and rank:
        index of the query, rank from 1, rank among labelled documents from 1, label.
    judged_rows: (L,) the ranked rows with a label, ascending.
    ranked: N.
    pool_label: (P,) all labels above 0, ranked or not, by query, highest first.
    pool_offsets: (Q + 1,) start of each query's labels in `pool_label`.
    pool_size: (Q,) number of labelled documents, with any label.
    unlabelled: ranked queries without labels: they are not evaluated.
    joining: the conventions of the join.
    highest: for a subset of the queries, the highest label of all queries.
    """

    query_ids: npt.NDArray[np.object_]
    present: Flags
    lengths: Integers
    starts: Integers
    tied: Flags
    query: Integers
    rank: Integers
    judged_rank: Integers
    label: Floats
    judged_rows: Integers
    ranked: int
    pool_label: Floats
    pool_offsets: Integers
    pool_size: Integers
    unlabelled: tuple[str, ...]
    joining: tuple[TieRule, ScorePrecision, Negative]
    highest: float | None = None

    def judged_within(self, k: int | Integers | None) -> Integers:
        """Return the (Q,) number of labelled documents among the first k. k: an int or (Q,); None
        for all."""
        stop = self.lengths if k is None else np.minimum(self.lengths, k)
        ends = np.array([self.starts, self.starts + stop])
        # If most rows are labelled, counts for all rows need at most twice the memory.
        most = 2 * len(self.judged_rows) >= self.ranked
        bounds = self.judged_before[ends] if most else np.searchsorted(self.judged_rows, ends)
        count: Integers = np.diff(bounds, axis=0)[0].astype(np.int64)
        return count

    @cached_property
    def judged_before(self) -> npt.NDArray[np.int32]:
        """Number of labelled documents before each ranked row, shape (N + 1,)."""
        before = np.zeros(self.ranked + 1, dtype=np.int32)
        before[self.judged_rows + 1] = 1
        return np.cumsum(before, out=before)


def judge(
    ranking: Ranking,
    qrels: pd.DataFrame | Mapping[str, Any],
    conventions: Conventions | None = None,
) -> Judged:
    """Join a ranking with labels.

    qrels: query_id, doc_id (also as `Coded`), label (finite; fractional and negative labels are
        allowed); any order.

    Raises DataError if a label is not finite or a pair is labelled twice.
    """
    labels = np.asarray(qrels["label"], dtype=np.float64)
    return match(ranking, qrels, conventions).judged(labels)


@dataclass(frozen=True, eq=False)
class Matched:
    """Ranking joined with P pairs of Q queries, independent of their labels.

    offsets, tied: of the ranking after ties are resolved. lists: (Q,) the list of each query, -1
        without one. query: (P,) the query of each pair, as grouped. rows, found: (F,) ranked rows,
        and the pairs at these rows. unlabelled: ranked queries without pairs.
    """

    offsets: Integers
    tied: Flags
    conventions: Conventions
    groups: Groups
    query_ids: npt.NDArray[np.object_]
    lists: Integers
    query: Integers
    rows: Integers
    found: Integers
    unlabelled: tuple[str, ...]

    def judged(self, labels: Floats) -> Judged:
        """Return the join with the labels of the pairs, in the order of the pairs.

        Raises DataError if a label is not finite.
        """
        if not np.isfinite(labels).all():
            raise DataError("A label is not a finite number.")
        labels = self.groups.arrange(labels)
        query, rows, matched = self.query, self.rows, self.found
        if self.conventions.negative == "unjudged":
            counted = labels >= 0
            query, rows, matched = query[counted], rows[counted[matched]], matched[counted[matched]]
        positive = labels > 0
        row_label = np.full(int(self.offsets[-1]), np.nan)
        row_label[rows] = labels[matched]
        size = np.bincount(query, minlength=len(self.query_ids))
        before = _count_before(row_label)
        return _assemble(
            self.query_ids,
            _Lists(self.lists, self.offsets, self.tied, row_label, before),
            _Pool.of(self.query[positive], labels[positive], size),
            self.unlabelled,
            self.conventions,
        )


def match(
    ranking: Ranking,
    pairs: pd.DataFrame | Mapping[str, Any],
    conventions: Conventions | None = None,
) -> Matched:
    """Locate pairs in a ranking, to join it with their labels one or more times.

    pairs: query_id and doc_id, also as `Coded`; any order.

    Raises DataError for a duplicate pair.
    """
    conventions = conventions or Conventions()
    rule = conventions.order_rule(ranking.ties)
    # The join needs only the order, and scores are half the size of a ranking.
    ranking = replace(ranking.with_ties(rule, conventions.score_precision), scores=ranking.scores)
    queries = coded(pairs["query_id"])
    groups, query_ids = group_rows(queries), queries.names
    docs = coded(pairs["doc_id"])
    label_docs = groups.arrange(docs.codes)
    if data_arrays.has_repeats(label_docs, groups.offsets):
        raise DataError(
            "A document is labelled twice for the same query.",
            remedy="Keep one label per query and document.",
        )
    query = data_arrays.owners(groups.offsets)
    lists = _lists_of(ranking, query_ids)
    rows, matched = _rows_of(ranking, lists[query], Coded(label_docs, docs.texts))
    labelled = set(query_ids)
    return Matched(
        offsets=ranking.offsets,
        tied=ranking.tied,
        conventions=conventions,
        groups=groups,
        query_ids=query_ids,
        lists=lists,
        query=query,
        rows=rows,
        found=matched,
        unlabelled=tuple(each for each in ranking.query_ids if each not in labelled),
    )


def labelled_rows(ranking: Ranking, queries: Coded, documents: Coded) -> tuple[Integers, Integers]:
    """Return the positions of labelled pairs in a ranking: the ranked rows, ascending, and the
    index of the pair at each; both (F,). Pairs must be unique."""
    lists = _lists_of(ranking, queries.texts.to_pylist())
    return _rows_of(ranking, lists[queries.codes], documents)


def _rows_of(ranking: Ranking, lists: Integers, documents: Coded) -> tuple[Integers, Integers]:
    """Do the same as `labelled_rows`. lists: (P,) the list of each pair, -1 without one."""
    doc = places_in(ranking.documents, documents.texts)[documents.codes]
    present = (lists >= 0) & (doc >= 0)
    if present.all():
        return places_of(ranking, lists, doc)
    rows, matched = places_of(ranking, lists[present], doc[present])
    return rows, np.flatnonzero(present)[matched]


def _lists_of(ranking: Ranking, query_ids: Iterable[str]) -> Integers:
    """Return the list of each query in the ranking, -1 without one, shape (Q,)."""
    return np.array([ranking.positions.get(query, -1) for query in query_ids], dtype=np.int64)


def judge_list(
    query_id: str,
    ranked: Floats | None,
    labels: Floats,
    conventions: Conventions,
    *,
    tied: bool = False,
) -> Judged:
    """Join the list of one query, in its order, with its labels.

    ranked: (D,) the label of each document by rank, NaN without one; None without a list. labels:
        (L,) all labels of the query, finite. tied: whether the order depends on equal scores.
    """
    if conventions.negative == "unjudged":
        labels = labels[labels >= 0]
        ranked = None if ranked is None else np.where(ranked < 0, np.nan, ranked)
    row_label = np.zeros(0) if ranked is None else ranked
    positive = labels[labels > 0]
    return _assemble(
        np.array([query_id], dtype=object),
        _Lists(
            np.array([0 if ranked is not None else -1]),
            np.array([0, len(row_label)]),
            np.array([tied]),
            row_label,
            _count_before(row_label),
        ),
        _Pool.of(np.zeros(len(positive), dtype=np.int64), positive, np.array([len(labels)])),
        (),
        conventions,
    )


@dataclass(frozen=True, eq=False)
class _Lists:
    """Ranked lists (G lists, N rows) that are joined with Q labelled queries.

    at: (Q,) the list of each labelled query, -1 without one.
    offsets: (G + 1,); tied: (G,); row_label: (N,) NaN if not labelled.
    judged_before: (N + 1,) number of labelled rows before each row.
    """

    at: Integers
    offsets: Integers
    tied: Flags
    row_label: Floats
    judged_before: npt.NDArray[np.int32]

    @cached_property
    def positive_rows(self) -> Integers:
        """Rows with a label above 0."""
        return np.flatnonzero(self.row_label > 0)

    @cached_property
    def positive_query(self) -> Integers:
        """Labelled query of each of those rows."""
        query = np.full(len(self.offsets) - 1, -1, dtype=np.int64)
        present = self.at >= 0
        query[self.at[present]] = np.flatnonzero(present)
        return np.repeat(query, np.diff(np.searchsorted(self.positive_rows, self.offsets)))


@dataclass(frozen=True, eq=False)
class _Pool:
    """All labels: those above 0 by query, highest first, and the number of labels with any
    value."""

    label: Floats
    offsets: Integers
    size: Integers

    @classmethod
    def of(cls, query: Integers, labels: Floats, size: Integers) -> _Pool:
        """Build from labels above 0 in the order of their query, and the number of labels of each
        query, shape (Q,)."""
        offsets = data_arrays.offsets_from(np.bincount(query, minlength=len(size)))
        return cls(data_arrays.sort_descending(labels, offsets), offsets, size)


def _count_before(row_label: Floats) -> npt.NDArray[np.int32]:
    """Return the number of labelled rows before each row, shape (N + 1,)."""
    missing = np.isnan(row_label)
    if not missing.any():
        return np.arange(len(row_label) + 1, dtype=np.int32)
    before = np.zeros(len(row_label) + 1, dtype=np.int32)
    np.cumsum(~missing, out=before[1:])
    return before


def _assemble(
    query_ids: npt.NDArray[np.object_],
    lists: _Lists,
    pool: _Pool,
    unlabelled: tuple[str, ...],
    conventions: Conventions,
) -> Judged:
    # Index -1 refers to an extra empty list: "not ranked".
    starts = np.append(lists.offsets[:-1], 0)[lists.at]
    judged_before = lists.judged_before
    rows, query = lists.positive_rows, lists.positive_query
    if bool((query[1:] < query[:-1]).any()):
        order = data_arrays.sort_codes(query, len(query_ids))
        query, rows = query[order], rows[order]
    return Judged(
        query_ids=query_ids,
        present=lists.at >= 0,
        lengths=np.append(np.diff(lists.offsets), 0)[lists.at],
        starts=starts,
        tied=np.append(lists.tied, False)[lists.at],
        query=query,
        rank=rows - starts[query] + 1,
        judged_rank=(judged_before[rows + 1] - judged_before[starts[query]]).astype(np.int64),
        label=lists.row_label[rows],
        judged_rows=np.flatnonzero(np.diff(judged_before)),
        ranked=len(lists.row_label),
        pool_label=pool.label,
        pool_offsets=pool.offsets,
        pool_size=pool.size,
        unlabelled=unlabelled,
        joining=conventions.joining,
    )


# `Judged` in pieces that share no query: on disk, and in memory one at a time.

_NO_IDS: npt.NDArray[np.object_] = np.zeros(0, dtype=object)


class JudgedPieces:
    """Pieces of several rankings, by name; piece i of every ranking has the same queries.

    They are stored in an unnamed temporary file (in TMPDIR), which is removed with this object.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._file.close)
        self._ids: list[npt.NDArray[np.object_]] = []
        # Fields of each piece that are not arrays, and the file positions of its arrays.
        self._pieces: dict[str, list[tuple[Judged, dict[str, int]]]] = {}
        self._highest = 0.0

    def add(self, judged: dict[str, Judged]) -> None:
        """Append the next piece of every ranking. Raises OSError if the disk is full."""
        for name, each in judged.items():
            places = {}
            for field, values in _arrays(each).items():
                places[field] = self._file.seek(0, os.SEEK_END)
                np.save(self._file, values, allow_pickle=False)
            nothing: dict[str, Any] = dict.fromkeys(["query_ids", *places], _NO_IDS)
            self._pieces.setdefault(name, []).append((replace(each, **nothing), places))
            self._highest = max(self._highest, float(each.pool_label.max(initial=0.0)))
        self._ids.append(each.query_ids)

    def query_ids(self) -> npt.NDArray[np.object_]:
        """Return the ids of all pieces, one after the other, shape (Q,)."""
        return np.concatenate([_NO_IDS, *self._ids])

    def read(self, name: str) -> Iterator[Judged]:
        """Yield the pieces of one ranking, each with the highest label of all."""
        for ids, (piece, positions) in zip(self._ids, self._pieces[name], strict=True):
            arrays: dict[str, Any] = {}
            for field, place in positions.items():
                self._file.seek(place)
                arrays[field] = np.load(self._file, allow_pickle=False)
            yield replace(piece, query_ids=ids, highest=self._highest, **arrays)


def _arrays(judged: Judged) -> dict[str, npt.NDArray[Any]]:
    """Return all arrays except the query ids, which are objects."""
    return {
        name: value
        for name, value in vars(judged).items()
        if isinstance(value, np.ndarray)
        and name in Judged.__dataclass_fields__
        and name != "query_ids"
    }


def all_labelled(judged: Judged, query: Integers, rank: Floats, label: float) -> Judged:
    """Return the join that would result if every unjudged document in the arguments had this label.

    query, rank: (U,) the position of each; inf if the list does not contain it: it then adds only
        to the labels of the query. label: at least the highest existing label.
    """
    if not len(query):
        return judged
    ranked = np.isfinite(rank)
    owner, place = query[ranked], rank[ranked].astype(np.int64)
    before = (
        judged.judged_before[judged.starts[owner] + place - 1]
        - judged.judged_before[judged.starts[owner]]
    )
    everyone = np.concatenate([judged.query, owner])
    ranks = np.concatenate([judged.rank, place])
    added = np.concatenate([np.zeros(len(judged.rank), dtype=np.int64), np.ones(len(owner), int)])
    among = np.concatenate([judged.judged_rank, before + 1])
    labels = np.concatenate([judged.label, np.full(len(owner), label)])
    deepest = int(ranks.max(initial=0)) + 1
    order = sort_codes(everyone * deepest + ranks, len(judged.query_ids) * deepest)
    everyone, ranks, added = everyone[order], ranks[order], added[order]
    starts = offsets_from(np.bincount(everyone, minlength=len(judged.query_ids)))
    total = offsets_from(added)
    above = total[:-1] - total[starts[everyone]]
    counts = np.bincount(query, minlength=len(judged.query_ids))
    pool_offsets, pool_label = _with_top(judged, counts, label)
    return replace(
        judged,
        query=everyone,
        rank=ranks,
        judged_rank=among[order] + above,
        label=labels[order],
        pool_label=pool_label,
        pool_offsets=pool_offsets,
        pool_size=judged.pool_size + counts,
    )


def each_labelled(judged: Judged, query: Integers, rank: Floats, label: float) -> Judged:
    """Return a join of U variants of queries, one per unjudged document, each as if only that
    document had this label. Parameters as for `all_labelled`; queries ascend."""
    hits = offsets_from(np.bincount(judged.query, minlength=len(judged.query_ids)))
    counts = np.diff(hits)[query]
    copies = offsets_from(counts)
    variant = np.repeat(np.arange(len(query)), counts)
    source = np.repeat(hits[query], counts) + places(copies) - 1
    ranked = np.isfinite(rank)
    below = judged.rank[source] > rank[variant]
    place = np.where(ranked, rank, 1).astype(np.int64)
    start = judged.starts[query]
    last = np.minimum(start + place - 1, len(judged.judged_before) - 1)
    among = judged.judged_before[last] - judged.judged_before[start] + 1
    # Each variant's list is the query's list with one row inserted after those above it.
    offsets = offsets_from(counts + ranked)
    existing = offsets[variant] + places(copies) - 1 + below
    inserted = (offsets[:-1] + counts - np.bincount(variant[below], minlength=len(query)))[ranked]

    def laid_out(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
        values = np.empty(int(offsets[-1]), dtype=old.dtype)
        values[existing], values[inserted] = old, new[ranked]
        return values

    pool_offsets, pool_label = _with_top(
        _chosen_pools(judged, query), np.ones(len(query), int), label
    )
    return replace(
        judged,
        query_ids=judged.query_ids[query],
        present=judged.present[query],
        lengths=judged.lengths[query],
        starts=start,
        tied=judged.tied[query],
        pool_label=pool_label,
        pool_offsets=pool_offsets,
        pool_size=judged.pool_size[query] + 1,
        query=laid_out(variant, np.arange(len(query))),
        rank=laid_out(judged.rank[source], place),
        judged_rank=laid_out(judged.judged_rank[source] + below, among),
        label=laid_out(judged.label[source], np.full(len(query), label)),
    )


def _chosen_pools(judged: Judged, query: Integers) -> Judged:
    """Return the labels of the queries, repeated for each occurrence."""
    counts = np.diff(judged.pool_offsets)[query]
    offsets = offsets_from(counts)
    source = np.repeat(judged.pool_offsets[query], counts) + places(offsets) - 1
    return replace(judged, pool_label=judged.pool_label[source], pool_offsets=offsets)


def _with_top(judged: Judged, counts: Integers, label: float) -> tuple[Integers, Floats]:
    """Return offsets and labels after adding `counts` (Q,) labels of the highest value."""
    offsets = offsets_from(np.diff(judged.pool_offsets) + counts)
    labels = np.full(int(offsets[-1]), label)
    owner = np.repeat(np.arange(len(counts)), np.diff(judged.pool_offsets))
    at = offsets[owner] + counts[owner] + places(judged.pool_offsets) - 1
    labels[at] = judged.pool_label
    return offsets, labels
