"""Who is logged in: by Streamlit's `st.login`, where the server's secrets name a provider."""

from __future__ import annotations

import streamlit as st


def can_log_in() -> bool:
    """Whether a provider is named."""
    return "is_logged_in" in st.user


def name() -> str:
    """The name, or else the e-mail address, of who is logged in; "" where nobody is."""
    if not st.user.get("is_logged_in"):
        return ""
    return str(st.user.get("name") or st.user.get("email") or "")
