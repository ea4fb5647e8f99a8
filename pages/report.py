"""Report: what was found as one file to hand over, and the numbers behind it."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui import frame, report_view

st.title(_("Report"))
view = frame.view()
frame.caption(view)
if not view.challengers:
    frame.nothing_yet(
        _("Nothing to report yet"),
        _("A report says what a reranker changed against the baseline, so it needs both."),
        "run",
        _("Run a reranker"),
    )
report_view.draw(view)
