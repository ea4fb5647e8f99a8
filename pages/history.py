"""Page History: the runs of a data set over time, with notes, pinned baseline and comparisons."""

from dataclasses import replace

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext
from rankdash.core.base.i18n import pgettext as _p
from rankdash.features.history import page as history_page
from rankdash.features.history import page_table
from rankdash.features.overview import page_verdict
from rankdash.kit.widgets import view

st.title(_p("page", "History"))
study = view.study("history")
history = history_page.past(study)
if history is None:
    view.nothing_yet(
        "history",
        _("No run yet"),
        _("This page shows each run of a reranker over time and compares it with earlier runs."),
        "run",
    )
if not page_verdict.above_means(study, "history"):
    st.stop()
runs = ngettext("{n} run", "{n} runs", len(history.runs))
view.caption(replace(study, challengers=()), [runs])
history_page.answer(history)
history_page.chart(history)
history_page.rests_on(history)
chosen = page_table.draw(history)
match chosen:
    case []:
        st.caption(_("Select a run to pin it or to add a note. Select two runs to compare them."))
    case [one]:
        history_page.draw_run(history, one)
    case [_one, _other]:
        history_page.draw_pair(history, chosen)
    case _:
        st.caption(_("Select only two to see how they differ."))
        history_page.to_overview(chosen)
history_page.looks(history)
