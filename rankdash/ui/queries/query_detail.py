"""One query, from top to bottom: what it scored, why it changed, where its documents went."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.study import queries
from rankdash.study.study import Study
from rankdash.ui.queries import (
    query_cards,
    query_ladder,
    query_notes,
    query_occlusion,
    query_strip,
    query_why,
)
from rankdash.ui.widgets.lazy_expander import fold
from rankdash.ui.widgets.text import markdown_safe


def draw(study: Study, challenger: str, row: pd.Series) -> None:
    """row: the query's row of the list."""
    query_id = str(row["query_id"])
    st.subheader(markdown_safe(_text(row), 300), anchor=False)
    query_strip.draw(study, challenger, row)
    fold(
        _("Tags, note and labels"),
        "queries.notes",
        ":material/sell:",
        lambda: query_notes.draw(study, query_id),
    )
    query_why.draw(study, challenger, query_id)
    found = queries.ladder_of(study, challenger, query_id)
    if not len(found):
        st.info(_("Neither ranking has a document for this query."), icon=":material/info:")
        return
    query_ladder.draw(study, found, query_id)
    query_cards.draw(study, challenger, found, query_id, _text(row))
    query = row["text"] if isinstance(row["text"], str) else ""
    fold(
        _("Why this score?"),
        "queries.occlusion",
        ":material/ink_highlighter:",
        lambda: query_occlusion.draw(study, challenger, found, query_id, query),
    )


def _text(row: pd.Series) -> str:
    """The text of the query; its id where there is none."""
    return row["text"] if isinstance(row["text"], str) and row["text"] else str(row["query_id"])
