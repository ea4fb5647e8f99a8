"""The currency of all amounts, and the rates of exchange that a person types."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.value.assumptions import ASSUMPTIONS, DOLLARS
from rankdash.core.value.price_list import ListedPrice
from rankdash.kit.widgets import address, pickers, scenario
from rankdash.kit.widgets.text import markdown_safe

_KEY = "cost.currency"


def choose(prices: Iterable[ListedPrice]) -> None:
    """Draw the choice of a currency. Amounts stay in the one they are in until a person says how
    they go over into another. prices: whose currencies count."""
    now = scenario.currency()
    wanted = address.one("into") or address.one("currency")
    into = wanted if wanted in scenario.CURRENCIES else now

    def picked() -> None:
        _go_over(now, st.session_state[_KEY])

    options = list(scenario.CURRENCIES)
    pickers.show(st.selectbox, _KEY, into, picked, options)(_("Currency"), options)
    if into != now:
        _offer(now, into)
        return
    foreign = {each.price.currency for each in prices} | {DOLLARS}
    for each in sorted(foreign - {now}):
        _rate(each, now, scenario.rates().get(each))


def _offer(now: str, into: str) -> None:
    """The two ways to another currency."""
    _rate(now, into, None)
    key = f"cost.anew.{into}"

    def typed() -> None:
        if st.session_state[key] is not None:
            _start_anew(into, st.session_state[key])

    st.number_input(
        _("or the value of a search in {currency}", currency=into),
        min_value=0.0,
        value=None,
        format="%.10g",
        key=key,
        on_change=typed,
        help=_("Other amounts that you typed go back to their defaults."),
    )
    st.caption(_("Amounts stay in {now} until you type one of the two.", now=now))


def _rate(foreign: str, into: str, rate: float | None) -> None:
    """How much one unit of a currency is in another."""
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
    """At once where the rate is known, else as soon as it is typed."""
    known = scenario.rates().get(into)
    if into == now:
        address.choose("into", None)
        address.choose("currency", now)
    elif known:
        _convert(now, into, 1 / known)
    else:
        address.choose("into", into)


def _convert(now: str, into: str, rate: float) -> None:
    """Every amount that somebody typed, in another currency. rate: how much of it one unit of the
    present one is."""
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
    """In another currency without a rate: what was typed in the present one is no amount in it."""
    for each in ASSUMPTIONS:
        if each.name == "value_per_search":
            scenario.choose(each, value_per_search)
        elif each.money:
            address.choose(each.name, None)
    scenario.choose_amounts("thousand", {})
    scenario.choose_amounts("rate", {})
    address.choose("into", None)
    address.choose("currency", into)
