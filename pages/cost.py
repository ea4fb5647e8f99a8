"""Cost & ROI: what it costs, what it brings, and how sure that is."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.cost import cost_roi, cost_view
from rankdash.ui.sidebar import view

st.title(_("Cost & ROI"))
study = view.study("cost")
view.caption(study)
if study.challengers:
    cost_view.draw(study, view.in_focus(study))
else:
    view.only_baseline(study, "cost")
    cost_roi.before_any_run(study)
