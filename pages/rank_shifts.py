"""Rank shifts: where documents went over all queries, who agrees, and when not to rerank."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.features.rank_shifts import page_agreement_view, page_shifts_view, page_skipping_view
from rankdash.kit.widgets import label_plan, view
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.lazy_expander import fold

st.title(_("Rank shifts"))
study = label_plan.without_sampled(view.study("rank_shifts"))
view.caption(study)
view.needs_challenger(study, "rank_shifts")
challenger = view.in_focus(study)
if not len(page_shifts_view.moves(study, challenger).query_ids):
    view.nothing_yet(
        "rank_shifts",
        _("No query in common"),
        _(
            "{pair}: no query has both rankings.",
            pair=page_shifts_view.pair_line(study, challenger),
        ),
        "run",
    )
page_shifts_view.destinations(study, challenger)
sizes, agreement = st.columns(2, gap="medium")
with sizes:
    shared(page_shifts_view.sizes, study, challenger)
with agreement:
    shared(page_agreement_view.draw, study)
fold(
    _("Query by query, the most reordered first"),
    "shifts.by_query",
    ":material/list:",
    lambda: page_shifts_view.by_query(study, challenger),
)
if page_shifts_view.flow(study, challenger).total:
    fold(
        _("Relevant documents that moved farthest"),
        "shifts.farthest",
        ":material/swap_vert:",
        lambda: page_shifts_view.farthest(study, challenger),
    )
page_skipping_view.draw(study, challenger)
