"""Prices, bills and amounts of money in words."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime

from babel.numbers import format_currency, get_currency_symbol

from rankdash.core.base.i18n import (
    all_of,
    every_digit,
    language,
    ngettext,
    number,
    percent,
    quantity,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.rerankers.catalogue import ended_price
from rankdash.core.study.pricing import Bill, Served
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import Assumption
from rankdash.core.value.prices import STALE_DAYS, UNITS, ListedPrice, Price, title


def rate(price: Price) -> str:
    """Return a price with its unit, as briefly as possible."""
    amount = money(price.amount, price.currency)
    return {
        "flat": _("{amount}/1,000 searches", amount=amount),
        "search": _("{amount}/1,000 units", amount=amount),
        "tokens": _("{amount}/M tokens", amount=amount),
        "template": _("{amount}/M tokens with prompt", amount=amount),
        "hour": _p("price", "{amount}/hour", amount=amount),
    }[price.unit]


def words(each: ListedPrice) -> str:
    """Return a price in one line: provider, model, amount, unit, and the day on which it ended."""
    line = _("{part}: {value}", part=title(each), value=rate(each.price))
    day = ended_price(each.key, datetime.now(UTC).date())
    return line if day is None else f"{line} · {ended(day)}"


def ended(day: date) -> str:
    """Return that a model or service no longer exists, with the day on which it ended."""
    return _("ended on {day}", day=day.isoformat())


def of(bill: Bill) -> str:
    """Return the price of a system in one line, or why it has none."""
    if bill.listed is not None:
        return words(bill.listed)
    if bill.parts:
        return _("sum of its parts")
    return lack(bill)


def marks(bill: Bill) -> list[str]:
    """Return short notes on what makes a price uncertain: example or old prices, estimated tokens,
    the throughput."""
    sentences = [_("example price")] if bill.example else []
    if bill.parts:
        sentences.append(_("sum of its parts"))
        alone = [replace(part, traffic=None) for _name, part in bill.parts]
        parts = [mark for part in alone for mark in marks(part)]
        return list(dict.fromkeys([*sentences, *parts, *machines(bill)]))
    if bill.listed is None:
        return sentences
    today = datetime.now(UTC).date()
    if (day := ended_price(bill.listed.key, today)) is not None:
        sentences.append(ended(day))
    elif bill.listed.stale(today):
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
    """Return how many whole machines are paid for; empty if none."""
    n = sum(each.needed(bill.traffic or 0.0) for each in bill.machines)
    return [ngettext("{n} whole machine", "{n} whole machines", n)] if n else []


def lack(bill: Bill) -> str:
    """Return why a bill has no cost, in a few words; "" if it has one."""
    return {
        "": "",
        "price": _("no price set"),
        "throughput": _("throughput not measured"),
        "tokens": _("tokens unknown: no texts"),
        "rate": _("no exchange rate"),
        "parts": _("a part has no price"),
    }[bill.lack]


def notes(bill: Bill) -> list[str]:
    """Return notes on a price: source, age, throughput of the machine, exchange rate."""
    each = bill.listed
    if each is None:
        return [_("{part}: {value}", part=name, value=" · ".join(notes(part)))
                for name, part in bill.parts] or [lack(bill)]  # fmt: skip
    sentences = [_("{source}, {day}", source=_(each.source), day=each.as_of.isoformat())]
    today = datetime.now(UTC).date()
    if (day := ended_price(each.key, today)) is not None:
        sentences.append(_("⚠ this model ended on {day}: choose another", day=day.isoformat()))
    elif each.stale(today):
        sentences.append(_("⚠ older than {n} days: check it", n=number(STALE_DAYS, 0)))
    if bill.served is not None:
        sentences.append(_served(bill.served, each.price))
        sentences += [
            _(
                "{machines}, running 24/7, for {searches} searches per day",
                machines=whole,
                searches=number(bill.traffic or 0.0, 0),
            )
            for whole in machines(bill)
        ] or [_("a share of a machine; other uses pay for its other hours")]
    if bill.rate is not None and each.price.currency != bill.currency:
        sentences.append(
            _(
                "1 {foreign} = {rate} {currency}, as entered",
                foreign=each.price.currency,
                rate=quantity(bill.rate, 6),
                currency=bill.currency,
            )
        )
    return [*sentences, lack(bill)] if bill.lack else sentences


def _served(served: Served, price: Price) -> str:
    """Return the throughput that an hourly price pays for, and how it was measured."""
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
        "at {n} searches per second and {share} use, from the price list; not measured with "
        "this run",
        **amounts,
    )


_WHOLE_FROM = 1000.0


# Amounts above it are not exact to the last digit, and not realistic.
_MOST = 1e15


def money(amount: float | None, currency: str) -> str:
    """Return an amount with its currency: two decimals below 1,000, none above, more for small
    prices ($0.00041). Amounts above `_MOST` are written as "> $1,000,000,000,000,000"."""
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
    amount = round(amount, digits) + 0.0  # -0.0 becomes 0.0
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
    """Return the decimals that show two significant digits of an amount below 1, at least 2."""
    decimals = min(1 - math.floor(math.log10(size)), 9)
    written = f"{size:.{decimals}f}".rstrip("0")
    return max(len(written.partition(".")[2]), 2)


def symbol(currency: str) -> str:
    return str(get_currency_symbol(currency, locale=language()))


def defaults(money: Money) -> str:
    """Return the relevant assumptions that are at their defaults, by name; "" if none."""
    listed = [
        _(
            "{title} ({value})",
            title=_p("setting", each.title),
            value=value(each, getattr(money.assumptions, each.name), money.currency),
        )
        for each in money.defaults
    ]
    return _("At their defaults: {assumptions}.", assumptions=all_of(listed)) if listed else ""


def value(each: Assumption, amount: float, currency: str) -> str:
    """Return the amount of an assumption with its unit."""
    if each.unit == "share":
        return percent(amount, 1)
    if each.unit == "money":
        return money(amount, currency)
    if each.unit == "money per million tokens":
        return f"{money(amount, currency)} {_p('unit', UNITS['tokens'])}"
    if each.unit == "%":
        return f"{quantity(amount)}%"
    return f"{quantity(amount)} {unit(each, currency)}".strip()


def unit(each: Assumption, currency: str) -> str:
    """Return the unit of an assumption in words; "" for a share, which is written as percent, and
    for a unit that equals the title."""
    if (
        each.unit == "share"
        or _p("unit", each.unit).casefold() == _p("setting", each.title).casefold()
    ):
        return ""
    return _p("unit", each.unit).replace(_p("unit", "money"), symbol(currency))
