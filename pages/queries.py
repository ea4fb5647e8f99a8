"""Page Queries: queries that improved or got worse, with the reasons."""

import streamlit as st

from rankdash.core.base.i18n import pgettext as _p
from rankdash.features.overview import page_verdict
from rankdash.features.queries import page
from rankdash.kit.widgets import view
from rankdash.kit.widgets.labels import plan as labels_plan

st.title(_p("page", "Queries"))
study = view.study("queries")
view.caption(study)
view.needs_challenger(study, "queries")
if not page_verdict.above_means(study, "queries"):
    if (plan := labels_plan.sampled(study.stored_id)) is not None:
        labels_plan.draw_labelled_queries(study, plan)
    st.stop()
page.draw_queries(study)
