"""Queries: which got better, which got worse, and why each of them did."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.study import Study
from rankdash.core.words.queries import judged_title
from rankdash.features.overview import page_verdict
from rankdash.features.queries import page as queries_page
from rankdash.features.queries import page_filters, page_list, page_why
from rankdash.features.queries import study as queries_study
from rankdash.kit.widgets import address, pickers, sharing_link, view
from rankdash.kit.widgets.labels import plan as labels_plan

st.title(_("Queries"))
study = view.study("queries")
view.caption(study)
view.needs_challenger(study, "queries")
if not page_verdict.above_means(study, "queries"):
    if (plan := labels_plan.sampled(study.stored_id)) is not None:
        labels_plan.draw_labelled_queries(study, plan)
    st.stop()
challenger = view.in_focus(study)
view.tally_line(study, challenger)


@st.fragment
def listed(study: Study, challenger: str) -> None:
    """The filters, the list and the open query: to go to the next one draws nothing else anew."""
    study = view.again(study)
    listing = queries_study.listing(study, challenger)
    marks = page_why.marks(study)
    titles = page_list.titles(study.name(study.baseline), study.name(challenger))
    others = {system: study.name(system) for system in queries_study.others(study, challenger)}
    wanted, order, below = page_filters.draw(
        listing, page_why.tags(marks), judged_title(study.cutoff), titles, others
    )
    rows = page_list.rows(study, challenger, wanted, order, marks)
    with below:
        page_filters.left_line(len(rows.ids), len(listing.table))
        opened = page_list.opened(rows)
        if opened is not None:
            page_list.steps(rows, opened)
            page_list.button(study, challenger, opened)
            page_list.download(study, challenger, rows.frame, marks)
    if opened is not None:
        left, right = queries_page.draw_panes(opened, page_list.height(rows))
        with left:
            page_list.draw(rows, order, titles, opened)
        with right:
            queries_page.draw(study, challenger, listing.table.iloc[listing.positions[opened]])
            queries_page.show_panes(opened)
    address.publish()
    sharing_link.follow()
    pickers.shown()


listed(study, challenger)
