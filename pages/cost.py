"""Cost & ROI: what it costs, what it brings, and how sure that is."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.cost import cost_view
from rankdash.ui.sidebar import sidebar

st.title(_("Cost & ROI"))
view = sidebar.view()
sidebar.caption(view)
if not view.challengers:
    sidebar.nothing_yet(
        _("Nothing to compare with yet"),
        _("What a reranker is worth needs a ranking beside the baseline."),
        "run",
        _("Run a reranker"),
    )
cost_view.draw(view, sidebar.looked_at(view))
