"""`Judged`: a ranking joined with labels. The costly step, done once for all metrics.

What is kept is small: the ranked positions with a label above 0, and those that have any. A new
cutoff, threshold, gain or metric needs nothing else.
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
from rankdash.core.data.ranking import (
    Groups,
    Ranking,
    coded,
    group_rows,
    places_of,
)


@dataclass(frozen=True, eq=False)
class Judged:
    """Q labelled queries and what a ranking did for them.

    query_ids:   (Q,) object array of str, the labelled queries, in the order of the labels.
    present:     (Q,) bool, whether the ranking has the query.
    lengths:     (Q,) how many documents were ranked; 0 where not present.
    starts:      (Q,) where the query's list starts in the N ranked rows.
    tied:        (Q,) bool, whether two of its documents share a score.
    query, rank, judged_rank, label: (J,) ranked positions with a label above 0, by query and rank:
                 index of the query, rank from 1, rank among labelled documents from 1, label.
    judged_rows: (L,) the ranked rows that have a label, ascending.
    ranked:      N.
    pool_label:  (P,) all labels above 0, ranked or not, by query, highest first.
    pool_offsets: (Q + 1,) where each query's labels start in `pool_label`.
    pool_size:   (Q,) how many documents are labelled, whatever the label.
    unlabelled:  ranked queries without labels: they are not evaluated.
    joining:     the conventions that shaped the join.
    highest:     where these are only some of the queries, the highest label of all of them.
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
        """(Q,) labelled documents among the first k, or (Q,) k; among all for None."""
        stop = self.lengths if k is None else np.minimum(self.lengths, k)
        ends = np.array([self.starts, self.starts + stop])
        # A count for every row is no larger than the rows, where most are labelled.
        most = 2 * len(self.judged_rows) >= self.ranked
        bounds = self.judged_before[ends] if most else np.searchsorted(self.judged_rows, ends)
        count: Integers = np.diff(bounds, axis=0)[0].astype(np.int64)
        return count

    @cached_property
    def judged_before(self) -> npt.NDArray[np.int32]:
        """(N + 1,) how many labelled documents stand before each ranked row."""
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
        kept); any order.

    Raises DataError where a label is not finite or a pair is labelled twice.
    """
    labels = np.asarray(qrels["label"], dtype=np.float64)
    return match(ranking, qrels, conventions).judged(labels)


@dataclass(frozen=True, eq=False)
class Matched:
    """A ranking and P pairs of Q queries that are found in it, whatever their labels.

    offsets, tied: of the ranking as it is settled; its lists may be copies that nothing else needs.
    lists: (Q,) the list of each query, -1 where it has none. query: (P,) the query of each pair, as
    grouped. rows, found: (F,) rows of the ranking, and the pairs that stand there. unlabelled:
    ranked queries without pairs.
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
        """The join with the labels of the pairs, in the order that these were given in.

        Raises DataError where a label is not finite.
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
    """Find pairs in a ranking, to join it with their labels, once or many times.

    pairs: query_id and doc_id, also as `Coded`; any order.

    Raises DataError where a pair is there twice.
    """
    conventions = conventions or Conventions()
    rule = conventions.order_rule(ranking.ties)
    # Joining needs the order alone, and scores are half of what a ranking holds.
    ranking = replace(ranking.settled(rule, conventions.score_precision), scores=ranking.scores)
    queries = coded(pairs["query_id"])
    groups, query_ids = group_rows(queries), queries.names
    docs = coded(pairs["doc_id"])
    label_docs = groups.arrange(docs.codes)
    if data_arrays.has_repeats(label_docs, groups.offsets):
        raise DataError(
            "A document is labelled twice for the same query.",
            remedy="Give one label for each query and document.",
        )
    query = data_arrays.owners(groups.offsets)
    lists = _lists_of(ranking, query_ids)
    rows, matched = _rows_of(ranking, lists[query], Coded(label_docs, docs.texts))
    known = set(query_ids)
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
        unlabelled=tuple(each for each in ranking.query_ids if each not in known),
    )


def labelled_rows(ranking: Ranking, queries: Coded, documents: Coded) -> tuple[Integers, Integers]:
    """Where labelled pairs stand in a ranking. Both (F,), by the latter: row of the ranking, place
    of the pair. No pair is there twice."""
    lists = _lists_of(ranking, queries.texts.to_pylist())
    return _rows_of(ranking, lists[queries.codes], documents)


def _rows_of(ranking: Ranking, lists: Integers, documents: Coded) -> tuple[Integers, Integers]:
    """As `labelled_rows`. lists: (P,) the list of each pair, -1 where there is none."""
    doc = places_in(ranking.documents, documents.texts)[documents.codes]
    known = (lists >= 0) & (doc >= 0)
    if known.all():
        return places_of(ranking, lists, doc)
    rows, matched = places_of(ranking, lists[known], doc[known])
    return rows, np.flatnonzero(known)[matched]


def _lists_of(ranking: Ranking, query_ids: Iterable[str]) -> Integers:
    """(Q,) the list of each query in the ranking, -1 where it has none."""
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

    ranked: (D,) the label of each document by rank, NaN where it has none; None where there is no
        list. labels: (L,) all of the query, finite. tied: whether the order came by equal scores.
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
    """G ranked lists, N rows, seen from Q labelled queries.

    at:        (Q,) the list of each labelled query, -1 where it has none.
    offsets:   (G + 1,); tied: (G,); row_label: (N,) NaN where not labelled.
    judged_before: (N + 1,) how many labelled rows stand before each row.
    """

    at: Integers
    offsets: Integers
    tied: Flags
    row_label: Floats
    judged_before: npt.NDArray[np.int32]

    @cached_property
    def positive_rows(self) -> Integers:
        """The rows with a label above 0."""
        return np.flatnonzero(self.row_label > 0)

    @cached_property
    def positive_query(self) -> Integers:
        """The labelled query of each of those rows."""
        query = np.full(len(self.offsets) - 1, -1, dtype=np.int64)
        present = self.at >= 0
        query[self.at[present]] = np.flatnonzero(present)
        return np.repeat(query, np.diff(np.searchsorted(self.positive_rows, self.offsets)))


@dataclass(frozen=True, eq=False)
class _Pool:
    """All labels: those above 0 by query, highest first, and how many there are of any value."""

    label: Floats
    offsets: Integers
    size: Integers

    @classmethod
    def of(cls, query: Integers, labels: Floats, size: Integers) -> _Pool:
        """From labels above 0 in the order of their query, and (Q,) how many there are of any."""
        offsets = data_arrays.offsets_from(np.bincount(query, minlength=len(size)))
        return cls(data_arrays.sort_descending(labels, offsets), offsets, size)


def _count_before(row_label: Floats) -> npt.NDArray[np.int32]:
    """(N + 1,) how many labelled rows stand before each row."""
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
    # One more list, empty, stands for "not ranked": index -1 finds it.
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


# `Judged` of pieces that share no query: on the disk, and in memory one at a time.

_NO_IDS: npt.NDArray[np.object_] = np.zeros(0, dtype=object)


class JudgedPieces:
    """Pieces of several rankings, by name; each has the same queries in the pieces of all.

    They lie in a file without a name, in the folder that TMPDIR names, which goes with this object.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._file.close)
        self._ids: list[npt.NDArray[np.object_]] = []
        # What is no array of each piece, and where its arrays lie.
        self._pieces: dict[str, list[tuple[Judged, dict[str, int]]]] = {}
        self._highest = 0.0

    def add(self, judged: dict[str, Judged]) -> None:
        """The next piece of every ranking. Raises OSError where there is no room."""
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
        """(Q,) of all pieces, one after the other."""
        return np.concatenate([_NO_IDS, *self._ids])

    def read(self, name: str) -> Iterator[Judged]:
        """The pieces of one of them. Each knows the highest label of all."""
        for ids, (piece, positions) in zip(self._ids, self._pieces[name], strict=True):
            arrays: dict[str, Any] = {}
            for field, place in positions.items():
                self._file.seek(place)
                arrays[field] = np.load(self._file, allow_pickle=False)
            yield replace(piece, query_ids=ids, highest=self._highest, **arrays)


