"""The language that a reader chose. It lives in the session: a context variable would be lost when
a fragment reruns."""

from __future__ import annotations

import streamlit as st

from rankdash import i18n

STATE = "language"
# Whether it changed since the page was last drawn to its end.
_CHANGED = "language.changed"


def choose(code: str) -> None:
    if st.session_state.get(STATE) not in (None, code):
        st.session_state[_CHANGED] = True
    st.session_state[STATE] = code


def changed() -> bool:
    """Whether the browser still shows choices in the words of another language."""
    return bool(st.session_state.get(_CHANGED))


def shown() -> None:
    """The page was drawn to its end."""
    st.session_state.pop(_CHANGED, None)


def _chosen() -> str | None:
    code: str | None = st.session_state.get(STATE)
    return code


i18n.follow(_chosen)
