"""The scenario of the page Cost, from the address and the workspace: the value of a search, and the
cost of each system. Other pages show a price, and reports include all of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.rerankers.remote.connection import Estimate
from rankdash.core.study.study import Study
from rankdash.core.study.systems import MACHINES, Money
from rankdash.core.value.assumptions import ASSUMPTIONS, DOLLARS, Assumption, Assumptions
from rankdash.core.value.prices import MOST_AMOUNT, ListedPrice, Price, parse_prices, shipped
from rankdash.core.value.targets import Goals, Profile, Targets
from rankdash.core.value.targets import shipped as shipped_targets
from rankdash.kit.widgets import address
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import markdown_safe

CURRENCIES = ("USD", "EUR", "GBP", "CNY", "JPY", "INR")
SAVED_PRICES = "prices"
_YES = "yes"


def with_money(study: Study) -> Study:
    """Return the study with prices and assumptions, and with the prices shown for comparison."""
    prices = listed_prices()
    money = Money(
        assumptions=assumptions(),
        prices={**chosen_prices(study, prices), **typed_prices(study)},
        given=frozenset(each.name for each in ASSUMPTIONS if changed(each)),
        currency=currency(),
        rates=rates(),
        also=tuple(prices[key] for key in address.several("also") if key in prices),
        listed=tuple(prices.values()),
        shared=address.one("machines") == MACHINES[1],
        example=example_values(),
    )
    return replace(study, money=money)


def value_is_set() -> bool:
    """Return whether the user set the value of a search."""
    return any(each.name == "value_per_search" and changed(each) for each in ASSUMPTIONS)


def example_values() -> bool:
    """Return whether example values replace the price and value that the user did not set."""
    return address.one("example") == _YES


def use_examples(use: bool) -> None:
    """Use example values, or stop using them."""
    address.choose("example", _YES if use else None)


def currency() -> str:
    """Return the currency of every amount on the page. The currency in a link is used only if an
    exchange rate for the defaults, or the value of a search, is set; else dollars."""
    chosen = address.one("currency")
    if chosen not in CURRENCIES:
        address.lose("currency", chosen)
        return DOLLARS
    convertible = DOLLARS in rates() or address.one("value_per_search") is not None
    return chosen if convertible else DOLLARS


def assumptions() -> Assumptions:
    """Return the assumptions in the address; a number out of range is replaced by its default, and
    reported."""
    values = {}
    for each in ASSUMPTIONS:
        typed = address.one(each.name)
        value = number_of(each, typed)
        address.lose(each.name, typed if value is None else None)
        values[each.name] = default_of(each) if value is None else value
    return Assumptions(**values)


def default_of(each: Assumption) -> float:
    """Return the default of an assumption, in the currency of the page."""
    return each.default_at(1.0 if currency() == DOLLARS else rates().get(DOLLARS))


def changed(each: Assumption) -> bool:
    """Return whether the user set the assumption."""
    return address.one(each.name) not in (None, address.FIELDS[each.name])


def choose(each: Assumption, value: float) -> None:
    """Set an assumption. A number that equals the default was still set by the user, so it is
    written differently from the default, which an address omits."""
    text = f"{value:.10g}"
    if text == address.FIELDS[each.name]:
        text += "0" if "." in text else ".0"
    address.choose(each.name, text)


def number_of(each: Assumption, text: str | None) -> float | None:
    """Return a number in the address; None if it is invalid or out of range."""
    try:
        return None if text is None else float(each.parse(text))
    except RankdashError:
        return None


def listed_prices() -> dict[str, ListedPrice]:
    """Return key → price: the user's saved list, or else the shipped examples."""
    text = workspace().setting(SAVED_PRICES)
    if not text:
        return {each.key: each for each in shipped()}
    try:
        return {each.key: each for each in parse_prices(text.encode(), _("saved prices"))}
    except RankdashError as error:
        st.warning(markdown_safe(error_text(error), 300), icon=":material/warning:")
        return {each.key: each for each in shipped()}


def chosen_prices(study: Study, prices: Mapping[str, ListedPrice]) -> dict[str, ListedPrice]:
    """Return challenger → the price in the list that was chosen for it."""
    keys = price_keys()
    return {each: prices[keys[each]] for each in study.challengers if keys.get(each) in prices}


