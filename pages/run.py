"""Run: choose rerankers and settings, see the estimate, start, watch, and list the runs."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.run import cache_panel, combine_form, job_list, run_form, run_list
from rankdash.ui.sidebar import damaged_view, view
from rankdash.ui.state import address
from rankdash.ui.state.server import read_only

st.title(_("Run"))
dataset_id = address.one("data")
if dataset_id is None:
    view.nothing_yet(
        "run",
        _("No data set yet"),
        _("A reranker needs queries and candidate documents to work on."),
        "data",
    )
else:
    damaged_view.unfinished(dataset_id)
    if not read_only():
        run_form.draw(dataset_id)
        job_list.draw(dataset_id)
        combine_form.draw(dataset_id)
    run_list.draw(dataset_id)
    if not read_only():
        cache_panel.draw()
