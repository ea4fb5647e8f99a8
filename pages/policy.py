"""Page Policy: what to deploy, with its expected quality, latency and price."""

import streamlit as st

from rankdash.core.base.i18n import pgettext as _p
from rankdash.features.overview import page_verdict
from rankdash.features.policy import page as policy_page
from rankdash.kit.widgets import view

st.title(_p("page", "Policy"))
study = view.study("policy")
view.caption(study)
view.needs_challenger(study, "policy")
if page_verdict.above_means(study, "policy"):
    policy_page.draw(study, view.in_focus(study))
