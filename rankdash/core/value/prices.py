"""Prices: billing units, price lists, and the cost of a search."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from rankdash.core.base.errors import DataError, Phrase
from rankdash.core.base.files import from_json_or_toml, guarded, text_of
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.shipped import ASSETS
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.value.assumptions import ASSUMPTIONS, DAYS_PER_MONTH

Number = float | Floats
BillingUnit = Literal["flat", "search", "tokens", "template", "hour"]

UNITS: Mapping[BillingUnit, str] = MappingProxyType(
    {
        "flat": "per 1,000 searches",
        "search": "per 1,000 search units",
        "tokens": "per million tokens",
        "template": "per million tokens, including the prompt around each document",
        "hour": "per hour of one machine",
    }
)
"""Unit → what an amount pays for."""

DOCUMENTS_PER_UNIT = 100
"""Number of document chunks in one search unit."""

CHUNK_TOKENS = 500
"""Maximum length of query and document together before the document counts as several chunks."""

_THOUSAND, _MILLION, _SECONDS_PER_HOUR = 1e3, 1e6, 3600.0

# Smaller values are practically 0 and cannot be a divisor.
_FEWEST_A_SECOND = _SMALLEST_SHARE = 1e-12
_ROUNDING = 1e-9
_DIGITS = 6
MOST_AMOUNT = 1e10
"""Upper limit of all amounts, far below the loss of digits."""


@dataclass(frozen=True, eq=False)
class Searches:
    """Token counts of a sample of searches: of each query and of each document it sends.

    query_tokens: (Q,). document_tokens: (N,), by search. sizes: (Q,) documents of each search;
        their sum is N and above 0.
    """

    query_tokens: Floats
    document_tokens: Floats
    sizes: Integers

    def load(self, documents: float) -> Load:
        """Return the payload of the mean search if it sends this number of documents."""
        # The query is sent once with each document.
        query = float(np.average(self.query_tokens, weights=self.sizes))
        return Load(query, documents, float(self.document_tokens.mean()), self)

    def scaled(self, query: float, document: float) -> Searches:
        """Return the searches with all queries and all documents longer by a factor."""
        return Searches(self.query_tokens * query, self.document_tokens * document, self.sizes)

    def units(self, documents: float, chunk_tokens: int) -> float:
        """Return the mean number of search units if searches send this mean number of documents."""
        ends = np.cumsum(self.sizes)
        room = np.repeat(_room(self.query_tokens, chunk_tokens), self.sizes)
        chunks = np.append(0.0, np.cumsum(_chunks(self.document_tokens, room)))
        each = (chunks[ends] - chunks[ends - self.sizes]) * documents / self.sizes.mean()
        return float(np.ceil(np.round(each, _DIGITS) / DOCUMENTS_PER_UNIT).mean())


@dataclass(frozen=True)
class Load:
    """Payload of one search to a reranker; NaN if unknown.

    query_tokens: tokens of the query.
    documents: number of reranked documents.
    document_tokens: mean tokens of one document.
    searches: the searches that it is the mean of; None if each document has the mean length.
    """

    query_tokens: Number
    documents: Number
    document_tokens: Number
    searches: Searches | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Price:
    """Price of a provider or a machine.

    amount: in `currency`, for the unit described in `UNITS`.
    template_tokens: tokens of the prompt around each document; for "template" only.
    chunk_tokens: maximum length of query and document in one chunk; for "search" only. 0: documents
        are never split.
    searches_per_second: throughput of one machine within the latency target; None: as measured by a
        run; for "hour" only.
    utilisation: share of the paid time in use, above 0, at most 1; for "hour" only.

    Raises DataError for an amount that is not a number from 0 to ten billion, and for other values
    out of range.
    """

    amount: float
    unit: BillingUnit
    currency: str = "USD"
    template_tokens: float = 0.0
    chunk_tokens: int = CHUNK_TOKENS
    searches_per_second: float | None = None
    utilisation: float = 1.0

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise DataError(
                "Unknown billing unit {unit!r}.",
                remedy="Possible: {units}.",
                unit=self.unit,
                units=", ".join(UNITS),
            )
        for name in ("amount", "template_tokens", "chunk_tokens"):
            if not 0 <= getattr(self, name) <= MOST_AMOUNT:
                raise _out_of_range(
                    name, Phrase("a number from 0 to {most}", most=f"{MOST_AMOUNT:,.0f}")
                )
        rate = self.searches_per_second
        if rate is not None and not _FEWEST_A_SECOND <= rate < math.inf:
            raise _out_of_range("searches_per_second", Phrase("a number above 0"))
        if not _SMALLEST_SHARE <= self.utilisation <= 1:
            raise _out_of_range("utilisation", Phrase("a share above 0, at most 1"))


def billed_tokens(load: Load, template_tokens: Number = 0.0) -> Number:
    """Return the tokens of one search: the query, and the prompt around it, is billed with each
    document."""
    return (load.query_tokens + load.document_tokens + template_tokens) * load.documents


def search_units(load: Load, chunk_tokens: int = CHUNK_TOKENS) -> Number:
    """Return the search units of one search, rounded up; for a mean search, the mean over its
    searches.

    A document that, with the query, is longer than `chunk_tokens` counts as several chunks.
    """
    if load.searches is not None and chunk_tokens:
        return load.searches.units(float(load.documents), chunk_tokens)
    chunks: Number = np.ceil(load.documents)
    if chunk_tokens:
        chunks = chunks * _chunks(load.document_tokens, _room(load.query_tokens, chunk_tokens))
    return _plain(np.ceil(chunks / DOCUMENTS_PER_UNIT))


def _room(query_tokens: Number, chunk_tokens: int) -> Floats:
    """Return the tokens of a document that fit in one chunk."""
    return np.maximum(chunk_tokens - np.asarray(query_tokens, dtype=np.float64), 1.0)


def _chunks(document_tokens: Number, room: Floats) -> Floats:
    return np.maximum(np.ceil(document_tokens / room), 1.0)


def cost_per_search(price: Price, load: Load) -> Number:
    """Return the cost of one search, in the price's currency; NaN if it depends on tokens, or on a
    machine's throughput, and these are unknown."""
    if price.unit == "flat":
        return _plain(np.asarray(load.documents) * 0.0 + price.amount / _THOUSAND)
    if price.unit == "hour":
        served = (price.searches_per_second or math.nan) * _SECONDS_PER_HOUR * price.utilisation
        return _plain(np.asarray(load.documents) * 0.0 + price.amount / served)
    if price.unit == "search":
        return search_units(load, price.chunk_tokens) * price.amount / _THOUSAND
    template = price.template_tokens if price.unit == "template" else 0.0
    return billed_tokens(load, template) * price.amount / _MILLION


