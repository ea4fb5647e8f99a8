"""Page Cost & ROI: cost, value and payoff of each system."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import all_of, enumerated, level_percent, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study import costs as study_costs
from rankdash.core.study.costs import Choice
from rankdash.core.study.labelling import only_estimates
from rankdash.core.study.pricing import priced
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.break_even import equal_rate
from rankdash.core.value.payoff import monthly_searches
from rankdash.core.value.prices import (
    ListedPrice,
    Load,
    Price,
    cost_per_thousand,
    crossover_tokens,
    title,
)
from rankdash.core.words.costs import reason
from rankdash.core.words.prices import lack, words
from rankdash.features.cost import (
    charts_prices,
    charts_worth,
    page_calculator,
    page_inputs,
    page_sensitivity,
)
from rankdash.features.cost.page_cards import answer, assumptions_table
from rankdash.features.cost.page_inputs import amount, as_csv
from rankdash.features.cost.words import figures
from rankdash.kit.html.tables import english, file_name
from rankdash.kit.widgets import address, narrow, pickers, redraw, scenario, sharing_link
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.scenario import currency
from rankdash.kit.widgets.text import markdown_safe, name_rows

_PARTS = "cost.parts"


def _examples(choice: study_costs.Choice) -> None:
    """Draw the button that uses or removes example values for an unset price or value."""
    shown = scenario.example_values()
    if shown:
        label, icon = _("Remove the example values"), ":material/undo:"
    elif choice.lacks_value and choice.option.gain is not None:
        label, icon = _("Use example values"), ":material/science:"
    else:
        return
    st.button(label, icon=icon, on_click=scenario.use_examples, args=(not shown,))


@st.fragment
def draw(study: Study, in_focus: str) -> None:
    """Draw the page. in_focus: the challenger that the answer is about."""
    prices = scenario.listed_prices()
    unknown = [key for key in scenario.price_keys().values() if key not in prices]
    address.lose("price", enumerated(unknown) if unknown else None)
    study = scenario.with_money(study)
    choices, assumed = study_costs.choices(study), scenario.assumptions()
    choice = next(each for each in choices if each.system == in_focus)
    # It stays visible only within its container, so it is placed outside the columns.
    with st.container(key=narrow.IN_SIGHT):
        answer(study, choice, assumed)
    inputs, picture = st.container(key=narrow.BELOW).columns([1, 3], gap="medium")
    with inputs:
        page_inputs.three(study, in_focus)
        _examples(choice)
    with picture:
        draw_picture(study, choices, choice)
    redraw.fold(
        _("More assumptions"),
        "cost.more",
        ":material/tune:",
        lambda: page_inputs.more(study, in_focus, prices),
    )
    redraw.fold(_("Enter exact values"), "cost.fields", ":material/edit:", page_inputs.exact)
    redraw.fold(
        _("Table of all systems"),
        "cost.table",
        ":material/table:",
        lambda: draw_table(study, choices),
    )
    st.session_state.setdefault(_PARTS, address.one("part") is not None)
    redraw.fold(
        _("Sensitivity, scenarios, price list"),
        _PARTS,
        ":material/query_stats:",
        lambda: _parts(study, choices, choice, prices),
    )
    st.download_button(
        _("Export the calculation (CSV)"),
        functools.partial(as_csv, english(study)),
        file_name(study.dataset.name, "cost", "csv"),
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
    )
    address.publish()
    sharing_link.follow()
    pickers.mark_sent()


def draw_picture(study: Study, choices: Sequence[Choice], choice: Choice) -> None:
    """Draw the chart and list the systems that are not in it."""
    drawing = charts_worth.worth(study, choice.system, page_inputs.period())
    if drawing is None:
        st.info(_("No system improves the metric enough to pay off."), icon=":material/info:")
        return
    st.markdown(f"**{drawing.title}**")
    widgets_charts.draw(drawing, key="cost.worth")
    absent: dict[str, list[str]] = {}
    for each in choices:
        why = charts_worth.absence(each, choice, scenario.assumptions())
        if why:
            absent.setdefault(why, []).append(markdown_safe(each.name, _LONGEST))
    if absent:
        systems = [
            _("{system} ({reason})", system=enumerated(names), reason=_why(why))
            for why, names in absent.items()
        ]
        st.caption(_("Not in the chart: {systems}.", systems=all_of(systems)))


def _why(why: str) -> str:
    return _("does not pay off at any price") if why == "no_gain" else reason(why)


def draw_table(study: Study, choices: Sequence[Choice]) -> None:
    """Draw a table with a row for each system."""
    head, rows = figures(study, choices, page_inputs.context(study))
    st.dataframe(
        pd.DataFrame(rows, columns=head),
        hide_index=True,
        row_height=name_rows([choice.name for choice in choices]),
        alt=_("Table of all systems"),
    )
    level = level_percent(study.statistics.level)
    st.caption(_("In brackets: {level} intervals.", level=level))


def _parts(
    study: Study, choices: Sequence[Choice], choice: Choice, prices: dict[str, ListedPrice]
) -> None:
    """Draw one of the parts at a time: sensitivity, scenarios, assumptions, price list and
    others."""
    assumed = scenario.assumptions()
    parts: dict[str, tuple[str, Callable[[], object]]] = {
        "swings": (
            _p("heading", "Sensitivity"),
            lambda: page_sensitivity.swings(study, choice, assumed),
        ),
        "map": (
            _p("heading", "Break-even"),
            lambda: page_sensitivity.where_it_pays(choice, assumed),
        ),
        "units": (_("Billing units"), lambda: draw_units(study, choice, prices)),
        "scenarios": (
            _p("heading", "Scenarios"),
            lambda: page_calculator.draw_scenarios(study, choice, assumed),
        ),
        "simple": (
            _("ROI calculator"),
            lambda: page_calculator.calculator(study, choice),
        ),
        "assumptions": (
            _p("heading", "Assumptions"),
            lambda: assumptions_table(study, assumed, choices),
        ),
        "prices": (_p("heading", "Prices"), lambda: page_inputs.edit_prices(prices)),
    }
    if only_estimates(study):
        # The ROI calculator needs means over the labels, which sampled labels do not have.
        del parts["simple"]
    part = pickers.pick_one(
        "part",
        list(parts),
        functools.partial(st.radio, horizontal=True),
        default="swings",
        label=_p("field", "Show"),
        label_visibility="collapsed",
        format_func=lambda name: parts[name][0],
    )
    parts[part or "swings"][1]()


# Comparison of billing units: by document length, and of a machine by traffic.

_SECONDS_PER_DAY = 86_400
_LONGEST = 120


def draw_units(study: Study, choice: Choice, prices: dict[str, ListedPrice]) -> None:
    """Draw the document length and the traffic at which the cheapest billing unit changes."""
    load = choice.load.load
    listed = [each for each in prices.values() if each.price.currency == currency()]
    shown = [each for each in listed if each.price.unit != "hour"]
    if not (float(load.document_tokens) > 0 and float(load.documents) > 0 and shown):
        st.info(_("Add texts, and prices that depend on their length."), icon=":material/info:")
    else:
        _by_length(load, shown)
    for each in listed:
        if each.price.unit == "hour":
            _by_traffic(study, choice, each, shown)


def _by_length(load: Load, shown: Sequence[ListedPrice]) -> None:
    mean_length = float(load.document_tokens)
    lengths = lengths_drawn(load, shown)
    costs, names = costs_drawn(load, shown, lengths)
    widgets_charts.draw(
        charts_prices.crossover_chart(lengths, costs, mean_length, names=names, money=amount),
        key="cost.units",
    )
    searches = next((each for each in shown if each.price.unit == "search"), None)
    for each in shown:
        if searches is None or each.price.unit == "search":
            continue
        flip = crossover_tokens(searches.price, each.price, load)
        if flip is not None:
            st.markdown(
                _(
                    "At **{n} tokens** or more per document, {units} is cheaper than {tokens}.",
                    n=number(flip, 0),
                    units=markdown_safe(words(searches), _LONGEST),
                    tokens=markdown_safe(words(each), _LONGEST),
                )
            )
    with st.expander(_("As a table")):
        st.dataframe(
            pd.DataFrame(
                {_("tokens per document"): lengths}
                | {names[key]: values for key, values in costs.items()}
            ).round(4),
            hide_index=True,
            alt=_("Cost of 1,000 searches at each document length"),
        )


def lengths_drawn(load: Load, shown: Sequence[ListedPrice]) -> list[float]:
    """Return the document lengths to draw: evenly spaced, the mean length, and both sides of each
    length at which a document is billed as one more chunk."""
    mean_length = float(load.document_tokens)
    longest = max(1000.0, 2 * mean_length)
    lengths = {*np.linspace(10, longest, 40).tolist(), mean_length}
    for each in shown:
        room = each.price.chunk_tokens - float(load.query_tokens)
        if each.price.unit == "search" and room >= 1:
            full = np.arange(room, longest, max(room, longest / 50))
            lengths |= {*full.tolist(), *(full + 1e-6).tolist()}
    return sorted(lengths)


def costs_drawn(
    load: Load, shown: Sequence[ListedPrice], lengths: Sequence[float]
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Return the costs of 1,000 searches at each length, and the names, both by the key of the
    price. Prices with the same costs share one line."""
    lines: dict[tuple[float, ...], list[ListedPrice]] = {}
    for each in shown:
        at = tuple(
            float(cost_per_thousand(each.price, Load(load.query_tokens, load.documents, length)))
            for length in lengths
        )
        lines.setdefault(at, []).append(each)
    costs = {group[0].key: list(at) for at, group in lines.items()}
    names = {
        group[0].key: " = ".join([*(title(each) for each in group[:-1]),
                                  words(group[-1])])
        for group in lines.values()
    }  # fmt: skip
    return costs, names


