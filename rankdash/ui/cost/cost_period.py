"""Whether amounts are shown for a month or for a year."""

from __future__ import annotations

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.state import address, pickers
from rankdash.words.costs import Period, month, year

_MONTH, _YEAR = "month", "year"


def period() -> Period:
    """What the address says; a month where it says nothing."""
    return year() if address.one("per") == _YEAR else month()


def draw() -> None:
    said = {_MONTH: _("a month"), _YEAR: _("a year")}
    pickers.pick_one(
        "per",
        list(said),
        st.selectbox,
        default=_MONTH,
        label=_("Amounts for"),
        format_func=said.__getitem__,
    )
