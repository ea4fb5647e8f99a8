"""Inputs of the calculation: assumptions, prices and currency."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.errors import DataError, RankdashError
from rankdash.core.base.i18n import error_text, quantity, speaking
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import distinct
from rankdash.core.study.costs import Choice, hit_title
from rankdash.core.study.pricing import bill
from rankdash.core.study.study import Study
from rankdash.core.study.systems import MACHINES, Money
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumption, Assumptions
from rankdash.core.value.payoff import Amount
from rankdash.core.value.prices import MOST_AMOUNT, UNITS, ListedPrice, parse_prices, to_json
from rankdash.core.words import costs as cost_words
from rankdash.core.words import prices
from rankdash.core.words.costs import MoneyContext, Period, month, year
from rankdash.core.words.prices import money, of, symbol, words
from rankdash.features.cost import report
from rankdash.features.cost.page_currency import choose_currency
from rankdash.features.cost.words import assumption_table
from rankdash.kit.html.tables import file_name
from rankdash.kit.widgets import address, dialogs, pickers, scenario
from rankdash.kit.widgets.scenario import (
    SAVED_PRICES,
    assumptions,
    changed,
    choose,
    choose_amount,
    currency,
    default_of,
    number_of,
    price_keys,
    typed_prices,
)
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import name_safe
from rankdash.kit.widgets.uploader import uploader

_UPLOAD = "cost.prices.upload"
_LARGEST_FILE = 1_000_000
_STEPS = (1, 2, 3, 5)
_OPEN = ("traffic", "value")
_FIRST = ("searches_per_day", "value_per_search")
_COLUMNS = (("traffic",), ("value", "effort", "waiting"), ("answers", "support"))
_BY_NAME = {each.name: each for each in ASSUMPTIONS}
_PRICES = (0.0, *(float(f"{step}e{power}") for power in range(-3, 3) for step in _STEPS))
# Marks "not set": prices and values are never below 0.
_NOT_SET = -1.0


def take_over(scenario: Assumptions) -> None:
    """Set all assumptions to their values in a scenario."""
    for each in ASSUMPTIONS:
        choose(each, getattr(scenario, each.name))


def restore() -> None:
    """Restore the default of every assumption."""
    for each in ASSUMPTIONS:
        address.choose(each.name, None)


def basics() -> None:
    """Draw only the sliders for traffic and value."""
    for each in ASSUMPTIONS:
        if each.group in _OPEN:
            _slider(each)


def three(study: Study, system: str) -> None:
    """Draw the three most important inputs: price of the system in focus, searches per day, and
    value of a search. Price and value are not set by default."""
    now = bill(study, system)
    per_thousand = None if now is None else now.per_thousand

    def priced(price: float | None) -> None:
        if price is None:
            choose_listed(system, "")
        choose_amount("thousand", system, price)

    _settable(
        f"cost.first.{system}",
        _("Price of 1,000 searches ({currency})", currency=symbol(currency())),
        None if now is None or now.unset else per_thousand,
        _PRICES,
        per_thousand,
        priced,
        help=_("Cost of 1,000 searches with {name}.", name=name_safe(study.name(system))),
    )
    searches, value = (_BY_NAME[each] for each in _FIRST)
    _slider(searches)
    _settable(
        f"cost.{value.name}",
        _("{title} ({unit})", title=_p("setting", value.title), unit=unit(value)),
        number_of(value, address.one(value.name)) if changed(value) else None,
        list(decades(value)),
        default_of(value),
        lambda worth: address.choose(value.name, None) if worth is None else choose(value, worth),
        help=_(value.help),
    )


def _settable(
    key: str,
    label: str,
    value: float | None,
    steps: Sequence[float],
    example: float | None,
    choose_value: Callable[[float | None], None],
    **settings: str,
) -> None:
    """Draw a slider for an amount that is not set by default.

    example: the amount that the page uses while it shows example values; "not set" is then placed
    next to similar amounts.
    """
    options = [_NOT_SET, *sorted({*steps, *([] if value is None else [value])})]
    unset = _("not set")
    if value is None and example is not None and scenario.example_values():
        unset = _("example: {amount}", amount=amount(example))
        options.sort(key=lambda each: (example, 0) if each == _NOT_SET else (each, 1))
    words = distinct({str(each): amount(each) for each in options} | {str(_NOT_SET): unset})

    def moved() -> None:
        now = st.session_state[key]
        choose_value(None if now == _NOT_SET else now)

    pickers.show(st.select_slider, key, _NOT_SET if value is None else value, moved)(
        label, options, format_func=lambda each: words[str(each)], **settings
    )


def more(study: Study, in_focus: str, prices: dict[str, ListedPrice]) -> None:
    """Draw all other assumptions, the choice of a price and the currency."""
    titles = {
        "traffic": _("Traffic and price"),
        "value": _("Value of a search"),
        "effort": _("Costs in addition to the price"),
        "waiting": _("Loss from latency"),
        "answers": _("An LLM that reads the passages"),
        "support": _("Tickets and working time"),
    }
    for column, groups in zip(st.columns(3, gap="medium"), _COLUMNS, strict=True):
        with column:
            for group in groups:
                st.markdown(f"**{titles[group]}**")
                if group == "traffic":
                    choose_price(study, in_focus, prices)
                    _choose_machines()
                for each in ASSUMPTIONS:
                    if each.group == group and each.name not in _FIRST:
                        _slider(each)
            if groups is _COLUMNS[0]:
                with st.popover(_("Prices of other systems"), width="stretch"):
                    other_prices(study, in_focus, prices)
                choose_currency(prices.values())
                choose_period()
    st.button(_("Restore the defaults"), icon=":material/undo:", on_click=restore)


def _choose_machines() -> None:
    titles = {"whole": _("Whole machines"), "share": _("A share of a machine")}
    pickers.pick_one(
        "machines",
        list(MACHINES),
        st.radio,
        default=MACHINES[0],
        label=_("Machines billed per hour"),
        format_func=titles.__getitem__,
        help=_(
            "Whole machines run 24/7 and serve nothing else. Choose a share if others pay for the "
            "remaining hours."
        ),
    )


def unit(each: Assumption) -> str:
    """Return the unit of an assumption; "" for shares (percent), and if the title contains it."""
    return prices.unit(each, currency())


def _slider(each: Assumption) -> None:
    value = number_of(each, address.one(each.name))
    value = default_of(each) if value is None else value
    low, high = min(each.low, value), max(each.high, value)
    usual = (low, high) == (each.low, each.high)
    # Other ends need another key: a widget must not get a value outside its ends.
    key = f"cost.{each.name}" if usual else f"cost.{each.name}.{low:g}.{high:g}"
    label = (
        _("{title} ({unit})", title=_p("setting", each.title), unit=unit(each))
        if unit(each)
        else _p("setting", each.title)
    )

    def changed() -> None:
        choose(each, st.session_state[key])

    if each.logarithmic:
        pickers.show(st.select_slider, key, value, changed)(
            label, sorted({*decades(each), value}), format_func=quantity, help=_(each.help)
        )
    else:
        pickers.show(st.slider, key, float(value), changed)(
            label,
            float(low),
            float(high),
            step=float(each.step),
            format="percent" if each.unit == "share" else written(each.step),
            help=_(each.help),
        )


def written(step: float) -> str:
    """Return a number format with as many decimals as the step of a slider."""
    return f"%.{max(-math.floor(math.log10(step)), 0)}f"


def decades(each: Assumption) -> Iterable[float]:
    """Yield round amounts for a slider, within its range: 1, 2, 3 and 5 times each power of ten.
    The last one is its lower end."""
    start = each.low if each.low > 0 else each.step
    for power in range(math.floor(math.log10(start)), math.ceil(math.log10(each.high)) + 1):
        for step in _STEPS:
            number = float(f"{step}e{power}")
            if each.low <= number <= each.high:
                yield number
    yield float(each.low)


def exact() -> None:
    """Draw a form with a number field for every assumption."""
    now = assumptions()
    with st.form("cost.exact", border=False):
        typed = {
            each.name: st.number_input(
                _(
                    "{title} ({unit})",
                    title=_p("setting", each.title),
                    unit=unit(each) or _p("unit", each.unit),
                ),
                value=float(getattr(now, each.name)),
                format="%.10g",
                key=f"cost.exact.{each.name}.{getattr(now, each.name)}",
            )
            for each in ASSUMPTIONS
        }
        if st.form_submit_button(_p("button", "Apply"), type="primary"):
            try:
                scenario = Assumptions(**typed)
            except DataError as error:
                dialogs.show_error(error_text(error))
                return
            for each in ASSUMPTIONS:
                if getattr(scenario, each.name) != getattr(now, each.name):
                    choose(each, getattr(scenario, each.name))
            st.rerun()


def choose_listed(system: str, key: str) -> None:
    """Choose a listed price for a system; "" for none."""
    selected = {**price_keys(), system: key}
    address.choose("price", [f"{each}={name}" for each, name in selected.items() if name] or None)


def choose_price(study: Study, system: str, prices: dict[str, ListedPrice]) -> None:
    """Draw the price of a challenger: a listed price, or a typed price of 1,000 searches."""
    key, options, keys = f"cost.price.{system}", ["", *prices], price_keys()
    recorded = bill(replace(study, money=replace(study.money or Money(), prices={})), system)

    def chosen() -> None:
        choose_listed(system, st.session_state[key])
        choose_amount("thousand", system, None)

    # A list identifies options by their text, so texts must be unique.
    usual = "–" if recorded is None else of(recorded)
    # Uploaded rankings recorded no price: show only the reason.
    if recorded is not None and recorded.lack != "price":
        usual = _("As recorded: {price}", price=usual)
    price = keys[system] if keys.get(system) in prices else ""
    pickers.show(st.selectbox, key, price, chosen, options)(
        _("Price of {name}", name=name_safe(study.name(system))),
        options,
        format_func=distinct(
            {name: words(prices[name]) if name else usual for name in options}
        ).__getitem__,
    )
    typed, now = typed_prices(study).get(system), bill(study, system)
    amount = f"cost.thousand.{system}.{currency()}"

    def typed_anew() -> None:
        choose_amount("thousand", system, st.session_state[amount])

    pickers.show(st.number_input, amount, typed.price.amount if typed else None, typed_anew)(
        _("Price of 1,000 searches ({currency})", currency=symbol(currency())),
        min_value=0.0,
        max_value=MOST_AMOUNT,
        format="%.10g",
        placeholder="–" if now is None else money(now.per_thousand, currency()),
        help=_("Enter your own price. If empty, the price above is used."),
    )


def other_prices(study: Study, in_focus: str, prices: dict[str, ListedPrice]) -> None:
    """Draw the prices of the other challengers, and the choice of other prices to compare."""
    for system in study.challengers:
        if system != in_focus:
            choose_price(study, system, prices)
    pickers.pick_several(
        "also",
        list(prices),
        st.multiselect,
        label=_("Other prices to compare"),
        placeholder=_p("choice", "none"),
        format_func=lambda name: words(prices[name]),
    )


def edit_prices(prices: dict[str, ListedPrice]) -> None:
    """Draw the price list to edit, export, import and restore; read-only: only export it."""
    if read_only():
        st.dataframe(pd.DataFrame([_row(each) for each in prices.values()]), hide_index=True)
        _offer_prices(prices)
        return
    edited = st.data_editor(
        pd.DataFrame([_row(each) for each in prices.values()]),
        num_rows="dynamic",
        hide_index=True,
        placeholder="–",
        key="cost.prices.table",
        # The columns that are edited most come first.
        column_order=(
            "provider", "model", "amount", "currency", "unit", "source", "as_of",
            "template_tokens", "chunk_tokens", "searches_per_second", "utilisation", "key",
        ),
        column_config={
            "key": st.column_config.TextColumn(_p("column", "key"), required=True),
            "provider": st.column_config.TextColumn(_p("column", "provider"), required=True),
            "model": st.column_config.TextColumn(_p("column", "model")),
            "unit": st.column_config.SelectboxColumn(
                _p("column", "unit"), options=list(UNITS), required=True,
                help="; ".join(f"{key}: {_p('unit', meaning)}" for key, meaning in UNITS.items()),
            ),
            "amount": st.column_config.NumberColumn(
                _p("column", "amount"), min_value=0.0, required=True
            ),
            "currency": st.column_config.TextColumn(_p("column", "currency"), max_chars=3),
            "template_tokens": st.column_config.NumberColumn(_("template tokens"), min_value=0.0),
            "chunk_tokens": st.column_config.NumberColumn(_("max tokens per chunk"), min_value=0),
            "searches_per_second": st.column_config.NumberColumn(
                _("searches per second"), help=_("If empty, the value measured by the run is used.")
            ),
            "utilisation": st.column_config.NumberColumn(
                _p("price", "utilisation"), min_value=0.0, max_value=1.0, format="percent"
            ),
            "source": st.column_config.TextColumn(_("price source"), required=True),
            "as_of": st.column_config.DateColumn(_("price date"), required=True),
        },
    )  # fmt: skip
    save, export, back = st.columns(3)
    with export:
        _offer_prices(prices)
    if save.button(_p("button", "Save"), type="primary", key="cost.prices.save", width="stretch"):
        rows = [entry(row) for row in edited.to_dict("records")]
        _keep_prices(json.dumps({"prices": rows}).encode(), _("the table"))
    st.caption(
        _("A price is marked as an example until you change both its amount and its source.")
    )
    back.button(
        _("Restore the built-in price list"),
        key="cost.prices.reset",
        width="stretch",
        on_click=lambda: workspace().set_setting(SAVED_PRICES, ""),
    )
    files = uploader(_("Import a price list (TOML or JSON)"), _UPLOAD, type=["toml", "json"])
    if files and st.button(_p("button", "Import"), key="cost.prices.import"):
        [file] = files
        if file.size > _LARGEST_FILE:
            text = _("The price list is larger than {limit} MB.", limit=_LARGEST_FILE // 10**6)
            st.error(text, icon=":material/error:")
            return
        _keep_prices(file.data, file.name)


def _offer_prices(prices: dict[str, ListedPrice]) -> None:
    st.download_button(
        _p("button", "Export"),
        to_json(list(prices.values())),
        file_name("", "prices", "json"),
        "application/json",
        icon=":material/download:",
        width="stretch",
    )


def _keep_prices(content: bytes, file: str) -> None:
    try:
        workspace().set_setting(SAVED_PRICES, to_json(parse_prices(content, file)))
    except RankdashError as error:
        dialogs.show_error(error_text(error))
    else:
        st.rerun()


def _row(each: ListedPrice) -> dict[str, Any]:
    price = each.price
    return {
        "key": each.key,
        "provider": each.provider,
        "model": each.model,
        "unit": price.unit,
        "amount": price.amount,
        "currency": price.currency,
        "template_tokens": price.template_tokens,
        "chunk_tokens": price.chunk_tokens,
        "searches_per_second": price.searches_per_second or math.nan,
        "utilisation": price.utilisation,
        "source": each.source,
        "as_of": each.as_of,
    }


def entry(row: dict[Any, Any]) -> dict[str, object]:
    """Return a row of the edited price table as an entry of a price list. Empty cells are
    omitted."""
    fields: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, date):
            fields[str(name)] = value.isoformat()[:10]
        elif value is not None and value == value:
            fields[str(name)] = value
    return fields


# Terms of the calculation on the page: period and currency.

_MONTH, _YEAR = "month", "year"


def period() -> Period:
    """Return the period in the address; the default is a month."""
    return year() if address.one("per") == _YEAR else month()


def choose_period() -> None:
    titles = {_MONTH: _("per month"), _YEAR: _("per year")}
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
        metric=study.title,
        hit=hit_title(study),
        level=study.statistics.level,
        baseline=study.name(study.baseline),
        period=period(),
        safe=name_safe,
    )


def amount(value: float | None) -> str:
    return money(value, currency())


def cell(estimate: Amount, written: str = "money") -> tuple[str, str]:
    """Return (value, interval) of an estimate; if it has no value, (reason, "")."""
    return cost_words.cell(estimate, currency(), written)


def assumption_rows(
    study: Study, scenario: Assumptions, choices: Sequence[Choice]
) -> list[tuple[str, str, str]]:
    """Return (title, value, meaning) of every assumption and price in use."""
    return assumption_table(scenario, choices, currency(), hit_title(study))


def as_csv(named: Study) -> bytes:
    """Return options and assumptions in English for a spreadsheet. named: from `tables.english`."""
    with speaking("en"):
        (part,) = report.money_files(named)
        return part.make()
