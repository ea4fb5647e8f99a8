"""A language model judges one document at a time.

Yes or no by the odds of the first token: Nogueira et al., "Document Ranking with a Pretrained
Sequence-to-Sequence Model" (2020), as asked of chat models since. Graded labels by their expected
value: Zhuang et al., "Beyond Yes and No" (2024).
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Mapping, Sequence

import numpy as np

from rankdash.core.rerankers.base import Capabilities, Request, Scored
from rankdash.core.rerankers.remote import call_settings, prompts
from rankdash.core.rerankers.remote.call_settings import Budget, Estimate
from rankdash.core.rerankers.remote.chat import ChatReranker, Said, unread
from rankdash.core.rerankers.settings import SettingSpec

_TOKENS = {"yes-no": 1, "grade": 1, "number": 4}

# As a first token says them, in English and Chinese, without blanks and case.
_YES = frozenset(("yes", "y", "true", "是", "是的", "相关"))
_NO = frozenset(("no", "n", "false", "否", "不", "不是", "不相关"))
_GRADES = {str(grade): float(grade) for grade in range(5)}
_BLANKS = " \t\r\n\u2581\u0120\u010a\"'*`.,:：。"
_NUMBER = re.compile(r"\**\s*(10|[0-9])\s*(?:/\s*10\s*)?\**\.?")


class LlmPointwise(ChatReranker):
    """Asks the same question of every document."""

    name = "llm-pointwise"
    places = ("query", "document", "question")

    @property
    def _answer(self) -> str:
        return str(self.settings["answer"])

    def fingerprint(self) -> str:
        """Of the model and what it is asked."""
        return self._chat.fingerprint(self.name, self._answer, self.settings["prompt"])

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """What the requests would cost: a call for each document."""
        return self._chat.estimate(
            [
                (self._prompt(request.query, text), _TOKENS[self._answer])
                for request in requests
                for text in request.documents
            ]
        )

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """yes-no: log-odds; grade: the expected grade; number: the number that was said.

        A document whose answer cannot be read is NaN, and its query fails with what was said.
        """
        budgets: dict[int, Budget] = {}
        lock = threading.Lock()

        def judge(item: tuple[int, str]) -> tuple[float, Said]:
            number, text = item
            with lock:
                budget = budgets.setdefault(number, self._chat.budget())
            return self._judge(requests[number].query, text, budget)

        items = [
            (number, text) for number, request in enumerate(requests) for text in request.documents
        ]
        judged = iter(call_settings.each(judge, items, self.settings["concurrency"]))
        listed = self._answer != "number"
        return [
            _together([next(judged) for _ in request.documents], listed) for request in requests
        ]

    def _judge(self, query: str, text: str, budget: Budget) -> tuple[float, Said]:
        said = self._chat.ask(
            self._prompt(query, text),
            budget,
            _TOKENS[self._answer],
            choices=self._answer != "number",
        )
        if said.error:
            return math.nan, said
        if self._answer == "number":
            found = _NUMBER.fullmatch(said.text.strip())
            return (float(found[1]) if found else math.nan), said
        return (log_odds if self._answer == "yes-no" else expected_grade)(said.top), said

    def _prompt(self, query: str, text: str) -> str:
        question = prompts.QUESTIONS[self._answer]
        return self._filled(query, document=self._shown(text), question=question)


def log_odds(top: Mapping[str, float]) -> float:
    """logsumexp over the forms of yes less that over the forms of no; NaN where neither is there.

    One that is missing is no likelier than the last that was listed, which stands in for it.
    """
    yes, no = _sum(top, _YES), _sum(top, _NO)
    if yes is None and no is None:
        return math.nan
    least = min(top.values())
    return (least if yes is None else yes) - (least if no is None else no)


def expected_grade(top: Mapping[str, float]) -> float:
    """The mean grade by the probabilities of the grades; NaN where none is there."""
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


def _together(judged: Sequence[tuple[float, Said]], listed: bool) -> Scored:
    """What a query is answered. listed: whether probabilities of tokens were asked for."""
    scores = np.array([score for score, _ in judged], dtype=np.float64)
    calls = tuple(said.call for _, said in judged)
    read = [said.call.billed.get("prompt_tokens", math.nan) for _, said in judged]
    known = bool(judged) and all(map(math.isfinite, read))
    return Scored(
        scores,
        tokens=np.array(read, dtype=np.int64) if known else None,
        error=_fault([said for score, said in judged if math.isnan(score)], len(judged), listed),
        calls=calls,
    )


def _fault(lost: Sequence[Said], count: int, listed: bool) -> str:
    """Why some documents have no score, in words and counted."""
    failed = [said.error for said in lost if said.error]
    if failed:
        return f"requests that failed: {len(failed)} of {count}: {failed[0]}."
    if not lost:
        return ""
    first = lost[0]
    reason = unread(first.text)
    if listed and not first.top:
        reason += ", and the endpoint gave no probabilities of tokens"
    return f"answers that could not be read: {len(lost)} of {count}: {reason}."


KIND = LlmPointwise.kind(
    "LLM pointwise",
    "A language model judges one document at a time. One call a document; the score comes from "
    "the probabilities of its answer.",
    SettingSpec(
        "answer",
        "yes-no",
        "Answer",
        "yes-no: the odds of yes against no. grade: the expected grade from 0 to 4. Both need an "
        "endpoint that gives the probabilities of tokens. number: the number from 0 to 10 in the "
        "answer, with many ties, for endpoints without probabilities.",
        choices=tuple(prompts.QUESTIONS),
    ),
    SettingSpec(
        "prompt",
        prompts.POINTWISE,
        "Prompt",
        "Must contain {query}, {document} and {question}. Query and document are put between "
        "marks that they cannot contain.",
        lines=6,
    ),
    capabilities=Capabilities(needs_network=True, across_queries=True),
)
