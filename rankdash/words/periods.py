"""A month and a year: what amounts of money are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from rankdash.i18n import gettext as _
from rankdash.value.assumptions import MONTHS_PER_YEAR
from rankdash.value.payoff import Amount, End

_Amount = TypeVar("_Amount", float | None, End)


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
