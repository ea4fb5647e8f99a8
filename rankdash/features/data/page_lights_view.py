"""The traffic lights of a data set on the page: a card each, with its remedy."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import finding_text, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.readers.checks.check import CheckReport
from rankdash.features.data.words_lights import Light, State, lights
from rankdash.kit.widgets import view
from rankdash.kit.widgets.label_plan import Labelling
from rankdash.kit.widgets.text import markdown_safe

_SIGNS: dict[State, str] = {
    "good": ":green[:material/check_circle:]",
    "look": ":orange[:material/warning:]",
    "wrong": ":red[:material/error:]",
    "unknown": ":gray[:material/help:]",
    "none": ":gray[:material/radio_button_unchecked:]",
}
_CHARS = 600


def draw(report: CheckReport, sampled: Labelling | None) -> None:
    """Draw the lights side by side, and below them what to look at, with its remedy.

    sampled: the plan whose labels are a sample; None if they are not.
    """
    words: dict[State, str] = {
        "good": _("looks plausible"),
        "look": _("check this"),
        "wrong": _("likely wrong"),
        "unknown": _("needs labels"),
        "none": _("none yet"),
    }
    every = lights(report, 0 if sampled is None else sampled.status.pairs)
    for column, light in zip(st.columns(len(every)), every, strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"{_SIGNS[light.state]} **{light.title}**  \n{words[light.state]}")
            if light.state == "good" and light.what:
                st.caption(light.what)
    blocking = report.blocks_reranking
    above = "" if blocking is None else finding_text(blocking)
    for light in every:
        if light.state != "good" and light.what and light.what != above:
            _box(light)
    if sampled is not None and sampled.status.settled:
        _link("overview", _("See the verdict"), ":material/gavel:")
    elif sampled is not None:
        _link("label", _("Label on"), ":material/label:")


def _box(light: Light) -> None:
    """What to look at and what to do, with links if labels are missing."""
    boxes = {"wrong": st.error, "look": st.warning, "none": st.info}
    what, remedy = (markdown_safe(text, _CHARS) for text in (light.what, light.remedy))
    if light.state == "look":
        text = f"**{light.title}**  \n{paragraph([each for each in (what, remedy) if each])}"
    else:
        text = f"**{light.title}**  \n{what}\n\n**{_('What to do')}**  \n{remedy}"
    boxes[light.state](text)
    if light.code in ("no_labels", "mostly_unjudged"):
        with st.container(horizontal=True):
            _link("label", _("Label documents"), ":material/label:")
            if light.code == "no_labels":
                _link("judge", _("Judge"), ":material/smart_toy:")


def _link(page: str, label: str, icon: str) -> None:
    st.page_link(view.page(page), label=label, icon=icon)
