"""Why a query failed or was skipped, in the reader's language.

Runs keep the reason as the English sentence that was said when it happened, and so do files that
came from other machines. What is known here is recognised and said anew; anything else, such as
what another program answered, stays as it is.
"""

from __future__ import annotations

import re
from copy import copy
from functools import cache

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, gettext, ngettext, number, percent
from rankdash.core.base.i18n import gettext as _

# As they are worded, without a full stop at the end. {why} is a reason itself; all else stays.
TEMPLATES = (
    # What ends a reason comes first: what begins it would take the end for a detail.
    "{why} (after {n} attempts)",
    "{why}, and the endpoint gave no probabilities of tokens",
    "no candidates",
    "not in the sample",
    "the query has no text",
    "the document has no text",
    "not asked yet",
    "the last line holds no grade: {why}",
    "the answer gives no reason",
    "the answer names several grades: {grades}",
    "the grade {grade} is not on the scale from 0 to {n}",
    "document {doc} has no text",
    "{n} documents have no text, such as {doc}",
    "The ranking does not contain this query",
    "answers of the reranker: {given}, queries: {n}",
    "scores of the reranker: {given}, documents: {n}",
    "documents scored: {given} of {n}",
    "Documents without a finite score from the model: {given} of {n}",
    "documents with a score: {given} of {n}: {why}",
    "requests that failed: {given} of {n}: {why}",
    "answers that could not be read: {given} of {n}: {why}",
    "first stage: {why}",
    "second stage: {why}",
    "not every document was scored",
    "there is no connection ({detail})",
    "time-out: no answer within {seconds} s",
    "the connection was cut ({detail})",
    "the answer cannot be unpacked ({detail})",
    "the answer is not JSON: {detail}",
    "the service answered {status}: {detail}",
    "the service said {status}",
    "The answer is malformed: it has no {detail}",
    "a result has no index",
    "index {index} is out of range",
    "index {index} comes twice",
    "the score of index {index} is not a number",
    "the answer is too short",
    "A request failed: {why}",
    "No answer held an order: {why}",
    "No answer could be read: {why}",
    "the model said nothing",
    "the model said {detail}",
    "time-out: the time for this query was over",
    "the answer is far too long",
    "no reason given",
    "no connection",
    "no answer in time",
)
# As they were worded before: stored runs keep what they were told then.
FORMER = (
    "time-out: no answer within {seconds} seconds",
    "the reranker gave {given} answers for 1 query",
    "the reranker gave {given} answers for {n} queries",
    "the reranker gave {given} scores for {n} documents",
    "scored {given} of {n} documents",
    "The model gave no finite score for {given} of {n} documents",
    "{given} of {n} documents have a score: {why}",
    "{given} of {n} requests failed: {why}",
    "{given} of {n} answers could not be read: {why}",
)
_FIELD = re.compile(r"\{(\w+)\}")
# The fields of errors that hold a reason.
_REASONS = ("reason", "said")
# Characters: a file can hold a reason within a reason without end.
_LONGEST = 1000
_COUNTS = ("n", "given", "index", "status")


def kind_of_failure(kind: str) -> str:
    """A kind of failure of a judge's question, as `rankdash.features.judge.judge` has them."""
    known = {
        "rate_limit": _("too many requests (429)"),
        "server_error": _("server error"),
        "time_out": _("no answer in time"),
        "no_connection": _("no connection"),
        "refused": _("request refused"),
        "unreadable": _("answer not in the form"),
        "no_text": _("no text"),
        "elsewhere": _("no grade in the file"),
        "not_asked": _("not asked yet"),
    }
    return known.get(kind, kind)


def in_words(reason: str) -> str:
    """A stored reason in the reader's language, as far as it is known."""
    if len(reason) > _LONGEST:
        return reason
    return _known(reason) or _of_a_part(reason) or reason


def problem(error: RankdashError) -> str:
    """What failed, why, and what to do, the reason in the reader's language too where it is known.

    An error that a job or another process left behind holds its reason as the English sentence.
    """
    reasons = {name: error.params[name] for name in _REASONS if name in error.params}
    translated = copy(error)
    translated.params = {
        **error.params,
        **{name: in_words(str(each)) for name, each in reasons.items()},
    }
    return error_text(translated)


def refused(refused: int, requests: int) -> str:
    """Return how many requests a rate limit refused, and their share; in a few words."""
    return ngettext(
        "{refused} of {n} request refused (429), {share}",
        "{refused} of {n} requests refused (429), {share}",
        requests,
        refused=number(refused, 0),
        share=percent(refused / requests),
    )


def _known(reason: str) -> str | None:
    for template in (*TEMPLATES, *FORMER):
        found = _pattern(template).fullmatch(reason.strip())
        if found:
            params = {
                name: in_words(value) if name == "why" else value
                for name, value in found.groupdict().items()
            }
            return gettext(template, **params)
    return None


def _of_a_part(reason: str) -> str | None:
    """A reason behind the name of the run that it is of, as where two runs were combined."""
    name, colon, rest = reason.partition(": ")
    known = _known(rest) if colon else None
    return f"{name}: {known}" if known else None


@cache
def _pattern(template: str) -> re.Pattern[str]:
    pieces = _FIELD.split(template)
    text = "".join(
        f"(?P<{piece}>{r'[0-9]+' if piece in _COUNTS else '.+?'})"
        if place % 2
        else re.escape(piece)
        for place, piece in enumerate(pieces)
    )
    return re.compile(rf"{text}\.?", re.DOTALL)