def _by_traffic(
    study: Study, choice: Choice, machine: ListedPrice, others: Sequence[ListedPrice]
) -> None:
    """Write the cost of a machine that runs 24/7, and the traffic at which it is cheaper than each
    price per search."""
    money = study.money or Money()
    run = study.run(choice.system) if choice.system in study.challengers else None
    billed = priced(machine, choice.load, choice.waiting, money, run)
    price, searches = billed.price, monthly_searches(money.assumptions)
    traffic = money.assumptions.searches_per_day
    # With a share of a machine, whole machines are not paid for.
    if money.shared or not searches:
        return
    name = markdown_safe(words(machine), _LONGEST)
    if price is None or price.searches_per_second is None or billed.served is None:
        st.markdown(_("**{name}**: {reason}.", name=name, reason=lack(billed)))
        return
    [machines] = billed.machines
    measured = billed.served.way != "listed"
    cost = machines.cost_per_month(traffic)
    speed = _("measured with this run") if measured else _("from the price list, not measured")
    text = ngettext(
        "**{name}**, running 24/7: {n} machine at {rate} searches per second ({speed}) costs "
        "{cost} per month, or {thousand} for 1,000 of your searches.",
        "**{name}**, running 24/7: {n} machines at {rate} searches per second ({speed}) cost "
        "{cost} per month, or {thousand} for 1,000 of your searches.",
        machines.needed(traffic),
        name=name,
        rate=number(price.searches_per_second, 1),
        speed=speed,
        cost=amount(cost),
        thousand=amount(cost / searches * 1000),
    )
    rows = [text]
    same: dict[float, list[str]] = {}
    for each in others:
        paid = float(cost_per_thousand(each.price, choice.load.load))
        if not math.isnan(paid):
            same.setdefault(paid, []).append(markdown_safe(words(each), _LONGEST))
    for paid, names in same.items():
        rate = equal_rate(_always_on(price), paid)
        if rate is not None and rate <= price.searches_per_second * price.utilisation:
            rows.append(
                ngettext(
                    "cheaper than {other} at **{n} search per day** or more",
                    "cheaper than {other} at **{n} searches per day** or more",
                    round(rate * _SECONDS_PER_DAY),
                    other=" = ".join(names),
                )
            )
        elif rate is not None:
            rows.append(
                _(
                    "never cheaper than {other}: one machine cannot handle that load",
                    other=" = ".join(names),
                )
            )
    st.markdown("\n- ".join(rows))


def _always_on(price: Price) -> Price:
    """Return the price with a utilisation of 1: a machine that runs 24/7 is paid for every hour."""
    return replace(price, utilisation=1.0)