def price_keys() -> dict[str, str]:
    """Return system → key of its price, from the address."""
    return dict(part.split("=", 1) for part in address.several("price") if "=" in part)


def typed_prices(study: Study) -> dict[str, ListedPrice]:
    """Return challenger → the typed price of 1,000 searches."""
    return {
        system: ListedPrice(
            "typed",
            _("Entered price"),
            "",
            Price(amount, "flat", currency()),
            _("entered on this page"),
            datetime.now(UTC).date(),
        )
        for system, amount in amounts("thousand").items()
        if system in study.challengers
    }


def rates() -> dict[str, float]:
    """Return currency → the typed exchange rate of one unit into the chosen currency."""
    return {each: rate for each, rate in amounts("rate").items() if rate > 0}


def amounts(field: str) -> dict[str, float]:
    """Return name → amount, of a field of the address; invalid amounts are omitted and reported."""
    by_name = {}
    for part in address.several(field):
        name, _equals, text = part.partition("=")
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if 0 <= amount <= MOST_AMOUNT:
            by_name[name] = amount
        else:
            address.lose(field, part)
    return by_name


def choose_amount(field: str, name: str, amount: float | None) -> None:
    """Set one of `amounts`; None clears it."""
    others = {each: value for each, value in amounts(field).items() if each != name}
    choose_amounts(field, others if amount is None else {**others, name: amount})


def choose_amounts(field: str, by_name: Mapping[str, float]) -> None:
    """Set all amounts of a field."""
    address.choose(field, [f"{name}={amount:.10g}" for name, amount in by_name.items()] or None)


# The estimated cost of calls to a service, as the parts of a line.


def parts(estimate: Estimate, host: str) -> list[str]:
    """Return phrases with the estimated calls, tokens and, last, the price of using a service, safe
    for Markdown.

    host: of the service, unescaped.
    """
    phrases = [
        ngettext(
            "about {n} call to {host}",
            "about {n} calls to {host}",
            round(estimate.calls),
            host=markdown_safe(host, 60),
        ),
        _("{n} input tokens", n=rounded(estimate.tokens_in)),
    ]
    if estimate.tokens_out:
        phrases.append(_("{n} output tokens", n=rounded(estimate.tokens_out)))
    if math.isnan(estimate.dollars):
        phrases.append(_("price unknown: enter it under More settings"))
    else:
        phrases.append(_("about {amount}", amount=dollars(estimate.dollars)))
    return phrases


def dollars(amount: float) -> str:
    # A bare dollar sign opens a formula in Markdown.
    return "\\$" + number(amount, 2 if amount >= 1 else 4)


def rounded(tokens: float) -> str:
    """Return the number rounded to two figures, because it is an estimate."""
    if tokens <= 0:
        return number(0, 0)
    digits = 1 - math.floor(math.log10(tokens))
    return number(round(tokens, digits), 0)


# The chosen profile of targets, from the profiles saved in the workspace.

_SAVED_TARGETS = "targets"


def saved_targets() -> Targets:
    """Return the saved targets with the shipped ones; if they cannot be read, only the shipped
    ones, with a warning."""
    text = workspace().setting(_SAVED_TARGETS)
    if not text:
        return shipped_targets()
    try:
        targets = Targets.from_json(text)
    except RankdashError as error:
        st.warning(markdown_safe(error_text(error), 300), icon=":material/warning:")
        return shipped_targets()
    for key, profile in shipped_targets().profiles.items():
        if key not in targets.profiles:
            targets = targets.with_profile(key, profile)
    return targets


def save_targets(targets: Targets, key: str, profile: Profile) -> None:
    """Save the targets with one profile changed."""
    workspace().set_setting(_SAVED_TARGETS, targets.with_profile(key, profile).to_json())


def reset_targets() -> None:
    """Restore the shipped targets."""
    workspace().set_setting(_SAVED_TARGETS, "")


def chosen_goals() -> Goals | None:
    """Return the profile chosen by the user or a link; None without one."""
    key = address.one("profile")
    if key is None:
        return None
    targets = saved_targets()
    return Goals(targets, key) if key in targets.profiles else None
