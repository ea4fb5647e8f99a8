"""Run: choose rerankers and settings, see the estimate, start, watch, and list the runs."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.features.data import page_damaged_view
from rankdash.features.run import (
    page_cache_panel,
    page_combine_form,
    page_job_list,
    page_run_form,
    page_run_list,
)
from rankdash.kit.widgets import address, view
from rankdash.kit.widgets.server import read_only

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
    page_damaged_view.unfinished(dataset_id)
    if not read_only():
        page_run_form.draw(dataset_id)
        page_job_list.draw(dataset_id)
        page_combine_form.draw(dataset_id)
    page_run_list.draw(dataset_id)
    if not read_only():
        page_cache_panel.draw()