def cost_per_thousand(price: Price, load: Load) -> Number:
    """Return the cost of 1,000 searches, in the price's currency."""
    return cost_per_search(price, load) * _THOUSAND


def crossover_tokens(searches: Price, tokens: Price, load: Load) -> float | None:
    """Return the document length in tokens above which the price per token is the higher one.

    searches: per search unit, tokens: per token, with or without a template. The range ends at
        documents that fill one chunk, because longer ones need more search units. None if one of
        the prices is higher over the whole range.
    """
    template = tokens.template_tokens if tokens.unit == "template" else 0.0
    if tokens.amount <= 0 or float(load.documents) <= 0:
        return None
    flat = float(np.ceil(load.documents / DOCUMENTS_PER_UNIT)) * searches.amount / _THOUSAND
    per_document = flat * _MILLION / tokens.amount / float(load.documents)
    length = per_document - float(load.query_tokens) - template
    longest = (
        searches.chunk_tokens - float(load.query_tokens) if searches.chunk_tokens else math.inf
    )
    return length if 0 < length <= longest and math.isfinite(length) else None


@dataclass(frozen=True)
class Machines:
    """Whole machines of one price, paid for every hour of the month.

    per_month: cost of one. searches_per_day: throughput of one at the utilisation of its price.
    """

    per_month: float
    searches_per_day: float

    @classmethod
    def of(cls, price: Price) -> Machines | None:
        """Return the machines of a price per hour; None if the throughput of one is unknown."""
        if price.unit != "hour" or price.searches_per_second is None:
            return None
        served = price.searches_per_second * price.utilisation * _SECONDS_PER_HOUR * 24
        return cls(price.amount * 24 * DAYS_PER_MONTH, served)

    def needed(self, searches_per_day: float) -> int:
        """Return the number of machines for this traffic; at least one."""
        return max(math.ceil(searches_per_day / self.searches_per_day * (1 - _ROUNDING)), 1)

    def cost_per_month(self, searches_per_day: float) -> float:
        """Return the monthly cost of the machines for this traffic."""
        return self.needed(searches_per_day) * self.per_month

    def beside(self, other: Machines | None) -> Machines:
        """Return these machines, at the same price, with their throughput if they also do the work
        of `other` for each search."""
        if other is None:
            return self
        served = 1 / (1 / self.searches_per_day + 1 / other.searches_per_day)
        return Machines(self.per_month, served)


def _plain(value: Floats | np.floating) -> Number:
    """Return a float for one number, the array for many."""
    return float(value) if np.ndim(value) == 0 else np.asarray(value, dtype=np.float64)


