"""What a judge answers: a reason and a last line with the grade. All else is no grade, with why."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rankdash.core.rerankers.base import Call
from rankdash.core.rerankers.judge_settings import Combine
from rankdash.core.rerankers.remote.chat import Said, unread

Kind = Literal[
    "rate_limit", "server_error", "time_out", "no_connection", "refused", "unreadable", "no_text"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Why there is no grade. unreadable: an answer came that is not in the form that was asked for.
no_text: the query or the document has none, so that nobody was asked."""


_GRADE = re.compile(
    r"[*_`#\s]*Grade[*_`\s]*:[*_`\s]*(-?\d{1,9}(?:\.\d{1,9})?)[*_`\s]*(?:\.[*_`\s]*)?"
)
_TOO_MANY, _TIMED_OUT = 429, 408
_LONGEST_REASON = 4000
_MOST_NAMED = 5


@dataclass(frozen=True)
class Answer:
    """One answer. grade: NaN where none could be read; then `error` says why, and `kind` which of
    `KINDS` that is."""

    grade: float
    reason: str = ""
    error: str = ""
    kind: str = ""

    @property
    def graded(self) -> bool:
        return not math.isnan(self.grade)


def read_answer(said: Said, top: int) -> Answer:
    """The grade, from 0 to `top`, and the reason before it.

    The last line must hold the grade and nothing else, a reason must stand before it, and no other
    line may name another grade: of an answer in any other form no grade is taken.
    """
    if said.error:
        return unanswered(said.call, said.error)
    # Halves of characters and ends of texts are in no file and no database.
    text = said.text.encode("utf-8", "replace").decode().replace("\0", " ")
    lines = [line for line in text.splitlines() if line.strip()]
    found = [_GRADE.fullmatch(line) for line in lines]
    grades = {match[1] for match in found if match}
    last = found[-1] if found else None
    reason = "\n".join(lines[:-1]).strip()[:_LONGEST_REASON]
    if last is None:
        error = f"the last line holds no grade: {unread(text)}"
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
    """What there is instead of an answer; error: why, where the call does not say it."""
    error = error or call.error
    return Answer(math.nan, error=error, kind=_kind(call, error))


def combined(answers: Sequence[Answer], how: Combine) -> Answer:
    """The grade of several answers to the same question, with the reason of one that gave it; of
    the grades given, the lower median or the most frequent, the lowest of equally frequent ones.

    No grade where not more than half of the answers have one: the first error says why.
    """
    graded = [answer for answer in answers if answer.graded]
    if 2 * len(graded) <= len(answers):
        return next(answer for answer in answers if not answer.graded)
    grades = sorted(answer.grade for answer in graded)
    grade = statistics.median_low(grades) if how == "median" else _most_frequent(grades)
    return next(answer for answer in graded if answer.grade == grade)


def _most_frequent(grades: Sequence[float]) -> float:
    """Of sorted grades; `most_common` keeps the order of equally frequent ones."""
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
