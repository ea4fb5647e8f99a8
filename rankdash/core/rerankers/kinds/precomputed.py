"""Ranking from a file, shown as a system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np
import pandas as pd

from rankdash.core.base.errors import UnavailableError
from rankdash.core.base.rules import SettingValue
from rankdash.core.data.ranking import Ranking, Run, digest
from rankdash.core.rerankers.base import Capabilities, Corpus, Request, RerankerKind, Scored


class Precomputed:
    """Reranker that returns the scores of a ranking; documents that it does not list are NaN."""

    name = "precomputed"

    def __init__(self, ranking: Ranking) -> None:
        self.settings: Mapping[str, SettingValue] = {}
        self._ranking = ranking

    def prepare(self, corpus: Corpus) -> None:
        """Do nothing, because the scores need no model."""

    def fingerprint(self) -> str:
        """Return "": the scores are in the file, so no cache is needed."""
        return ""

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Return the ranking's scores. A query that it does not rank fails; it is never scored
        0."""
        return [self._score(request) for request in requests]

    def _score(self, request: Request) -> Scored:
        if request.query_id not in self._ranking.positions:
            return Scored.failed(len(request.doc_ids), "The ranking does not contain this query.")
        docs, scores = self._ranking.documents_of(request.query_id)
        by_doc = dict(zip(docs, scores, strict=True))
        return Scored(np.array([by_doc.get(doc, np.nan) for doc in request.doc_ids], np.float64))


def run_from_ranking(
    name: str,
    dataset_id: str,
    ranking: Ranking,
    file: str,
    outcomes: pd.DataFrame | None = None,
) -> Run:
    """Return a ranking read from `file` as a `Run` named `name`.

    outcomes: query_id, state, reason and latency_ms of its queries, if known.

    Its id is a hash of data set, name and content, so the same file added twice is one run. Every
    ranked query is done, and a query that failed by `outcomes` is failed. Tokens and truncation are
    unknown (NaN), and latency too without `outcomes`.
    """
    pairs = np.diff(ranking.offsets)
    unknown = np.full(len(pairs), np.nan)
    queries = pd.DataFrame(
        {
            "query_id": pd.Series(ranking.query_ids, dtype="str"),
            "state": pd.Series(["done"] * len(pairs), dtype="str"),
            "reason": pd.Series([""] * len(pairs), dtype="str"),
            "latency_ms": unknown,
            "index_ms": unknown,
            "pairs": pairs.astype(np.int64),
            "tokens": unknown,
            "truncated": unknown,
        }
    )
    if outcomes is not None:
        times = dict(zip(outcomes["query_id"], outcomes["latency_ms"], strict=True))
        queries["latency_ms"] = [times.get(query, np.nan) for query in queries["query_id"]]
        others = outcomes["query_id"].isin(queries["query_id"]) | (outcomes["state"] == "done")
        failed = outcomes.loc[~others, ["query_id", "state", "reason"]]
        queries = pd.concat([queries, failed], ignore_index=True)
    return Run(
        id=digest(_content(name, dataset_id, ranking)),
        name=name,
        dataset_id=dataset_id,
        ranking=ranking,
        reranker=Precomputed.name,
        queries=queries,
        settings={"file": file},
    )


def _content(name: str, dataset_id: str, ranking: Ranking) -> Iterator[bytes]:
    yield name.encode("utf-8", "surrogatepass")
    yield dataset_id.encode()
    for ids in (ranking.query_ids, ranking.doc_ids):
        encoded = [value.encode("utf-8", "surrogatepass") for value in ids]
        yield np.array([len(value) for value in encoded], dtype=np.int64).tobytes()
        yield b"".join(encoded)
    for array in (ranking.offsets, ranking.docs, ranking.scores):
        yield array.tobytes()


def _build(settings: Mapping[str, SettingValue]) -> NoReturn:
    raise UnavailableError(
        "A precomputed ranking is read from a file, not built from settings.",
        remedy="Provide the file together with the data set: a TREC run, or rows with a score.",
    )


KIND = RerankerKind(
    name=Precomputed.name,
    title="Ranking from a file",
    meaning="The ranking of another system, read from a TREC run or a column of scores.",
    settings=(),
    capabilities=Capabilities(needs_text=False),
    build=_build,
)
