"""Client of a language model behind an OpenAI-compatible chat endpoint, for rerankers and
judges."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from rankdash.core.base.errors import ScoringError, SettingError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.data.ranking import digest
from rankdash.core.rerankers.base import Call, Capabilities, Corpus, Request, RerankerKind, Scored
from rankdash.core.rerankers.remote import connection, prompts
from rankdash.core.rerankers.remote.connection import (
    Budget,
    Clock,
    Estimate,
    check_url,
    dig,
    text_tokens,
)

if TYPE_CHECKING:
    from rankdash.core.rerankers.remote.client import Client

VARIABLE = "OPENAI_API_KEY"
_ALTERNATIVES = 20
# Tokens of the chat template around a message.
_FRAME_TOKENS = 8
_SHOWN = 60
# In characters: several times the length of an answer of `answer_tokens`.
LONGEST_TEXT = 2_000_000

CONNECTION = (
    SettingSpec(
        "model",
        "gpt-4.1-mini",
        "Model",
        "The model name that the service uses.",
        required=True,
    ),
    SettingSpec(
        "base_url",
        "",
        "Base URL",
        "The address of an endpoint compatible with OpenAI's: a provider's, or vLLM, Ollama, "
        "llama.cpp and the like on your own machine. Empty: the address in the environment "
        "variable OPENAI_BASE_URL, or else OpenAI.",
    ),
)

SAYING = (
    SettingSpec(
        "system",
        prompts.SYSTEM,
        "System message",
        "The first message to the model. By default, it states that documents are data, never "
        "instructions.",
        lines=4,
        advanced=True,
    ),
    SettingSpec(
        "document_characters",
        2000,
        "Characters of a document",
        "Longer documents are truncated, so that prompts fit the model and the budget; 0: no "
        "limit.",
        within=(0, 1_000_000),
        advanced=True,
    ),
    SettingSpec(
        "answer_tokens",
        0,
        "Max output tokens",
        "Limit of the answer. 0: enough for a short answer; a reasoning model needs thousands of "
        "tokens.",
        within=(0, 100_000),
        advanced=True,
    ),
    SettingSpec(
        "extra",
        "",
        "Extra request fields (JSON)",
        "A JSON object that is merged into the request, such as a seed or chat_template_kwargs. "
        "Fields that are null are removed.",
        lines=2,
        advanced=True,
    ),
    connection.price("price_in", "Input price per million tokens, $"),
    connection.price("price_out", "Output price per million tokens, $"),
)


@dataclass(frozen=True)
class ChatAnswer:
    """Answer of a model.

    text: without reasoning. top: token → log-probability, the likeliest first tokens of the answer;
        empty if the endpoint returns none. error: reason for a missing answer, or "".
    """

    text: str
    top: Mapping[str, float]
    call: Call
    error: str = ""


class Chat:
    """Client of one chat model.

    settings: `CONNECTION`, `SAYING` and `connection.SENDING`; `base_url` is replaced by the
        effective address.

    Raises SettingError for an invalid address, variable or extra request field.
    """

    def __init__(self, settings: Mapping[str, Any], clock: Clock | None = None) -> None:
        # The record of the run contains the address, also if it comes from the environment.
        address = settings["base_url"] or connection.usual_address(VARIABLE)
        is_default = address == connection.HOMES[VARIABLE]
        self.settings = settings if is_default else {**settings, "base_url": address}
        self._place = key_place(self.settings)
        self._extra = _extra(settings["extra"])
        self._clock = clock or Clock()
        self._client: Client | None = None

    def open(self) -> None:
        """Open the connection. Raises UnavailableError if a key is missing."""
        from rankdash.core.rerankers.remote.client import Client

        self._client = Client(self._place, connection.Policy.of(self.settings), self._clock)

    def budget(self) -> Budget:
        """Return a new time budget for one query."""
        return self._open_client().budget()

    def fingerprint(self, *parts: object) -> str:
        """Return a hash of the model, its messages and `parts`."""
        settings = [self.settings[name] for name in ("model", "system", "document_characters")]
        every = (
            *parts,
            self._place.base_url,
            self.settings["answer_tokens"],
            self._extra,
            *settings,
        )
        return digest([repr(part).encode() for part in every])

    def ask(
        self,
        prompt: str,
        budget: Budget,
        tokens: int,
        *,
        choices: bool = False,
        temperature: float = 0,
    ) -> ChatAnswer:
        """Return one answer of at most `tokens` tokens; choices: with the likeliest first tokens.

        Raises UnavailableError if the endpoint refuses every request alike.
        """
        body: dict[str, Any] = {
            "model": self.settings["model"],
            "messages": [
                {"role": "system", "content": self.settings["system"]},
                {"role": "user", "content": prompt},
            ],
            "temperature": temperature,
            "max_tokens": self.settings["answer_tokens"] or tokens,
        }
        if choices:
            body |= {"logprobs": True, "top_logprobs": _ALTERNATIVES}
        body = {name: value for name, value in {**body, **self._extra}.items() if value is not None}
        path = "/chat/completions" if urlsplit(self._place.base_url).path else _PATH
        client = self._open_client()
        reply = client.post(path, body, budget, self._billed)
        if reply.error:
            return ChatAnswer("", {}, reply.call, reply.error)
        choice = _first(dig(reply.answer, ("choices",)))
        text = dig(choice, ("message", "content"))
        if not isinstance(text, str):
            return ChatAnswer("", {}, reply.call, "malformed response: message is missing")
        if len(text) > LONGEST_TEXT:
            return ChatAnswer("", {}, reply.call, "the answer is too long")
        # An answer that cannot be parsed is stored truncated, so the key is redacted first.
        return ChatAnswer(client.redact(prompts.without_thoughts(text)), _top(choice), reply.call)

    def shown(self, document: str, name: str = "") -> str:
        """Return a document as it appears in a prompt: truncated, between <document> tags.

        name: its id in the tag, if there are several.
        """
        return prompts.document(prompts.cut(document, self.settings["document_characters"]), name)

    def estimate(self, calls: Sequence[tuple[str, int]]) -> Estimate:
        """Return an estimate of the cost of prompts, each with the tokens of its answer."""
        frame = text_tokens(self.settings["system"]) + _FRAME_TOKENS
        read = sum(text_tokens(prompt) + frame for prompt, _ in calls)
        written = float(sum(self.settings["answer_tokens"] or tokens for _, tokens in calls))
        dollars = self._dollars(read, written)
        return Estimate(len(calls), read, written, dollars if dollars else math.nan)

    def read_only(self, prompt: str) -> Mapping[str, float]:
        """Return the estimated billed units of a prompt without an answer."""
        read = self.estimate([(prompt, 0)]).tokens_in
        dollars = self._dollars(read, 0)
        return {"prompt_tokens": read, **({"dollars": dollars} if dollars else {})}

    def charged(self, answer: ChatAnswer, prompt: str) -> Call:
        """Return the call of an answer with the tokens of prompt and answer, estimated from the
        texts if the service did not count them. The text contains no reasoning, so the estimate is
        a lower bound."""
        call = answer.call
        if answer.error or {"prompt_tokens", "completion_tokens"} <= call.billed.keys():
            return call
        read, written = self.estimate([(prompt, 0)]).tokens_in, text_tokens(answer.text)
        billed = {"prompt_tokens": read, "completion_tokens": written, **call.billed}
        dollars = self._dollars(billed["prompt_tokens"], billed["completion_tokens"])
        return replace(
            call, billed={**billed, "dollars": dollars} if dollars else billed, estimated=True
        )

    def _open_client(self) -> Client:
        if self._client is None:
            raise ScoringError("The client is not connected: call prepare() first.")
        return self._client

    def _billed(self, answer: Any) -> Mapping[str, float]:
        counts = {
            name: dig(answer, ("usage", name)) for name in ("prompt_tokens", "completion_tokens")
        }
        billed = {
            name: float(count)
            for name, count in counts.items()
            if isinstance(count, (int, float)) and math.isfinite(count)
        }
        dollars = self._dollars(*(billed.get(name, 0.0) for name in counts))
        return {**billed, "dollars": dollars} if dollars else billed

    def _dollars(self, read: float, written: float) -> float:
        prices = self.settings["price_in"], self.settings["price_out"]
        return float(read * prices[0] + written * prices[1]) / 1e6


class ChatReranker:
    """Base class of LLM rerankers. places: required placeholders of the prompt."""

    name: str
    places: tuple[str, ...]

    def __init__(self, settings: Mapping[str, Any], clock: Clock | None = None) -> None:
        self._chat = Chat(settings, clock)
        self.settings = self._chat.settings
        prompts.check(settings["prompt"], self.places)

    def prepare(self, corpus: Corpus) -> None:
        """Open the client. Raises UnavailableError if a key is missing."""
        self._chat.open()

    def fingerprint(self) -> str:
        """Return "": a score depends on the other documents, so it is not cached."""
        return ""

    def _filled(self, query: str, **values: str) -> str:
        return prompts.fill(self.settings["prompt"], {"query": prompts.query(query), **values})

    def _shown(self, document: str, name: str = "") -> str:
        return self._chat.shown(document, name)

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """Return an estimate of the requests' cost."""
        raise NotImplementedError

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        raise NotImplementedError

    @classmethod
    def kind(
        cls, title: str, meaning: str, *settings: SettingSpec, capabilities: Capabilities
    ) -> RerankerKind:
        """Return the entry of the reranker registry for this class.

        settings: the settings of this class, in addition to the common settings of LLM rerankers.
        """
        return RerankerKind(
            name=cls.name,
            title=title,
            meaning=meaning,
            settings=(*CONNECTION, *settings, *SAYING, *connection.SENDING),
            capabilities=capabilities,
            build=cls,
            group="llm",
            key=key_place,
            estimate=lambda settings, requests: cls(settings).estimate(requests),
        )


