"""Documents that a system ranks above relevant ones: what to train a reranker with."""

from __future__ import annotations

import pandas as pd

from rankdash.study.study import Study

MOST_NEGATIVES = 5
"""Of each relevant document: the highest ranked ones are the hardest."""

COLUMNS = ("query", "positive", "negative", "query_id", "positive_id", "negative_id")


def triplets(study: Study, system: str) -> pd.DataFrame:
    """`COLUMNS`, a row for each relevant document of a ranking and each of the first
    `MOST_NEGATIVES` documents above it whose label says that they are not relevant.

    The texts are those that a model reads; rows without one are left out. What nobody labelled is
    no negative: it may be relevant.
    """
    ranked = study.ranking(system).frame()[["query_id", "doc_id", "rank"]]
    rows = ranked.merge(study.dataset.qrels, on=["query_id", "doc_id"])
    relevant = rows["label"] >= study.conventions.threshold
    wrong = rows[~relevant].groupby("query_id", sort=False).head(MOST_NEGATIVES)
    pairs = rows[relevant].merge(wrong, on="query_id", suffixes=("_positive", "_negative"))
    pairs = pairs[pairs["rank_negative"] < pairs["rank_positive"]]
    texts, queries = study.dataset.document_text(), study.dataset.query_text()
    found = pd.DataFrame(
        {
            "query": queries.reindex(pairs["query_id"]).to_numpy(dtype=object),
            "positive": texts.reindex(pairs["doc_id_positive"]).to_numpy(dtype=object),
            "negative": texts.reindex(pairs["doc_id_negative"]).to_numpy(dtype=object),
            "query_id": pairs["query_id"].to_numpy(dtype=object),
            "positive_id": pairs["doc_id_positive"].to_numpy(dtype=object),
            "negative_id": pairs["doc_id_negative"].to_numpy(dtype=object),
        }
    )
    written = found[["query", "positive", "negative"]].fillna("").astype(bool).all(axis=1)
    return found[written].reset_index(drop=True)
