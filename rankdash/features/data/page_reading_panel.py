"""Large files while a process reads them: how far it is, and the way to cancel."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from rankdash.core.base.i18n import duration, enumerated, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.intake.reading import Progress, Reading
from rankdash.kit.widgets.text import markdown_safe

_REFRESH_SECONDS = 1.0


def draw(reading: Reading, files: Sequence[str]) -> None:
    """Draw it anew every second; when the process has ended, the whole page."""

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
                _("Cancel"),
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
        _("{time} so far", time=duration(seconds)),
    ]
    if progress.rows:
        parts.insert(1, ngettext("{n} row read", "{n} rows read", progress.rows))
    if progress.seconds_left is not None and progress.seconds_left >= 1:
        parts.append(_("at most {time} left for this step", time=duration(progress.seconds_left)))
    return parts
