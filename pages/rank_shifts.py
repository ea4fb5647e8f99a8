"""Rank shifts: where documents went over all queries, who agrees, and when not to rerank."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.rank_shifts import agreement_view, shifts_view, skipping_view
from rankdash.ui.sidebar import view
from rankdash.ui.state import label_plan
from rankdash.ui.state.cache import shared
from rankdash.ui.widgets.lazy_expander import fold

st.title(_("Rank shifts"))
study = label_plan.without_sampled(view.study("rank_shifts"))
view.caption(study)
view.needs_challenger(study, "rank_shifts")
challenger = view.in_focus(study)
if not len(shifts_view.moves(study, challenger).query_ids):
    view.nothing_yet(
        "rank_shifts",
        _("No query in common"),
        _("{pair}: no query has both rankings.", pair=shifts_view.pair_line(study, challenger)),
        "run",
    )
shifts_view.destinations(study, challenger)
sizes, agreement = st.columns(2, gap="medium")
with sizes:
    shared(shifts_view.sizes, study, challenger)
with agreement:
    shared(agreement_view.draw, study)
fold(
    _("Query by query, the most reordered first"),
    "shifts.by_query",
    ":material/list:",
    lambda: shifts_view.by_query(study, challenger),
)
if shifts_view.flow(study, challenger).total:
    fold(
        _("Relevant documents that moved farthest"),
        "shifts.farthest",
        ":material/swap_vert:",
        lambda: shifts_view.farthest(study, challenger),
    )
skipping_view.draw(study, challenger)
