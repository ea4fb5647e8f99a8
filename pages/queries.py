"""Queries: which got better, which got worse, and why each of them did."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.study import queries
from rankdash.study.study import Study
from rankdash.ui.labels import estimate_strip, labelled_queries
from rankdash.ui.queries import (
    query_detail,
    query_export,
    query_filters,
    query_list,
    query_list_file,
    query_notes,
    query_panes,
)
from rankdash.ui.sidebar import sharing_link, view
from rankdash.ui.state import address, label_plan, pickers
from rankdash.words.queries import judged_title

st.title(_("Queries"))
study = view.study("queries")
view.caption(study)
view.needs_challenger(study, "queries")
if not estimate_strip.above_means(study, "queries"):
    if (plan := label_plan.sampled(study.stored_id)) is not None:
        labelled_queries.draw(study, plan)
    st.stop()
challenger = view.in_focus(study)
view.tally_line(study, challenger)


@st.fragment
def listed(study: Study, challenger: str) -> None:
    """The filters, the list and the open query: to go to the next one draws nothing else anew."""
    study = view.again(study)
    listing = queries.listing(study, challenger)
    marks = query_notes.marks(study)
    titles = query_list.titles(study.name(study.baseline), study.name(challenger))
    others = {system: study.name(system) for system in queries.others(study, challenger)}
    wanted, order, below = query_filters.draw(
        listing, query_notes.tags(marks), judged_title(study.cutoff), titles, others
    )
    rows = query_list.rows(study, challenger, wanted, order, marks)
    with below:
        query_filters.left_line(len(rows.ids), len(listing.table))
        opened = query_list.opened(rows)
        if opened is not None:
            query_list.steps(rows, opened)
            query_export.button(study, challenger, opened)
            query_list_file.download(study, challenger, rows.frame, marks)
    if opened is not None:
        left, right = query_panes.draw(opened, query_list.height(rows))
        with left:
            query_list.draw(rows, order, titles, opened)
        with right:
            query_detail.draw(study, challenger, listing.table.iloc[listing.positions[opened]])
            query_panes.show(opened)
    address.publish()
    sharing_link.follow()
    pickers.shown()


listed(study, challenger)
