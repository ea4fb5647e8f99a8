"""History: the runs of a data set over time, their notes, the pinned baseline, any two compared."""

from dataclasses import replace

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext
from rankdash.ui.history import history_pair, history_run, history_table, history_view
from rankdash.ui.labels import estimate_strip
from rankdash.ui.sidebar import view

st.title(_("History"))
study = view.study("history")
history = history_view.past(study)
if history is None:
    view.nothing_yet(
        "history",
        _("No run yet"),
        _("Each run of a reranker becomes a point in time here, to compare with those before it."),
        "run",
    )
if not estimate_strip.above_means(study, "history"):
    st.stop()
runs = ngettext("{n} run", "{n} runs", len(history.runs))
view.caption(replace(study, challengers=()), [runs])
history_view.chart(history)
history_view.rests_on(history)
history_view.looks(history)
chosen = history_table.draw(history)
match chosen:
    case []:
        st.caption(_("Select a run to pin it or to write a note, and two to compare them."))
    case [one]:
        history_run.draw(history, one)
    case [_one, _other]:
        history_pair.draw(history, chosen)
    case _:
        st.caption(_("Select two to see how they differ."))
        history_pair.to_overview(chosen)
