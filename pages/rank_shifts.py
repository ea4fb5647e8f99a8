"""Rank shifts: where documents went over all queries, who agrees, and when not to rerank."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.rank_shifts import agreement_view, shifts_view, skipping_view
from rankdash.ui.sidebar import sidebar
from rankdash.ui.widgets.lazy_expander import fold

st.title(_("Rank shifts"))
view = sidebar.view()
sidebar.caption(view)
if not view.challengers:
    sidebar.nothing_yet(
        _("Nothing to compare with yet"),
        _("Documents move between two rankings, and there is only the baseline."),
        "run",
        _("Run a reranker"),
    )
challenger = sidebar.looked_at(view)
if not len(shifts_view.moves(view, challenger).query_ids):
    sidebar.nothing_yet(
        _("No query in common"),
        _("{pair}: no query has both rankings.", pair=shifts_view.pair_line(view, challenger)),
        "run",
        _("Run a reranker"),
    )
shifts_view.destinations(view, challenger)
sizes, agreement = st.columns(2, gap="medium")
with sizes:
    shifts_view.sizes(view, challenger)
with agreement:
    agreement_view.draw(view)
fold(
    _("Query by query, the most reordered first"),
    "shifts.by_query",
    ":material/list:",
    lambda: shifts_view.by_query(view, challenger),
)
fold(
    _("Relevant documents that moved farthest"),
    "shifts.farthest",
    ":material/swap_vert:",
    lambda: shifts_view.farthest(view, challenger),
)
skipping_view.draw(view, challenger)
