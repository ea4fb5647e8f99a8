"""Hard negatives to train a reranker with, in the triplet form that sentence-transformers reads."""

from __future__ import annotations

import json

import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.study.study import Study

MOST_NEGATIVES = 5
"""Hard negatives of each relevant document: the highest ranked ones are the hardest."""

TRIPLETS = ("query", "positive", "negative", "query_id", "positive_id", "negative_id")


def triplets(study: Study, system: str) -> pd.DataFrame:
    """Hard negatives to train a reranker with: `TRIPLETS`, a row for each relevant document of a
    ranking and each of the first `MOST_NEGATIVES` documents above it whose label says that they are
    not relevant.

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


_INPUTS = ["query", "positive", "negative"]
"""In this order: a loss of sentence-transformers takes every column as an input, so no ids."""


def lacks_texts(study: Study) -> bool:
    """Whether the data set has no texts to train with."""
    data = study.dataset
    return not (data.document_text().ne("").any() and data.query_text().ne("").any())


def as_json_lines(study: Study, system: str) -> bytes:
    """A line for each triplet; empty where no document stands above a relevant one. Raises
    DataError where the data set has no texts."""
    if lacks_texts(study):
        raise DataError("The data set has no texts of queries and documents.")
    rows = triplets(study, system)[_INPUTS].to_dict("records")
    lines = (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return "".join(lines).encode("utf-8", "replace")
