"""The runs of the data set that the comparison leaves out, and a button that adds them."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext
from rankdash.core.study.study import Study
from rankdash.kit.widgets import address, stored


def draw(study: Study) -> None:
    """Draw how many runs are not shown; nothing if all of them are."""
    others = [each for each in stored.rows(study.stored_id) if each not in study.chosen]
    if not others:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            ngettext("{n} run is not shown", "{n} runs are not shown", len(others)),
            width="content",
        )
        st.button(
            _("Add to the comparison"),
            type="tertiary",
            icon=":material/add:",
            key="overview.add",
            on_click=address.choose,
            args=("system", [*study.challengers, *others]),
        )
