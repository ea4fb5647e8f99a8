"""What a price is for, where it is from and how sure it is, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from babel.lists import format_list

from rankdash.i18n import gettext as _
from rankdash.i18n import language, number, percent
from rankdash.value.billing import Price
from rankdash.value.price_list import STALE_DAYS, ListedPrice, shipped
from rankdash.words.money import money

_OWN, _CPU, _GPU = "own", "own-cpu", "own-gpu"
# Kinds that run on a machine of one's own, and on which; all others are paid by the call. A list of
# prices that lacks the one has the other.
_LOCAL = {
    "bm25": (_CPU, _GPU),
    **dict.fromkeys(
        ("bi-encoder", "cross-encoder", "late-interaction", "fusion", "cascade"), (_GPU, _CPU)
    ),
}


def usual(kind: str, prices: Mapping[str, ListedPrice]) -> str:
    """Key of the price that goes without saying for a kind of reranker."""
    wanted = _LOCAL.get(kind, (_OWN,))
    return next((key for key in wanted if key in prices), next(iter(prices)))


def title(each: ListedPrice) -> str:
    """Whose price for which model; as it was typed, not safe for Markdown."""
    return " ".join(
        part for part in (_(each.provider), _(each.model) if each.model else "") if part
    )


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
    said = []
    if each in shipped():
        said.append(_("example price"))
    if each.stale(datetime.now(UTC).date()):
        said.append(_("old price"))
    if estimated and each.price.unit != "hour":
        said.append(_("tokens estimated"))
    if each.price.unit == "hour" and not measured:
        said.append(_("assumed searches per second"))
    return said


def joined(parts: Sequence[str]) -> str:
    """ "a, b and c" in the reader's language."""
    return str(format_list(list(parts), locale=language()))


def notes(each: ListedPrice, measured: bool) -> list[str]:
    """What one has to know of a price: where it is from, how old, what an hour serves."""
    said = [_("{source}, {day}", source=_(each.source), day=each.as_of.isoformat())]
    if each.stale(datetime.now(UTC).date()):
        said.append(_("⚠ read more than {n} days ago: check it", n=number(STALE_DAYS, 0)))
    if each.price.unit == "hour":
        said.append(
            _("at the searches per second measured with this run")
            if measured
            else _(
                "at {n} searches per second and {share} use, as the price list says; not measured "
                "with this run",
                n=number(each.price.searches_per_second, 1),
                share=percent(each.price.utilisation),
            )
        )
    return said
