"""Rerank service, hosted or on your own machine: one client for every wire format.

Six fields of a `Dialect` describe a format: path, documents, constants, results, index and score.
The others describe the service: its address, its units, its limit of documents.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdash.core.base.errors import ScoringError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.data.ranking import digest
from rankdash.core.rerankers.base import (
    Call,
    Capabilities,
    Corpus,
    Request,
    RerankerKind,
    Scored,
    Scores,
)
from rankdash.core.rerankers.catalogue import default_model
from rankdash.core.rerankers.remote import connection
from rankdash.core.rerankers.remote.connection import (
    HOMES,
    Budget,
    Clock,
    Estimate,
    check_url,
    dig,
    text_tokens,
)

if TYPE_CHECKING:
    from rankdash.core.rerankers.remote.client import Client

_NOTHING: Mapping[str, Any] = MappingProxyType({})
Path = tuple[str, ...]


@dataclass(frozen=True)
class Dialect:
    """Wire format of one service.

    path: after the base URL.
    documents: the key of the documents.
    wrap: the key that wraps query and each document; "" for plain texts.
    constants: fields sent with every request.
    results: path of the list of results in the answer; () for the answer itself.
    index, score: the keys of a result.

    base_url: default address of the service.
    variable: the environment variable of its key.
    served: the default model of a local server; "" if it needs no name.
    limit: maximum number of documents per request.
    billed: unit → path of its count in the answer.
    """

    name: str
    title: str
    path: str
    base_url: str
    variable: str
    documents: str = "documents"
    wrap: str = ""
    constants: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    results: Path = ("results",)
    index: str = "index"
    score: str = "relevance_score"
    served: str = ""
    limit: int = 1000
    billed: Mapping[str, Path] = field(
        default_factory=lambda: {"tokens": ("usage", "total_tokens")}
    )

    @property
    def model(self) -> str:
        """The default model; "" if the server serves one model and needs no name."""
        return self.served or default_model(self.name)

    def path_after(self, base_url: str) -> str:
        """Return the path without the part that the base URL already ends in, such as /v1."""
        parts = self.path.split("/")[1:]
        for count in range(len(parts), 0, -1):
            start = "/" + "/".join(parts[:count])
            if base_url.endswith(start):
                return self.path[len(start) :]
        return self.path

    def body(self, model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """Return the request body, ready for JSON."""
        wrapped = [{self.wrap: text} if self.wrap else text for text in documents]
        named = {"model": model} if model else {}
        wrapped_query: Any = {self.wrap: query} if self.wrap else query
        return {**named, "query": wrapped_query, self.documents: wrapped, **self.constants}

    def read_scores(self, answer: Any, count: int) -> tuple[Scores, str]:
        """Return the scores of `count` documents, NaN for those without a valid score, and a
        description of the first fault, or ""."""
        scores = np.full(count, np.nan)
        results = dig(answer, self.results)
        if not isinstance(results, list):
            where = ".".join(self.results) or "list"
            return scores, f"Malformed response: {where} is missing."
        seen: set[int] = set()
        faults: list[str] = []
        for result in results:
            index = result.get(self.index) if isinstance(result, dict) else None
            score = result.get(self.score) if isinstance(result, dict) else None
            if not isinstance(index, int) or isinstance(index, bool):
                faults.append("a result has no index")
            elif not 0 <= index < count:
                faults.append(f"index {index} is out of range")
            elif index in seen:
                scores[index] = np.nan
                faults.append(f"index {index} is duplicated")
            else:
                seen.add(index)
                if _is_number(score):
                    scores[index] = score
                else:
                    faults.append(f"score {index} is not a number")
        missing = int(np.isnan(scores).sum())
        if missing and not faults:
            faults.append("the answer is too short")
        if not faults:
            return scores, ""
        return scores, f"documents with a score: {count - missing} of {count}: {faults[0]}."

    def charged(self, answer: Any) -> Mapping[str, float]:
        """Return unit → billed count, as reported in the answer."""
        counts = {unit: dig(answer, path) for unit, path in self.billed.items()}
        return {unit: float(count) for unit, count in counts.items() if _is_number(count)}


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "cohere",
            "Cohere",
            "/v2/rerank",
            HOMES["COHERE_API_KEY"],
            "COHERE_API_KEY",
            billed={
                "search_units": ("meta", "billed_units", "search_units"),
                "tokens": ("meta", "tokens", "input_tokens"),
            },
        ),
        Dialect(
            "jina",
            "Jina",
            "/v1/rerank",
            HOMES["JINA_API_KEY"],
            "JINA_API_KEY",
            constants={"return_documents": False},
        ),
        Dialect(
            "voyage",
            "Voyage",
            "/v1/rerank",
            HOMES["VOYAGE_API_KEY"],
            "VOYAGE_API_KEY",
            constants={"truncation": True},
            results=("data",),
        ),
        Dialect(
            "mixedbread",
            "Mixedbread",
            "/v1/reranking",
            HOMES["MXBAI_API_KEY"],
            "MXBAI_API_KEY",
            documents="input",
            constants={"return_input": False},
            results=("data",),
            score="score",
        ),
        Dialect(
            "tei",
            "Text Embeddings Inference (TEI)",
            "/rerank",
            "http://127.0.0.1:8080",
            "TEI_API_KEY",
            documents="texts",
            constants={"truncate": True, "raw_scores": True},
            results=(),
            score="score",
            limit=32,
            billed=_NOTHING,
        ),
        Dialect(
            # No truncate_prompt_tokens: it truncates the beginning of a text, not its end.
            "vllm",
            "vLLM",
            "/v1/rerank",
            "http://127.0.0.1:8000",
            "VLLM_API_KEY",
            served="BAAI/bge-reranker-v2-m3",
        ),
        Dialect(
            "infinity",
            "Infinity",
            "/rerank",
            "http://127.0.0.1:7997",
            "INFINITY_API_KEY",
            constants={"return_documents": False, "raw_scores": True},
            served="BAAI/bge-reranker-v2-m3",
        ),
        Dialect(
            "nim",
            "NVIDIA NIM",
            "/v1/ranking",
            "http://127.0.0.1:8000",
            "NVIDIA_API_KEY",
            documents="passages",
            wrap="text",
            constants={"truncate": "END"},
            results=("rankings",),
            score="logit",
            served="nvidia/llama-3.2-nv-rerankqa-1b-v2",
            limit=512,
        ),
    )
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


# Maximum number of documents in a search unit of Cohere and similar services.
_DOCUMENTS_PER_UNIT = 100


class Endpoint:
    """Client of a rerank service: sends query and documents and reads the scores."""

    name = "endpoint"

    def __init__(self, settings: Mapping[str, Any], clock: Clock | None = None) -> None:
        self._dialect = DIALECTS[settings["dialect"]]
        self._key_place = key_place(settings)
        self._base = self._key_place.base_url
        self._model = settings["model"].strip() or self._dialect.model
        # A run records the model that scored it: the default changes with the catalogue.
        self.settings = {**settings, "model": self._model}
        self._clock = clock or Clock()
        self._client: Client | None = None
        self._chunk = settings["documents_per_request"] or self._dialect.limit
        self._lock = threading.Lock()

    def prepare(self, corpus: Corpus) -> None:
        """Open the client. Raises UnavailableError if a key is missing."""
        from rankdash.core.rerankers.remote.client import Client

        self._client = Client(self._key_place, connection.Policy.of(self.settings), self._clock)

    def fingerprint(self) -> str:
        """Return a hash of the service, its model and the settings sent with the texts."""
        parts = (self.name, self._dialect.name, self._base, self._model)
        return digest([part.encode() + b"\0" for part in parts])

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """Return an estimate of the requests' cost."""
        calls = units = 0
        tokens = 0.0
        for request in requests:
            count = len(request.documents)
            calls += math.ceil(count / self._chunk)
            units += math.ceil(count / _DOCUMENTS_PER_UNIT)
            tokens += sum(map(text_tokens, request.documents)) + count * text_tokens(request.query)
        dollars = (
            tokens / 1e6 * self.settings["price_tokens"]
            + units / 1e3 * self.settings["price_searches"]
        )
        return Estimate(calls, tokens, 0, dollars if dollars else math.nan)

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Return the service's scores. An invalid answer fails its query.

        Raises UnavailableError if the service refuses every request alike.
        """
        client = self._client
        if client is None:
            raise ScoringError("The client is not connected: call prepare() first.")
        at_once = self.settings["concurrency"]
        inside = at_once if len(requests) == 1 else 1
        return connection.concurrently(
            lambda request: self._score(client, request, inside), requests, at_once
        )

    def _score(self, client: Client, request: Request, at_once: int) -> Scored:
        documents = request.documents
        scores = np.full(len(documents), np.nan)
        budget = client.budget()
        places = [
            range(start, min(start + self._chunk, len(documents)))
            for start in range(0, len(documents), self._chunk)
        ]
        parts = connection.concurrently(
            lambda place: self._ask(client, request, place, budget), places, at_once
        )
        calls: list[Call] = []
        faults: list[str] = []
        for place, (part_scores, part_calls, fault) in zip(places, parts, strict=True):
            scores[place.start : place.stop] = part_scores
            calls += part_calls
            faults += [fault] if fault else []
        return Scored(scores, error=faults[0] if faults else "", calls=tuple(calls))

    def _ask(
        self, client: Client, request: Request, place: range, budget: Budget
    ) -> tuple[Scores, list[Call], str]:
        """Return the scores of some documents, the calls made, and the fault or ""."""
        if len(place) > self._chunk:
            return self._halves(client, request, place, budget)
        texts = [request.documents[number] for number in place]
        body = self._dialect.body(self._model, request.query, texts)
        reply = client.post(
            self._dialect.path_after(self._base), body, budget, self._dialect.charged
        )
        if reply.too_large and len(place) > 1:
            with self._lock:
                self._chunk = min(self._chunk, (len(place) + 1) // 2)
            scores, calls, fault = self._halves(client, request, place, budget)
            return scores, [reply.call, *calls], fault
        if reply.error:
            return np.full(len(place), np.nan), [reply.call], _sentence(reply.error)
        scores, fault = self._dialect.read_scores(reply.answer, len(place))
        return scores, [reply.call], fault

    def _halves(
        self, client: Client, request: Request, place: range, budget: Budget
    ) -> tuple[Scores, list[Call], str]:
        middle = place.start + (len(place) + 1) // 2
        first = self._ask(client, request, range(place.start, middle), budget)
        if first[2]:
            missing = np.full(place.stop - middle, np.nan)
            return np.concatenate([first[0], missing]), first[1], first[2]
        second = self._ask(client, request, range(middle, place.stop), budget)
        return np.concatenate([first[0], second[0]]), first[1] + second[1], second[2]


def key_place(settings: Mapping[str, Any]) -> connection.Place:
    """Return the destination of requests and their key. Raises SettingError."""
    dialect = DIALECTS[settings["dialect"]]
    base_url = check_url(settings["base_url"] or dialect.base_url)
    return connection.place(settings["key_variable"], base_url, dialect.variable)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


KIND = RerankerKind(
    name=Endpoint.name,
    title="Rerank service",
    meaning="A rerank model behind a URL, hosted by a provider or by you. Queries and documents "
    "are sent there.",
    settings=(
        SettingSpec(
            "dialect",
            "cohere",
            "Service",
            "The wire format of the service.",
            choices={dialect.name: dialect.title for dialect in DIALECTS.values()},
        ),
        SettingSpec(
            "base_url",
            "",
            "Base URL",
            "The address of the service. Empty: its usual address.",
        ),
        SettingSpec(
            "model",
            "",
            "Model",
            "The model name that the service uses. Empty: a common one.",
        ),
        connection.price(
            "price_searches",
            "Price per 1,000 search units, $",
            "For services that bill searches: one unit is a query with up to 100 documents. 0 if "
            "not known.",
        ),
        connection.price(
            "price_tokens",
            "Price per million tokens, $",
            "For services that bill tokens. 0 if not known.",
        ),
        SettingSpec(
            "documents_per_request",
            0,
            "Documents per request",
            "Queries with more documents are split. 0: the service's limit.",
            within=(0, 10_000),
            advanced=True,
        ),
        *connection.SENDING,
    ),
    capabilities=Capabilities(needs_network=True, across_queries=True),
    build=Endpoint,
    group="service",
    key=key_place,
    estimate=lambda settings, requests: Endpoint(settings).estimate(requests),
)
