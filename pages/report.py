"""Report: what was found as one file to hand over, and the numbers behind it."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.labels import estimate_strip
from rankdash.ui.report import report_view
from rankdash.ui.sidebar import view
from rankdash.ui.state import label_plan

st.title(_("Report"))
study = view.study("report")
view.caption(study)
view.needs_challenger(study, "report")
if not estimate_strip.above_means(study, "report"):
    if (plan := label_plan.sampled(study.stored_id)) is None:
        st.stop()
    study = label_plan.estimated(study, plan)
report_view.draw(study)
