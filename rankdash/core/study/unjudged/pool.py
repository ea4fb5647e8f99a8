"""The documents that nobody judged: where each stands, and what a label for it would change.

The pool of some systems at a cutoff is every unjudged document that one of them ranks within the
cutoff, as in TREC pooling. Once the pool is labelled, judged@k is 1 for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankdash.core.data.arrays import (
    Floats,
    Integers,
    arrow_integers,
    objects,
    offsets_from,
    places,
    sort_codes,
)
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, Judged


@dataclass(frozen=True, eq=False)
class Pool:
    """U unjudged documents of Q labelled queries, by query.

    offsets: (Q + 1,). query: (U,) index of the query. doc_ids: (U,) object array of str.
    ranks:   (S, U) float64, the rank in each system from 1; inf where it is not within the cutoff.
    """

    offsets: Integers
    query: Integers
    doc_ids: npt.NDArray[np.object_]
    ranks: Floats

    def __len__(self) -> int:
        return len(self.query)

    def counts(self) -> Integers:
        """(Q,) unjudged documents of each query."""
        return np.diff(self.offsets)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Pool:
        """The documents for which (U,) `chosen` holds."""
        query = self.query[chosen]
        counts = np.bincount(query, minlength=len(self.offsets) - 1)
        return Pool(offsets_from(counts), query, self.doc_ids[chosen], self.ranks[:, chosen])


def pool(
    rankings: Sequence[Ranking],
    judged: Sequence[Judged],
    conventions: Conventions,
    k: int | None,
) -> Pool:
    """The pool of some systems within the first k of each list; None for the whole lists.

    judged: the labels joined with each ranking, all with the same labels and conventions.
    """
    settled = [
        ranking.settled(conventions.order_rule(ranking.ties), conventions.score_precision)
        for ranking in rankings
    ]
    found = [_unjudged_rows(each, k) for each in judged]
    codes, documents = _numbered([each.documents for each in settled])
    size = max(len(documents), 1)
    keys = [
        query * size + code[ranking.docs[rows]]
        for (query, rows, _), code, ranking in zip(found, codes, settled, strict=True)
    ]
    pairs, at = np.unique(np.concatenate(keys), return_inverse=True)
    ranks = np.full((len(settled), len(pairs)), np.inf)
    start = 0
    for system, (_, _, rank) in enumerate(found):
        ranks[system, at[start : start + len(rank)]] = rank
        start += len(rank)
    query = pairs // size
    named = documents.take(arrow_integers(pairs % size))
    counts = np.bincount(query, minlength=len(judged[0].query_ids))
    return Pool(offsets_from(counts), query, objects(named), ranks)


def _numbered(vocabularies: Sequence[Any]) -> tuple[list[npt.NDArray[Any]], Any]:
    """The code of each text of each vocabulary, Arrow text, among those of all, and these."""
    if len(vocabularies) == 1:
        return [np.arange(len(vocabularies[0]))], vocabularies[0]
    encoded = pa.concat_arrays(vocabularies).dictionary_encode()
    borders = np.cumsum([len(each) for each in vocabularies])[:-1]
    return np.split(encoded.indices.to_numpy(), borders), encoded.dictionary


def _unjudged_rows(judged: Judged, k: int | None) -> tuple[Integers, Integers, Integers]:
    """Query, row in the ranking and rank of each document within k that has no label."""
    shown = judged.lengths if k is None else np.minimum(judged.lengths, k)
    # Most queries may have none.
    some = np.flatnonzero(judged.judged_within(k) < shown)
    query = np.repeat(some, shown[some])
    rank = places(offsets_from(shown[some]))
    rows = judged.starts[query] + rank - 1
    unjudged = judged.judged_before[rows + 1] == judged.judged_before[rows]
    return query[unjudged], rows[unjudged], rank[unjudged]


def all_labelled(judged: Judged, query: Integers, rank: Floats, label: float) -> Judged:
    """What the join would be if every given unjudged document had that label.

    query, rank: (U,) where each stands; inf where the list does not hold it, which still adds to
        the labels of the query. label: at least the highest there is.
    """
    if not len(query):
        return judged
    ranked = np.isfinite(rank)
    own, place = query[ranked], rank[ranked].astype(np.int64)
    before = (
        judged.judged_before[judged.starts[own] + place - 1]
        - judged.judged_before[judged.starts[own]]
    )
    everyone = np.concatenate([judged.query, own])
    ranks = np.concatenate([judged.rank, place])
    added = np.concatenate([np.zeros(len(judged.rank), dtype=np.int64), np.ones(len(own), int)])
    among = np.concatenate([judged.judged_rank, before + 1])
    labels = np.concatenate([judged.label, np.full(len(own), label)])
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
    kept = offsets[variant] + places(copies) - 1 + below
    put = (offsets[:-1] + counts - np.bincount(variant[below], minlength=len(query)))[ranked]

    def laid_out(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
        values = np.empty(int(offsets[-1]), dtype=old.dtype)
        values[kept], values[put] = old, new[ranked]
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
