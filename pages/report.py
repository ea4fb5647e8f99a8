"""Report: what was found as one file to hand over, and the numbers behind it."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.report import report_view
from rankdash.ui.sidebar import view

st.title(_("Report"))
study = view.study("report")
view.caption(study)
view.needs_challenger(study, "report")
report_view.draw(study)
