"""Page Run: choose rerankers and settings, see the estimate, start, watch, and list the runs."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.features.data import page_damaged
from rankdash.features.run import (
    page_combine,
    page_fetch,
    page_form,
    page_jobs,
    page_retrieve,
    page_runs,
)
from rankdash.kit.widgets import address, view
from rankdash.kit.widgets.stored import read_only

st.title(_p("page", "Run"))
dataset_id = address.one("data")
if dataset_id is None:
    view.nothing_yet(
        "run",
        _("No data set yet"),
        _("A reranker needs queries and candidate documents."),
        "data",
    )
else:
    page_damaged.unfinished(dataset_id)
    if not read_only():
        page_form.draw(dataset_id)
        page_retrieve.draw(dataset_id)
        page_fetch.draw(dataset_id)
        page_jobs.draw(dataset_id)
        page_combine.draw(dataset_id)
    page_runs.draw(dataset_id)
    if not read_only():
        page_jobs.draw_cache_panel()
