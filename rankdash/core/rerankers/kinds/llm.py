"""LLM rerankers: pointwise, pairwise and listwise."""

from __future__ import annotations

import itertools
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import SettingError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.rerankers.base import Call, Capabilities, Request, Scored
from rankdash.core.rerankers.remote import connection, prompts
from rankdash.core.rerankers.remote.chat import ACROSS, ChatAnswer, ChatReranker, unread
from rankdash.core.rerankers.remote.connection import Budget, Clock, Estimate

# Pointwise. Yes or no by the odds of the first token: Nogueira et al., "Document Ranking with a
# Pretrained Sequence-to-Sequence Model" (2020), as used with chat models since. Graded labels by
# their expected value: Zhuang et al., "Beyond Yes and No" (2024).

_TOKENS = {"yes-no": 1, "grade": 1, "number": 4}

# Forms of a first token in English and Chinese, compared without blanks and case.
_YES = frozenset(("yes", "y", "true", "是", "是的", "相关"))
_NO = frozenset(("no", "n", "false", "否", "不", "不是", "不相关"))
_GRADES = {str(grade): float(grade) for grade in range(5)}
_BLANKS = " \t\r\n\u2581\u0120\u010a\"'*`.,:：。"
_NUMBER = re.compile(r"\**\s*(10|[0-9])\s*(?:/\s*10\s*)?\**\.?")


