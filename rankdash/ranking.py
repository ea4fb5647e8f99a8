"""`Ranking` (what IR calls a run) and `Run`, a ranking with how it came about.

A ranking is (query, document, score) in order. It is stored as integer codes sorted by query and
rank, with an offsets array (CSR): the documents of query `i` are `docs[offsets[i]:offsets[i+1]]`,
best first. Ties are settled once, when the ranking is made, by a stated rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.errors import DataError

Ties = Literal["trec", "stable"]
QueryState = Literal["done", "failed", "skipped"]


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, read-only."""
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Ranking:
    """An ordered list of documents for each query.

    query_ids: (Q,) object array of str, in the order of first appearance.
    doc_ids:   (D,) object array of str, the distinct documents.
    offsets:   (Q + 1,) int64.
    docs:      (N,) int32 codes into `doc_ids`, by query, best first.
    scores:    (N,) float64, never ascending within a query; NaN only at the end of a list, for
               documents that were not scored and keep the order they had before.
    tied:      (Q,) bool, whether two documents of the query share a score.
    ties:      the rule that ordered equal scores: "trec" = document id descending, as trec_eval
               does; "stable" = the order given.
    """

    query_ids: npt.NDArray[np.object_]
    doc_ids: npt.NDArray[np.object_]
    offsets: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]
    tied: npt.NDArray[np.bool_]
    ties: Ties

    def __post_init__(self) -> None:
        for array in (
            self.query_ids,
            self.doc_ids,
            self.offsets,
            self.docs,
            self.scores,
            self.tied,
        ):
            frozen(array)

    @classmethod
    def from_columns(
        cls,
        query_ids: Sequence[str] | pd.Series[str] | npt.NDArray[Any],
        doc_ids: Sequence[str] | pd.Series[str] | npt.NDArray[Any],
        scores: Sequence[float] | pd.Series[float] | npt.NDArray[Any],
        *,
        ties: Ties = "stable",
    ) -> Ranking:
        """Rank by score, descending. All three have shape (N,); rows may come in any order.

        Raises DataError where a score is not finite or a (query, document) pair appears twice.
        """
        query_codes, queries = pd.factorize(np.asarray(query_ids, dtype=object))
        doc_codes, docs = pd.factorize(np.asarray(doc_ids, dtype=object))
        values = np.array(scores, dtype=np.float64)
        _refuse_bad_rows(query_codes, doc_codes, values, queries, docs)
        if ties == "trec":
            by_id = np.empty(len(docs), dtype=np.int64)
            by_id[np.argsort(docs.astype(str), kind="stable")] = np.arange(len(docs))
            order = np.lexsort((-by_id[doc_codes], -values, query_codes))
        else:
            order = np.lexsort((-values, query_codes))
        counts = np.bincount(query_codes, minlength=len(queries))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        sorted_scores = values[order]
        return cls(
            query_ids=np.asarray(queries, dtype=object),
            doc_ids=np.asarray(docs, dtype=object),
            offsets=offsets,
            docs=doc_codes[order].astype(np.int32),
            scores=sorted_scores,
            tied=_tied(sorted_scores, offsets),
            ties=ties,
        )

    @classmethod
    def from_lists(cls, lists: Iterable[tuple[str, Sequence[str], Sequence[float]]]) -> Ranking:
        """Keep the order given: (query id, document ids best first, scores) for each query.

        Scores must not rise; NaN (not scored) is allowed at the end of a list only. A document
        listed twice for one query is refused.
        """
        triples = list(lists)
        flat = [doc for _, docs, _ in triples for doc in docs]
        codes, vocabulary = pd.factorize(np.array(flat, dtype=object))
        offsets = np.concatenate([[0], np.cumsum([len(docs) for _, docs, _ in triples])])
        offsets = offsets.astype(np.int64)
        scores = np.array([s for _, _, values in triples for s in values], dtype=np.float64)
        if len(scores) != len(codes):
            raise DataError("A ranking needs one score for each document.")
        queries = np.array([query for query, _, _ in triples], dtype=object)
        if len(set(queries)) != len(queries):
            raise DataError("A ranking lists the same query twice.")
        row_query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        inside = row_query[1:] == row_query[:-1] if len(row_query) else np.zeros(0, bool)
        rises = ~(scores[1:] <= scores[:-1]) & ~np.isnan(scores[1:])
        if bool(np.any(inside & rises)):
            raise DataError("The scores of a ranking must not rise from one rank to the next.")
        if len(np.unique(row_query * max(len(vocabulary), 1) + codes)) != len(codes):
            raise DataError("A ranking lists the same document twice for one query.")
        return cls(
            query_ids=queries,
            doc_ids=np.asarray(vocabulary, dtype=object),
            offsets=offsets,
            docs=codes.astype(np.int32),
            scores=scores,
            tied=_tied(scores, offsets),
            ties="stable",
        )

    def __len__(self) -> int:
        """How many (query, document) rows."""
        return len(self.docs)

    def documents_of(self, query_id: str) -> tuple[list[str], npt.NDArray[np.float64]]:
        """The document ids of a query, best first, and their scores; empty when it has none."""
        found = self._positions.get(query_id)
        if found is None:
            return [], np.zeros(0)
        start, stop = self.offsets[found], self.offsets[found + 1]
        return list(self.doc_ids[self.docs[start:stop]]), self.scores[start:stop]

    def frame(self) -> pd.DataFrame:
        """One row per document: query_id, doc_id, rank (from 1), score."""
        counts = np.diff(self.offsets)
        return pd.DataFrame(
            {
                "query_id": np.repeat(self.query_ids, counts),
                "doc_id": self.doc_ids[self.docs],
                "rank": np.arange(len(self.docs)) - np.repeat(self.offsets[:-1], counts) + 1,
                "score": self.scores,
            }
        )

    @property
    def _positions(self) -> dict[str, int]:
        cached: dict[str, int] | None = self.__dict__.get("_positions_cache")
        if cached is None:
            cached = {query: position for position, query in enumerate(self.query_ids)}
            self.__dict__["_positions_cache"] = cached
        return cached


