"""The language that a reader chose. It lives in the session: a context variable would be lost when
a fragment reruns."""

from __future__ import annotations

import streamlit as st

from rankdash import i18n

STATE = "language"


def _chosen() -> str | None:
    code: str | None = st.session_state.get(STATE)
    return code


i18n.follow(_chosen)
