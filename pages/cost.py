"""Cost & ROI: what it costs, what it brings, and how sure that is."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.cost import cost_roi, cost_view
from rankdash.ui.labels import estimate_strip
from rankdash.ui.sidebar import view
from rankdash.ui.state import label_plan

st.title(_("Cost & ROI"))
study = view.study("cost")
view.caption(study)
if not study.challengers:
    view.only_baseline(study, "cost")
    cost_roi.before_any_run(study)
elif estimate_strip.above_means(study, "cost"):
    cost_view.draw(study, view.in_focus(study))
elif (plan := label_plan.sampled(study.stored_id)) is not None:
    found = label_plan.estimated(study, plan)
    cost_view.draw(found, found.challengers[0])
else:
    cost_roi.before_any_run(study)