def _refuse_bad_rows(
    query_codes: npt.NDArray[Any],
    doc_codes: npt.NDArray[Any],
    scores: npt.NDArray[np.float64],
    queries: npt.NDArray[Any],
    docs: npt.NDArray[Any],
) -> None:
    if not len(query_codes) == len(doc_codes) == len(scores):
        raise DataError("A ranking needs one query, one document and one score in every row.")
    missing = np.flatnonzero(~np.isfinite(scores))
    if len(missing):
        row = int(missing[0])
        raise DataError(
            "{count} rows have no finite score; the first is document {doc!r} of query {query!r}.",
            remedy="Give every row a number, or leave the row out.",
            count=len(missing),
            doc=docs[doc_codes[row]],
            query=queries[query_codes[row]],
        )
    pair = query_codes.astype(np.int64) * max(len(docs), 1) + doc_codes
    duplicate = pd.Series(pair).duplicated().to_numpy()
    if duplicate.any():
        row = int(np.flatnonzero(duplicate)[0])
        raise DataError(
            "{count} rows rank a document a second time; the first is {doc!r} of query {query!r}.",
            remedy="Keep one row for each query and document.",
            count=int(duplicate.sum()),
            doc=docs[doc_codes[row]],
            query=queries[query_codes[row]],
        )


def _tied(scores: npt.NDArray[np.float64], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(Q,) whether two neighbours within a query share a score."""
    tied = np.zeros(len(offsets) - 1, dtype=bool)
    if len(scores) > 1:
        row_query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        equal = (scores[1:] == scores[:-1]) & (row_query[1:] == row_query[:-1])
        tied[row_query[1:][equal]] = True
    return tied


@dataclass(frozen=True, eq=False)
class Run:
    """A ranking plus how it came about.

    queries: one row per query of the data set that the run was asked for, with
        query_id, state (QueryState), reason (why it failed, else ""),
        latency_ms (serial, warm, NaN where not measured), index_ms (work that a search system
        does beforehand, such as embedding documents; NaN where there was none),
        pairs, tokens and truncated (how many pairs, tokens read, documents cut; NaN where
        unknown).
    A failed or skipped query has no rows in `ranking`: it is never an empty result list.
    settings: what the reranker was given, keys as in its schema.
    machine: where it ran (cpu, threads, versions).
    depth: how many candidates a query were reranked; None for all. Those below keep their
        first-stage order, after the reranked ones, with NaN scores.
    load_ms: the cold start (loading and warming the model), kept apart from the latencies.
    """

    id: str
    name: str
    dataset_id: str
    ranking: Ranking
    reranker: str
    queries: pd.DataFrame
    settings: Mapping[str, object] = field(default_factory=dict)
    machine: Mapping[str, object] = field(default_factory=dict)
    depth: int | None = None
    load_ms: float = float("nan")
    created: str = ""

    @property
    def left_out(self) -> dict[str, str]:
        """query id → "failed" or "skipped", for the queries that have no result."""
        rows = self.queries[self.queries["state"] != "done"]
        return dict(zip(rows["query_id"], rows["state"], strict=True))


def digest(parts: Iterable[bytes]) -> str:
    """A stable 16-character hexadecimal name for the content of `parts`, in order."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "little"))
        sha.update(part)
    return sha.hexdigest()[:16]
