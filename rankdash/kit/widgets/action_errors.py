"""What a click asks for, and why it was refused: said once, when the page is drawn after it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text
from rankdash.kit.widgets import redraw
from rankdash.kit.widgets.text import markdown_safe


def attempt(place: str, change: Callable[[], object]) -> bool:
    """Whether the change was made. place: where `refused` says why it was not."""
    try:
        change()
    except RankdashError as problem:
        st.session_state[_key(place)] = problem
        return False
    return True


def refused(place: str) -> None:
    """Why the last change that was asked for here was not made, where it was not."""
    problem = st.session_state.pop(_key(place), None)
    if problem is not None:
        say(error_text(problem))


def say(text: str, longest: int = 600) -> None:
    """Why the click that this run came from was refused: it stays until the next one."""
    redraw.hold()
    st.error(markdown_safe(text, longest), icon=":material/error:")


def _key(place: str) -> str:
    return f"{place}.problem"
