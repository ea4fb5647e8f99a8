"""The answer in a word: the word and the icon say it without the colour."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.words.costs import Answer
from rankdash.words.verdict_chips import chip

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
_ANSWERS: dict[Answer, Look] = {
    "yes": (":material/check_circle:", "blue"),
    "maybe": (":material/trending_up:", "blue"),
    "open": (":material/price_change:", "gray"),
    "unproven": (":material/help:", "gray"),
    "doubtful": (":material/trending_down:", "orange"),
    "no": (":material/cancel:", "orange"),
    "unknown": _UNKNOWN,
}


def verdict(kind: str) -> None:
    """Whether a system is better."""
    icon, colour = _VERDICTS.get(kind, _UNKNOWN)
    st.badge(chip(kind), icon=icon, color=colour)


def answer(kind: Answer) -> None:
    """Whether a system pays."""
    words: dict[Answer, str] = {
        "yes": _("pays"),
        "maybe": _("probably pays"),
        "open": _("break-even only"),
        "unproven": _("not proven"),
        "doubtful": _("probably does not pay"),
        "no": _("does not pay"),
        "unknown": _("no answer"),
    }
    icon, colour = _ANSWERS[kind]
    st.badge(words[kind], icon=icon, color=colour)
