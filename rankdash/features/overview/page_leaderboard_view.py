"""The systems side by side, the best first, and quality against latency or price beside them."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import paragraph
from rankdash.core.study.leaderboard import Axis, known_axes, standings, usual_axis
from rankdash.core.study.study import Study
from rankdash.features.overview import report_leaderboard as shown
from rankdash.kit.widgets import pickers, plotly_chart
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.text import markdown_safe

_LONGEST_NAME = 36
_TABLE_WIDTH = 590


def draw(study: Study, in_focus: str) -> None:
    """Draw both; no chart if neither latency nor price is known of any reranker.

    in_focus: the challenger whose row is set off.
    """
    axes = known_axes(standings(study))
    if not axes:
        shared(_table, study, usual_axis(standings(study)), in_focus)
        return
    # Beside each other where both fit, else below each other.
    both = st.container(horizontal=True, gap="medium")
    table, chart = both.container(width=_TABLE_WIDTH), both.container(width="stretch")
    with chart:
        axis = _axis(study) if len(axes) > 1 else axes[0]
        shared(_trade_off, study, axis)
    with table:
        shared(_table, study, axis, in_focus)


def _trade_off(study: Study, axis: Axis) -> None:
    drawn = shown.trade_off(study, axis)
    if drawn is not None:
        plotly_chart.draw(drawn, key="overview.trade_off")
    elif any(row.kind == "too_few" for row in standings(study)):
        st.caption(_("Too few queries for a chart."))
    else:
        st.caption(_("No p95 latency is known.") if axis == "p95" else _("No price is known."))


def _table(study: Study, axis: Axis, in_focus: str) -> None:
    st.subheader(_("Leaderboard"), anchor=False)
    st.html(shown.html(study, axis, in_focus=in_focus, width=_LONGEST_NAME))
    named = [markdown_safe(each, 400) for each in shown.notes(study, axis)]
    st.caption(paragraph(named))


def _axis(study: Study) -> Axis:
    """The one that was chosen."""
    usual = usual_axis(standings(study))
    words = {"p95": _("Quality and latency"), "cost": _("Quality and price")}
    chosen = pickers.pick_one(
        "trade",
        list(known_axes(standings(study))),
        st.segmented_control,
        default=usual,
        label=_("Trade-off"),
        label_visibility="collapsed",
        format_func=words.__getitem__,
        required=True,
    )
    return "p95" if chosen == "p95" else "cost"
