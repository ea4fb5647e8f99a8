"""Queries: which got better, which got worse, and why each of them did."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.study import queries
from rankdash.ui.labels import estimate_strip
from rankdash.ui.queries import (
    query_detail,
    query_export,
    query_filters,
    query_list,
    query_list_file,
    query_notes,
    query_panes,
)
from rankdash.ui.sidebar import view
from rankdash.ui.state import address
from rankdash.words.queries import judged_title

st.title(_("Queries"))
study = view.study("queries")
view.caption(study)
view.needs_challenger(study, "queries")
if not estimate_strip.above_means(study):
    st.stop()
challenger = view.in_focus(study)
view.tally_line(study, challenger)
listing = queries.listing(study, challenger)
marks = query_notes.marks(study)
titles = query_list.titles(study.name(study.baseline), study.name(challenger))
others = {system: study.name(system) for system in queries.others(study, challenger)}
kept, below = query_filters.draw(
    listing, query_notes.tags(marks), judged_title(study.cutoff), titles, others
)
with below:
    query_filters.left_line(len(kept), len(listing.table))
    opened = query_list.opened(kept)
    if opened is not None:
        query_list.steps(kept, opened)
        query_export.button(study, challenger, opened)
        query_list_file.download(study, challenger, kept, marks)
if opened is not None:
    rows, query = query_panes.draw(opened, query_list.height(kept))
    with rows:
        order = address.one("sort") or "hurt"
        query_list.draw(kept, marks, listing.reach, order, titles, opened)
    with query:
        query_detail.draw(study, challenger, listing.table.iloc[listing.positions[opened]])
        query_panes.show(opened)
