"""What a reranker is: the requests it gets, the answers it gives, and what it can do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from rankdash.core.base.rules import SettingSpec, SettingValue
from rankdash.core.rerankers.remote.connection import Estimate, Place

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Capabilities:
    """What a kind of reranker needs and promises.

    scope: "pointwise" when a document's score does not depend on the other documents of the
        request, "listwise" when it does.
    needs_text: whether documents without text cannot be scored.
    needs_network: whether scoring calls another machine.
    deterministic: whether the same request gets the same scores twice.
    order_sensitive: whether the order in which documents are given changes their scores.
    across_queries: whether one call with many requests is faster than a call for each, as where a
        local model fills its batches across queries. The runner then scores in blocks of queries,
        and measures the latency on a sample of them, one at a time.
    """

    scope: Literal["pointwise", "listwise"] = "pointwise"
    needs_text: bool = True
    needs_network: bool = False
    deterministic: bool = True
    order_sensitive: bool = False
    across_queries: bool = False

    @property
    def cacheable(self) -> bool:
        """Whether the score of a pair may be kept and used again in another request."""
        return self.scope == "pointwise" and self.deterministic and not self.order_sensitive


@dataclass(frozen=True)
class Corpus:
    """The documents of the whole data set, for statistics. `doc_ids` and `texts` are parallel."""

    doc_ids: Sequence[str]
    texts: Sequence[str]


@dataclass(frozen=True)
class Request:
    """One query and its candidates in first-stage order; `documents` is parallel to `doc_ids`."""

    query_id: str
    query: str
    doc_ids: Sequence[str]
    documents: Sequence[str]

    def part(self, places: Iterable[int]) -> Request:
        """The same query with the documents at these places only."""
        chosen = [(self.doc_ids[place], self.documents[place]) for place in places]
        return replace(
            self, doc_ids=[doc for doc, _ in chosen], documents=[text for _, text in chosen]
        )


@dataclass(frozen=True)
class Call:
    """One request to another machine, its retries included.

    start, end: in seconds by `time.perf_counter`: the first attempt sent, the last one answered or
        given up. Waiting for the client's own rate limit lies before `start`.
    attempts: how often it was sent. refused: how many of the attempts were refused because of a
        rate limit (status 429).
    retry_wait_s: seconds between `start` and `end` spent waiting to try again.
    status: the HTTP status of the last attempt; 0 where no answer came.
    billed: what the service says it charges for, by its own names ("search_units",
        "total_tokens" …).
    server_ms, queue_ms: the model's time and the time in the server's queue, as the server tells;
        NaN where it does not.
    error: why it failed; "" when it did not.
    note: what was put right in its answer, such as documents that an order left out; "" for
        nothing.
    estimated: whether tokens that the service did not count are estimated in `billed`.
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


@dataclass(frozen=True, eq=False)
class Scored:
    """The answer to one request, aligned with its documents and never re-ordered.

    scores:        (n,) float64, raw (logits or similarities); NaN = not scored.
    tokens:        (n,) int64, how many tokens of query and document a model read for each pair;
                   None where the kind does not read tokens.
    full:          (n,) int64, how many there were before texts were cut to fit the model: a text of
                   the pair was cut where full > tokens; None where unknown.
    index_seconds: time spent on what a search system does beforehand, such as embedding documents.
    computed_tokens: tokens that a model read for this answer, fewer than `tokens` where a text was
                   encoded before; None where that is their sum.
    error:         why the query failed; "" when it did not. Scores of a failed query are not used;
                   what could not be scored is NaN in any case.
    calls:         the requests to other machines that were made for it, failed ones included.
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
        """Tokens that a model read for this answer; NaN where the kind reads none."""
        if self.computed_tokens is not None:
            return self.computed_tokens
        return math.nan if self.tokens is None else float(self.tokens.sum())

    @classmethod
    def failed(cls, size: int, error: str, calls: tuple[Call, ...] = ()) -> Scored:
        """The answer to a request of `size` documents that could not be scored."""
        return cls(np.full(size, np.nan), error=error, calls=calls)


class Reranker(Protocol):
    """Scores documents for queries. Made by `rankdash.core.rerankers.create`."""

    @property
    def name(self) -> str:
        """The name of its kind."""
        ...

    @property
    def settings(self) -> Mapping[str, SettingValue]:
        """Every setting of the kind with the value in force."""
        ...

    def prepare(self, corpus: Corpus) -> None:
        """Load the model or build the statistics; call once, before `score`.

        Raises UnavailableError, with what to do about it, where a model or a package is missing.
        """
        ...

    def fingerprint(self) -> str:
        """A hash of the kind, the weights and every setting that changes scores; call it after
        `prepare`. Two rerankers with the same one give a pair of texts the same score. "" where a
        score depends on more than that, so that it must never be kept for another run."""
        ...

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """One answer per request, in the order of the requests.

        May be called by several threads at once, after `prepare`.
        """
        ...


@runtime_checkable
class Detailed(Protocol):
    """A reranker that has more to tell of a run than its settings."""

    def details(self) -> Mapping[str, object]:
        """How it computed: what was chosen and measured, numbers and texts by name. Asked
        after `prepare` and after the last score, and not timed; empty before `prepare`."""
        ...


@runtime_checkable
class Literate(Protocol):
    """A reranker whose model may not know the letters or words of a text."""

    def unknown_share(self, texts: Sequence[str]) -> float:
        """Of the tokens of these texts, the share in [0, 1] that the model does not know; NaN where
        that cannot be told. Asked after `prepare`, and not timed."""
        ...


class Configured(Protocol):
    """What a form asks settings and a key for: a kind of reranker, or a judge."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> tuple[SettingSpec, ...]: ...

    @property
    def key(self) -> Callable[[Mapping[str, Any]], Place | None] | None:
        """From complete settings, where its key is looked for; None where there is none."""
        ...


@dataclass(frozen=True)
class RerankerKind:
    """One entry of the registry. `build` takes the complete, checked settings.

    group:    where its work is done: on this machine, by a rerank service, by a language model.
    varying:  from complete settings, what it needs and promises, where that hangs on them.
    check:    of complete settings: raises UnavailableError where what they name is plainly not on
              this machine. Loads nothing and asks no one, so that a server may call it.
    key:      from complete settings, where its key is looked for; None for a kind without one.
    estimate: from complete settings and requests, what they would ask of a service; None for a kind
              that calls no one. All three raise SettingError for settings that `build` refuses.
    models:   whether it computes a model on this machine, by the packages of the extra `models`.
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
        """What it needs and promises with these complete settings.

        Raises SettingError for settings that `build` refuses.
        """
        return self.capabilities if self.varying is None else self.varying(settings)


# What a reranker is busy with while it is prepared, for whoever waits for it.

Step = Literal["loading", "converting", "exporting", "choosing", "warming"]
"""Loading the model; once for each model, converting packaged weights, exporting it to ONNX and
choosing its runtime; scoring a first query for nothing."""

_tell: ContextVar[Callable[[Step], object]] = ContextVar("tell", default=lambda step: None)


@contextmanager
def telling(tell: Callable[[Step], object]) -> Iterator[None]:
    """`tell` is called with each step that begins inside."""
    before = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(before)


def begin(step: Step) -> None:
    """Tell whoever listens that a step begins."""
    _tell.get()(step)


def first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
