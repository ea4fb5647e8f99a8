"""A rerank service, hosted or in the own rack: one client for every wire format."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdash.core.base.errors import ScoringError
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
from rankdash.core.rerankers.remote import call_settings, keys
from rankdash.core.rerankers.remote.apis import DIALECTS
from rankdash.core.rerankers.remote.call_settings import (
    Budget,
    Clock,
    Estimate,
    check_url,
    text_tokens,
)
from rankdash.core.rerankers.settings import SettingSpec

if TYPE_CHECKING:
    from rankdash.core.rerankers.remote.client import Client

# What Cohere and its likes call a search unit: a query with up to so many documents.
_DOCUMENTS_PER_UNIT = 100


class Endpoint:
    """Sends query and documents to a service and reads the scores from its answer."""

    name = "endpoint"

    def __init__(self, settings: Mapping[str, Any], clock: Clock | None = None) -> None:
        self.settings = settings
        self._dialect = DIALECTS[settings["dialect"]]
        self._key_place = key_place(settings)
        self._base = self._key_place.base_url
        self._model = settings["model"].strip() or self._dialect.model
        self._clock = clock or Clock()
        self._client: Client | None = None
        self._chunk = settings["documents_per_request"] or self._dialect.limit
        self._lock = threading.Lock()

    def prepare(self, corpus: Corpus) -> None:
        """Open the client. Raises UnavailableError where a key is missing."""
        from rankdash.core.rerankers.remote.client import Client

        self._client = Client(self._key_place, call_settings.policy(self.settings), self._clock)

    def fingerprint(self) -> str:
        """Of the service, its model and what is sent beside the texts."""
        parts = (self.name, self._dialect.name, self._base, self._model)
        return digest([part.encode() + b"\0" for part in parts])

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """What the requests would cost."""
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
        """Scores as the service gives them. An answer with a fault fails its query.

        Raises UnavailableError where the service refuses every request alike.
        """
        client = self._client
        if client is None:
            raise ScoringError("There is no connection yet: prepare() comes first.")
        at_once = self.settings["concurrency"]
        inside = at_once if len(requests) == 1 else 1
        return call_settings.each(
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
        parts = call_settings.each(
            lambda place: self._ask(client, request, place, budget), places, at_once
        )
        calls: list[Call] = []
        faults: list[str] = []
        for place, (found, made, fault) in zip(places, parts, strict=True):
            scores[place.start : place.stop] = found
            calls += made
            faults += [fault] if fault else []
        return Scored(scores, error=faults[0] if faults else "", calls=tuple(calls))

    def _ask(
        self, client: Client, request: Request, place: range, budget: Budget
    ) -> tuple[Scores, list[Call], str]:
        """Scores of some documents, the calls made, and what was wrong."""
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


def key_place(settings: Mapping[str, Any]) -> keys.Place:
    """Where requests go and which key they carry. Raises SettingError."""
    dialect = DIALECTS[settings["dialect"]]
    base_url = check_url(settings["base_url"] or dialect.base_url)
    return keys.place(settings["key_variable"], base_url, dialect.variable)


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
            choices=tuple(DIALECTS),
            choice_titles=tuple(dialect.title for dialect in DIALECTS.values()),
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
        SettingSpec(
            "price_searches",
            0.0,
            "Price of 1,000 search units, $",
            "For services that bill searches: one unit is a query with up to 100 documents. 0 if "
            "not known.",
            within=(0, 1_000_000),
            advanced=True,
        ),
        SettingSpec(
            "price_tokens",
            0.0,
            "Price of a million tokens, $",
            "For services that bill tokens. 0 if not known.",
            within=(0, 1_000_000),
            advanced=True,
        ),
        SettingSpec(
            "documents_per_request",
            0,
            "Documents per request",
            "A query with more is split. 0: as many as the service takes.",
            within=(0, 10_000),
            advanced=True,
        ),
        *call_settings.SENDING,
    ),
    capabilities=Capabilities(needs_network=True, across_queries=True),
    build=Endpoint,
    group="service",
    key=key_place,
    estimate=lambda settings, requests: Endpoint(settings).estimate(requests),
)
