"""Page Report: the findings as one file to share, and the tables behind them."""

import streamlit as st

from rankdash.core.base.i18n import pgettext as _p
from rankdash.features.overview import page_verdict
from rankdash.features.report import page as report_page
from rankdash.kit.widgets import view
from rankdash.kit.widgets.labels import plan as labels_plan

st.title(_p("page", "Report"))
study = view.study("report")
view.caption(study)
view.needs_challenger(study, "report")
if not page_verdict.above_means(study, "report"):
    if (plan := labels_plan.sampled(study.stored_id)) is None:
        st.stop()
    study = labels_plan.estimated(study, plan)
report_page.draw(study)