def _out_of_range(name: str, possible: Phrase) -> DataError:
    return DataError(
        "The {name} of a price must be {possible}.",
        name=name.replace("_", " "),
        possible=possible,
    )


# Price lists: dated examples that ship with rankdash, and the user's own prices, which come first.

SHIPPED = ASSETS / "prices.toml"
STALE_DAYS = 180

_PRICE_FIELDS = frozenset(each.name for each in fields(Price))
_OWN_FIELDS = ("key", "provider", "model", "source", "as_of")
_TOP_LEVEL = frozenset({"machines", "rates", *(each.name for each in ASSUMPTIONS)})
_LONGEST_TEXT = 200
_MOST_ENTRIES = 500
_REMEDY = "Use TOML with [[prices]] entries, or a file exported from the Cost page."
_EXAMPLE_OF_MACHINES = (
    "An example: put in your hourly price and the searches per second that you measured"
)
# Throughput in the machine examples of older versions, which was not measured.
_ONCE_SERVED = 20.0

Place = Literal["cpu", "gpu", "service", "llm"]
"""Location of a reranker: on your own machine without or with a GPU, at a service billed per call,
or as the prompt of a language model."""
_KEYS: Mapping[Place, str] = {
    "cpu": "own-cpu",
    "gpu": "own-gpu",
    "service": "own",
    "llm": "template-model",
}


@dataclass(frozen=True)
class ListedPrice:
    """Price with its provider and model, and the source and date of the information. `key` is
    unique in a list."""

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
        """Return whether the information is older than `STALE_DAYS`."""
        return (today - self.as_of).days > STALE_DAYS

    @property
    def example(self) -> bool:
        """True if the price is an example that ships with rankdash: it has the same source, or the
        same key and everything that determines the cost. Editing another column does not make it
        the user's own price."""
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
    """Return the examples of `assets/prices.toml`."""
    return parse_prices(SHIPPED.read_bytes(), SHIPPED.name)


def usual(place: Place, prices: Mapping[str, ListedPrice]) -> ListedPrice | None:
    """Return the default price for a location; None if the list has none."""
    return prices.get(_KEYS[place])


def place_of(listed: ListedPrice) -> Place | None:
    """Return the location that a price is for; None if unknown."""
    return next((place for place, key in _KEYS.items() if key == listed.key), None)


def title(each: ListedPrice) -> str:
    """Return provider and model, as typed and not escaped for Markdown."""
    return ", ".join(
        part
        for part in (_p("provider", each.provider), _p("model", each.model) if each.model else "")
        if part
    )


def parse_prices(content: bytes, file: str) -> tuple[ListedPrice, ...]:
    """Parse a price list from TOML as in `assets/prices.toml`, or from JSON as written by
    `to_json`.

    Raises DataError with the file, the entry and the problem.
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
            "The price list has {count} entries; the limit is {most}.",
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
            remedy="Keys must be unique.",
            file=file,
            key=repeated,
        )
    return listed


def to_json(prices: Sequence[ListedPrice]) -> str:
    """Return the list as text for `parse_prices`."""
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
        raise _broken(place, Phrase("the entry is not a set of named fields"), file)
    unknown = set(entry) - _PRICE_FIELDS - set(_OWN_FIELDS)
    if unknown:
        field = min(map(str, unknown))
        if field in _TOP_LEVEL:
            raise _broken(
                place, Phrase("{name} belongs above the first [[prices]]", name=field), file
            )
        raise _broken(place, Phrase("the field {name!r} is unknown", name=field), file)
    for name in ("key", "provider", "source", "as_of", "amount", "unit"):
        if entry.get(name) in (None, ""):
            raise _broken(place, Phrase("{name} is missing", name=name), file)
    if entry["unit"] not in [*UNITS]:
        units = ", ".join(UNITS)
        raise _broken(place, Phrase("unit is not one of {units}", units=units), file)
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
        reason = Phrase("{name} must be {possible}", **error.params)
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
        raise _broken(place, Phrase("{name} is not a number", name=name), file)
    return float(value)


def _text(value: object, name: str, place: int, file: str) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        reason = Phrase(
            "{name} must be text of at most {most} characters", name=name, most=_LONGEST_TEXT
        )
        raise _broken(place, reason, file)
    return value


def _day(value: object, place: int, file: str) -> date:
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError as error:
        raise _broken(place, Phrase("as_of is not a date such as 2026-11-21"), file) from error


def _broken(place: int, reason: Phrase, file: str) -> DataError:
    return DataError(
        "Price {place} of the list cannot be used: {reason}.",
        remedy="Correct the entry, or remove it.",
        file=file,
        place=place,
        reason=reason,
    )
