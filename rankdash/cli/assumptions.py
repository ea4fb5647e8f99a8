"""What a search is worth and costs, from a file in TOML."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankdash.errors import DataError
from rankdash.readers import Source
from rankdash.study.systems import Money
from rankdash.value.price_list import ListedPrice, parse_prices

_EVERYONE = "all"


def read_money(path: Path, names: Mapping[str, str]) -> Money:
    """The assumptions by their names, currency, rates (`rates = { USD = 7.1 }`: how much one unit
    of another currency is), and [[prices]] as in `assets/prices.toml`, the key
    of each being the name of the system that it is for, or "all".

    names: challenger → its name. Raises DataError, which names the file, for anything else.
    """
    file = str(path)
    try:
        content = Source.from_path(path).data
        read: dict[str, Any] = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise DataError(
            "The assumptions cannot be read: {reason}.",
            remedy="Give TOML with a line such as: searches_per_day = 5000",
            file=file,
            reason=str(problem).rstrip("."),
        ) from problem
    currency = str(read.pop("currency", "USD")).upper()
    rates = _rates(read.pop("rates", {}), file)
    listed = read.pop("prices", None)
    prices = () if listed is None else _prices(listed, file)
    try:
        money = Money.of(read, currency=currency, rates=rates)
    except DataError as problem:
        problem.file = file
        raise
    by_key = {each.key: each for each in prices}
    for key in by_key:
        if key != _EVERYONE and key not in names.values():
            raise DataError(
                "The price {key!r} is for no system of the report.",
                remedy="The key of a price is {everyone!r} or one of: {names}.",
                file=file,
                key=key,
                everyone=_EVERYONE,
                names=", ".join(names.values()),
            )
    return replace(
        money,
        prices={
            system: found
            for system, name in names.items()
            if (found := by_key.get(name, by_key.get(_EVERYONE))) is not None
        },
    )


def _rates(read: Any, file: str) -> dict[str, float]:
    """currency → how much of the scenario's currency one unit of it is."""
    if not isinstance(read, dict):
        read = {"": read}
    for currency, rate in read.items():
        known = isinstance(rate, (int, float)) and not isinstance(rate, bool)
        if not (known and 0 < rate < math.inf):
            raise DataError(
                "The exchange rate {currency} = {rate!r} is not a number above 0.",
                remedy="Write how much one unit is in the currency of the file, such as: "
                "rates = {{ USD = 7.1 }}",
                file=file,
                currency=currency,
                rate=rate,
            )
    return {str(currency).upper(): float(rate) for currency, rate in read.items()}


def _prices(listed: object, file: str) -> tuple[ListedPrice, ...]:
    return parse_prices(json.dumps({"prices": listed}, default=str).encode(), file)
