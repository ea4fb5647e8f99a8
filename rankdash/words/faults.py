"""Whose fault it is that a query is not ranked perfectly, in one line with its ground."""

from __future__ import annotations

import math

from rankdash.analysis.reasons.fault import Fault
from rankdash.i18n import enumerated, ngettext, number, paragraph
from rankdash.i18n import gettext as _
from rankdash.study.queries import Blame


def fault_words() -> dict[str, str]:
    """Code of a `Fault` → a word."""
    return {
        "retriever": _("retriever"),
        "labels": _("labels"),
        "reranker": _("reranker"),
        "mixed": _("mixed (no single cause)"),
        "none": _("none"),
    }


def ground(blame: Blame, metric: str) -> str:
    """What a fault rests on, in sentences. metric: its title."""
    found = blame.fault
    if math.isnan(found.lost):
        return _too_little(blame)
    if found.code == "none":
        return _("{metric} is as high as a perfect ranking, or within the tie band.", metric=metric)
    words = fault_words()
    shares = [
        _("{part} {amount}", part=words[part], amount=number(amount))
        for part, amount in sorted(found.parts.items(), key=lambda each: -each[1])
        if round(amount, 3) > 0
    ]
    given = {"metric": metric, "lost": number(found.lost)}
    below = (
        _(
            "{metric} is {lost} below a perfect ranking: {shares}.",
            shares=enumerated(shares),
            **given,
        )
        if len(shares) > 1
        else _("{metric} is {lost} below a perfect ranking.", **given)
    )
    return paragraph([below, *_cause(blame, found)])


def _cause(blame: Blame, found: Fault) -> list[str]:
    """What the largest part comes from."""
    if found.code == "retriever" and blame.missed:
        return [
            ngettext(
                "{n} relevant document was not retrieved.",
                "{n} relevant documents were not retrieved.",
                blame.missed,
            )
        ]
    if found.code == "retriever":
        return [_("Relevant documents stand below the depth that is reranked.")]
    if found.code == "labels":
        return [
            ngettext(
                "{n} document without a label stands above relevant ones.",
                "{n} documents without a label stand above relevant ones.",
                blame.unlabelled,
            )
        ]
    if found.code == "reranker":
        return [_("A better order of the same documents would gain it.")]
    return []


def _too_little(blame: Blame) -> str:
    if not blame.relevant:
        return _(
            "No document is labelled as relevant, so nothing certain can be said of the value."
        )
    return _("No document that is shown has a label, so nothing certain can be said of the value.")
