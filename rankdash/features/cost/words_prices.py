"""Amounts of money, prices and assumptions in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from babel.numbers import format_currency, get_currency_symbol

from rankdash.core.base.i18n import (
    all_of,
    brief,
    every_digit,
    language,
    ngettext,
    number,
    percent,
    quantity,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.measured import meets
from rankdash.core.study.pricing import Bill, Served
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import ASSUMPTIONS, MONTHS_PER_YEAR, Assumption, Assumptions
from rankdash.core.value.billing import UNITS, Price
from rankdash.core.value.price_list import STALE_DAYS, ListedPrice, title
from rankdash.features.cost.costs import Choice
from rankdash.features.cost.payoff import Amount, End
from rankdash.features.latency.words import without_p95


def rate(price: Price) -> str:
    """How much for what, as short as it goes."""
    amount = money(price.amount, price.currency)
    return {
        "flat": _("{amount}/1,000 searches", amount=amount),
        "search": _("{amount}/1,000 units", amount=amount),
        "tokens": _("{amount}/M tokens", amount=amount),
        "template": _("{amount}/M tokens with prompt", amount=amount),
        "hour": _("{amount}/hour", amount=amount),
    }[price.unit]


def words(each: ListedPrice) -> str:
    """The price in a line: who, which, how much for what."""
    return _("{part}: {value}", part=title(each), value=rate(each.price))


def of(bill: Bill) -> str:
    """The price of a system in a line, or why there is none."""
    if bill.listed is not None:
        return words(bill.listed)
    if bill.parts:
        return _("sum of its parts")
    return lack(bill)


def marks(bill: Bill) -> list[str]:
    """In a word or two each, what makes the price, or what is paid for, less than sure."""
    sentences = [_("example price")] if bill.example else []
    if bill.parts:
        sentences.append(_("sum of its parts"))
        alone = [replace(part, traffic=None) for _name, part in bill.parts]
        parts = [mark for part in alone for mark in marks(part)]
        return list(dict.fromkeys([*sentences, *parts, *machines(bill)]))
    if bill.listed is None:
        return sentences
    if bill.listed.stale(datetime.now(UTC).date()):
        sentences.append(_("old price"))
    if bill.load.estimated and not bill.lack and bill.listed.price.unit not in ("hour", "flat"):
        sentences.append(_("tokens estimated"))
    if bill.served is not None:
        way = {
            "concurrent": "",
            "listed": _("assumed searches per second"),
            "batches": _("throughput of batches"),
            "alone": _("throughput of one query at a time"),
        }[bill.served.way]
        sentences += [way] if way else []
        sentences += [_("machine was busy")] if bill.served.busy else []
    return sentences + machines(bill)


def machines(bill: Bill) -> list[str]:
    """How many whole machines are paid for; nothing if none is."""
    n = sum(each.needed(bill.traffic or 0.0) for each in bill.machines)
    return [ngettext("{n} whole machine", "{n} whole machines", n)] if n else []


def lack(bill: Bill) -> str:
    """Why it has no cost, in a few words; "" where it has one."""
    return {
        "": "",
        "price": _("no price given"),
        "throughput": _("throughput not measured"),
        "tokens": _("tokens not known without texts"),
        "rate": _("no exchange rate"),
        "parts": _("a part has no price"),
    }[bill.lack]


def notes(bill: Bill) -> list[str]:
    """What one has to know of a price: where it is from, how old, what an hour serves."""
    each = bill.listed
    if each is None:
        return [_("{part}: {value}", part=name, value=" · ".join(notes(part)))
                for name, part in bill.parts] or [lack(bill)]  # fmt: skip
    sentences = [_("{source}, {day}", source=_(each.source), day=each.as_of.isoformat())]
    if each.stale(datetime.now(UTC).date()):
        sentences.append(_("⚠ older than {n} days: check it", n=number(STALE_DAYS, 0)))
    if bill.served is not None:
        sentences.append(_served(bill.served, each.price))
        sentences += [
            _(
                "{machines}, never switched off, for {searches} searches per day",
                machines=whole,
                searches=number(bill.traffic or 0.0, 0),
            )
            for whole in machines(bill)
        ] or [_("a share of a machine, whose other hours others pay for")]
    if bill.rate is not None and each.price.currency != bill.currency:
        sentences.append(
            _(
                "1 {foreign} = {rate} {currency}, as typed",
                foreign=each.price.currency,
                rate=quantity(bill.rate, 6),
                currency=bill.currency,
            )
        )
    return [*sentences, lack(bill)] if bill.lack else sentences


def _served(served: Served, price: Price) -> str:
    """How many searches an hour pays for, and how that is known."""
    amounts = {
        "n": quantity(served.per_second, 3),
        "share": percent(price.utilisation),
        "cpu": served.cpu or _("a machine that was not recorded"),
    }
    if served.way == "concurrent":
        return _(
            "at {n} searches per second and {share} use, measured with {clients} at once ({cpu})",
            clients=number(served.in_flight, 0),
            **amounts,
        )
    if served.way == "batches":
        return _(
            "at {n} searches per second and {share} use, measured while this run scored in "
            "batches ({cpu})",
            **amounts,
        )
    if served.way == "alone":
        return _(
            "at {n} searches per second and {share} use, measured one query at a time ({cpu})",
            **amounts,
        )
    return _(
        "at {n} searches per second and {share} use, as the price list says; not measured with "
        "this run",
        **amounts,
    )


def cautions(choice: Choice, target_ms: float) -> list[str]:
    """In a word or two each, what makes the figures of an option less than sure."""
    bill = choice.bill
    told = () if bill is None else (lack(bill), *marks(bill))
    if choice.demonstrated:
        told = (_("example values"), *told)
    sentences = [each for each in told if each]
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


def assumption_table(
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
                    " · ".join(notes(choice.bill)),
                )
            )
            found.append(_sent(choice))
    return found


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

_Amount = TypeVar("_Amount", float | None, End)

_WHOLE_FROM = 1000.0

# Beyond it the last digits are none of the amount's, and nobody has so much.
_MOST = 1e15


def money(amount: float | None, currency: str) -> str:
    """An amount as a person writes it: cents below 1,000, whole units from there on, as many digits
    as a small price needs ($0.00041), and no more than `_MOST` but "> $1,000,000,000,000,000"."""
    if amount is None or not math.isfinite(amount):
        return "–"
    size = abs(amount)
    if size > _MOST:
        return f"{'>' if amount > 0 else '<'} {money(math.copysign(_MOST, amount), currency)}"
    if size >= _WHOLE_FROM:
        digits = 0
    elif size >= 1 or size == 0:
        digits = 2
    else:
        digits = _digits(size)
    amount = round(amount, digits) + 0.0  # what rounds to zero has no sign
    pattern = "¤#,##0" + ("." + "0" * digits if digits else "")
    with every_digit():
        return str(
            format_currency(
                amount,
                currency,
                format=f"{pattern};-{pattern}",
                locale=language(),
                currency_digits=False,
            )
        )


def _digits(size: float) -> int:
    """Decimals that show two telling digits of an amount below 1, cents at the least."""
    decimals = min(1 - math.floor(math.log10(size)), 9)
    written = f"{size:.{decimals}f}".rstrip("0")
    return max(len(written.partition(".")[2]), 2)


def symbol(currency: str) -> str:
    return str(get_currency_symbol(currency, locale=language()))


@dataclass(frozen=True)
class Period:
    """What amounts are for. months: how many; the rest are titles in the reader's language."""

    months: int
    name: str
    cost: str
    value: str
    net: str

    def of(self, monthly: Amount) -> Amount:
        """The same for this period."""
        return Amount(
            self._times(monthly.value),
            self._times(monthly.low),
            self._times(monthly.high),
            monthly.reason,
        )

    def _times(self, amount: _Amount) -> _Amount:
        return amount if amount is None or isinstance(amount, str) else amount * self.months


def month() -> Period:
    return Period(1, _("a month"), _("cost a month"), _("value a month"), _("net a month"))


def year() -> Period:
    return Period(
        MONTHS_PER_YEAR, _("a year"), _("cost a year"), _("value a year"), _("net a year")
    )
