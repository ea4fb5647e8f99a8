"""Report: what was found as one file to hand over, and the numbers behind it."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.report import report_view
from rankdash.ui.sidebar import sidebar

st.title(_("Report"))
view = sidebar.view()
sidebar.caption(view)
if not view.challengers:
    sidebar.nothing_yet(
        _("Nothing to report yet"),
        _("A report says what a reranker changed against the baseline, so it needs both."),
        "run",
        _("Run a reranker"),
    )
report_view.draw(view)
