"""A language model compares two documents at a time, among the best few.

Pairwise ranking prompting: Qin et al., "Large Language Models are Effective Text Rankers with
Pairwise Ranking Prompting" (2023). Every pair is asked in both orders; two answers that contradict
each other, or one that cannot be read, make a draw.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankdash.core.rerankers.base import Call, Request, Scored
from rankdash.core.rerankers.remote import call_settings, prompts
from rankdash.core.rerankers.remote.call_settings import Budget, Estimate
from rankdash.core.rerankers.remote.chat import ACROSS, ChatReranker, Said, unread
from rankdash.core.rerankers.settings import SettingSpec

_LETTER = re.compile(r"\W*(?:(?:document|passage)\s+)?([AB])\W*", re.IGNORECASE)
_TOKENS = 4


class LlmPairwise(ChatReranker):
    """Compares the first few documents; the others keep their order behind them.

    all: every pair, a score is the number of wins, half for a draw: n (n − 1) calls.
    sliding: so many passes of bubble sort from the back to the front, two calls a comparison; each
    pass brings the best of what is left to its place.
    """

    name = "llm-pairwise"
    places = ("query", "a", "b")

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """What the requests would cost: two calls for each comparison."""
        asked = []
        for request in requests:
            texts = request.documents[: self.settings["top"]]
            pairs = list(itertools.combinations(range(len(texts)), 2))
            if self.settings["sort"] == "sliding":
                passes = range(self.settings["passes"])
                pairs = [(n, n + 1) for done in passes for n in range(done, len(texts) - 1)]
            asked += [
                (self._prompt(request.query, texts[one], texts[other]), 1)
                for pair in pairs
                for one, other in (pair, pair[::-1])
            ]
        return self._chat.estimate(asked)

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Wins of the first few, and below them minus the place of the others.

        A query fails where a request fails or no answer at all could be read.
        """
        at_once = self.settings["concurrency"]
        inside = at_once if len(requests) == 1 else 1
        return call_settings.each(lambda request: self._score(request, inside), requests, at_once)

    def _score(self, request: Request, at_once: int) -> Scored:
        count = len(request.documents)
        top = min(self.settings["top"], count)
        scores = -np.arange(count, dtype=np.float64)
        if top < 2:
            return Scored(scores)
        match = _Match(self, request, self._chat.budget())
        sort = match.all_pairs if self.settings["sort"] == "all" else match.bubble
        scores[:top] = 1 + sort(top, at_once)
        fault = match.fault()
        if fault:
            return Scored.failed(count, fault, tuple(match.calls))
        return Scored(scores, calls=tuple(match.calls))

    def ask(self, request: Request, one: int, other: int, budget: Budget) -> Said:
        """Which of two documents is better, the first called A."""
        texts = request.documents
        return self._chat.ask(
            self._prompt(request.query, texts[one], texts[other]), budget, _TOKENS
        )

    def passes(self) -> int:
        """How many passes of bubble sort."""
        return int(self.settings["passes"])

    def _prompt(self, query: str, one: str, other: str) -> str:
        return self._filled(query, a=self._shown(one, "A"), b=self._shown(other, "B"))


class _Match:
    """The comparisons of one query."""

    def __init__(self, model: LlmPairwise, request: Request, budget: Budget) -> None:
        self._model, self._request, self._budget = model, request, budget
        self._lock = threading.Lock()
        self._read = 0
        self._errors: list[str] = []
        self._unread: list[str] = []
        self.calls: list[Call] = []

    def all_pairs(self, top: int, at_once: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(top,) wins of each document against every other."""
        pairs = list(itertools.combinations(range(top), 2))
        shares = call_settings.each(lambda pair: self._compare(*pair), pairs, at_once)
        wins = np.zeros(top)
        for (one, other), share in zip(pairs, shares, strict=True):
            wins[one] += share
            wins[other] += 1 - share
        return wins

    def bubble(self, top: int, at_once: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(top,) places counted from the end, after passes in which better ones rise."""
        order = list(range(top))
        for done in range(min(self._model.passes(), top - 1)):
            for place in range(top - 1, done, -1):
                if self._compare(order[place - 1], order[place]) < 0.5:
                    order[place - 1], order[place] = order[place], order[place - 1]
        scores = np.empty(top)
        scores[order] = np.arange(top - 1, -1, -1)
        return scores

    def fault(self) -> str:
        """Why the query failed; "" where it did not."""
        if self._errors:
            first, calls = self._errors[0], len(self.calls)
            return f"requests that failed: {len(self._errors)} of {calls}: {first}."
        if self._read or not self._unread:
            return ""
        return f"No answer could be read: {unread(self._unread[0])}."

    def _compare(self, one: int, other: int) -> float:
        """1 where the first is better both ways, 0 where the second is, else 0.5."""
        if self._errors:
            return 0.5
        forward = self._wins(one, other)
        backward = self._wins(other, one)
        if forward is None or backward is None or forward == backward:
            return 0.5
        return 1.0 if forward else 0.0

    def _wins(self, one: int, other: int) -> bool | None:
        """Whether A, the first, is better; None where that cannot be read."""
        said = self._model.ask(self._request, one, other, self._budget)
        letter = _LETTER.fullmatch(said.text) if not said.error else None
        with self._lock:
            note = "" if letter or said.error else f"unread: {unread(said.text)}"
            self.calls.append(replace(said.call, note=note))
            if said.error:
                self._errors.append(said.error)
            elif letter is None:
                self._unread.append(said.text)
            else:
                self._read += 1
        return None if letter is None else letter[1].upper() == "A"


KIND = LlmPairwise.kind(
    "LLM pairwise",
    "A language model compares two documents at a time, among the best few of the first "
    "stage; the others stay below. Many calls a query.",
    SettingSpec(
        "top",
        10,
        "Documents compared",
        "How many documents from the top of the first stage are compared.",
        within=(2, 100),
    ),
    SettingSpec(
        "sort",
        "all",
        "Sort",
        "all: every pair in both orders, n × (n − 1) calls, concurrently. sliding: passes of "
        "bubble sort from the back, fewer calls, one after the other.",
        choices=("all", "sliding"),
    ),
    SettingSpec(
        "passes",
        5,
        "Passes",
        "For the sliding sort: each pass finds the next best document.",
        within=(1, 100),
    ),
    SettingSpec(
        "prompt",
        prompts.PAIRWISE,
        "Prompt",
        "Must contain {query}, {a} and {b}. Query and documents are put between marks that "
        "they cannot contain.",
        lines=8,
    ),
    capabilities=ACROSS,
)