class LlmPointwise(ChatReranker):
    """LLM reranker that asks the same question about every document."""

    name = "llm-pointwise"
    places = ("query", "document", "question")

    @property
    def _answer(self) -> str:
        return str(self.settings["answer"])

    def fingerprint(self) -> str:
        """Return a hash of the model and its prompt."""
        return self._chat.fingerprint(self.name, self._answer, self.settings["prompt"])

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """Return an estimate of the requests' cost: one call per document."""
        return self._chat.estimate(
            [
                (self._prompt(request.query, text), _TOKENS[self._answer])
                for request in requests
                for text in request.documents
            ]
        )

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Return log-odds for yes-no, the expected grade for grade, the number in the answer for
        number.

        A document with an unreadable answer is NaN, and its query fails with the model's answer.
        """
        budgets: dict[int, Budget] = {}
        lock = threading.Lock()

        def judge(item: tuple[int, str]) -> tuple[float, ChatAnswer]:
            number, text = item
            with lock:
                budget = budgets.setdefault(number, self._chat.budget())
            return self._judge(requests[number].query, text, budget)

        items = [
            (number, text) for number, request in enumerate(requests) for text in request.documents
        ]
        judged = iter(connection.concurrently(judge, items, self.settings["concurrency"]))
        listed = self._answer != "number"
        return [
            _together([next(judged) for _ in request.documents], listed) for request in requests
        ]

    def _judge(self, query: str, text: str, budget: Budget) -> tuple[float, ChatAnswer]:
        answer = self._chat.ask(
            self._prompt(query, text),
            budget,
            _TOKENS[self._answer],
            choices=self._answer != "number",
        )
        if answer.error:
            return math.nan, answer
        if self._answer == "number":
            match = _NUMBER.fullmatch(answer.text.strip())
            return (float(match[1]) if match else math.nan), answer
        return (log_odds if self._answer == "yes-no" else expected_grade)(answer.top), answer

    def _prompt(self, query: str, text: str) -> str:
        question = prompts.QUESTIONS[self._answer]
        return self._filled(query, document=self._shown(text), question=question)


def log_odds(top: Mapping[str, float]) -> float:
    """Return logsumexp over the forms of yes minus logsumexp over the forms of no; NaN without
    either.

    A missing answer is at most as likely as the last listed token, so that value replaces it.
    """
    yes, no = _sum(top, _YES), _sum(top, _NO)
    if yes is None and no is None:
        return math.nan
    least = min(top.values())
    return (least if yes is None else yes) - (least if no is None else no)


def expected_grade(top: Mapping[str, float]) -> float:
    """Return the mean grade, weighted by the probabilities of the grades; NaN without any grade."""
    likely = [
        (_GRADES[_plain(token)], math.exp(value))
        for token, value in top.items()
        if _plain(token) in _GRADES
    ]
    whole = sum(probability for _, probability in likely)
    if not whole > 0:
        return math.nan
    return sum(grade * probability for grade, probability in likely) / whole


def _sum(top: Mapping[str, float], forms: frozenset[str]) -> float | None:
    values = [
        value for token, value in top.items() if _plain(token) in forms and math.isfinite(value)
    ]
    if not values:
        return None
    highest = max(values)
    return highest + math.log(sum(math.exp(value - highest) for value in values))


def _plain(token: str) -> str:
    return token.strip(_BLANKS).casefold()


def _together(judged: Sequence[tuple[float, ChatAnswer]], listed: bool) -> Scored:
    """Combine the scores and answers for the documents of a query. listed: whether probabilities
    of tokens were requested."""
    scores = np.array([score for score, _ in judged], dtype=np.float64)
    calls = tuple(answer.call for _, answer in judged)
    read = [answer.call.billed.get("prompt_tokens", math.nan) for _, answer in judged]
    counted = bool(judged) and all(map(math.isfinite, read))
    return Scored(
        scores,
        tokens=np.array(read, dtype=np.int64) if counted else None,
        error=_fault(
            [answer for score, answer in judged if math.isnan(score)], len(judged), listed
        ),
        calls=calls,
    )


def _fault(unscored: Sequence[ChatAnswer], count: int, listed: bool) -> str:
    """Return the reason why some documents have no score, with their number; "" if all have one."""
    failed = [answer.error for answer in unscored if answer.error]
    if failed:
        return f"requests that failed: {len(failed)} of {count}: {failed[0]}."
    if not unscored:
        return ""
    first = unscored[0]
    reason = unread(first.text)
    if listed and not first.top:
        reason += ", and the endpoint returned no token probabilities"
    return f"answers that could not be read: {len(unscored)} of {count}: {reason}."


POINTWISE = LlmPointwise.kind(
    "LLM pointwise",
    "An LLM judges one document at a time. One call per document; the score is computed from the "
    "probabilities of its answer.",
    SettingSpec(
        "answer",
        "yes-no",
        "Answer",
        "yes-no: the odds of yes against no. grade: the expected grade from 0 to 4. Both need an "
        "endpoint that returns token probabilities. number: the number from 0 to 10 in the "
        "answer, with many ties, for endpoints without probabilities.",
        choices=tuple(prompts.QUESTIONS),
    ),
    SettingSpec(
        "prompt",
        prompts.POINTWISE,
        "Prompt",
        "The prompt must contain {query}, {document} and {question}. Query and document are "
        "enclosed in marks that they cannot contain.",
        lines=6,
    ),
    capabilities=Capabilities(needs_network=True, across_queries=True),
)


# Listwise: the model orders windows of documents from the back of the list to the front.
# Window, stride and the repair of malformed answers follow RankGPT: Sun et al., "Is ChatGPT Good at
# Search?" (2023). Averaging over shuffles: Tang et al., "Found in the Middle" (2024).

_BRACKETED = re.compile(r"\[\s*(\d{1,6})\s*\]")
_BARE = re.compile(r"\d{1,6}(?:\s*[>,]\s*\d{1,6})*")
_TOKENS_PER_DOCUMENT = 5
_SEED = 7


@dataclass(frozen=True)
class Order:
    """Permutation parsed from an answer.

    places: 0-based, best first; each of the window's exactly once.
    missing, repeated, unknown: numbers that the answer omitted, repeated, or invented.
    """

    places: tuple[int, ...]
    missing: int
    repeated: int
    unknown: int

    @property
    def note(self) -> str:
        """Repairs of the answer; "" without repairs."""
        counts = {"missing": self.missing, "repeated": self.repeated, "unknown": self.unknown}
        put_right = [f"{count} {what}" for what, count in counts.items() if count]
        return "repaired: " + ", ".join(put_right) if put_right else ""


class LlmListwise(ChatReranker):
    """LLM reranker that orders several documents per call. A score is a document's place from the
    end."""

    name = "llm-listwise"
    places = ("query", "documents", "count")

    def __init__(self, settings: Mapping[str, Any], clock: Clock | None = None) -> None:
        super().__init__(settings, clock)
        self._window, self._stride = settings["window"], settings["stride"]
        if self._stride > self._window:
            raise SettingError(
                "The stride must not be longer than the window ({window}).",
                remedy="Half of the window is typical.",
                window=self._window,
            )

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """Return an estimate of the requests' cost: one call per window and shuffle."""
        calls = [
            (
                self._prompt(request.query, request.documents[start:end]),
                _TOKENS_PER_DOCUMENT * (end - start),
            )
            for request in requests
            if len(request.documents) > 1
            for start, end in windows(len(request.documents), self._window, self._stride)
        ]
        return self._chat.estimate(calls * (1 + self.settings["shuffles"]))

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Return the mean place over the input order and its shuffles, counted from the end.

        A query fails if a request fails or no answer contains an order.
        """
        return connection.concurrently(self._score, requests, self.settings["concurrency"])

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
            order, pass_calls, fault = self._pass(request, start, budget)
            calls += pass_calls
            if fault:
                return Scored.failed(count, fault, tuple(calls))
            places = np.empty(count)
            places[order] = np.arange(count)
            passes.append(places)
        if len(passes) > 1:
            agreed = np.mean([kendall(passes[0], other) for other in passes[1:]])
            note = f"Kendall τ of the order after shuffles: {agreed:.2f}"
            calls[-1] = replace(calls[-1], note="; ".join(filter(None, (calls[-1].note, note))))
        return Scored(count - 1 - np.mean(passes, axis=0), calls=tuple(calls))

    def _pass(
        self, request: Request, start: npt.NDArray[np.intp], budget: Budget
    ) -> tuple[npt.NDArray[np.intp], list[Call], str]:
        """Return the order after all windows, the calls, and the reason of a failure or ""."""
        order = start.copy()
        calls: list[Call] = []
        understood, last = False, ""
        for first, end in windows(len(order), self._window, self._stride):
            places = order[first:end]
            prompt = self._prompt(request.query, [request.documents[place] for place in places])
            answer = self._chat.ask(prompt, budget, _TOKENS_PER_DOCUMENT * len(places))
            if answer.error:
                return order, [*calls, answer.call], f"A request failed: {answer.error}."
            parsed = read_order(answer.text, len(places))
            understood = understood or parsed.missing < len(places)
            last = answer.text
            order[first:end] = places[list(parsed.places)]
            calls.append(replace(answer.call, note=parsed.note))
        fault = "" if understood else f"No answer contained an order: {unread(last)}."
        return order, calls, fault

    def _prompt(self, query: str, documents: Sequence[str]) -> str:
        shown = [self._shown(text, str(number)) for number, text in enumerate(documents, 1)]
        return self._filled(query, documents="\n".join(shown), count=str(len(documents)))


def kendall(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Return Kendall's τ of two orders without ties: 1 for the same, -1 for the opposite."""
    alike = np.sign(one[:, None] - one) * np.sign(other[:, None] - other)
    return float(alike.sum() / (len(one) * (len(one) - 1)))


