"""One query, from top to bottom: what it scored, why it changed, where its documents went."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.queries import (
    query_cards,
    query_ladder,
    query_notes,
    query_occlusion,
    query_services,
    query_strip,
    query_why,
)
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.widgets.lazy_expander import fold
from rankdash.ui.widgets.text import markdown_safe


def draw(view: View, challenger: str, row: pd.Series) -> None:
    """row: the query's row of the list."""
    query_id = str(row["query_id"])
    st.subheader(markdown_safe(_text(row), 300), anchor=False)
    query_strip.draw(view, challenger, row)
    fold(
        _("Tags, note and labels"),
        "queries.notes",
        ":material/sell:",
        lambda: query_notes.draw(view, query_id),
    )
    query_why.draw(view, challenger, query_id)
    found = query_services.ladder_of(view, challenger, query_id)
    if not len(found):
        st.info(_("Neither ranking has a document for this query."), icon=":material/info:")
        return
    query_ladder.draw(view, found, query_id)
    query_cards.draw(view, challenger, found, query_id, _text(row))
    query = row["text"] if isinstance(row["text"], str) else ""
    fold(
        _("Why this score?"),
        "queries.occlusion",
        ":material/ink_highlighter:",
        lambda: query_occlusion.draw(view, challenger, found, query_id, query),
    )


def _text(row: pd.Series) -> str:
    """The text of the query; its id where there is none."""
    return row["text"] if isinstance(row["text"], str) and row["text"] else str(row["query_id"])
