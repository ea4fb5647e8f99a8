"""A part of a page that is worked out only while it is open."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def fold(title: str, key: str, icon: str, draw: Callable[[], None]) -> None:
    """An expander; `draw` runs when a person has opened it, not on every rerun of the page."""
    with st.expander(title, icon=icon, key=key, on_change="rerun") as part:
        if part.open:
            draw()
