"""The language that a reader chose. It lives in the session: a context variable would be lost when
a fragment reruns."""

from __future__ import annotations

import threading

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rankdash.core.base import i18n

STATE = "language"
# Whether it, or a name, changed since the page was last drawn to its end.
_CHANGED = "language.changed"
# Whose language it was that this thread asked for last: a page asks a thousand times.
_asked = threading.local()


def choose(code: str) -> None:
    if st.session_state.get(STATE) not in (None, code):
        other_words()
    st.session_state[STATE] = code
    _asked.by = None


def other_words() -> None:
    """What can be chosen is called something else now."""
    st.session_state[_CHANGED] = True


def changed() -> bool:
    """Whether the browser still shows choices in other words, such as of another language."""
    return bool(st.session_state.get(_CHANGED))


def shown() -> None:
    """The page was drawn to its end."""
    st.session_state.pop(_CHANGED, None)


def _chosen() -> str | None:
    session = get_script_run_ctx(suppress_warning=True)
    if session is None or getattr(_asked, "by", None) is not session:
        _asked.by, _asked.code = session, st.session_state.get(STATE)
    code: str | None = _asked.code
    return code


i18n.follow(_chosen)


# Who is logged in: by Streamlit's `st.login`, where the server's secrets name a provider.


def can_log_in() -> bool:
    """Whether a provider is named."""
    return "is_logged_in" in st.user


def person_name() -> str:
    """The name, or else the e-mail address, of who is logged in; "" where nobody is."""
    if not st.user.get("is_logged_in"):
        return ""
    return str(st.user.get("name") or st.user.get("email") or "")
