"""Why one query changed: the reason with its evidence, and each document's part in it."""

from __future__ import annotations

import streamlit as st

from rankdash.ui import reason_services
from rankdash.ui.frame import View
from rankdash.ui.reason_words import reason_meanings, reason_words


def draw(view: View, challenger: str, query_id: str) -> None:
    """The reason in words, the sentences, the waterfall, and the contributions as a table."""
    table = reason_services.reasons_of(view, challenger)
    if query_id not in table.index:
        return
    code = str(table.loc[query_id, "reason"])
    st.markdown(f"**{reason_words()[code]}** · {reason_meanings()[code]}")
