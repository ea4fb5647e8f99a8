"""Rerank a data set: pure, resumable, and no failure ever becomes a zero.

Queries are scored one after the other, each with its own documents, because that is what a user of
a search waits for. They are handed on in batches of about a second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import numpy as np

from rankdash.dataset import Dataset
from rankdash.errors import RankdashError, UnavailableError
from rankdash.ranking import Run
from rankdash.rerankers import Corpus, Request, Reranker, Scored
from rankdash.runs.plan import Plan, plan
from rankdash.runs.results import QueryResult, assemble, counts

# How much work a kill can cost: what was scored since the last batch was handed on.
BATCH_SECONDS = 1.0

_REASON_LIMIT = 500


class Cancelled(Exception):  # noqa: N818 - it reports a wish, not an error
    """The caller asked to stop. Every query scored until then was handed on."""


def rerank(
    dataset: Dataset,
    reranker: Reranker,
    *,
    depth: int | None = None,
    query_ids: Collection[str] | None = None,
    done: Iterable[QueryResult] = (),
    needs_text: bool = True,
    on_loaded: Callable[[float], None] = lambda load_ms: None,
    on_batch: Callable[[list[QueryResult]], None] = lambda results: None,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Run:
    """Rerank the first `depth` candidates (None: all) of `query_ids` (None: all queries).

    done: results of an earlier attempt with the same arguments; queries that failed then are
        tried again, and nothing is loaded when none is left.
    needs_text: whether a query or document without text fails its query.
    on_loaded: called with the cold start in milliseconds: loading and one warm-up query, whose
        answer is thrown away.
    on_batch: called about once a second with the results since the last call.
    cancelled: asked before every query and after loading.
    clock: a monotonic clock in nanoseconds.

    Every query of the data set has a row in the result: done, failed with its reason, or skipped
    because it has no candidates or was not asked for. The latency of a query is serial and warm,
    without what the reranker reports as index work.

    Raises UnavailableError where the reranker cannot be had, SettingError for a wrong depth or
    query, and Cancelled.
    """
    asked = plan(dataset, depth, query_ids)
    results = {
        result.query_id: result
        for result in done
        if result.state == "done"
        and len(result.scores) == len(asked.documents.get(result.query_id, ()))
    }
    requests = _Requests(dataset, asked, needs_text)
    left = [query for query in asked.documents if query not in results]
    load_ms = math.nan
    if left:
        first = next((query for query in left if not requests.lacking(query)), None)
        if cancelled():
            raise Cancelled
        started = clock()
        reranker.prepare(requests.corpus)
        if cancelled():
            raise Cancelled
        index_seconds = _warm_up(reranker, requests.of(first)) if first is not None else 0.0
        load_ms = (clock() - started) / 1e6 - index_seconds * 1e3
        on_loaded(load_ms)
        warmed = {first: index_seconds} if first is not None else {}
        for batch in _batches(left, requests, reranker, warmed, cancelled, clock):
            results |= {result.query_id: result for result in batch}
            on_batch(batch)
        if len(results) < len(asked.documents):
            raise Cancelled
    return assemble(dataset, reranker, depth, asked, results, load_ms)


class _Requests:
    """The texts that a reranker is given."""

    def __init__(self, dataset: Dataset, asked: Plan, needs_text: bool) -> None:
        documents, queries = dataset.document_text(), dataset.query_text()
        self.corpus = Corpus(doc_ids=list(documents.index), texts=list(documents))
        self._documents = dict(zip(self.corpus.doc_ids, self.corpus.texts, strict=True))
        self._queries = {str(query): str(text) for query, text in queries.items()}
        self._asked = asked.documents
        self._needs_text = needs_text

    def of(self, query: str) -> Request:
        docs = self._asked[query]
        return Request(query, self._queries[query], docs, [self._documents[doc] for doc in docs])

    def lacking(self, query: str) -> str:
        """Why the query cannot be put to a reranker that reads text; "" where it can."""
        if not self._needs_text:
            return ""
        if not self._queries[query].strip():
            return "the query has no text"
        empty = [doc for doc in self._asked[query] if not self._documents[doc].strip()]
        if not empty:
            return ""
        if len(empty) == 1:
            return f"document {empty[0]!r} has no text"
        return f"{len(empty)} documents have no text, such as {empty[0]!r}"


def _warm_up(reranker: Reranker, request: Request) -> float:
    """Score a query for nothing; return the index work in it, in seconds.

    What is wrong with the query shows again when it is scored for its result.
    """
    try:
        answers = reranker.score([request])
    except UnavailableError:
        raise
    except Exception:  # noqa: BLE001 - a reranker may be anyone's code
        return 0.0
    return sum(answer.index_seconds for answer in answers)


def _batches(
    queries: list[str],
    requests: _Requests,
    reranker: Reranker,
    warmed: Mapping[str, float],
    cancelled: Callable[[], bool],
    clock: Callable[[], int],
) -> Iterator[list[QueryResult]]:
    batch: list[QueryResult] = []
    started = clock()
    for query in queries:
        if cancelled():
            break
        lacking = requests.lacking(query)
        if lacking:
            batch.append(QueryResult(query, "failed", lacking))
        else:
            batch.append(_score(reranker, requests.of(query), warmed.get(query, 0.0), clock))
        if clock() - started >= BATCH_SECONDS * 1e9:
            yield batch
            batch, started = [], clock()
    if batch:
        yield batch


def _score(
    reranker: Reranker, request: Request, indexed_before: float, clock: Callable[[], int]
) -> QueryResult:
    started = clock()
    try:
        answers = reranker.score([request])
        elapsed_ms = (clock() - started) / 1e6
    except UnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 - a reranker may be anyone's code: its query fails
        return QueryResult(request.query_id, "failed", _reason(error))
    fault = _fault(answers, len(request.doc_ids))
    if fault:
        return QueryResult(request.query_id, "failed", fault)
    answer = answers[0]
    # The warm-up has indexed the documents of the first query already: that work is its own.
    index_ms = (answer.index_seconds + indexed_before) * 1e3
    return QueryResult(
        request.query_id,
        "done",
        scores=np.asarray(answer.scores, dtype=np.float64),
        latency_ms=max(0.0, elapsed_ms - answer.index_seconds * 1e3),
        index_ms=index_ms if index_ms else math.nan,
        read=counts(answer.tokens),
        full=counts(answer.full),
    )


def _fault(answers: list[Scored], size: int) -> str:
    """Why the answer to one request of `size` documents cannot be used; "" where it can."""
    if len(answers) != 1:
        return f"the reranker gave {len(answers)} answers for 1 query"
    if answers[0].error:
        return answers[0].error[:_REASON_LIMIT]
    scores = np.asarray(answers[0].scores, dtype=np.float64)
    if scores.shape != (size,):
        return f"the reranker gave {scores.size} scores for {size} documents"
    finite = int(np.isfinite(scores).sum())
    return f"scored {finite} of {size} documents" if finite < size else ""


def _reason(error: Exception) -> str:
    if isinstance(error, RankdashError):
        return str(error)[:_REASON_LIMIT]
    return f"{type(error).__name__}: {error}"[:_REASON_LIMIT]
