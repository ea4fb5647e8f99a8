"""The terms of a calculation on the page: its period, amounts in the chosen currency."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import (
    speaking,
)
from rankdash.core.study.costs import Choice, hit_title
from rankdash.core.study.study import Study
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.payoff import Amount
from rankdash.core.words import costs as cost_words
from rankdash.core.words.costs import MoneyContext, Period, month, year
from rankdash.core.words.prices import money
from rankdash.features.cost import report, words
from rankdash.kit.widgets import address, pickers
from rankdash.kit.widgets.scenario import currency
from rankdash.kit.widgets.text import name_safe

_MONTH, _YEAR = "month", "year"


def period() -> Period:
    """What the address says; a month where it says nothing."""
    return year() if address.one("per") == _YEAR else month()


def choose_period() -> None:
    titles = {_MONTH: _("a month"), _YEAR: _("a year")}
    pickers.pick_one(
        "per",
        list(titles),
        st.selectbox,
        default=_MONTH,
        label=_("Amounts per"),
        format_func=titles.__getitem__,
    )


def context(study: Study) -> MoneyContext:
    return MoneyContext(
        currency=currency(),
        metric=study.measure.title,
        hit=hit_title(study),
        level=study.statistics.level,
        baseline=study.name(study.baseline),
        period=period(),
        safe=name_safe,
    )


def amount(value: float | None) -> str:
    return money(value, currency())


def cell(found: Amount, written: str = "money") -> tuple[str, str]:
    """(value, its interval) of an estimate; (the reason why there is none, "")."""
    return cost_words.cell(found, currency(), written)


def assumption_rows(
    study: Study, scenario: Assumptions, choices: Sequence[Choice]
) -> list[tuple[str, str, str]]:
    """(title, value, meaning) of everything that the numbers rest on."""
    return words.assumption_table(scenario, choices, currency(), hit_title(study))


def as_csv(named: Study) -> bytes:
    """Options and assumptions for a spreadsheet. named: from `downloads.english`."""
    with speaking("en"):
        (part,) = report.money_files(named)
        return part.make()
