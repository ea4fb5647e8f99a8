"""Queries: which got better, which got worse, and where the documents of one of them went."""

import streamlit as st

from rankdash.ui import comparison, frame, query_detail, query_list
from rankdash.ui.i18n import gettext as _

st.title(_("Queries"))
view = frame.view()
frame.caption(view)
if not view.challengers:
    frame.nothing_yet(
        _("Nothing to compare with yet"),
        _("Per-query changes need a second ranking beside the baseline."),
        "run",
        _("Run a reranker"),
    )
challenger = frame.looked_at(view)
table = comparison.query_rows(view, challenger)
comparison.tally_line(view, challenger)
rows = query_list.filters(table, frame.segments(view))
opened = query_list.draw(rows, view.name(view.baseline), view.name(challenger))
if opened is not None:
    query_list.steps(rows, opened)
    query_detail.draw(view, challenger, rows[rows["query_id"] == opened].iloc[0])
