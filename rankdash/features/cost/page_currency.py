"""Currency of all amounts on the page Cost, and typed exchange rates."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.value.assumptions import ASSUMPTIONS, DOLLARS
from rankdash.core.value.prices import ListedPrice
from rankdash.kit.widgets import address, pickers, scenario
from rankdash.kit.widgets.text import markdown_safe

_KEY = "cost.currency"


def choose_currency(prices: Iterable[ListedPrice]) -> None:
    """Draw the choice of a currency. Amounts change only once an exchange rate or a new value of a
    search is entered. prices: prices that may need an exchange rate."""
    now = scenario.currency()
    requested = address.one("into") or address.one("currency")
    into = requested if requested in scenario.CURRENCIES else now

    def picked() -> None:
        _go_over(now, st.session_state[_KEY])

    options = list(scenario.CURRENCIES)
    pickers.show(st.selectbox, _KEY, into, picked, options)(_p("field", "Currency"), options)
    if into != now:
        _offer(now, into)
        return
    foreign = {each.price.currency for each in prices} | {DOLLARS}
    for each in sorted(foreign - {now}):
        _rate(each, now, scenario.rates().get(each))


def _offer(now: str, into: str) -> None:
    """Draw the two inputs that change the currency: an exchange rate, or the value of a search in
    the new currency."""
    _rate(now, into, None)
    key = f"cost.anew.{into}"

    def typed() -> None:
        if st.session_state[key] is not None:
            _start_anew(into, st.session_state[key])

    st.number_input(
        _("Or enter the value of a search in {currency}", currency=into),
        min_value=0.0,
        value=None,
        format="%.10g",
        key=key,
        on_change=typed,
        help=_("Your other amounts are reset to their defaults."),
    )
    st.caption(_("Amounts stay in {now} until you enter one of these.", now=now))


def _rate(foreign: str, into: str, rate: float | None) -> None:
    """Draw the field for the exchange rate: one unit of `foreign` in `into`."""
    key = f"cost.rate.{foreign}.{into}"

    def typed() -> None:
        value = st.session_state[key]
        if scenario.currency() == into:
            scenario.choose_amount("rate", foreign, value or None)
        elif value:
            _convert(foreign, into, value)

    pickers.show(st.number_input, key, rate, typed)(
        _("1 {foreign} in {currency}", foreign=markdown_safe(foreign, 20), currency=into),
        min_value=0.0,
        format="%.10g",
        placeholder=_("exchange rate"),
    )


def _go_over(now: str, into: str) -> None:
    """Change the currency: convert all amounts if the exchange rate is known, else ask for the
    rate."""
    rate = scenario.rates().get(into)
    if into == now:
        address.choose("into", None)
        address.choose("currency", now)
    elif rate:
        _convert(now, into, 1 / rate)
    else:
        address.choose("into", into)


def _convert(now: str, into: str, rate: float) -> None:
    """Convert every typed amount to another currency. rate: units of `into` per unit of `now`."""
    for each in ASSUMPTIONS:
        value = scenario.number_of(each, address.one(each.name))
        if each.money and scenario.changed(each) and value is not None:
            scenario.choose(each, min(value * rate, each.most))
    typed = {name: amount * rate for name, amount in scenario.amounts("thousand").items()}
    rates = {name: each * rate for name, each in scenario.rates().items() if name != into}
    scenario.choose_amounts("thousand", typed)
    scenario.choose_amounts("rate", {**rates, now: rate})
    address.choose("into", None)
    address.choose("currency", into)


def _start_anew(into: str, value_per_search: float) -> None:
    """Change the currency without an exchange rate. All amounts except the value of a search return
    to their defaults."""
    for each in ASSUMPTIONS:
        if each.name == "value_per_search":
            scenario.choose(each, value_per_search)
        elif each.money:
            address.choose(each.name, None)
    scenario.choose_amounts("thousand", {})
    scenario.choose_amounts("rate", {})
    address.choose("into", None)
    address.choose("currency", into)
