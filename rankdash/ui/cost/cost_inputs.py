"""The assumptions as sliders in one column, each with its unit and what it means."""

from __future__ import annotations

import math
from collections.abc import Iterable

import streamlit as st

from rankdash.errors import DataError
from rankdash.i18n import error_text
from rankdash.i18n import gettext as _
from rankdash.ui.state import address, pickers
from rankdash.ui.state.scenario import CURRENCIES, assumptions, changed, currency, number_of
from rankdash.ui.widgets.text import markdown_safe
from rankdash.value.assumptions import ASSUMPTIONS, Assumption, Assumptions
from rankdash.words import assumptions as assumption_words

_STEPS = (1, 2, 5)
_OPEN = ("traffic", "value")


def take_over(scenario: Assumptions) -> None:
    """Put every slider to the number of a scenario."""
    for each in ASSUMPTIONS:
        address.choose(each.name, f"{getattr(scenario, each.name):.10g}")


def choose_currency() -> None:
    pickers.pick_one("currency", list(CURRENCIES), st.selectbox, default="USD", label=_("Currency"))


def draw() -> Assumptions:
    """All sliders; returns what they say."""
    titles = {
        "traffic": _("Traffic"),
        "value": _("What a search is worth"),
        "effort": _("Effort beside the price"),
        "answers": _("An LLM that reads the passages"),
        "support": _("Tickets and working time"),
        "waiting": _("Waiting"),
    }
    for group, title in titles.items():
        own = [each for each in ASSUMPTIONS if each.group == group]
        with st.expander(title, expanded=group in _OPEN or any(map(changed, own))):
            for each in own:
                _slider(each)
    with st.popover(_("Type exact numbers"), icon=":material/edit:", width="stretch"):
        _exact()
    st.button(
        _("Back to the defaults"),
        icon=":material/undo:",
        width="stretch",
        on_click=take_over,
        args=(Assumptions(),),
    )
    return assumptions()


def unit(each: Assumption) -> str:
    """The unit of an assumption in words; "" for a share, which is written as percent, and where
    the title says it."""
    return assumption_words.unit(each, currency())


def _slider(each: Assumption) -> None:
    value = number_of(each, address.one(each.name))
    value = each.default if value is None else value
    low, high = min(each.low, value), max(each.high, value)
    usual = (low, high) == (each.low, each.high)
    # A slider with other ends is another one: it is not shown a value that it has not got.
    key = f"cost.{each.name}" if usual else f"cost.{each.name}.{low:g}.{high:g}"
    label = f"{_(each.title)} ({unit(each)})" if unit(each) else _(each.title)

    def changed() -> None:
        address.choose(each.name, f"{st.session_state[key]:.10g}")

    if each.logarithmic:
        pickers.show(st.select_slider, key, value, changed)(
            label,
            sorted({*_decades(each), value}),
            format_func=lambda number: f"{number:,.10g}",
        )
    else:
        pickers.show(st.slider, key, float(value), changed)(
            label,
            float(low),
            float(high),
            step=float(each.step),
            format="percent" if each.unit == "share" else _written(each.step),
        )
    st.caption(_(each.meaning))


def _written(step: float) -> str:
    """As many decimals as a step has."""
    return f"%.{max(-math.floor(math.log10(step)), 0)}f"


def _decades(each: Assumption) -> Iterable[float]:
    """1, 2 and 5 of every power of ten within the slider, and its lower end."""
    start = each.low if each.low > 0 else each.step
    for power in range(math.floor(math.log10(start)), math.ceil(math.log10(each.high)) + 1):
        for step in _STEPS:
            number = float(f"{step}e{power}")
            if each.low <= number <= each.high:
                yield number
    yield float(each.low)


def _exact() -> None:
    now = assumptions()
    with st.form("cost.exact", border=False):
        typed = {
            each.name: st.number_input(
                f"{_(each.title)} ({unit(each) or _(each.unit)})",
                value=float(getattr(now, each.name)),
                format="%.10g",
                key=f"cost.exact.{each.name}.{getattr(now, each.name)}",
            )
            for each in ASSUMPTIONS
        }
        if st.form_submit_button(_("Apply"), type="primary"):
            try:
                scenario = Assumptions(**typed)
            except DataError as error:
                st.error(markdown_safe(error_text(error), 300), icon=":material/error:")
                return
            take_over(scenario)
            st.rerun()
