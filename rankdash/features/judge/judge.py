"""LLM judge: grades pairs of query and document, one call per pair and repeat.

The prompts follow UMBRELA: Upadhyay et al., "UMBRELA: UMbrela is the (Open-Source Reproduction of
the) Bing RELevance Assessor" (2024). The reason comes before the grade, so that the grade depends
on it.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from rankdash.core.base.errors import SettingError
from rankdash.core.base.rules import SettingSpec, SettingValue, parse_settings
from rankdash.core.data.ranking import digest
from rankdash.core.rerankers.base import Call
from rankdash.core.rerankers.remote import connection, prompts
from rankdash.core.rerankers.remote.chat import (
    JUDGE_SETTINGS,
    Chat,
    ChatAnswer,
    Combine,
    key_place,
    unread,
)
from rankdash.core.rerankers.remote.connection import Clock, Estimate

# The prompts request one or two sentences; answers rarely need more tokens.
MOST_TOKENS, USUAL_TOKENS = 400, 80
_FORM = "Grade:"
_AGAIN_TEMPERATURE = 0.7

# Patterns of scales in prompts.
_LISTED = re.compile(r"^[^\w\n]*([0-9]{1,3})\s*[:：=]", re.MULTILINE)
_SCALE = re.compile(r"grade|scale|score|rat(?:e|ing)|分|等级", re.IGNORECASE)
_RANGE = re.compile(
    r"(?<![0-9.])0\s*(?:-|–|—|~|～|to|through|到|至)\s*([0-9]{1,3})(?![0-9]|\.[0-9])"
)


@dataclass(frozen=True)
class JudgeKind:
    """Settings of a judge with a built-in or custom prompt.

    settings: not set by the prompt. fixed: set by the prompt.
    """

    name: str
    settings: tuple[SettingSpec, ...]
    fixed: Mapping[str, SettingValue]

    @property
    def key(self) -> Callable[[Mapping[str, Any]], connection.Place | None]:
        return key_place


OWN = "own"
KINDS: Mapping[str, JudgeKind] = {
    name: JudgeKind(
        f"judge.{name}", tuple(spec for spec in JUDGE_SETTINGS if spec.name not in fixed), fixed
    )
    for name, fixed in {**prompts.JUDGE, OWN: {}}.items()
}
"""Name of a prompt, or OWN → settings of such a judge."""


@dataclass(frozen=True)
class Graded:
    """Grade of a pair: all repeats combined, and each repeat.

    calls: the requests for this grade; empty for cached answers.
    """

    answer: Answer
    answers: tuple[Answer, ...]
    calls: tuple[Call, ...] = ()


class Judge:
    """Judge with one model and one prompt. Thread-safe after `prepare`.

    settings: as in `SETTINGS`; missing ones have their defaults, and texts are parsed.

    Raises SettingError for an invalid setting.
    """

    def __init__(
        self, settings: Mapping[str, SettingValue] | None = None, clock: Clock | None = None
    ) -> None:
        self._chat = Chat(parse_settings(JUDGE_SETTINGS, settings or {}), clock)
        self.settings: Mapping[str, Any] = self._chat.settings
        prompt = self.settings["prompt"]
        prompts.check(prompt, ("query", "document"), ("guidelines",))
        if _FORM not in prompt:
            raise SettingError(
                "The prompt must request a last line such as {form} 2.",
                remedy=(
                    "End it with: First write the reason. Then end with a separate line that "
                    "contains only the grade, in this form: {form} N"
                ),
                form=_FORM,
            )
        described_top = _top_of(prompt)
        if described_top is not None and described_top != self.top:
            raise SettingError(
                "The prompt describes grades from 0 to {described}, but the highest grade is set "
                "to {top}.",
                remedy=(
                    "Set the highest grade (top) to {described}, or use a prompt that describes "
                    "grades from 0 to {top}."
                ),
                described=described_top,
                top=self.top,
            )

    @property
    def model(self) -> str:
        return str(self.settings["model"])

    @property
    def top(self) -> int:
        """Highest grade; the lowest is 0."""
        return int(self.settings["top"])

    @property
    def repeats(self) -> int:
        return int(self.settings["repeats"])

    @property
    def concurrency(self) -> int:
        return int(self.settings["concurrency"])

    @property
    def template_hash(self) -> str:
        """Hash (12 characters) of prompt, guidelines, scale, system message and the length at which
        documents are truncated."""
        fields = ("system", "prompt", "guidelines", "top", "document_characters")
        return digest([repr(self.settings[name]).encode() for name in fields])[:12]

    @property
    def place(self) -> connection.Place:
        """Sources of its API key."""
        return key_place(self.settings)

    def prepare(self) -> None:
        """Open the connection. Raises UnavailableError if a key is missing."""
        self._chat.open()

    def fingerprint(self) -> str:
        """Return a hash of the model and everything it receives except the texts of a pair: equal
        hashes and equal texts mean an equal request."""
        return self._chat.fingerprint("judge", self.template_hash)

    def prompt(self, query: str, document: str) -> str:
        """Return the prompt for a pair."""
        return prompts.fill(
            self.settings["prompt"],
            {
                "query": prompts.query(query),
                "document": self._chat.shown(document),
                "guidelines": prompts.guidelines(self.settings["guidelines"]),
            },
        )

    def grade(
        self, query: str, document: str, cached: Sequence[Answer] = (), *, again: bool = False
    ) -> Graded:
        """Request the grades of a pair that are not cached, up to the number of repeats.

        again: whether a previous answer could not be parsed. The same request would return the same
        answer, so the prompt repeats the required form and the temperature is above 0.

        Raises UnavailableError if the endpoint refuses every request.
        """
        answers, calls = list(cached[: self.repeats]), []
        prompt, budget = self.prompt(query, document), self._chat.budget()
        if again:
            prompt += prompts.AGAIN.format(top=self.top)
        while len(answers) < self.repeats:
            reply = self._chat.ask(
                prompt, budget, MOST_TOKENS, temperature=_AGAIN_TEMPERATURE if again else 0
            )
            answer = read_answer(reply, self.top)
            unreadable = answer.kind == "unreadable" and not reply.error
            call = self._chat.charged(reply, prompt)
            calls.append(replace(call, note=answer.error if unreadable else ""))
            answers.append(answer)
        every = tuple(answers)
        return Graded(combined(every, self.settings["combine"]), every, tuple(calls))

    def least(self, query: str, document: str) -> Mapping[str, float]:
        """Return the lowest possible charge for one call, by unit: the charge for its prompt."""
        return self._chat.read_only(self.prompt(query, document))

    def estimate(self, pairs: Sequence[tuple[str, str]]) -> Estimate:
        """Estimate the cost of (query text, document text) pairs."""
        estimate = self._chat.estimate([(self.prompt(*pair), USUAL_TOKENS) for pair in pairs])
        return estimate.scaled(self.repeats)


def _top_of(prompt: str) -> int | None:
    """Return the highest grade that a prompt describes, by lines such as "2: highly relevant" or
    text such as "a scale of 0–3"; None if it describes none in these forms."""
    listed = {int(grade) for grade in _LISTED.findall(prompt)}
    if len(listed) > 1 and listed == set(range(len(listed))):
        return max(listed)
    lines = "\n".join(line for line in prompt.splitlines() if _SCALE.search(line))
    ranges = {int(top) for top in _RANGE.findall(lines)}
    return ranges.pop() if len(ranges) == 1 else None


def no_text(query: str, document: str) -> Graded | None:
    """Return the result of a pair without query or document text; None if it has both."""
    if query.strip() and document.strip():
        return None
    error = "the document has no text" if query.strip() else "the query has no text"
    return Graded(Answer(math.nan, error=error, kind="no_text"), ())


# Answers of a judge: a reason, and a last line with the grade. Anything else is an error.

Kind = Literal[
    "rate_limit", "server_error", "time_out", "no_connection", "refused", "unreadable", "no_text"
]
NO_GRADE: tuple[Kind, ...] = get_args(Kind)
"""Reasons for a missing grade. unreadable: the answer does not have the required form. no_text: the
query or the document has no text, so no call was made."""


_GRADE = re.compile(
    r"[*_`#\s]*Grade[*_`\s]*:[*_`\s]*(-?\d{1,9}(?:\.\d{1,9})?)[*_`\s]*(?:\.[*_`\s]*)?"
)
_TOO_MANY, _TIMED_OUT = 429, 408
_LONGEST_REASON = 4000
_MOST_NAMED = 5


@dataclass(frozen=True)
class Answer:
    """One answer. grade: NaN if none could be parsed; then `error` is the reason, and `kind` one of
    `KINDS`."""

    grade: float
    reason: str = ""
    error: str = ""
    kind: str = ""

    @property
    def graded(self) -> bool:
        return not math.isnan(self.grade)


def read_answer(reply: ChatAnswer, top: int) -> Answer:
    """Parse the grade, from 0 to `top`, and the reason before it.

    The last line must contain only the grade, a reason must come before it, and no other line may
    contain a different grade. Any other answer has no grade.
    """
    if reply.error:
        return unanswered(reply.call, reply.error)
    # Files and databases cannot store lone surrogates and NUL characters.
    text = reply.text.encode("utf-8", "replace").decode().replace("\0", " ")
    lines = [line for line in text.splitlines() if line.strip()]
    matches = [_GRADE.fullmatch(line) for line in lines]
    grades = {match[1] for match in matches if match}
    last = matches[-1] if matches else None
    reason = "\n".join(lines[:-1]).strip()[:_LONGEST_REASON]
    if last is None:
        error = f"the last line contains no grade: {unread(text)}"
    elif len(grades) > 1:
        error = f"the answer names several grades: {', '.join(sorted(grades)[:_MOST_NAMED])}"
    elif last[1] not in map(str, range(top + 1)):
        error = f"the grade {last[1]} is not on the scale from 0 to {top}"
    elif not reason:
        error = "the answer gives no reason"
    else:
        return Answer(float(last[1]), reason)
    return Answer(math.nan, reason, error, "unreadable")


def unanswered(call: Call, error: str = "") -> Answer:
    """Return the answer of a failed call, without a grade. error: the reason; "" if the call has
    one."""
    error = error or call.error
    return Answer(math.nan, error=error, kind=_kind(call, error))


def combined(answers: Sequence[Answer], how: Combine) -> Answer:
    """Combine answers to the same question: the lower median, or the most frequent grade (the
    lowest of equally frequent ones), with the reason of one such answer.

    There is no grade unless more than half of the answers have one; the first error is the reason.
    """
    graded = [answer for answer in answers if answer.graded]
    if 2 * len(graded) <= len(answers):
        return next(answer for answer in answers if not answer.graded)
    grades = sorted(answer.grade for answer in graded)
    grade = statistics.median_low(grades) if how == "median" else _most_frequent(grades)
    return next(answer for answer in graded if answer.grade == grade)


def _most_frequent(grades: Sequence[float]) -> float:
    """Return the most frequent of sorted grades, the lowest if several are equally frequent."""
    return Counter(grades).most_common(1)[0][0]


def _kind(call: Call, error: str) -> Kind:
    if call.status == _TOO_MANY:
        return "rate_limit"
    if call.status == _TIMED_OUT or error.startswith("time-out"):
        return "time_out"
    if call.status == 0:
        return "no_connection"
    if 200 <= call.status < 300:
        return "unreadable"
    return "server_error" if call.status >= 500 else "refused"
