"""Which documents rankings hold, whatever their order: those of several together, and whether one
holds documents that another lacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankdash.core.data.coded import Coded, alike, objects, places_in
from rankdash.core.data.ragged import Integers, offsets_from, owners, places, sort_pairs
from rankdash.core.data.ranking import Ranking, text_array


def pooled(rankings: Sequence[Ranking]) -> Ranking:
    """Every document that any of the rankings has for a query, once, in no order that means
    anything. rankings: at least one."""
    queries = Coded.of(pa.concat_arrays([alike(text_array(each.query_ids)) for each in rankings]))
    documents = Coded.of(pa.concat_arrays([alike(each.documents) for each in rankings]))
    lists = np.split(queries.codes, np.cumsum([len(each.query_ids) for each in rankings])[:-1])
    docs = np.split(documents.codes, np.cumsum([len(each.documents) for each in rankings])[:-1])
    width = len(documents.texts)
    every = np.concatenate(
        [
            own.astype(np.int64)[owners(each.offsets)] * width + codes[each.docs]
            for each, own, codes in zip(rankings, lists, docs, strict=True)
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
    """Whether the ranking has a document for one of the queries that the candidates lack for it.

    query_ids: the queries that matter; what either has for others is ignored.
    """
    ids = text_array(query_ids)
    query, known = (places_in(ids, text_array(each.query_ids)) for each in (ranking, candidates))
    list_of = np.full(len(ids) + 1, -1)
    list_of[known] = np.arange(len(known))
    list_of[-1] = -1
    due = (query >= 0)[owners(ranking.offsets)]
    lists = list_of[query][owners(ranking.offsets)[due]]
    docs = places_in(alike(candidates.documents), alike(ranking.documents))[ranking.docs[due]]
    if ((lists < 0) | (docs < 0)).any():
        return True
    return len(places_of(candidates, lists, docs)[0]) < len(docs)


def places_of(ranking: Ranking, lists: Integers, docs: Integers) -> tuple[Integers, Integers]:
    """Where pairs stand in a ranking. Both (F,), by the latter: row of the ranking, place of the
    pair.

    lists, docs: (P,) the list and the document of each pair, as the ranking numbers them; no pair
        is there twice.
    """
    bounds = len(ranking.query_ids), len(ranking.documents)
    ranked, rows = _ranked_pairs(ranking, docs, bounds)
    wanted, pairs = sort_pairs(lists, docs, bounds)
    row = np.full(len(docs), -1)
    if np.array_equal(ranked, wanted):
        row[pairs] = rows
        return row, np.arange(len(docs))
    # What is sorted is found in passing, where else each would be a search through all.
    place = np.searchsorted(ranked, wanted)
    place[place == len(ranked)] = 0
    there = np.flatnonzero(ranked[place] == wanted) if len(ranked) else place[:0]
    row[pairs[there]] = rows[place[there]]
    found = np.flatnonzero(row >= 0)
    return row[found], found


def _ranked_pairs(
    ranking: Ranking, docs: Integers, bounds: tuple[int, int]
) -> tuple[Integers, Integers]:
    """`sort_pairs` of the rows of a ranking, and which rows: of these documents at least."""
    named = np.zeros(bounds[1], dtype=bool)
    named[docs] = True
    # Most ranked documents may be in no pair: they need not be looked up.
    some = named[ranking.docs]
    if some.all():
        return sort_pairs(owners(ranking.offsets), ranking.docs, bounds)
    own = np.flatnonzero(some)
    ranked, order = sort_pairs(owners(ranking.offsets)[own], ranking.docs[own], bounds)
    return ranked, own[order]
