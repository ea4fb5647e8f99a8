"""Cost & ROI: what it costs, what it brings, and how sure that is."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui import cost_view, frame

st.title(_("Cost & ROI"))
view = frame.view()
frame.caption(view)
if not view.challengers:
    frame.nothing_yet(
        _("Nothing to compare with yet"),
        _("What a reranker is worth needs a ranking beside the baseline."),
        "run",
        _("Run a reranker"),
    )
cost_view.draw(view, frame.looked_at(view))
