"""Sensitivity of the answer: tornado and break-even map."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import level_percent, percent, quantity
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study.costs import Choice
from rankdash.core.study.study import Study
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumption, Assumptions
from rankdash.core.words import prices
from rankdash.features.cost import charts
from rankdash.features.cost.page_inputs import amount, period
from rankdash.features.cost.sensitivity import (
    GAIN,
    INPUTS,
    PRICE,
    input_value,
    net_per_month,
    usual_ranges,
)
from rankdash.features.cost.sensitivity import tornado as swings_of
from rankdash.kit.widgets import address, pickers
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.scenario import currency

_BY_NAME: dict[str, Assumption] = {each.name: each for each in ASSUMPTIONS}


def swings(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """Draw the tornado: one assumption changes, the others stay; the widest swing comes first."""
    net = net_per_month(choice.option, scenario)
    if net is None or choice.option.gain is None or choice.lacks_value:
        _lacking()
        return
    span = period()
    gain = choice.option.gain.relative
    interval = None if gain.low is None or gain.high is None else (gain.low, gain.high)
    ranges = usual_ranges(choice.option, scenario, interval)
    rows = [
        charts.Row(
            charts.input_title(each.name),
            each.net_low * span.months,
            each.net_high * span.months,
            _in_words(each.name, each.low),
            _in_words(each.name, each.high),
        )
        for each in swings_of(choice.option, scenario, ranges)
    ]
    if not rows:
        st.info(_("No assumption changes the result."), icon=":material/info:")
        return
    widgets_charts.draw(
        charts.tornado_chart(rows, net * span.months, period=span.name, money=amount),
        key="cost.swings",
    )
    st.caption(
        _(
            "The gain varies over its {level} interval, every other number by ±50%.",
            level=level_percent(study.statistics.level),
        )
        if interval
        else _("Every number varies by ±50%.")
    )
    with st.expander(_("As a table")):
        st.dataframe(
            pd.DataFrame(
                {
                    _p("column", "assumption"): [row.name for row in rows],
                    _p("range", "from"): [row.low for row in rows],
                    _p("range", "to"): [row.high for row in rows],
                    _("{net} at the low value", net=span.net): [
                        amount(row.net_low) for row in rows
                    ],
                    _("{net} at the high value", net=span.net): [
                        amount(row.net_high) for row in rows
                    ],
                }
            ),
            hide_index=True,
            alt=_("Sensitivity (tornado)"),
        )


def _lacking() -> None:
    st.info(
        _(
            "Set a price and the value of a search, or use example values. A measured gain is "
            "also required."
        ),
        icon=":material/info:",
    )


def where_it_pays(choice: Choice, scenario: Assumptions) -> None:
    """Draw the net value over two assumptions that the user chooses."""
    offered = [name for name in INPUTS if input_value(choice.option, scenario, name) is not None]
    if PRICE not in offered or GAIN not in offered or choice.lacks_value:
        _lacking()
        return
    columns = st.columns(2)
    picked = [
        pickers.pick_one(
            field,
            offered,
            column.selectbox,
            default=str(address.FIELDS[field]),
            label=label,
            format_func=charts.input_title,
        )
        for field, label, column in zip(
            ("across", "upward"), (_("X axis"), _("Y axis")), columns, strict=True
        )
    ]
    across, upward = (name or offered[0] for name in picked)
    if across == upward:
        st.info(_("Choose two different assumptions."), icon=":material/info:")
        return
    span = period()
    grid = charts.net_map(choice, scenario, across, upward, currency(), span.months)
    if grid is None:
        return
    widgets_charts.draw(grid.drawing(span.name, currency()), key="cost.map")
    with st.expander(_("As a table")):
        st.dataframe(
            pd.DataFrame(
                grid.net,
                index=pd.Index(
                    [quantity(value, 6) for value in grid.upward.values], name=grid.upward.title
                ),
                columns=[quantity(value, 6) for value in grid.across.values],
            ).round(2),
            alt=_("Net value over two assumptions"),
        )


def _in_words(name: str, value: float) -> str:
    """Return the value of an input as formatted text."""
    if name == PRICE:
        return amount(value)
    if name == GAIN:
        return percent(value, 1)
    each = _BY_NAME[name]
    exact = each.unit in ("share", "money")
    return prices.value(each, value if exact else _rounded(value), currency())


def _rounded(value: float) -> float:
    """Return the value with three digits, or as a whole number if it is at least 1,000."""
    return float(f"{value:.3g}") if abs(value) < 1000 else float(round(value))
