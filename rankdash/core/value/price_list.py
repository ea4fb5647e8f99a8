"""Price lists: dated examples that ship with rankdash, and a person's own, which come first."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from functools import cache
from typing import Any, Literal

from rankdash.core.base.errors import DataError, Phrase
from rankdash.core.base.files import from_json_or_toml, guarded, text_of
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.shipped import ASSETS
from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.core.value.billing import UNITS, Price

SHIPPED = ASSETS / "prices.toml"
STALE_DAYS = 180

_PRICE_FIELDS = frozenset(each.name for each in fields(Price))
_OWN_FIELDS = ("key", "provider", "model", "source", "as_of")
_TOP_LEVEL = frozenset({"machines", "rates", *(each.name for each in ASSUMPTIONS)})
_LONGEST_TEXT = 200
_MOST_ENTRIES = 500
_REMEDY = "Give TOML with [[prices]] entries, or a file exported from the Cost page."
_EXAMPLE_OF_MACHINES = (
    "An example: put in your hourly price and the searches per second that you measured"
)
# What the examples of machines once said of themselves, and nobody had measured.
_ONCE_SERVED = 20.0

Place = Literal["cpu", "gpu", "service", "llm"]
"""Where a reranker runs: on a machine of one's own without or with a graphics card, at a service
that is paid by the call, or as the prompt of a language model."""
_KEYS: Mapping[Place, str] = {
    "cpu": "own-cpu",
    "gpu": "own-gpu",
    "service": "own",
    "llm": "template-model",
}


@dataclass(frozen=True)
class ListedPrice:
    """A price, what it is for, and where and when it was read. `key` is unique in a list."""

    key: str
    provider: str
    model: str
    price: Price
    source: str
    as_of: date

    @property
    def name(self) -> str:
        return f"{self.provider} {self.model}".strip()

    def stale(self, today: date) -> bool:
        """Whether it was read more than `STALE_DAYS` ago."""
        return (today - self.as_of).days > STALE_DAYS

    @property
    def example(self) -> bool:
        """Whether nobody set it: the source is that of an example that comes with rankdash, or all
        that one pays by is. Another figure in one of its cells makes it no price of one's own."""
        return any(
            self.source == each.source
            or (self.key == each.key and _paid_by(self) == _paid_by(each))
            for each in shipped()
        )


def _paid_by(listed: ListedPrice) -> tuple[object, ...]:
    price = listed.price
    return price.amount, price.unit, price.currency, listed.as_of


@cache
def shipped() -> tuple[ListedPrice, ...]:
    """The examples of `assets/prices.toml`."""
    return parse_prices(SHIPPED.read_bytes(), SHIPPED.name)


def usual(place: Place, prices: Mapping[str, ListedPrice]) -> ListedPrice | None:
    """The price of what runs there where nobody chose one; None where the list has none."""
    return prices.get(_KEYS[place])


def place_of(listed: ListedPrice) -> Place | None:
    """Where that runs which a price is for; None where the price does not tell."""
    return next((place for place, key in _KEYS.items() if key == listed.key), None)


def title(each: ListedPrice) -> str:
    """Whose price for which model; as it was typed, not safe for Markdown."""
    return ", ".join(
        part for part in (_(each.provider), _(each.model) if each.model else "") if part
    )


def parse_prices(content: bytes, file: str) -> tuple[ListedPrice, ...]:
    """A price list from TOML as in `assets/prices.toml`, or from JSON as `to_json` writes it.

    Raises DataError naming the file, the entry and what is wrong with it.
    """
    with guarded(file, "The price list cannot be read: {reason}.", _REMEDY):
        return _listed(from_json_or_toml(text_of(content)), file)


