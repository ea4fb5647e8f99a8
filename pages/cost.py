"""Cost & ROI: what it costs, what it brings, and how sure that is."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.cost import cost_view
from rankdash.ui.sidebar import view

st.title(_("Cost & ROI"))
study = view.study("cost")
view.caption(study)
view.needs_challenger(study, "cost")
cost_view.draw(study, view.in_focus(study))
