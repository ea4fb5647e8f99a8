"""Scoring of queries, individually or in batches, without the pairs that have cached scores."""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from rankdash.core.base.errors import RankdashError, StoreError, UnavailableError
from rankdash.core.base.text import redact
from rankdash.core.data.dataset import Dataset
from rankdash.core.rerankers import Call, Corpus, Request, Reranker, Scored
from rankdash.core.runs.plan import Plan
from rankdash.core.runs.results import QueryResult
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.score_cache import KeptScores, ScoreCache

_REASON_LIMIT = 500
# Characters that are enough to detect the language of a text.
_OPENING = 2000

T = TypeVar("T")
Scoreds = tuple[str, Sequence[str], KeptScores]


class Requests:
    """Requests to a reranker, with the texts of a data set."""

    def __init__(self, dataset: Dataset, planned: Plan, needs_text: bool) -> None:
        documents, queries = dataset.document_text(), dataset.query_text()
        self.corpus = Corpus(doc_ids=list(documents.index), texts=list(documents))
        self._documents = dict(zip(self.corpus.doc_ids, self.corpus.texts, strict=True))
        self._queries = {str(query): str(text) for query, text in queries.items()}
        self._asked = planned.documents
        self._empty = planned.without_text == "empty"
        self._needs_text = needs_text

    def of(self, query: str) -> Request:
        docs = self._asked[query]
        return Request(query, self._queries[query], docs, [self._documents[doc] for doc in docs])

    def texts(self, most: int) -> list[str]:
        """Return the beginnings of up to `most` query texts and `most` document texts, evenly
        spread over the plan."""
        documents = dict.fromkeys(doc for docs in self._asked.values() for doc in docs)
        queries = [self._queries[query] for query in self._asked]
        return [
            text[:_OPENING]
            for each in (queries, [self._documents[doc] for doc in documents])
            for text in each[:: max(1, -(-len(each) // most))]
        ]

    def lacking(self, query: str) -> str:
        """Return the reason why a reranker that reads text cannot score the query, or ""."""
        if not self._needs_text:
            return ""
        if not self._queries[query].strip():
            return "the query has no text"
        if self._empty:
            return ""
        # The plan contains documents without text only if the query has no others.
        empty = [doc for doc in self._asked[query] if not self._documents[doc].strip()]
        if not empty:
            return ""
        if len(empty) == 1:
            return f"document {empty[0]!r} has no text"
        return f"{len(empty)} documents have no text, such as {empty[0]!r}"


@dataclass
class Meter:
    """Totals over calls, with the fields of `Measured`."""

    pairs: int = 0
    computed_tokens: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    index_seconds: float = 0.0
    together: int = 0

    def add(self, response: AnsweredRequests, queries: int) -> None:
        self.seconds += response.seconds
        self.cpu_seconds += response.cpu_seconds
        self.together = max(self.together, queries)
        for request, answer in zip(response.requests, response.answers, strict=True):
            self.index_seconds += answer.index_seconds
            if not answer.error:
                self.pairs += len(request.doc_ids)
                self.computed_tokens += answer.tokens_computed


@dataclass(frozen=True)
class AnsweredRequests:
    """Requests, their answers (unusable ones replaced by failed ones), and the seconds they
    took."""

    requests: Sequence[Request]
    answers: list[Scored]
    seconds: float
    cpu_seconds: float


@runtime_checkable
class Spread(Protocol):
    """Reranker that scores in several processes concurrently, possibly on other machines."""

    @property
    def at_once(self) -> int:
        """Maximum number of concurrent batches."""
        ...

    def stream(self, batches: Iterable[Sequence[Request]]) -> Iterator[AnsweredRequests]:
        """Yield each batch after its answer, in any order, possibly in parts. The next of `batches`
        is read when a process is free for it, so at most `at_once` batches are in progress. Times
        are measured in the process that answers."""
        ...


def ask(
    reranker: Reranker,
    requests: Sequence[Request],
    clock: Callable[[], int],
    cpu_clock: Callable[[], int],
) -> AnsweredRequests:
    """Send requests to a reranker in one call; if that fails, try each request separately, so that
    only the failing requests are marked failed. clock, cpu_clock: wall and process time in
    nanoseconds.

    Raises UnavailableError if the reranker becomes unavailable.
    """
    started, cpu_started = clock(), cpu_clock()
    try:
        answers = reranker.score(requests)
    except UnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 - a reranker may raise anything: its query fails
        reason = _reason(error)
    else:
        reason = _miscounted(answers, len(requests))
    seconds = (clock() - started) / 1e9
    cpu_seconds = (cpu_clock() - cpu_started) / 1e9
    if reason and len(requests) > 1:
        parts = [ask(reranker, [request], clock, cpu_clock) for request in requests]
        return AnsweredRequests(
            requests,
            [part.answers[0] for part in parts],
            sum(part.seconds for part in parts),
            sum(part.cpu_seconds for part in parts),
        )
    if reason:
        answers = [Scored.failed(len(requests[0].doc_ids), reason)]
    usable = [
        _usable(answer, len(request.doc_ids))
        for request, answer in zip(requests, answers, strict=True)
    ]
    return AnsweredRequests(requests, usable, seconds, cpu_seconds)


@dataclass
class Scoring:
    """Scoring of queries with one prepared reranker.

    kept: query id → its cached scores; only the other pairs are scored.
    one_by_one: whether calls for single queries measure the throughput.
    clock, cpu_clock: wall and process time in nanoseconds.
    batched, serial: current totals.
    fresh: new scores for the cache since the last write.
    """

    reranker: Reranker
    requests: Requests
    repeats: int
    one_by_one: bool
    clock: Callable[[], int]
    cpu_clock: Callable[[], int]
    kept: dict[str, KeptScores] = field(default_factory=dict)
    batched: Meter = field(default_factory=Meter)
    serial: Meter = field(default_factory=Meter)
    fresh: list[Scoreds] = field(default_factory=list)
    indexed_before: dict[str, float] = field(default_factory=dict)

    def warm_up(self, query: str) -> float:
        """Score a query and discard the result; return the seconds it took, without indexing.

        An error of the query is reported when it is scored for its result.
        """
        response = self._ask([self.requests.of(query)])
        index_seconds = sum(answer.index_seconds for answer in response.answers)
        # The work of indexing belongs to this query, although its answer will not contain it.
        self.indexed_before[query] = index_seconds
        return response.seconds - index_seconds

    def cached(self, query: str) -> QueryResult:
        """Return the result of a fully cached query."""
        cached = self.kept[query]
        return QueryResult(
            query,
            "done",
            scores=cached.scores,
            read=cached.read,
            full=cached.full,
            cached=len(cached.scores),
        )

    def missing(self, query: str) -> int:
        """Return the number of pairs of a query without a cached score."""
        cached = self.kept.get(query)
        if cached is None:
            return len(self.requests.of(query).doc_ids)
        return int(np.isnan(cached.scores).sum())

    def cold(self, query: str) -> QueryResult:
        """Score a query separately without measuring it, because the first call is not warm."""
        request = self._request(query)
        return self._result(query, request, self._ask([request]).answers[0], math.nan)

    def alone(self, query: str) -> QueryResult:
        """Score a query separately. Its latency is measured if none of its scores is cached."""
        request = self._request(query)
        timed = query not in self.kept
        first = self._ask([request])
        if self.one_by_one:
            self.batched.add(first, 1)
        times = [first] if timed and not first.answers[0].error else []
        times += [self._ask([request]) for _ in range(len(times) * (self.repeats - 1))]
        for response in times:
            self.serial.add(response, 1)
        latencies = [latency for latency in map(_latency_ms, times) if not math.isnan(latency)]
        latency = statistics.median(latencies) if latencies else math.nan
        outcome = self._result(query, request, first.answers[0], latency)
        return replace(outcome, repeated_ms=np.array(latencies)) if len(latencies) > 1 else outcome

    def together(self, queries: Sequence[str]) -> list[QueryResult]:
        """Score queries in one call. Their latencies are unknown, because they share its time."""
        requests = [self._request(query) for query in queries]
        response = self._ask(requests)
        self.batched.add(response, len(queries))
        return [
            self._result(query, request, answer, math.nan)
            for query, request, answer in zip(queries, requests, response.answers, strict=True)
        ]

    def stream(
        self, spread: Spread, batches: Iterable[Sequence[str]]
    ) -> Iterator[tuple[list[QueryResult], float]]:
        """Score batches of queries as in `Spread.stream`; yield the results of each with the pairs
        per second of the process that scored it. The throughput is measured over all processes
        together, from one answer to the next."""
        requests = ([self._request(query) for query in batch] for batch in batches)
        started = self.clock()
        for response in spread.stream(requests):
            before, started = started, self.clock()
            since = replace(response, seconds=(started - before) / 1e9)
            self.batched.add(since, len(response.requests))
            results = [
                self._result(request.query_id, request, answer, math.nan)
                for request, answer in zip(response.requests, response.answers, strict=True)
            ]
            pairs = sum(len(request.doc_ids) for request in response.requests)
            yield results, pairs / response.seconds if response.seconds > 0 else math.inf

    def _request(self, query: str) -> Request:
        """Return the query with its documents without a cached score."""
        request = self.requests.of(query)
        if query not in self.kept:
            return request
        return request.part(np.flatnonzero(np.isnan(self.kept[query].scores)))

    def _ask(self, requests: Sequence[Request]) -> AnsweredRequests:
        if isinstance(self.reranker, Spread):
            return next(self.reranker.stream([requests]))
        return ask(self.reranker, requests, self.clock, self.cpu_clock)

    def _result(
        self, query: str, request: Request, answer: Scored, latency_ms: float
    ) -> QueryResult:
        if answer.error:
            return QueryResult(query, "failed", answer.error, calls=answer.calls)
        fresh = _found(answer)
        self.fresh.append((request.query, request.documents, fresh))
        cached = self.kept.get(query)
        index_ms = (answer.index_seconds + self.indexed_before.pop(query, 0.0)) * 1e3
        every = fresh if cached is None else _merged(cached, fresh)
        return QueryResult(
            query,
            "done",
            scores=every.scores,
            latency_ms=latency_ms,
            index_ms=index_ms or math.nan,
            read=every.read,
            full=every.full,
            cached=len(every.scores) - len(fresh.scores),
            calls=answer.calls,
        )


def _found(answer: Scored) -> KeptScores:
    unknown = np.full(len(answer.scores), -1, dtype=np.int32)
    return KeptScores(
        np.asarray(answer.scores, dtype=np.float64),
        unknown if answer.tokens is None else np.asarray(answer.tokens, dtype=np.int32),
        unknown if answer.full is None else np.asarray(answer.full, dtype=np.int32),
    )


def _merged(cached: KeptScores, fresh: KeptScores) -> KeptScores:
    """Return cached scores with their gaps filled by new scores, in order."""
    gaps = np.isnan(cached.scores)
    merged = KeptScores(cached.scores.copy(), cached.read.copy(), cached.full.copy())
    merged.scores[gaps] = fresh.scores
    merged.read[gaps] = fresh.read
    merged.full[gaps] = fresh.full
    return merged


def _latency_ms(response: AnsweredRequests) -> float:
    """Return the latency of one query: without indexing and without the waits before retries; NaN
    if the query failed."""
    (answer,) = response.answers
    if answer.error:
        return math.nan
    spent = response.seconds - answer.index_seconds
    return max(0.0, _without_waits(spent, answer.calls)) * 1e3


def _without_waits(seconds: float, calls: Sequence[Call]) -> float:
    """Subtract waits before retries. Calls may overlap, so their total wait may exceed the time;
    the longest call without its waits is the lower limit."""
    if not calls:
        return seconds
    least = max(call.end - call.start - call.retry_wait_s for call in calls)
    return max(seconds - sum(call.retry_wait_s for call in calls), least)


def _miscounted(answers: list[Scored], size: int) -> str:
    if len(answers) == size:
        return ""
    return f"answers of the reranker: {len(answers)}, queries: {size}"


def _usable(answer: Scored, size: int) -> Scored:
    """Return the answer to a request of `size` documents, or a failed one with the reason."""
    fault = _fault(answer, size)
    return Scored.failed(size, redact(fault)[:_REASON_LIMIT], answer.calls) if fault else answer


def _fault(answer: Scored, size: int) -> str:
    if answer.error:
        return answer.error
    scores = np.asarray(answer.scores, dtype=np.float64)
    if scores.shape != (size,):
        return f"scores of the reranker: {scores.size}, documents: {size}"
    finite = int(np.isfinite(scores).sum())
    return f"documents scored: {finite} of {size}" if finite < size else ""


def _reason(error: Exception) -> str:
    if isinstance(error, RankdashError):
        return str(error)
    return f"{type(error).__name__}: {error}"


# The score cache of a workspace; its errors do not fail a run.

_log = logging.getLogger(__name__)


class OptionalCache:
    """`ScoreCache` that ignores errors: unreadable entries are not used, and failed writes are
    lost."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def _try(self, verb: str, call: Callable[[ScoreCache], T], otherwise: T) -> T:
        try:
            return call(self._workspace.score_cache)
        except StoreError as error:
            _log.warning("The score cache cannot be %s: %s", verb, error)
            return otherwise

    @property
    def pairs(self) -> int:
        """Number of pairs with a stored score or answer."""
        return self._try("read", lambda cache: cache.pairs, 0)

    def read(
        self, fingerprint: str, requests: Sequence[tuple[str, Sequence[str]]]
    ) -> list[KeptScores]:
        nothing = [KeptScores.nothing(len(documents)) for _, documents in requests]
        return self._try("read", lambda cache: cache.read(fingerprint, requests), nothing)

    def write(self, fingerprint: str, scored: Sequence[Scoreds]) -> None:
        self._try("written", lambda cache: cache.write(fingerprint, scored), None)

    def read_answers(
        self, fingerprint: str, pairs: Sequence[tuple[str, str]], *, use: bool = True
    ) -> list[str]:
        return self._try(
            "read",
            lambda cache: cache.read_answers(fingerprint, pairs, use=use),
            [""] * len(pairs),
        )

    def write_answers(self, fingerprint: str, entries: Sequence[tuple[str, str, str]]) -> None:
        self._try("written", lambda cache: cache.write_answers(fingerprint, entries), None)
