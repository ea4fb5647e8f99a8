"""Which documents rankings hold, whatever their order: those of several together, and whether one
holds documents that another lacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rankdash.ranking.build import text_array
from rankdash.ranking.coded import Coded, alike, objects, places_in
from rankdash.ranking.ragged import Integers, offsets_from, owners, places
from rankdash.ranking.ranking import Ranking


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
    ids, width = text_array(query_ids), len(candidates.documents)

    def pairs(ranking: Ranking, codes: Integers) -> Integers:
        """A number for each document of those queries, in order; -1 for one without a code."""
        query = places_in(ids, text_array(ranking.query_ids))[owners(ranking.offsets)]
        due = query >= 0
        document = codes[ranking.docs[due]]
        return np.sort(np.where(document < 0, -1, query[due] * width + document))

    found = pairs(ranking, places_in(alike(candidates.documents), alike(ranking.documents)))
    known = pairs(candidates, np.arange(width))
    if len(found) > len(known):
        return True
    place = np.minimum(np.searchsorted(known, found), len(known) - 1)
    return bool((known[place] != found).any())
