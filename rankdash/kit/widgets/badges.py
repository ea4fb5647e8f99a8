"""The answer in a word: the word and the icon say it without the colour."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from rankdash.core.words.verdict_chips import chip

Colour = Literal["blue", "orange", "gray"]
Look = tuple[str, Colour]

_UNKNOWN: Look = (":material/block:", "gray")
_VERDICTS: dict[str, Look] = {
    "better": (":material/trending_up:", "blue"),
    "small": (":material/north_east:", "blue"),
    "unproven": (":material/help:", "gray"),
    "worse": (":material/trending_down:", "orange"),
    "identical": (":material/drag_handle:", "gray"),
}


def verdict(kind: str) -> None:
    """Whether a system is better."""
    icon, colour = _VERDICTS.get(kind, _UNKNOWN)
    st.badge(chip(kind), icon=icon, color=colour)
