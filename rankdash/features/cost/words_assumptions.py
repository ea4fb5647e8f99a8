"""Everything that a calculation takes for granted, as rows that print on every export."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rankdash.core.base.i18n import all_of, ngettext, number, percent, quantity
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.pricing import Bill
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumption, Assumptions
from rankdash.core.value.billing import UNITS
from rankdash.features.cost import words_prices
from rankdash.features.cost.costs import Choice
from rankdash.features.cost.words_money import money as written
from rankdash.features.cost.words_money import symbol


def unit(each: Assumption, currency: str) -> str:
    """The unit of an assumption in words; "" for a share, which is written as percent, and where
    the title says it."""
    if each.unit == "share" or _(each.unit).casefold() == _(each.title).casefold():
        return ""
    return _(each.unit).replace(_("money"), symbol(currency))


def defaults(money: Money) -> str:
    """The assumptions that count and that nobody set, by name; "" where there are none."""
    listed = [
        _(
            "{title} ({value})",
            title=_(each.title),
            value=value(each, getattr(money.assumptions, each.name), money.currency),
        )
        for each in money.defaults
    ]
    return _("At their defaults: {assumptions}.", assumptions=all_of(listed)) if listed else ""


def rows(
    scenario: Assumptions, choices: Sequence[Choice], currency: str, hit: str
) -> list[tuple[str, str, str]]:
    """(title, value, meaning). hit: title of the hit rate that answers found are told by."""
    found = []
    for each in ASSUMPTIONS:
        amount = value(each, getattr(scenario, each.name), currency)
        found.append((_(each.title), amount, _(each.meaning)))
    found.append(
        (
            _("Answers found"),
            hit,
            _("Tickets and working time depend on this: a relevant document in the first k."),
        )
    )
    for choice in choices:
        if choice.bill is not None:
            found.append(
                (
                    _("Price of {name}", name=choice.name),
                    _priced(choice.bill),
                    " · ".join(words_prices.notes(choice.bill)),
                )
            )
            found.append(_sent(choice))
    return found


def _priced(bill: Bill) -> str:
    """An amount and what it is paid for."""
    if bill.listed is None:
        return written(bill.per_thousand, bill.currency) if bill.parts else "–"
    price = bill.listed.price
    return f"{written(price.amount, price.currency)} {_(UNITS[price.unit])}"


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


def value(each: Assumption, amount: float, currency: str) -> str:
    """The number of an assumption with its unit."""
    if each.unit == "share":
        return percent(amount, 1)
    if each.unit == "money":
        return written(amount, currency)
    if each.unit == "money for a million tokens":
        return f"{written(amount, currency)} {_(UNITS['tokens'])}"
    if each.unit == "%":
        return f"{quantity(amount)}%"
    return f"{quantity(amount)} {unit(each, currency)}".strip()


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
