"""Interface of rerankers: their requests, their answers and their capabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from rankdash.core.base.rules import SettingSpec, SettingValue
from rankdash.core.rerankers.remote.connection import Estimate, Place

if TYPE_CHECKING:
    import pandas as pd

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Capabilities:
    """Requirements and guarantees of a kind of reranker.

    scope: "pointwise" if a document's score does not depend on the other documents of the request,
        else "listwise".
    needs_text: whether documents without text cannot be scored.
    needs_network: whether scoring calls another machine.
    deterministic: whether repeating a request gives the same scores.
    order_sensitive: whether the order of the documents in a request changes their scores.
    across_queries: whether one call with many requests is faster than a call for each, for example
        because a local model fills its batches across queries. The runner then scores in blocks of
        queries, and measures the latency on a sample of them, one at a time.
    """

    scope: Literal["pointwise", "listwise"] = "pointwise"
    needs_text: bool = True
    needs_network: bool = False
    deterministic: bool = True
    order_sensitive: bool = False
    across_queries: bool = False

    @property
    def cacheable(self) -> bool:
        """True if the score of a pair may be cached and reused in another request."""
        return self.scope == "pointwise" and self.deterministic and not self.order_sensitive


@dataclass(frozen=True)
class Corpus:
    """Documents of the whole data set, for statistics. `doc_ids` and `texts` are parallel."""

    doc_ids: Sequence[str]
    texts: Sequence[str]


@dataclass(frozen=True)
class Request:
    """Query with its candidates in first-stage order; `documents` is parallel to `doc_ids`."""

    query_id: str
    query: str
    doc_ids: Sequence[str]
    documents: Sequence[str]

    def part(self, places: Iterable[int]) -> Request:
        """Return the same query with only the documents at these places."""
        chosen = [(self.doc_ids[place], self.documents[place]) for place in places]
        return replace(
            self, doc_ids=[doc for doc, _ in chosen], documents=[text for _, text in chosen]
        )


@dataclass(frozen=True)
class Call:
    """Request to another machine, its retries included.

    start, end: in seconds by `time.perf_counter`, from sending the first attempt to the answer to
        the last one, or its timeout. Waiting for the client's own rate limit comes before `start`.
    attempts: number of attempts. refused: how many of them were refused because of a rate limit
        (status 429).
    retry_wait_s: seconds between `start` and `end` spent waiting before retries.
    status: the HTTP status of the last attempt; 0 without an answer.
    billed: billed amounts that the service reports, under its own names ("search_units",
        "total_tokens" …).
    server_ms, queue_ms: the model's time and the time in the server's queue, as the server reports
        them; NaN if it does not.
    error: reason for the failure; "" on success.
    note: repairs of the answer, such as documents that an order omitted; "" without repairs.
    estimated: whether `billed` contains estimated tokens because the service did not count them.
    connect_s: seconds between `start` and `end` spent on opening connections.
    """

    start: float
    end: float
    attempts: int = 1
    retry_wait_s: float = 0.0
    status: int = 200
    billed: Mapping[str, float] = field(default_factory=dict)
    server_ms: float = math.nan
    queue_ms: float = math.nan
    error: str = ""
    note: str = ""
    refused: int = 0
    estimated: bool = False
    connect_s: float = 0.0


def call_table(calls: Iterable[tuple[str, Call]]) -> pd.DataFrame | None:
    """Return `rankdash.core.data.ranking.Run.calls` of (query id, request) pairs."""
    import pandas as pd

    rows = [
        {
            "query_id": query,
            "start_s": call.start,
            "ms": (call.end - call.start) * 1e3,
            "attempts": call.attempts,
            "refused": call.refused,
            "retry_wait_ms": call.retry_wait_s * 1e3,
            "status": call.status,
            "server_ms": call.server_ms,
            "queue_ms": call.queue_ms,
            "billed": json.dumps(dict(call.billed)),
            "error": call.error,
            "note": call.note,
        }
        for query, call in calls
    ]
    texts = {"query_id": "str", "billed": "str", "error": "str", "note": "str"}
    return pd.DataFrame(rows).astype(texts) if rows else None


@dataclass(frozen=True, eq=False)
class Scored:
    """Answer to one request, aligned with its documents and never re-ordered.

    scores: (n,) float64, raw (logits or similarities); NaN = not scored.
    tokens: (n,) int64, number of tokens of query and document that a model read for each pair; None
        if the kind does not read tokens.
    full: (n,) int64, number of tokens before truncation to the model's limit, as `tokens` if
        windows cover a text: a text of the pair was truncated if full > tokens; None if unknown.
    index_seconds: time spent on indexing, which a search system does beforehand, such as embedding
        documents.
    computed_tokens: tokens that a model read for this answer, fewer than `tokens` if a text was
        encoded before; None if it is their sum.
    error: reason why the query failed; "" on success. Scores of a failed query are not used;
        documents that could not be scored are NaN in any case.
    calls: the requests to other machines made for this answer, failed ones included.
    """

    scores: Scores
    tokens: npt.NDArray[np.int64] | None = None
    full: npt.NDArray[np.int64] | None = None
    index_seconds: float = 0.0
    error: str = ""
    calls: tuple[Call, ...] = ()
    computed_tokens: float | None = None

    @property
    def tokens_computed(self) -> float:
        """Tokens that a model read for this answer; NaN if the kind reads none."""
        if self.computed_tokens is not None:
            return self.computed_tokens
        return math.nan if self.tokens is None else float(self.tokens.sum())

    @classmethod
    def failed(cls, size: int, error: str, calls: tuple[Call, ...] = ()) -> Scored:
        """Return the answer to a request of `size` documents that could not be scored."""
        return cls(np.full(size, np.nan), error=error, calls=calls)


class Reranker(Protocol):
    """Scorer of documents for queries. Made by `rankdash.core.rerankers.create`."""

    @property
    def name(self) -> str:
        """Name of the kind."""
        ...

    @property
    def settings(self) -> Mapping[str, SettingValue]:
        """Every setting of the kind with its effective value."""
        ...

    def prepare(self, corpus: Corpus) -> None:
        """Load the model or build the statistics; call once, before `score`.

        Raises UnavailableError, with a remedy, if a model or a package is missing.
        """
        ...

    def fingerprint(self) -> str:
        """Return a hash of the kind, the weights and every setting that changes scores; call after
        `prepare`. Two rerankers with the same hash give a pair of texts the same score. "" if a
        score depends on more than that, so that it must not be cached for another run."""
        ...

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Return one answer per request, in the order of the requests.

        Several threads may call it concurrently after `prepare`.
        """
        ...


