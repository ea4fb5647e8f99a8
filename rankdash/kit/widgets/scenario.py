"""The scenario of the Cost page, as the address and the workspace have it: what a search is worth,
and what each system costs. Other pages mention a price, and reports take all of it over."""

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
    """The study with prices and assumptions, and with the prices that are shown beside them."""
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
    """Whether the user set what a search is worth."""
    return any(each.name == "value_per_search" and changed(each) for each in ASSUMPTIONS)


def example_values() -> bool:
    """Whether example values stand in for price and value that the user did not set."""
    return address.one("example") == _YES


def use_examples(use: bool) -> None:
    """Let example values stand in, or no longer."""
    address.choose("example", _YES if use else None)


def currency() -> str:
    """Of every amount on the page. What a link says counts where amounts can be in it: where a rate
    of exchange for the defaults is typed, or what a search is worth."""
    chosen = address.one("currency")
    if chosen not in CURRENCIES:
        address.lose("currency", chosen)
        return DOLLARS
    known = DOLLARS in rates() or address.one("value_per_search") is not None
    return chosen if known else DOLLARS


def assumptions() -> Assumptions:
    """What the address says; a number that is out of range is left at its default, and said."""
    values = {}
    for each in ASSUMPTIONS:
        typed = address.one(each.name)
        value = number_of(each, typed)
        address.lose(each.name, typed if value is None else None)
        values[each.name] = default_of(each) if value is None else value
    return Assumptions(**values)


def default_of(each: Assumption) -> float:
    """What it is where nobody set it, in the currency of the page."""
    return each.default_at(1.0 if currency() == DOLLARS else rates().get(DOLLARS))


def changed(each: Assumption) -> bool:
    """Whether somebody set it."""
    return address.one(each.name) not in (None, address.FIELDS[each.name])


def choose(each: Assumption, value: float) -> None:
    """Set an assumption. A number that happens to be the default was set all the same, so it is
    written in another way than the default, which an address leaves out."""
    text = f"{value:.10g}"
    if text == address.FIELDS[each.name]:
        text += "0" if "." in text else ".0"
    address.choose(each.name, text)


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


def chosen_prices(study: Study, prices: Mapping[str, ListedPrice]) -> dict[str, ListedPrice]:
    """Challenger → the price of the list that somebody chose for it."""
    keys = price_keys()
    return {each: prices[keys[each]] for each in study.challengers if keys.get(each) in prices}


def price_keys() -> dict[str, str]:
    """System → key of its price, as the address has them."""
    return dict(part.split("=", 1) for part in address.several("price") if "=" in part)


def typed_prices(study: Study) -> dict[str, ListedPrice]:
    """Challenger → what somebody typed that 1,000 searches cost."""
    return {
        system: ListedPrice(
            "typed", _("Typed price"), "", Price(amount, "flat", currency()), _("typed on this "
            "page"), datetime.now(UTC).date(),
        )
        for system, amount in amounts("thousand").items()
        if system in study.challengers
    }  # fmt: skip


def rates() -> dict[str, float]:
    """Currency → how much of the chosen one somebody typed that one unit of it is."""
    return {each: rate for each, rate in amounts("rate").items() if rate > 0}


def amounts(field: str) -> dict[str, float]:
    """Name → amount, of a field of the address; what is no amount is left out, and said."""
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
    """Set all of them."""
    address.choose(field, [f"{name}={amount:.10g}" for name, amount in by_name.items()] or None)


# What calls to a service would come to, as the parts of a line.


def parts(estimate: Estimate, host: str) -> list[str]:
    """Calls, tokens and dollars, safe for Markdown. host: of the service, as it is."""
    phrases = [
        ngettext(
            "about {n} call to {host}",
            "about {n} calls to {host}",
            round(estimate.calls),
            host=markdown_safe(host, 60),
        ),
        _("{n} tokens read", n=rounded(estimate.tokens_in)),
    ]
    if estimate.tokens_out:
        phrases.append(_("{n} written", n=rounded(estimate.tokens_out)))
    if math.isnan(estimate.dollars):
        phrases.append(_("price not known: type it under More settings"))
    else:
        phrases.append(_("about {amount}", amount=dollars(estimate.dollars)))
    return phrases


def dollars(amount: float) -> str:
    # A bare dollar sign opens a formula in Markdown.
    return "\\$" + number(amount, 2 if amount >= 1 else 4)


def rounded(tokens: float) -> str:
    """Two figures: more would claim to know."""
    if tokens <= 0:
        return number(0, 0)
    digits = 1 - math.floor(math.log10(tokens))
    return number(round(tokens, digits), 0)


# The profile of targets that was chosen, from those that were saved in the workspace.

_SAVED_TARGETS = "targets"


def saved_targets() -> Targets:
    """Those that a person edited, and what is shipped beside them; where they cannot be read, the
    shipped ones, and a line that says so."""
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
    """Back to the shipped targets."""
    workspace().set_setting(_SAVED_TARGETS, "")


def chosen_goals() -> Goals | None:
    """The profile that a person or a link chose; None where none was."""
    key = address.one("profile")
    if key is None:
        return None
    targets = saved_targets()
    return Goals(targets, key) if key in targets.profiles else None
