"""The traffic lights of a data set on the page: a card each, with its remedy."""

from __future__ import annotations

import streamlit as st

from rankdash.analysis.labels.check import CheckReport
from rankdash.i18n import gettext as _
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words.lights import State, lights

_SIGNS: dict[State, str] = {
    "good": ":green[:material/check_circle:]",
    "look": ":orange[:material/warning:]",
    "wrong": ":red[:material/error:]",
    "unknown": ":gray[:material/help:]",
}
_CHARS = 400


def draw(report: CheckReport) -> None:
    """Draw the lights side by side, and below them what is likely wrong and its remedy."""
    words: dict[State, str] = {
        "good": _("looks plausible"),
        "look": _("check this"),
        "wrong": _("likely wrong"),
        "unknown": _("needs labels"),
    }
    every = lights(report)
    for column, light in zip(st.columns(len(every)), every, strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"{_SIGNS[light.state]} **{light.title}**  \n{words[light.state]}")
    for light in every:
        if light.state == "wrong":
            what, remedy = (markdown_safe(text, _CHARS) for text in (light.what, light.remedy))
            st.error(f"**{light.title}**  \n{what}\n\n**{_('What to do')}**  \n{remedy}")
