"""Data sets of collections, opened by their name."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base import failures
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import gettext as _
from rankdash.core.readers import sources_by_name
from rankdash.features.data import page_uploads
from rankdash.kit.widgets import action_errors

_TICKS_A_SIGN = 5


def draw() -> None:
    """Ask for names, fetch what they name, and read it as dropped files are read."""
    st.caption(
        _(
            "`ir_datasets:beir/scifact/test` loads a data set of the package ir_datasets, "
            "`hf:organization/name` one of the Hugging Face hub. If the labels are in a "
            "repository of their own, add its name after a space."
        )
    )
    with st.form("by_name", border=False):
        field, button = st.columns([5, 1], vertical_alignment="bottom")
        typed = field.text_input(
            _("Names"),
            placeholder="hf:BeIR/scifact hf:BeIR/scifact-qrels",
            max_chars=400,
            help=_(
                "A folder of a repository: hf:organization/name/folder. A branch, tag or commit: "
                "hf:organization/name@revision. Downloads stay in the folders of these packages. "
                "Of more than 100,000 documents only those with a label or a rank are read."
            ),
        )
        sent = button.form_submit_button(_("Open"), width="stretch")
    names = typed.split()
    if not sent or not names:
        return
    sign = st.empty()
    ticks = 0

    def waiting() -> None:
        # Streamlit ends a script that nobody waits for when it next says something.
        nonlocal ticks
        ticks += 1
        if ticks % _TICKS_A_SIGN == 0:
            sign.empty()

    try:
        with st.spinner(_("Downloading. Leaving the page cancels it."), show_time=True):
            sources = sources_by_name(names, waiting=waiting)
    except RankdashError as error:
        action_errors.say(failures.problem(error), 800)
        return
    page_uploads.read_sources(sources)
