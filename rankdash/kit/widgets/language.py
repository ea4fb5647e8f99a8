"""The language that the reader chose, in the session: a context variable would be lost when a
fragment reruns."""

from __future__ import annotations

import threading

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rankdash.core.base import i18n

STATE = "language"
# True if the language or a name changed since the page was last drawn completely.
_CHANGED = "language.changed"
# The session whose language this thread read last: a page reads it a thousand times.
_last_read = threading.local()


def choose(code: str) -> None:
    if st.session_state.get(STATE) not in (None, code):
        other_words()
    st.session_state[STATE] = code
    _last_read.by = None


def other_words() -> None:
    """Record that the texts of choices changed, because the language or a name changed."""
    st.session_state[_CHANGED] = True


def changed() -> bool:
    """Return whether the browser may still show choices with outdated texts."""
    return bool(st.session_state.get(_CHANGED))


def mark_drawn() -> None:
    """Record that the page was drawn completely, with the current texts."""
    st.session_state.pop(_CHANGED, None)


def _chosen() -> str | None:
    session = get_script_run_ctx(suppress_warning=True)
    if session is None or getattr(_last_read, "by", None) is not session:
        _last_read.by, _last_read.code = session, st.session_state.get(STATE)
    code: str | None = _last_read.code
    return code


i18n.follow(_chosen)


# The logged-in user, by Streamlit's `st.login`, if the server's secrets name a provider.


def can_log_in() -> bool:
    """Return whether the server has a login: its secrets name an OpenID Connect provider."""
    return "is_logged_in" in st.user


def person_name() -> str:
    """Return the name, or else the e-mail address, of the logged-in user; "" if there is none."""
    if not st.user.get("is_logged_in"):
        return ""
    return str(st.user.get("name") or st.user.get("email") or "")
