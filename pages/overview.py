"""Overview: systems × metrics against a named baseline, metric against k, per-query change."""

import streamlit as st

from rankdash.ui import address, comparison, definitions, frame
from rankdash.ui.i18n import gettext as _

st.title(_("Overview"))
view = frame.view()
frame.caption(view)
comparison.cards(view)
if not view.challengers:
    st.info(
        _("Only the baseline is here so far. Run a reranker to see what it changes."),
        icon=":material/info:",
    )
    st.page_link(frame.page("run"), label=_("Run a reranker"), icon=":material/arrow_forward:")
systems, cutoffs = st.columns(2)
with systems:
    comparison.systems(view)
with cutoffs:
    comparison.cutoffs(view)
if view.challengers:
    picked = comparison.changes(view)
    if picked is not None:
        address.choose("q", picked)
        st.switch_page(frame.page("queries"))
definitions.panel(view, comparison.specs(view))
