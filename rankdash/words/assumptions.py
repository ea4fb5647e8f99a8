"""Everything that a calculation takes for granted, as rows that print on every export."""

from __future__ import annotations

from collections.abc import Sequence

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext, number, percent, quantity
from rankdash.study.costs import Choice
from rankdash.value.assumptions import ASSUMPTIONS, Assumption, Assumptions
from rankdash.value.billing import UNITS
from rankdash.words import prices
from rankdash.words.money import money, symbol


def unit(each: Assumption, currency: str) -> str:
    """The unit of an assumption in words; "" for a share, which is written as percent, and where
    the title says it."""
    if each.unit == "share" or _(each.unit).casefold() == _(each.title).casefold():
        return ""
    return _(each.unit).replace(_("money"), symbol(currency))


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
        if choice.price is not None:
            price = choice.price
            found.append(
                (
                    _("Price of {name}", name=choice.name),
                    f"{money(price.price.amount, price.price.currency)} "
                    f"{_(UNITS[price.price.unit])}",
                    " · ".join(prices.notes(price, choice.rate_measured)),
                )
            )
            found.append(_sent(choice))
    return found


def _sent(choice: Choice) -> tuple[str, str, str]:
    """What a search of an option sends, and whether that was counted."""
    load = choice.load.load
    return (
        _("What a search of {name} sends", name=choice.name),
        ngettext(
            "{n} document of {tokens} tokens, query of {query}",
            "{n} documents of {tokens} tokens, query of {query}",
            round(float(load.documents)),
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
        return money(amount, currency)
    if each.unit == "money for a million tokens":
        return f"{money(amount, currency)} {_(UNITS['tokens'])}"
    if each.unit == "%":
        return f"{quantity(amount)}%"
    return f"{quantity(amount)} {unit(each, currency)}".strip()
