"""What a price is for, where it is from and how sure it is, in words."""

from __future__ import annotations

from datetime import UTC, datetime

from rankdash.i18n import gettext as _
from rankdash.i18n import number, percent
from rankdash.value.billing import Price
from rankdash.value.price_list import STALE_DAYS, ListedPrice, shipped, title
from rankdash.words.money import money


def rate(price: Price) -> str:
    """How much for what, as short as it goes."""
    amount = money(price.amount, price.currency)
    return {
        "search": _("{amount}/1,000 units", amount=amount),
        "tokens": _("{amount}/M tokens", amount=amount),
        "template": _("{amount}/M tokens with prompt", amount=amount),
        "hour": _("{amount}/hour", amount=amount),
    }[price.unit]


def words(each: ListedPrice) -> str:
    """The price in a line: who, which, how much for what."""
    return _("{part}: {value}", part=title(each), value=rate(each.price))


def marks(each: ListedPrice, estimated: bool, measured: bool) -> list[str]:
    """In a word or two each, what makes the price, or what is paid for, less than sure."""
    sentences = []
    if each in shipped():
        sentences.append(_("example price"))
    if each.stale(datetime.now(UTC).date()):
        sentences.append(_("old price"))
    if estimated and each.price.unit != "hour":
        sentences.append(_("tokens estimated"))
    if each.price.unit == "hour" and not measured:
        sentences.append(_("assumed searches per second"))
    return sentences


def notes(each: ListedPrice, measured: bool) -> list[str]:
    """What one has to know of a price: where it is from, how old, what an hour serves."""
    sentences = [_("{source}, {day}", source=_(each.source), day=each.as_of.isoformat())]
    if each.stale(datetime.now(UTC).date()):
        sentences.append(_("⚠ older than {n} days: check it", n=number(STALE_DAYS, 0)))
    if each.price.unit == "hour":
        sentences.append(
            _("at the searches per second measured with this run")
            if measured
            else _(
                "at {n} searches per second and {share} use, as the price list says; not measured "
                "with this run",
                n=number(each.price.searches_per_second, 1),
                share=percent(each.price.utilisation),
            )
        )
    return sentences
