"""Queries: which got better, which got worse, and why each of them did."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.queries import (
    query_detail,
    query_export,
    query_filters,
    query_list,
    query_notes,
    query_services,
)
from rankdash.ui.sidebar import comparison, sidebar
from rankdash.ui.state import address
from rankdash.words.queries import judged_title

st.title(_("Queries"))
view = sidebar.view()
sidebar.caption(view)
if not view.challengers:
    sidebar.nothing_yet(
        _("Nothing to compare with yet"),
        _("Per-query changes need a second ranking beside the baseline."),
        "run",
        _("Run a reranker"),
    )
challenger = sidebar.looked_at(view)
comparison.tally_line(view, challenger)
rows = query_services.rows(view, challenger)
marks = query_notes.marks(view)
kept = query_filters.draw(rows, query_services.tags(marks), judged_title(view.cutoff))
query_filters.left_line(len(kept), len(rows.table))
opened = query_list.draw(
    kept,
    marks,
    rows.reach,
    address.one("sort") or "hurt",
    view.name(view.baseline),
    view.name(challenger),
)
if opened is not None:
    with st.container(horizontal=True, vertical_alignment="center"):
        query_list.steps(kept, opened)
        query_export.button(view, challenger, opened)
        query_list.download(kept, marks, view.name(view.baseline), view.name(challenger))
    row = rows.table.iloc[rows.positions[opened]]
    query_detail.draw(view, challenger, row)
