"""Whether amounts are shown for a month or for a year."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui import address
from rankdash.value.assumptions import MONTHS_PER_YEAR
from rankdash.value.outcome import Estimate

_MONTH, _YEAR = "month", "year"

address.FIELDS.setdefault("per", _MONTH)


@dataclass(frozen=True)
class Period:
    """What amounts are for. months: how many; the rest are titles in the reader's language."""

    months: int
    said: str
    cost: str
    value: str
    net: str

    def of(self, monthly: Estimate) -> Estimate:
        """The same for this period."""
        return Estimate(
            self._times(monthly.value),
            self._times(monthly.low),
            self._times(monthly.high),
            monthly.reason,
        )

    def _times(self, amount: float | None) -> float | None:
        return None if amount is None else amount * self.months


def month() -> Period:
    return Period(1, _("a month"), _("cost a month"), _("value a month"), _("net a month"))


def year() -> Period:
    return Period(
        MONTHS_PER_YEAR, _("a year"), _("cost a year"), _("value a year"), _("net a year")
    )


def period() -> Period:
    """What the address says; a month where it says nothing."""
    return year() if address.one("per") == _YEAR else month()


def draw() -> None:
    said = {_MONTH: _("a month"), _YEAR: _("a year")}
    address.pick_one(
        "per",
        list(said),
        st.selectbox,
        default=_MONTH,
        label=_("Amounts for"),
        format_func=said.__getitem__,
    )
