"""The calculator: sliders on the left, the answer and what it rests on at the right.

One fragment: a slider redraws it and nothing else of the page.
"""

from __future__ import annotations

import functools

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.cost import (
    cost_cards,
    cost_depth,
    cost_export,
    cost_inputs,
    cost_options,
    cost_period,
    cost_prices,
    cost_scenarios,
    cost_sensitivity,
    cost_simple,
    cost_units,
)
from rankdash.ui.sidebar import sharing_link
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import address


@st.fragment
def draw(view: View, looked_at: str) -> None:
    """looked_at: the challenger that the answer is about."""
    prices = cost_prices.listed()
    sliders, results = st.columns([1, 3], gap="medium")
    with sliders:
        with st.expander(_("Prices and currency"), icon=":material/sell:"):
            chosen, others = cost_prices.choose(view, prices)
            cost_inputs.choose_currency()
        cost_period.draw()
        scenario = cost_inputs.draw()
    choices = cost_options.build(view, scenario, prices, chosen, others)
    choice = next(each for each in choices if each.system == looked_at)
    with results:
        cost_cards.answer(view, choice, scenario)
        cost_cards.draw(view, choices, scenario, looked_at)
        parts = {
            "swings": (
                _("What it hangs on"),
                lambda: cost_sensitivity.swings(view, choice, scenario),
            ),
            "map": (_("Where it pays"), lambda: cost_sensitivity.where_it_pays(choice, scenario)),
            "options": (
                _("Quality, price, waiting"),
                lambda: cost_sensitivity.options(view, choices, scenario),
            ),
            "depth": (_("How deep"), lambda: cost_depth.draw(view, choice, scenario)),
            "units": (_("Billing units"), lambda: cost_units.draw(choice, scenario, prices)),
            "scenarios": (
                _("Scenarios"),
                lambda: cost_scenarios.draw(view, choice, scenario),
            ),
            "simple": (_("Simple ROI"), lambda: cost_simple.draw(view, choice, scenario)),
            "assumptions": (
                _("Assumptions"),
                lambda: cost_cards.assumptions_table(view, scenario, choices),
            ),
            "prices": (_("Prices"), lambda: cost_prices.edit(prices)),
        }
        part = address.pick_one(
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
            # Made here: a download that is made later has neither language nor currency.
            cost_export.as_csv(view, scenario, choices),
            "rankdash_cost.csv",
            "text/csv",
            icon=":material/download:",
        )
    address.publish()
    sharing_link.follow()
    address.shown()
