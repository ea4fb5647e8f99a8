"""Set operations on the documents of rankings, regardless of their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankdash.core.data.arrays import (
    Coded,
    Integers,
    alike,
    objects,
    offsets_from,
    owners,
    places,
    places_in,
    sort_pairs,
)
from rankdash.core.data.ranking import Ranking, text_array


def pooled(rankings: Sequence[Ranking]) -> Ranking:
    """Return the union of the rankings' documents per query, in arbitrary order. rankings: at least
    one."""
    queries = Coded.of(pa.concat_arrays([alike(text_array(each.query_ids)) for each in rankings]))
    documents = Coded.of(pa.concat_arrays([alike(each.documents) for each in rankings]))
    lists = np.split(queries.codes, np.cumsum([len(each.query_ids) for each in rankings])[:-1])
    docs = np.split(documents.codes, np.cumsum([len(each.documents) for each in rankings])[:-1])
    width = len(documents.texts)
    every = np.concatenate(
        [
            query_codes.astype(np.int64)[owners(each.offsets)] * width + codes[each.docs]
            for each, query_codes, codes in zip(rankings, lists, docs, strict=True)
        ]
    )
    every.sort()
    pairs = every[np.diff(every, prepend=-1) > 0]
    query, document = np.divmod(pairs, max(width, 1))
    offsets = offsets_from(np.bincount(query, minlength=len(queries.texts)))
    return Ranking(
        query_ids=objects(queries.texts),
        documents=documents.texts,
        offsets=offsets,
        docs=document.astype(np.int32),
        scores=-places(offsets).astype(np.float64),
        tied=np.zeros(len(queries.texts), dtype=bool),
        ties="stable",
        given=np.arange(len(pairs), dtype=np.int32),
    )


def adds_documents(
    ranking: Ranking, candidates: Ranking, query_ids: npt.NDArray[np.object_]
) -> bool:
    """Return whether the ranking contains a document of a query that the candidates lack.

    query_ids: the queries to compare; all others are ignored.
    """
    ids = text_array(query_ids)
    query, other = (places_in(ids, text_array(each.query_ids)) for each in (ranking, candidates))
    list_of = np.full(len(ids) + 1, -1)
    list_of[other] = np.arange(len(other))
    list_of[-1] = -1
    due = (query >= 0)[owners(ranking.offsets)]
    lists = list_of[query][owners(ranking.offsets)[due]]
    docs = places_in(alike(candidates.documents), alike(ranking.documents))[ranking.docs[due]]
    if ((lists < 0) | (docs < 0)).any():
        return True
    return len(places_of(candidates, lists, docs)[0]) < len(docs)


def places_of(ranking: Ranking, lists: Integers, docs: Integers) -> tuple[Integers, Integers]:
    """Look up pairs in a ranking. Return (F,) the row in the ranking and (F,) the index of the pair
    for each pair that is ranked, ordered by the index of the pair.

    lists, docs: (P,) the list and the document of each pair, as numbered by the ranking; pairs are
        unique.
    """
    bounds = len(ranking.query_ids), len(ranking.documents)
    ranked, rows = _ranked_pairs(ranking, docs, bounds)
    requested, pairs = sort_pairs(lists, docs, bounds)
    row = np.full(len(docs), -1)
    if np.array_equal(ranked, requested):
        row[pairs] = rows
        return row, np.arange(len(docs))
    # Binary searches for sorted values are fast, because they read memory in order.
    place = np.searchsorted(ranked, requested)
    place[place == len(ranked)] = 0
    matches = np.flatnonzero(ranked[place] == requested) if len(ranked) else place[:0]
    row[pairs[matches]] = rows[place[matches]]
    matched = np.flatnonzero(row >= 0)
    return row[matched], matched


def _ranked_pairs(
    ranking: Ranking, docs: Integers, bounds: tuple[int, int]
) -> tuple[Integers, Integers]:
    """Sort the (query, document) pairs of a ranking as `sort_pairs` does. Return the sorted pairs
    and the row of each; rows with documents that are not in `docs` are omitted."""
    named = np.zeros(bounds[1], dtype=bool)
    named[docs] = True
    # Ranked documents that are in no pair need no lookup.
    some = named[ranking.docs]
    if some.all():
        return sort_pairs(owners(ranking.offsets), ranking.docs, bounds)
    selected = np.flatnonzero(some)
    ranked, order = sort_pairs(owners(ranking.offsets)[selected], ranking.docs[selected], bounds)
    return ranked, selected[order]
