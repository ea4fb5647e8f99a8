"""Cost & ROI: what each system costs and is worth, and whether it pays."""

from __future__ import annotations

import functools
from collections.abc import Callable

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.drawn import only_estimates
from rankdash.core.study.study import Study
from rankdash.features.cost import (
    costs,
    page_calculator,
    page_inputs,
    page_sensitivity,
    page_units,
)
from rankdash.features.cost.page_cards import answer, assumptions_table, draw_cards, grounds
from rankdash.features.cost.page_terms import (
    as_csv,
    choose_period,
)
from rankdash.kit.html.tables import english, file_name
from rankdash.kit.widgets import address, narrow, pickers, scenario, sharing_link

_OF_MEANS = ("options", "depth", "simple")


def _examples(choice: costs.Choice) -> None:
    """Offer example values where price or value is not set, and the way back."""
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
    """in_focus: the challenger that the answer is about."""
    prices = scenario.listed_prices()
    # It stays in sight only within what holds it: beside the columns, not in one of them.
    headline = st.container(border=True, key=narrow.IN_SIGHT)
    sliders, results = st.container(key=narrow.BELOW).columns([1, 3], gap="medium")
    study = scenario.with_money(study)
    with sliders:
        page_inputs.draw(study, in_focus, prices)
        with st.expander(_("Other prices and currency"), icon=":material/sell:"):
            page_inputs.other_prices(study, in_focus, prices)
            page_inputs.choose_currency(prices.values())
        choose_period()
    choices = costs.choices(study)
    assumed = scenario.assumptions()
    choice = next(each for each in choices if each.system == in_focus)
    with headline:
        answer(study, choice, assumed)
        _examples(choice)
    with results:
        grounds(study, choice, assumed)
        draw_cards(study, choices, assumed, in_focus)
        parts: dict[str, tuple[str, Callable[[], object]]] = {
            "swings": (
                _("Sensitivity"),
                lambda: page_sensitivity.swings(study, choice, assumed),
            ),
            "map": (_("Break-even"), lambda: page_sensitivity.where_it_pays(choice, assumed)),
            "options": (
                _("Trade-off: quality, cost, latency"),
                lambda: page_sensitivity.options(study, choices, assumed),
            ),
            "depth": (_("Reranking depth"), lambda: page_sensitivity.depths(study, choice)),
            "units": (_("Billing units"), lambda: page_units.draw(study, choice, prices)),
            "scenarios": (
                _("Scenarios"),
                lambda: page_calculator.draw_scenarios(study, choice, assumed),
            ),
            "simple": (
                _("ROI calculator"),
                lambda: page_calculator.calculator(study, choice),
            ),
            "assumptions": (
                _("Assumptions"),
                lambda: assumptions_table(study, assumed, choices),
            ),
            "prices": (_("Prices"), lambda: page_inputs.edit_prices(prices)),
        }
        if only_estimates(study):
            # Of these a mean over the labels is a part.
            parts = {name: parts[name] for name in parts if name not in _OF_MEANS}
        part = pickers.pick_one(
            "part",
            list(parts),
            functools.partial(st.radio, horizontal=True),
            default="swings",
            label=_("Show"),
            label_visibility="collapsed",
            format_func=lambda name: parts[name][0],
        )
        parts[part or "swings"][1]()
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
    pickers.shown()
