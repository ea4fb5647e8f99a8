"""Queries: which got better, which got worse, and why each of them did."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.study import Study
from rankdash.core.words.queries import judged_title
from rankdash.features.overview import page_verdict
from rankdash.features.queries import page as queries_page
from rankdash.features.queries import page_filters, page_list, page_why
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.filters import Filters
from rankdash.features.queries.page_list import Rows
from rankdash.features.queries.study import Listing
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


@st.fragment
def listed(study: Study) -> None:
    """The system, the filters, the list and the open query."""
    study = view.again(study)
    st.html(page_list.STYLE)
    with st.container(horizontal=True, key="queries.above"):
        challenger = view.in_focus(study)
        listing = queries_study.listing(study, challenger)
        page_filters.tally(study, listing)
    titles = page_list.titles(study.name(study.baseline), study.name(challenger))
    others = {system: study.name(system) for system in queries_study.others(study, challenger)}
    tags = page_why.tags(page_why.marks(study))
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", key="queries.toolbar"
    ):
        chosen = page_filters.draw(listing, tags, judged_title(study.cutoff), titles, others)
        place = st.container(
            horizontal=True, vertical_alignment="center", gap="xsmall", key="queries.steps"
        )
    one(study, challenger, *chosen, page_filters.tags_in(tags), place)


@st.fragment
def one(
    study: Study,
    challenger: str,
    filters: Filters,
    order: str,
    tags: set[str],
    place: DeltaGenerator,
) -> None:
    """The list and the open query: to go to the next one draws no filter again. tags: those that
    the filters offer. place: of the steps."""
    study = view.again(study)
    marks = page_why.marks(study)
    if page_filters.tags_in(page_why.tags(marks)) != tags:
        st.rerun()
    rows, opened = page_list.opened(
        lambda also: page_list.rows(study, challenger, filters, order, marks, also),
        (challenger, filters, order),
    )
    if opened is not None:
        listing = queries_study.listing(study, challenger)
        with place:
            page_list.steps(rows, opened)
            page_list.files(study, challenger, rows, marks, opened)
        left, right = page_list.panes()
        page_list.show_window(rows, opened)
        with left:
            listed_window(rows, listing, marks, order)
        with right:
            queries_page.draw(study, challenger, listing.row(opened))
            page_list.follow(rows, opened)
    address.publish()
    sharing_link.follow()
    pickers.shown()


@st.fragment
def listed_window(rows: Rows, listing: Listing, marks: pd.DataFrame, order: str) -> None:
    """To scroll the list draws nothing else again."""
    page_list.draw(rows, listing, marks, order)


listed(study)