def windows(count: int, window: int, stride: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each window over `count` places, from the back to the front."""
    end = count
    while True:
        start = max(0, end - window)
        yield start, end
        if start == 0:
            return
        end -= stride


def read_order(text: str, count: int) -> Order:
    """Parse the order of `count` documents from an answer, as RankGPT does: valid numbers stay in
    order, repeats are dropped, and missing ones follow in the previous order."""
    named = _BRACKETED.findall(text)
    if not named and _BARE.fullmatch(text.strip(" .\n")):
        named = re.findall(r"\d+", text)
    places = [int(number) - 1 for number in named]
    valid = [place for place in places if 0 <= place < count]
    distinct = list(dict.fromkeys(valid))
    missing = [place for place in range(count) if place not in set(distinct)]
    return Order(
        (*distinct, *missing), len(missing), len(valid) - len(distinct), len(places) - len(valid)
    )


LISTWISE = LlmListwise.kind(
    "LLM listwise",
    "An LLM orders twenty documents at a time, from the end of the list to its beginning. Its "
    "answer depends on the order in which it reads them.",
    SettingSpec(
        "window",
        20,
        "Window",
        "Number of documents that the model orders per call.",
        within=(2, 200),
    ),
    SettingSpec(
        "stride",
        10,
        "Stride",
        "Number of documents by which the window moves towards the front.",
        within=(1, 200),
    ),
    SettingSpec(
        "shuffles",
        0,
        "Shuffles",
        "Repeat with this many other orders of the documents, and average the ranks. The "
        "agreement of the orders is reported with the calls.",
        within=(0, 20),
    ),
    SettingSpec(
        "prompt",
        prompts.LISTWISE,
        "Prompt",
        "The prompt must contain {query}, {documents} and {count}. Query and documents are "
        "enclosed in marks that they cannot contain.",
        lines=8,
    ),
    capabilities=ACROSS,
)


# Pairwise: the model compares two of the best few documents at a time.
# Pairwise ranking prompting: Qin et al., "Large Language Models are Effective Text Rankers with
# Pairwise Ranking Prompting" (2023). Every pair is compared in both orders; two contradictory
# answers, or an unreadable one, make a draw.

_LETTER = re.compile(r"\W*(?:(?:document|passage)\s+)?([AB])\W*", re.IGNORECASE)
_LETTER_TOKENS = 4


class LlmPairwise(ChatReranker):
    """LLM reranker that compares the first few documents; the others follow in their order.

    all: every pair; a score is the number of wins, with half for a draw: n (n − 1) calls.
    sliding: `passes` passes of bubble sort from the back to the front, two calls per comparison;
        each pass brings the best remaining document to its place.
    """

    name = "llm-pairwise"
    places = ("query", "a", "b")

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """Return an estimate of the requests' cost: two calls per comparison."""
        calls = []
        for request in requests:
            texts = request.documents[: self.settings["top"]]
            pairs = list(itertools.combinations(range(len(texts)), 2))
            if self.settings["sort"] == "sliding":
                passes = range(self.settings["passes"])
                pairs = [(n, n + 1) for done in passes for n in range(done, len(texts) - 1)]
            calls += [
                (self._prompt(request.query, texts[one], texts[other]), 1)
                for pair in pairs
                for one, other in (pair, pair[::-1])
            ]
        return self._chat.estimate(calls)

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Return the wins of the first few documents, and minus the place of the others below them.

        A query fails if a request fails or no answer can be read.
        """
        at_once = self.settings["concurrency"]
        inside = at_once if len(requests) == 1 else 1
        return connection.concurrently(
            lambda request: self._score(request, inside), requests, at_once
        )

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

    def ask(self, request: Request, one: int, other: int, budget: Budget) -> ChatAnswer:
        """Ask which of two documents is better; the first is called A."""
        texts = request.documents
        return self._chat.ask(
            self._prompt(request.query, texts[one], texts[other]), budget, _LETTER_TOKENS
        )

    def passes(self) -> int:
        """Return the number of passes of bubble sort."""
        return int(self.settings["passes"])

    def _prompt(self, query: str, one: str, other: str) -> str:
        return self._filled(query, a=self._shown(one, "A"), b=self._shown(other, "B"))


class _Match:
    """Comparisons of one query."""

    def __init__(self, model: LlmPairwise, request: Request, budget: Budget) -> None:
        self._model, self._request, self._budget = model, request, budget
        self._lock = threading.Lock()
        self._read = 0
        self._errors: list[str] = []
        self._unread: list[str] = []
        self.calls: list[Call] = []

    def all_pairs(self, top: int, at_once: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the wins of each document against every other, shape (top,)."""
        pairs = list(itertools.combinations(range(top), 2))
        shares = connection.concurrently(lambda pair: self._compare(*pair), pairs, at_once)
        wins = np.zeros(top)
        for (one, other), share in zip(pairs, shares, strict=True):
            wins[one] += share
            wins[other] += 1 - share
        return wins

    def bubble(self, top: int, at_once: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the places, counted from the end, after passes of bubble sort, shape (top,)."""
        order = list(range(top))
        for done in range(min(self._model.passes(), top - 1)):
            for place in range(top - 1, done, -1):
                if self._compare(order[place - 1], order[place]) < 0.5:
                    order[place - 1], order[place] = order[place], order[place - 1]
        scores = np.empty(top)
        scores[order] = np.arange(top - 1, -1, -1)
        return scores

    def fault(self) -> str:
        """Return why the query failed, or ""."""
        if self._errors:
            first, calls = self._errors[0], len(self.calls)
            return f"requests that failed: {len(self._errors)} of {calls}: {first}."
        if self._read or not self._unread:
            return ""
        return f"No answer could be read: {unread(self._unread[0])}."

    def _compare(self, one: int, other: int) -> float:
        """Return 1 if the first is better in both orders, 0 if the second is, else 0.5."""
        if self._errors:
            return 0.5
        forward = self._wins(one, other)
        backward = self._wins(other, one)
        if forward is None or backward is None or forward == backward:
            return 0.5
        return 1.0 if forward else 0.0

    def _wins(self, one: int, other: int) -> bool | None:
        """Return whether A, the first, is better; None if the answer is unreadable."""
        answer = self._model.ask(self._request, one, other, self._budget)
        letter = _LETTER.fullmatch(answer.text) if not answer.error else None
        with self._lock:
            note = "" if letter or answer.error else f"unread: {unread(answer.text)}"
            self.calls.append(replace(answer.call, note=note))
            if answer.error:
                self._errors.append(answer.error)
            elif letter is None:
                self._unread.append(answer.text)
            else:
                self._read += 1
        return None if letter is None else letter[1].upper() == "A"


PAIRWISE = LlmPairwise.kind(
    "LLM pairwise",
    "An LLM compares two documents at a time, among the top documents of the first stage; the "
    "others follow below. Many calls per query.",
    SettingSpec(
        "top",
        10,
        "Documents compared",
        "Number of top documents of the first stage to compare.",
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
        "The prompt must contain {query}, {a} and {b}. Query and documents are enclosed in marks "
        "that they cannot contain.",
        lines=8,
    ),
    capabilities=ACROSS,
)
