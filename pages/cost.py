"""Page Cost & ROI: cost, value and payoff of each system, with their uncertainty."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.features.cost import page as cost_page
from rankdash.features.cost import page_calculator
from rankdash.features.overview import page_verdict
from rankdash.kit.widgets import view
from rankdash.kit.widgets.labels import plan as labels_plan

st.title(_("Cost & ROI"))
study = view.study("cost")
view.caption(study)
if not study.challengers:
    view.only_baseline(study, "cost")
    page_calculator.before_any_run(study)
elif page_verdict.above_means(study, "cost"):
    cost_page.draw(study, view.in_focus(study))
elif (plan := labels_plan.sampled(study.stored_id)) is not None:
    estimated = labels_plan.estimated(study, plan)
    cost_page.draw(estimated, estimated.challengers[0])
else:
    page_calculator.before_any_run(study)
