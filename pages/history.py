"""History: the runs of a data set over time, their notes, the pinned baseline, any two compared."""

from dataclasses import replace

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext
from rankdash.features.history import (
    page_history_pair,
    page_history_run,
    page_history_table,
    page_history_view,
)
from rankdash.features.overview import page_estimate_decision
from rankdash.kit.widgets import view

st.title(_("History"))
study = view.study("history")
history = page_history_view.past(study)
if history is None:
    view.nothing_yet(
        "history",
        _("No run yet"),
        _("Each run of a reranker becomes a point in time here, to compare with those before it."),
        "run",
    )
if not page_estimate_decision.above_means(study, "history"):
    st.stop()
runs = ngettext("{n} run", "{n} runs", len(history.runs))
view.caption(replace(study, challengers=()), [runs])
page_history_view.chart(history)
page_history_view.rests_on(history)
page_history_view.looks(history)
chosen = page_history_table.draw(history)
match chosen:
    case []:
        st.caption(_("Select a run to pin it or to write a note, and two to compare them."))
    case [one]:
        page_history_run.draw(history, one)
    case [_one, _other]:
        page_history_pair.draw(history, chosen)
    case _:
        st.caption(_("Select two to see how they differ."))
        page_history_pair.to_overview(chosen)
