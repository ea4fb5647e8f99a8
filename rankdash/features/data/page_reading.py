"""The reading of uploaded files: choices next to the uploader, and progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import streamlit as st

from rankdash.core.base.i18n import duration, enumerated, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.intake.reading import Progress, Reading
from rankdash.core.readers import (
    Conflict,
    Match,
    Together,
)
from rankdash.kit.widgets.text import markdown_safe

_REFRESH_SECONDS = 1.0


def draw_reading_panel(reading: Reading, files: Sequence[str]) -> None:
    """Draw the progress every second; at the end of the process, redraw the page."""

    @st.fragment(run_every=_REFRESH_SECONDS)
    def panel() -> None:
        if not reading.running:
            st.rerun(scope="app")
        progress = reading.progress
        with st.container(border=True):
            text, action = st.columns([5, 1], vertical_alignment="center")
            text.markdown(
                _(
                    "**Reading {files}**",
                    files=enumerated(markdown_safe(each, 60) for each in files),
                )
            )
            text.caption(" · ".join(_words(progress, reading.seconds)))
            action.button(
                _p("button", "Cancel"),
                icon=":material/cancel:",
                key="upload.cancel",
                on_click=reading.cancel,
                disabled=progress.step == "storing",
            )

    panel()


def _words(progress: Progress, seconds: float) -> list[str]:
    parts = [
        {
            "reading": _("Step 1 of 4: reading rows"),
            "joining": _("Step 2 of 4: joining queries, documents and labels"),
            "checking": _("Step 3 of 4: checking"),
            "storing": _("Step 4 of 4: storing"),
        }[progress.step],
        _("{time} elapsed", time=duration(seconds)),
    ]
    if progress.rows:
        parts.insert(1, ngettext("{n} row read", "{n} rows read", progress.rows))
    if progress.seconds_left is not None and progress.seconds_left >= 1:
        parts.append(_("at most {time} left for this step", time=duration(progress.seconds_left)))
    return parts


def conflict_choice() -> Conflict:
    """Draw the choice for pairs with two labels."""
    chosen: Conflict = st.selectbox(
        _("Duplicate judgments"),
        get_args(Conflict),
        format_func=lambda value: {
            "highest": _("keep the highest"),
            "lowest": _("keep the lowest"),
            "mean": _("use the mean"),
            "refuse": _("reject the file"),
        }[value],
        help=_("The same query and document labelled twice with different grades."),
    )
    return chosen


def annotators_choice() -> Together:
    """Draw the choice for a label column per annotator."""
    chosen: Together = st.selectbox(
        _("Several annotators"),
        get_args(Together),
        format_func=lambda value: {
            "majority": _("Majority vote"),
            "mean": _("use the mean of their grades"),
        }[value],
        help=_(
            "For files with a label column per annotator, named label_1, label_2 and so on. On a "
            "tie, the lower grade is used. The check report shows the agreement of the "
            "annotators."
        ),
    )
    return chosen


def match_choice() -> Match:
    """Draw the choice of how labels refer to queries."""
    chosen: Match = st.selectbox(
        _("Query ids of the labels"),
        get_args(Match),
        format_func=lambda value: {"id": _("by id"), "order": _("by order")}[value],
        help=_(
            "By order: query ids 1, 2, 3 … in the labels are the first, second, third … query in "
            "the query file, whatever their ids."
        ),
    )
    return chosen