ACROSS = Capabilities(
    scope="listwise", needs_network=True, order_sensitive=True, across_queries=True
)
"""Capabilities of a reranker with scores that depend on the other documents."""

_PATH = "/v1/chat/completions"


def key_place(settings: Mapping[str, Any]) -> connection.Place:
    """Return the destination of requests and their key. Raises SettingError."""
    address = check_url(settings["base_url"] or connection.usual_address(VARIABLE))
    return connection.place(settings["key_variable"], address, VARIABLE)


def unread(text: str) -> str:
    """Return the description of an answer that cannot be parsed."""
    shown = " ".join(text.split())
    shown = shown[:_SHOWN] + "…" if len(shown) > _SHOWN else shown
    return f"the model answered {shown!r}" if shown else "empty response"


def _extra(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or {"messages", "stream", "n"} & fields.keys():
        raise SettingError(
            "The extra request fields must be a JSON object without messages, stream and n.",
            remedy="Write the object in braces, with the names in double quotes.",
        )
    return fields


def _first(values: Any) -> Any:
    return values[0] if isinstance(values, list) and values else None


def _top(choice: Any) -> dict[str, float]:
    """Return the likeliest first tokens of an answer."""
    first = _first(dig(choice, ("logprobs", "content")))
    listed = dig(first, ("top_logprobs",))
    log_probs: dict[str, float] = {}
    for entry in listed if isinstance(listed, list) else []:
        token, value = dig(entry, ("token",)), dig(entry, ("logprob",))
        if isinstance(token, str) and isinstance(value, (int, float)) and not math.isnan(value):
            log_probs[token] = max(float(value), log_probs.get(token, -math.inf))
    return log_probs


# Settings of a judge: a language model that grades documents.

Combine = Literal["median", "majority"]

GRADED, BINARY = prompts.JUDGE["graded"], prompts.JUDGE["binary"]

MOST_REPEATS = 15

JUDGE_SETTINGS: tuple[SettingSpec, ...] = (
    *CONNECTION,
    SettingSpec(
        "prompt",
        str(GRADED["prompt"]),
        "Prompt",
        "The prompt must contain {query} and {document}, and may contain {guidelines}; each is "
        "enclosed in marks that it cannot contain. The prompt must request the reason first and "
        "then a last line such as Grade: 2.",
        lines=12,
    ),
    SettingSpec(
        "top",
        int(GRADED["top"]),
        "Highest grade",
        "The highest grade on the scale in the prompt; the lowest grade is 0.",
        within=(1, 100),
    ),
    SettingSpec(
        "guidelines",
        "",
        "Guidelines",
        "Annotation guidelines. The judge receives the same text.",
        lines=3,
    ),
    SettingSpec(
        "repeats",
        1,
        "Repeats",
        "Number of times that each pair is graded. Repeats show how consistent the judge is.",
        within=(1, MOST_REPEATS),
    ),
    SettingSpec(
        "combine",
        "median",
        "Combined grade of repeats",
        "The lower median, or the most frequent grade: the lowest of equally frequent ones.",
        choices={"median": "lower median", "majority": "most frequent grade"},
        advanced=True,
    ),
    *SAYING,
    *connection.SENDING,
)
