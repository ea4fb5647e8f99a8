"""Dialogs for renaming and deleting, and errors of changes."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text
from rankdash.core.base.i18n import pgettext as _p
from rankdash.kit.widgets import redraw
from rankdash.kit.widgets.text import markdown_safe

# White on this red has a contrast of 6.5:1, in both themes.
_RED = """<style>
.st-key-delete-confirm button, .st-key-delete-confirm button:hover { background: #B3261E;
  border-color: #B3261E; color: #FFFFFF; }
</style>"""


def rename(title: str, current: str, apply: Callable[[str], None]) -> None:
    @st.dialog(title, on_dismiss="rerun")
    def ask() -> None:
        name = st.text_input(_p("field", "Name"), value=current, max_chars=80).strip()
        confirm, cancel = st.columns(2)
        if confirm.button(
            _p("button", "Rename"),
            type="primary",
            key="rename.confirm",
            disabled=not name,
            width="stretch",
        ):
            apply(name[:80])
            st.rerun()
        _offer_cancel(cancel)

    redraw.pause()
    ask()


def delete(title: str, sentences: list[str], apply: Callable[[], None]) -> None:
    """Open a dialog that confirms a deletion. sentences: what is deleted and what stays, safe for
    Markdown."""

    @st.dialog(title, on_dismiss="rerun")
    def ask() -> None:
        for sentence in sentences:
            st.write(sentence)
        st.html(_RED)
        confirm, cancel = st.columns(2)
        if confirm.button(
            _p("button", "Delete"),
            type="primary",
            key="delete.confirm",
            icon=":material/delete:",
            width="stretch",
        ):
            apply()
            st.rerun()
        _offer_cancel(cancel)

    redraw.pause()
    ask()


def _offer_cancel(place: DeltaGenerator) -> None:
    if place.button(_p("button", "Cancel"), key="dialog.cancel", width="stretch"):
        st.rerun()


# The change that a click requests, and its error, shown once when the page is drawn next.


def attempt(place: str, change: Callable[[], object]) -> bool:
    """Run the change; store its error for `refused` instead of raising it. Return whether it
    succeeded."""
    try:
        change()
    except RankdashError as problem:
        st.session_state[_key(place)] = problem
        return False
    return True


def refused(place: str) -> None:
    """Show the error of the last change with this key, if it failed."""
    problem = st.session_state.pop(_key(place), None)
    if problem is not None:
        show_error(error_text(problem))


def show_error(text: str, longest: int = 600) -> None:
    """Show why a click was refused; the message stays until the next click."""
    redraw.pause()
    st.error(markdown_safe(text, longest), icon=":material/error:")


def _key(place: str) -> str:
    return f"{place}.problem"
