"""Page Rank shifts: movements of documents, and agreement of systems."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.features.rank_shifts import page as rank_shifts_page
from rankdash.kit.widgets import component, view
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.redraw import fold

st.title(_("Rank shifts"))
study = plan.without_sampled(view.study("rank_shifts"))
view.caption(study)
view.needs_challenger(study, "rank_shifts")
challenger = view.in_focus(study)
if not len(rank_shifts_page.moves(study, challenger).query_ids):
    view.nothing_yet(
        "rank_shifts",
        _("No query in common"),
        _(
            "{pair}: no query has both rankings.",
            pair=rank_shifts_page.pair_line(study, challenger),
        ),
        "run",
    )
rank_shifts_page.destinations(study, challenger)
component.when_seen(
    study,
    "shifts.lower",
    "",
    460,
    lambda study: rank_shifts_page.draw_below(study, challenger),
    challenger,
)
fold(
    _("Queries, most reordered first"),
    "shifts.by_query",
    ":material/list:",
    lambda: rank_shifts_page.by_query(study, challenger),
)
if rank_shifts_page.flow(study, challenger).total:
    fold(
        _("Relevant documents that moved farthest"),
        "shifts.farthest",
        ":material/swap_vert:",
        lambda: rank_shifts_page.farthest(study, challenger),
    )
