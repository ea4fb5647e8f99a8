"""Which documents rankings hold, whatever their order: those of several together, and whether one
holds documents that another lacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.ranking.coded import arrow_text
from rankdash.ranking.ragged import Integers, offsets_from, owners, places
from rankdash.ranking.ranking import Ranking


def pooled(rankings: Sequence[Ranking]) -> Ranking:
    """Every document that any of the rankings has for a query, once, in no order that means
    anything. rankings: at least one."""
    queries = pd.Index(pd.unique(np.concatenate([each.query_ids for each in rankings])))
    documents = pd.Index(pd.unique(np.concatenate([each.doc_ids for each in rankings])))
    every = np.concatenate([_pairs(each, queries, documents) for each in rankings])
    pairs = np.sort(pd.unique(every))
    query, document = np.divmod(pairs, len(documents))
    offsets = offsets_from(np.bincount(query, minlength=len(queries)))
    return Ranking(
        query_ids=queries.to_numpy(dtype=object),
        documents=arrow_text(documents.to_numpy(dtype=object)),
        offsets=offsets,
        docs=document.astype(np.int32),
        scores=-places(offsets).astype(np.float64),
        tied=np.zeros(len(queries), dtype=bool),
        ties="stable",
        given=np.arange(len(pairs), dtype=np.int32),
    )


def adds_documents(
    ranking: Ranking, candidates: Ranking, query_ids: npt.NDArray[np.object_]
) -> bool:
    """Whether the ranking has a document for one of the queries that the candidates lack for it.

    query_ids: the queries that matter; what either has for others is ignored.
    """
    queries = pd.Index(query_ids, dtype=object)
    documents = pd.Index(candidates.doc_ids, dtype=object)
    found = _pairs(ranking, queries, documents)
    known = _pairs(candidates, queries, documents)
    # NumPy's own `isin` and `unique` take ten times as long.
    there = pd.Index(found[found >= 0]).isin(known)
    return bool((found == _NO_DOCUMENT).any()) or not bool(there.all())


_NO_QUERY, _NO_DOCUMENT = -2, -1


def _pairs(ranking: Ranking, queries: pd.Index, documents: pd.Index) -> Integers:
    """(N,) a number for each query and document: the same pair has the same in every ranking.
    `_NO_QUERY` where the query is not among `queries`, else `_NO_DOCUMENT` where the document is
    not among `documents`."""
    query = queries.get_indexer(pd.Index(ranking.query_ids, dtype=object))[owners(ranking.offsets)]
    document = documents.get_indexer(pd.Index(ranking.doc_ids, dtype=object))[ranking.docs]
    codes = query.astype(np.int64) * len(documents) + document
    codes[document < 0] = _NO_DOCUMENT
    codes[query < 0] = _NO_QUERY
    return codes