@runtime_checkable
class Detailed(Protocol):
    """Reranker that reports how it computed, besides its settings."""

    def details(self) -> Mapping[str, object]:
        """Return what was chosen and measured, numbers and texts by name. Called after `prepare`
        and after the last score, and not timed; empty before `prepare`."""
        ...


@runtime_checkable
class Literate(Protocol):
    """Reranker that reports the share of tokens that its model does not know."""

    def unknown_share(self, texts: Sequence[str]) -> float:
        """Return the share, in [0, 1], of the tokens of these texts that the model does not know;
        NaN if unknown. Called after `prepare`, and not timed."""
        ...


class Configured(Protocol):
    """Kind of reranker or judge that a form shows settings and a key for."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> tuple[SettingSpec, ...]: ...

    @property
    def key(self) -> Callable[[Mapping[str, Any]], Place | None] | None:
        """Function from complete settings to the place of the key; None without a key."""
        ...


@dataclass(frozen=True)
class RerankerKind:
    """Entry of the registry. `build` takes the complete, validated settings.

    group: location of the work: on this machine, by a rerank service, by a language model.
    varying: from complete settings, the capabilities; None if they do not depend on settings.
    check: for complete settings: raises UnavailableError if a model or package that they name is
        missing on this machine. Loads nothing and sends no request, so a server may call it.
    key: from complete settings, the place of the key; None for a kind without one.
    estimate: from complete settings and requests, the calls and cost at a service; None for a kind
        that calls no service. These three functions raise SettingError for settings that `build`
        refuses.
    models: whether it runs a model on this machine, with the packages of the extra `models`.
    """

    name: str
    title: str
    meaning: str
    settings: tuple[SettingSpec, ...]
    capabilities: Capabilities
    build: Callable[[Mapping[str, Any]], Reranker]
    group: Literal["local", "service", "llm"] = "local"
    varying: Callable[[Mapping[str, Any]], Capabilities] | None = None
    check: Callable[[Mapping[str, Any]], None] | None = None
    key: Callable[[Mapping[str, Any]], Place | None] | None = None
    estimate: Callable[[Mapping[str, Any], Sequence[Request]], Estimate] | None = None
    models: bool = False

    def able(self, settings: Mapping[str, Any]) -> Capabilities:
        """Return the capabilities with these complete settings.

        Raises SettingError for settings that `build` refuses.
        """
        return self.capabilities if self.varying is None else self.varying(settings)


# Progress of `prepare`, and cancellation of `score`.

Step = Literal["loading", "converting", "exporting", "choosing", "warming"]
"""Loading the model; converting packaged weights, exporting to ONNX and choosing a runtime (each
once per model); scoring a first query and discarding its scores."""

_tell: ContextVar[Callable[[Step], object]] = ContextVar("tell", default=lambda step: None)


@contextmanager
def telling(tell: Callable[[Step], object]) -> Iterator[None]:
    """Call `tell` with each step that `begin` reports inside the block."""
    before = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(before)


def begin(step: Step) -> None:
    """Report that a step begins."""
    _tell.get()(step)


_check: ContextVar[Callable[[], object]] = ContextVar("check", default=lambda: None)


@contextmanager
def interruptible(check: Callable[[], object]) -> Iterator[None]:
    """Call `check`, which may raise an error to stop the scoring, at each `pause` inside the
    block."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def pause() -> None:
    """Call the check of `interruptible`; models do so between two batches."""
    _check.get()()


def first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
