"""What makes a cost unsure, assumptions and periods in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rankdash.core.base.i18n import (
    brief,
    ngettext,
    number,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.measured import meets
from rankdash.core.study.costs import Choice
from rankdash.core.study.pricing import Bill
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.core.value.prices import UNITS
from rankdash.core.words.latency import without_p95
from rankdash.core.words.prices import lack, marks, money, notes, value


def cautions(choice: Choice, target_ms: float) -> list[str]:
    """In a word or two each, what makes the figures of an option less than sure."""
    bill = choice.bill
    remarks = () if bill is None else (lack(bill), *marks(bill))
    if choice.demonstrated:
        remarks = (_("example values"), *remarks)
    sentences = [each for each in remarks if each]
    p95 = choice.waiting.p95
    if choice.waiting.busy and p95 is not None and _("machine was busy") not in sentences:
        sentences.append(_("machine was busy"))
    if choice.system and p95 is None:
        sentences.append(_("latency: {reason}", reason=without_p95(choice.waiting.timed)))
    elif p95 is not None and not meets(p95, target_ms):
        sentences.append(
            _(
                "▼ p95 of {ms} ms misses the target of {target} ms",
                ms=brief(p95, target_ms),
                target=brief(target_ms, p95),
            )
        )
    return sentences


# Everything that a calculation takes for granted, as rows that print on every export.


def assumption_table(
    scenario: Assumptions, choices: Sequence[Choice], currency: str, hit: str
) -> list[tuple[str, str, str]]:
    """(title, value, meaning). hit: title of the hit rate that answers found are told by."""
    rows = []
    for each in ASSUMPTIONS:
        amount = value(each, getattr(scenario, each.name), currency)
        rows.append((_(each.title), amount, _(each.help)))
    rows.append(
        (
            _("Answers found"),
            hit,
            _("Tickets and working time depend on this: a relevant document in the first k."),
        )
    )
    for choice in choices:
        if choice.bill is not None:
            rows.append(
                (
                    _("Price of {name}", name=choice.name),
                    _priced(choice.bill),
                    " · ".join(notes(choice.bill)),
                )
            )
            rows.append(_sent(choice))
    return rows


def _priced(bill: Bill) -> str:
    """An amount and what it is paid for."""
    if bill.listed is None:
        return money(bill.per_thousand, bill.currency) if bill.parts else "–"
    price = bill.listed.price
    return f"{money(price.amount, price.currency)} {_(UNITS[price.unit])}"


def _sent(choice: Choice) -> tuple[str, str, str]:
    """What a search of an option sends, and whether that was counted."""
    load, title = choice.load.load, _("What a search of {name} sends", name=choice.name)
    documents = round(float(load.documents))
    if math.isnan(float(load.document_tokens)):
        sent = ngettext("{n} document", "{n} documents", documents)
        return title, sent, _("tokens not known without texts")
    return (
        title,
        ngettext(
            "{n} document of {tokens} tokens, query of {query}",
            "{n} documents of {tokens} tokens, query of {query}",
            documents,
            tokens=number(float(load.document_tokens), 0),
            query=number(float(load.query_tokens), 0),
        ),
        _("tokens estimated: this run counted none")
        if choice.load.estimated
        else _("tokens counted by the run"),
    )


def passages(choice: Choice, scenario: Assumptions) -> str:
    """What may be saved on an LLM's input, or why nothing is claimed; "" where no LLM is asked
    about."""
    if scenario.passages < 1 or choice.option.free or not choice.system:
        return ""
    if choice.passages is None:
        return _(
            "No saving on the LLM is claimed: no number of reranked passages reliably keeps the "
            "recall of the first {n}.",
            n=number(scenario.passages, 0),
        )
    return _(
        "{after} reranked passages reliably keep the recall of the first {n}: the LLM reads "
        "{saved} fewer tokens a search.",
        after=number(choice.passages, 0),
        n=number(scenario.passages, 0),
        saved=number((scenario.passages - choice.passages) * scenario.passage_tokens, 0),
    )


# Amounts of money in words.
