"""Amounts of money in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

from babel.numbers import format_currency, get_currency_symbol

from rankdash.core.base.i18n import (
    every_digit,
    language,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.value.assumptions import MONTHS_PER_YEAR
from rankdash.features.cost.payoff import Amount, End

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
