"""A language model orders a list of documents, window by window from the back to the front.

Window, stride and the repair of malformed answers are those of RankGPT: Sun et al., "Is ChatGPT
Good at Search?" (2023). Averaging over shuffles: Tang et al., "Found in the Middle" (2024).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import SettingError
from rankdash.core.rerankers.base import Call, Request, Scored
from rankdash.core.rerankers.remote import call_settings, prompts
from rankdash.core.rerankers.remote.call_settings import Budget, Clock, Estimate
from rankdash.core.rerankers.remote.chat import ACROSS, ChatReranker, unread
from rankdash.core.rerankers.settings import SettingSpec

_BRACKETED = re.compile(r"\[\s*(\d{1,6})\s*\]")
_BARE = re.compile(r"\d{1,6}(?:\s*[>,]\s*\d{1,6})*")
_TOKENS_PER_DOCUMENT = 5
_SEED = 7


@dataclass(frozen=True)
class Order:
    """A permutation read from an answer.

    places: 0-based, best first; each of the window's exactly once.
    missing, repeated, unknown: how many numbers were left out, named again, or never given.
    """

    places: tuple[int, ...]
    missing: int
    repeated: int
    unknown: int

    @property
    def note(self) -> str:
        """What was put right; "" for nothing."""
        counts = {"missing": self.missing, "repeated": self.repeated, "unknown": self.unknown}
        put_right = [f"{count} {what}" for what, count in counts.items() if count]
        return "repaired: " + ", ".join(put_right) if put_right else ""


class LlmListwise(ChatReranker):
    """Shows the model several documents at once. A score is a document's place from the end."""

    name = "llm-listwise"
    places = ("query", "documents", "count")

    def __init__(self, settings: Mapping[str, Any], clock: Clock | None = None) -> None:
        super().__init__(settings, clock)
        self._window, self._stride = settings["window"], settings["stride"]
        if self._stride > self._window:
            raise SettingError(
                "The stride must not be longer than the window ({window}).",
                remedy="Half a window is usual.",
                window=self._window,
            )

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """What the requests would cost: a call for each window, for each shuffle."""
        asked = [
            (
                self._prompt(request.query, request.documents[start:end]),
                _TOKENS_PER_DOCUMENT * (end - start),
            )
            for request in requests
            if len(request.documents) > 1
            for start, end in windows(len(request.documents), self._window, self._stride)
        ]
        return self._chat.estimate(asked * (1 + self.settings["shuffles"]))

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """The mean place over the given order and its shuffles, counted from the end.

        A query fails where a request fails or no answer at all held an order.
        """
        return call_settings.each(self._score, requests, self.settings["concurrency"])

    def _score(self, request: Request) -> Scored:
        count = len(request.documents)
        if count < 2:
            return Scored(np.zeros(count))
        budget = self._chat.budget()
        generator = np.random.default_rng(_SEED)
        starts = [np.arange(count)]
        starts += [generator.permutation(count) for _ in range(self.settings["shuffles"])]
        passes: list[npt.NDArray[np.float64]] = []
        calls: list[Call] = []
        for start in starts:
            order, made, fault = self._pass(request, start, budget)
            calls += made
            if fault:
                return Scored.failed(count, fault, tuple(calls))
            places = np.empty(count)
            places[order] = np.arange(count)
            passes.append(places)
        if len(passes) > 1:
            agreed = np.mean([kendall(passes[0], other) for other in passes[1:]])
            told = f"Kendall τ of the order after shuffles: {agreed:.2f}"
            calls[-1] = replace(calls[-1], note="; ".join(filter(None, (calls[-1].note, told))))
        return Scored(count - 1 - np.mean(passes, axis=0), calls=tuple(calls))

    def _pass(
        self, request: Request, start: npt.NDArray[np.intp], budget: Budget
    ) -> tuple[npt.NDArray[np.intp], list[Call], str]:
        """The order after all windows, the calls, and why it failed."""
        order = start.copy()
        calls: list[Call] = []
        understood, last = False, ""
        for first, end in windows(len(order), self._window, self._stride):
            places = order[first:end]
            prompt = self._prompt(request.query, [request.documents[place] for place in places])
            said = self._chat.ask(prompt, budget, _TOKENS_PER_DOCUMENT * len(places))
            if said.error:
                return order, [*calls, said.call], f"A request failed: {said.error}."
            found = read_order(said.text, len(places))
            understood = understood or found.missing < len(places)
            last = said.text
            order[first:end] = places[list(found.places)]
            calls.append(replace(said.call, note=found.note))
        fault = "" if understood else f"No answer held an order: {unread(last)}."
        return order, calls, fault

    def _prompt(self, query: str, documents: Sequence[str]) -> str:
        shown = [self._shown(text, str(number)) for number, text in enumerate(documents, 1)]
        return self._filled(query, documents="\n".join(shown), count=str(len(documents)))


def kendall(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Kendall's τ of two orders without ties: 1 for the same, -1 for the opposite."""
    alike = np.sign(one[:, None] - one) * np.sign(other[:, None] - other)
    return float(alike.sum() / (len(one) * (len(one) - 1)))


def windows(count: int, window: int, stride: int) -> Iterator[tuple[int, int]]:
    """(start, end) of each window over `count` places, from the back to the front."""
    end = count
    while True:
        start = max(0, end - window)
        yield start, end
        if start == 0:
            return
        end -= stride


def read_order(text: str, count: int) -> Order:
    """The order of `count` documents in an answer, by the rule of RankGPT: numbers that exist stay
    as they come, repeats are dropped, and what is missing follows in the order before."""
    named = _BRACKETED.findall(text)
    if not named and _BARE.fullmatch(text.strip(" .\n")):
        named = re.findall(r"\d+", text)
    places = [int(number) - 1 for number in named]
    known = [place for place in places if 0 <= place < count]
    kept = list(dict.fromkeys(known))
    missing = [place for place in range(count) if place not in set(kept)]
    return Order((*kept, *missing), len(missing), len(known) - len(kept), len(places) - len(known))


KIND = LlmListwise.kind(
    "LLM listwise",
    "A language model orders twenty documents at a time, from the end of the list to its "
    "beginning. Its answer depends on the order in which it meets them.",
    SettingSpec(
        "window",
        20,
        "Window",
        "How many documents the model orders at once.",
        within=(2, 200),
    ),
    SettingSpec(
        "stride",
        10,
        "Stride",
        "By how many documents the window moves towards the front.",
        within=(1, 200),
    ),
    SettingSpec(
        "shuffles",
        0,
        "Shuffles",
        "Ask this many times with the documents in another order, and take the mean rank. The "
        "agreement of the orders is reported with the calls.",
        within=(0, 20),
    ),
    SettingSpec(
        "prompt",
        prompts.LISTWISE,
        "Prompt",
        "Must contain {query}, {documents} and {count}. Query and documents are put between "
        "marks that they cannot contain.",
        lines=8,
    ),
    capabilities=ACROSS,
)
