"""Whose fault it is that a query is not ranked perfectly, in one line with its ground."""

from __future__ import annotations

import math
from collections.abc import Callable

from rankdash.core.base.i18n import enumerated, ngettext, number, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.reasons.fault import Fault
from rankdash.features.queries.queries import Blame, Missed


def fault_words() -> dict[str, str]:
    """Code of a `Fault` → a word."""
    return {
        "retriever": _("retriever"),
        "labels": _("labels"),
        "reranker": _("reranker"),
        "mixed": _("mixed (no single cause)"),
        "none": _("none"),
    }


def place(missed: Missed, name: Callable[[str], str]) -> str:
    """Return where a document that a run lacks is ranked. name: system → its name, fit for where it
    is shown."""
    if missed.system is None:
        return _("in no ranking")
    return _(
        "rank {rank} in {system}, not in this run",
        rank=number(missed.rank, 0),
        system=name(missed.system),
    )


def ground(blame: Blame, metric: str, name: Callable[[str], str]) -> str:
    """Return what a fault rests on, in sentences. metric: its title. name: as for `place`."""
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
    return paragraph([below, *_cause(blame, found, name)])


def _cause(blame: Blame, found: Fault, name: Callable[[str], str]) -> list[str]:
    """Return what the largest part comes from."""
    if found.code == "retriever" and blame.missed:
        return _not_retrieved(blame, name)
    if found.code == "retriever":
        return [_("Relevant documents rank below the reranked depth.")]
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


def _not_retrieved(blame: Blame, name: Callable[[str], str]) -> list[str]:
    """Return how many relevant documents are in no ranking, and in those of other systems."""
    elsewhere = [each for each in blame.missed if each.system is not None]
    nowhere = len(blame.missed) - len(elsewhere)
    sentences = []
    if elsewhere:
        best = min(elsewhere, key=lambda each: each.rank)
        sentences.append(
            ngettext(
                "{n} relevant document has rank {rank} in {system} and is not in this run.",
                "{n} relevant documents are in the lists of other systems and not in this run; the "
                "highest has rank {rank} in {system}.",
                len(elsewhere),
                rank=number(best.rank, 0),
                system=name(str(best.system)),
            )
        )
    if nowhere:
        sentences.append(
            ngettext(
                "{n} relevant document was not retrieved.",
                "{n} relevant documents were not retrieved.",
                nowhere,
            )
        )
    return sentences


def _too_little(blame: Blame) -> str:
    if not blame.relevant:
        return _(
            "No document is labelled as relevant, so nothing certain can be said of the value."
        )
    return _("No document that is shown has a label, so nothing certain can be said of the value.")
