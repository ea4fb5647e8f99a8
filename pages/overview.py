"""Overview: the verdict first, then what it rests on."""

import streamlit as st

from rankdash.ui import address, definitions, frame, overview_charts, verdict_strip
from rankdash.ui import comparison as compared
from rankdash.ui.i18n import gettext as _

st.title(_("Overview"))
view = frame.view()
frame.caption(view)
if view.challengers:
    verdict_strip.draw(view)
else:
    st.info(
        _("Only the baseline is here so far. Run a reranker to see what it changes."),
        icon=":material/info:",
    )
    st.page_link(frame.page("run"), label=_("Run a reranker"), icon=":material/arrow_forward:")
verdict_strip.cards(view)
systems, cutoffs = st.columns(2)
with systems:
    overview_charts.systems(view)
with cutoffs:
    overview_charts.cutoffs(view)
with st.expander(_("All numbers as a table"), icon=":material/table:"):
    overview_charts.systems_table(view)
if view.challengers:
    st.subheader(_("Queries, most hurt first"), anchor=False)
    for system in view.challengers:
        picked = overview_charts.changes(view, system)
        if picked is not None:
            address.choose("q", picked)
            address.choose("vs", system)
            st.switch_page(frame.page("queries"))
definitions.panel(view, compared.specs(view))
