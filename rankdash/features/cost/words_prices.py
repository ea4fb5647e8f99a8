"""What a price is for, where it is from and how sure it is, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from rankdash.core.base.i18n import brief, ngettext, number, percent, quantity
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.measured import meets
from rankdash.core.study.pricing import Bill, Served
from rankdash.core.value.billing import Price
from rankdash.core.value.price_list import STALE_DAYS, ListedPrice, title
from rankdash.features.cost.costs import Choice
from rankdash.features.cost.words_money import money
from rankdash.features.latency.words_latency import without_p95


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
