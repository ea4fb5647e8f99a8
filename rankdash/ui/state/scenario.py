"""The scenario of the Cost page, as the address and the workspace have it: what a search is worth,
and what each system costs. Other pages mention a price, and reports take all of it over."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from rankdash.errors import RankdashError
from rankdash.i18n import error_text
from rankdash.i18n import gettext as _
from rankdash.study.study import Study
from rankdash.study.systems import Money
from rankdash.ui.state import address, stored
from rankdash.ui.state.server import workspace
from rankdash.ui.widgets.text import markdown_safe
from rankdash.value.assumptions import ASSUMPTIONS, Assumption, Assumptions
from rankdash.value.price_list import ListedPrice, parse_prices, shipped, usual

CURRENCIES = ("USD", "EUR", "GBP", "CNY", "JPY", "INR")
SAVED_PRICES = "prices"


def with_money(study: Study) -> Study:
    """The study with prices and assumptions, and with the prices that are shown beside them."""
    prices = listed_prices()
    keys = price_keys(study, prices)
    money = Money(
        assumptions=assumptions(),
        prices={system: prices[key] for system, key in keys.items()},
        chosen=any(changed(each) for each in ASSUMPTIONS),
        currency=currency(),
        also=tuple(prices[key] for key in address.several("also") if key in prices),
    )
    return replace(study, money=money)


def currency() -> str:
    chosen = address.one("currency")
    return chosen if chosen in CURRENCIES else CURRENCIES[0]


def assumptions() -> Assumptions:
    """What the address says; a number that is out of range is left at its default, and said."""
    values = {}
    for each in ASSUMPTIONS:
        typed = address.one(each.name)
        value = number_of(each, typed)
        address.lose(each.name, typed if value is None else None)
        if value is not None:
            values[each.name] = value
    return Assumptions(**values)


def changed(each: Assumption) -> bool:
    """Whether it is set to something else than its default."""
    return address.one(each.name) not in (None, address.FIELDS[each.name])


def number_of(each: Assumption, text: str | None) -> float | None:
    """A number as it stands in the address; None where it is none, or out of range."""
    try:
        return None if text is None else float(each.parse(text))
    except RankdashError:
        return None


def listed_prices() -> dict[str, ListedPrice]:
    """key → price: one's own list where one was saved, else the shipped examples."""
    text = workspace().setting(SAVED_PRICES)
    if not text:
        return {each.key: each for each in shipped()}
    try:
        return {each.key: each for each in parse_prices(text.encode(), _("saved prices"))}
    except RankdashError as error:
        st.warning(markdown_safe(error_text(error), 300), icon=":material/warning:")
        return {each.key: each for each in shipped()}


def price_keys(study: Study, prices: dict[str, ListedPrice]) -> dict[str, str]:
    """Challenger → key of its price: as the address says, else by its kind."""
    chosen, rows = chosen_prices(), stored.rows(study.stored_id)
    found = {}
    for system in study.challengers:
        kind = rows[system].reranker if system in rows else ""
        key = chosen.get(system, "")
        found[system] = key if key in prices else usual(kind, prices)
    return found


def chosen_prices() -> dict[str, str]:
    """System → key of its price, as the address has them."""
    return dict(part.split("=", 1) for part in address.several("price") if "=" in part)
