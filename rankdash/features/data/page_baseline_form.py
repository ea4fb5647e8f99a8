"""The question which of several uploaded rankings is the search of today."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.readers import BaselineNeeded
from rankdash.kit.widgets.text import markdown_safe


def draw(needed: BaselineNeeded, forget: Callable[[], None]) -> str | None:
    """Return the name of the ranking that a person chose; None until it is sent.

    forget: gives the files up.
    """
    question = _("Which ranking is your search today?")
    st.warning(question, icon=":material/compare_arrows:")
    chosen = st.radio(
        question,
        needed.rankings,
        index=None,
        format_func=lambda name: markdown_safe(name, 80),
        label_visibility="collapsed",
        key="upload.baseline",
    )
    st.caption(
        _(
            "It is the baseline, and rerankers start from it. To compare with another ranking "
            "later, choose it under Baseline in the sidebar."
        )
    )
    with st.container(horizontal=True):
        sent = st.button(
            _("Read"), type="primary", key="upload.baseline.read", disabled=chosen is None
        )
        st.button(_("Cancel"), key="upload.baseline.cancel", on_click=forget)
    return chosen if sent else None
