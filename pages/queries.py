"""Queries: which got better, which got worse, and why each of them did."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.study import Study
from rankdash.core.words.queries import judged_title
from rankdash.features.label import page_labelled_queries
from rankdash.features.overview import page_estimate_decision
from rankdash.features.queries import (
    page_query_detail,
    page_query_export,
    page_query_filters,
    page_query_list,
    page_query_list_file,
    page_query_notes,
    page_query_panes,
    queries,
)
from rankdash.kit.widgets import address, label_plan, pickers, sharing_link, view

st.title(_("Queries"))
study = view.study("queries")
view.caption(study)
view.needs_challenger(study, "queries")
if not page_estimate_decision.above_means(study, "queries"):
    if (plan := label_plan.sampled(study.stored_id)) is not None:
        page_labelled_queries.draw(study, plan)
    st.stop()
challenger = view.in_focus(study)
view.tally_line(study, challenger)


@st.fragment
def listed(study: Study, challenger: str) -> None:
    """The filters, the list and the open query: to go to the next one draws nothing else anew."""
    study = view.again(study)
    listing = queries.listing(study, challenger)
    marks = page_query_notes.marks(study)
    titles = page_query_list.titles(study.name(study.baseline), study.name(challenger))
    others = {system: study.name(system) for system in queries.others(study, challenger)}
    wanted, order, below = page_query_filters.draw(
        listing, page_query_notes.tags(marks), judged_title(study.cutoff), titles, others
    )
    rows = page_query_list.rows(study, challenger, wanted, order, marks)
    with below:
        page_query_filters.left_line(len(rows.ids), len(listing.table))
        opened = page_query_list.opened(rows)
        if opened is not None:
            page_query_list.steps(rows, opened)
            page_query_export.button(study, challenger, opened)
            page_query_list_file.download(study, challenger, rows.frame, marks)
    if opened is not None:
        left, right = page_query_panes.draw(opened, page_query_list.height(rows))
        with left:
            page_query_list.draw(rows, order, titles, opened)
        with right:
            page_query_detail.draw(study, challenger, listing.table.iloc[listing.positions[opened]])
            page_query_panes.show(opened)
    address.publish()
    sharing_link.follow()
    pickers.shown()


listed(study, challenger)