def _arrays(judged: Judged) -> dict[str, npt.NDArray[Any]]:
    """All but the ids of queries, which are objects."""
    return {
        name: value
        for name, value in vars(judged).items()
        if isinstance(value, np.ndarray)
        and name in Judged.__dataclass_fields__
        and name != "query_ids"
    }


def all_labelled(judged: Judged, query: Integers, rank: Floats, label: float) -> Judged:
    """What the join would be if every given unjudged document had that label.

    query, rank: (U,) where each stands; inf where the list does not hold it, which still adds to
        the labels of the query. label: at least the highest there is.
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
    """What the join would be if one unjudged document alone had that label: U variants of their
    queries, one for each document. Parameters as for `all_labelled`; queries ascend."""
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
    # Each variant's list is the query's with one row put in after those above it.
    offsets = offsets_from(counts + ranked)
    existing = offsets[variant] + places(copies) - 1 + below
    put = (offsets[:-1] + counts - np.bincount(variant[below], minlength=len(query)))[ranked]

    def laid_out(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
        values = np.empty(int(offsets[-1]), dtype=old.dtype)
        values[existing], values[put] = old, new[ranked]
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
    """The labels of the given queries, repeated as they are."""
    counts = np.diff(judged.pool_offsets)[query]
    offsets = offsets_from(counts)
    source = np.repeat(judged.pool_offsets[query], counts) + places(offsets) - 1
    return replace(judged, pool_label=judged.pool_label[source], pool_offsets=offsets)


def _with_top(judged: Judged, counts: Integers, label: float) -> tuple[Integers, Floats]:
    """Offsets and labels above 0 with (Q,) `counts` more of the highest label."""
    offsets = offsets_from(np.diff(judged.pool_offsets) + counts)
    labels = np.full(int(offsets[-1]), label)
    owner = np.repeat(np.arange(len(counts)), np.diff(judged.pool_offsets))
    at = offsets[owner] + counts[owner] + places(judged.pool_offsets) - 1
    labels[at] = judged.pool_label
    return offsets, labels