def _listed(read: Any, file: str) -> tuple[ListedPrice, ...]:
    entries = read.get("prices") if isinstance(read, Mapping) else None
    if not isinstance(entries, list) or not entries:
        raise DataError(
            "The file has no list called prices.",
            remedy=_REMEDY,
            file=file,
        )
    if len(entries) > _MOST_ENTRIES:
        raise DataError(
            "The price list has {count} entries; at most {most} are read.",
            file=file,
            count=len(entries),
            most=_MOST_ENTRIES,
        )
    listed = tuple(_entry(entry, place, file) for place, entry in enumerate(entries, start=1))
    keys = [each.key for each in listed]
    repeated = next((key for key in keys if keys.count(key) > 1), None)
    if repeated is not None:
        raise DataError(
            "Two prices have the key {key!r}.",
            remedy="Give each entry a key of its own.",
            file=file,
            key=repeated,
        )
    return listed


def to_json(prices: Sequence[ListedPrice]) -> str:
    """The list as text that `parse_prices` reads back."""
    rows = [
        {
            **{name: getattr(each, name) for name in _OWN_FIELDS if name != "as_of"},
            "as_of": each.as_of.isoformat(),
            **asdict(each.price),
        }
        for each in prices
    ]
    return json.dumps({"prices": rows}, ensure_ascii=False, indent=2)


def _entry(entry: object, place: int, file: str) -> ListedPrice:
    if not isinstance(entry, Mapping):
        raise _broken(place, Phrase("it is not a set of named fields"), file)
    unknown = set(entry) - _PRICE_FIELDS - set(_OWN_FIELDS)
    if unknown:
        field = min(map(str, unknown))
        if field in _TOP_LEVEL:
            raise _broken(
                place, Phrase("{name} belongs above the first [[prices]]", name=field), file
            )
        raise _broken(place, Phrase("it has an unknown field {name!r}", name=field), file)
    for name in ("key", "provider", "source", "as_of", "amount", "unit"):
        if entry.get(name) in (None, ""):
            raise _broken(place, Phrase("it has no {name}", name=name), file)
    if entry["unit"] not in [*UNITS]:
        known = ", ".join(UNITS)
        raise _broken(place, Phrase("its unit is not one of {units}", units=known), file)
    numbers = {
        name: _number(entry[name], name, place, file)
        for name in _PRICE_FIELDS - {"unit", "currency"}
        if entry.get(name) is not None
    }
    if "chunk_tokens" in numbers:
        numbers["chunk_tokens"] = int(numbers["chunk_tokens"])
    served = numbers.get("searches_per_second")
    if served == _ONCE_SERVED and entry["source"] == _EXAMPLE_OF_MACHINES:
        del numbers["searches_per_second"]
    try:
        price = Price(
            unit=entry["unit"],
            currency=_text(entry.get("currency", "USD"), "currency", place, file).upper(),
            **numbers,  # type: ignore[arg-type]
        )
    except DataError as error:
        reason = Phrase("its {name} must be {possible}", **error.params)
        raise _broken(place, reason, file) from error
    return ListedPrice(
        key=_text(entry["key"], "key", place, file),
        provider=_text(entry["provider"], "provider", place, file),
        model=_text(entry.get("model", ""), "model", place, file),
        price=price,
        source=_text(entry["source"], "source", place, file),
        as_of=_day(entry["as_of"], place, file),
    )


def _number(value: object, name: str, place: int, file: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _broken(place, Phrase("its {name} is not a number", name=name), file)
    return float(value)


def _text(value: object, name: str, place: int, file: str) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        reason = Phrase(
            "its {name} is not a text of at most {most} letters", name=name, most=_LONGEST_TEXT
        )
        raise _broken(place, reason, file)
    return value


def _day(value: object, place: int, file: str) -> date:
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError as error:
        raise _broken(place, Phrase("its as_of is not a day such as 2026-11-21"), file) from error


def _broken(place: int, reason: Phrase, file: str) -> DataError:
    return DataError(
        "Price {place} of the list cannot be used: {reason}.",
        remedy="Correct the entry, or remove it.",
        file=file,
        place=place,
        reason=reason,
    )
