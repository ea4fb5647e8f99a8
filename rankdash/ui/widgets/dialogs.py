"""Rename and delete, asked for in a dialog."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from rankdash.i18n import gettext as _


def rename(title: str, current: str, apply: Callable[[str], None]) -> None:
    @st.dialog(title)
    def ask() -> None:
        name = st.text_input(_("Name"), value=current, max_chars=80).strip()
        if st.button(_("Rename"), type="primary", key="rename.confirm", disabled=not name):
            apply(name[:80])
            st.rerun()

    ask()


def delete(title: str, sentences: list[str], apply: Callable[[], None]) -> None:
    """sentences: what goes and what stays, safe for Markdown."""

    @st.dialog(title)
    def ask() -> None:
        for sentence in sentences:
            st.write(sentence)
        if st.button(_("Delete"), type="primary", key="delete.confirm", icon=":material/delete:"):
            apply()
            st.rerun()

    ask()
