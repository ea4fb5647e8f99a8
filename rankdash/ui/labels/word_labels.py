"""Labels written as words: which grade each word stands for, asked with the known scales filled
in."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext
from rankdash.readers import WordsNeeded
from rankdash.ui.widgets.text import markdown_safe

_GRADES, _GAINS = "grades", "gains"


def form(needed: WordsNeeded, forget: Callable[[], None]) -> dict[str, float | None] | None:
    """word → grade, None for a word that is no label; nothing until it is sent."""
    st.warning(
        _("The labels of {file} are words. Which grade is each?", file=markdown_safe(needed.file)),
        icon=":material/format_list_numbered:",
    )
    st.caption(
        _(
            "A higher grade is better, and 0 is not relevant. Leave a grade empty where the word "
            "is no label: its rows are left out."
        )
    )
    scale = _GRADES
    if all(word.gain is not None for word in needed.words) and len(needed.words) > 2:
        scale = st.radio(
            _("Scale"),
            (_GRADES, _GAINS),
            format_func=lambda value: {
                _GRADES: _("grades: 3, 2, 1, 0"),
                _GAINS: _("gains of the ESCI task: 1, 0.1, 0.01, 0"),
            }[value],
            horizontal=True,
            key=f"words.{needed.file}.scale",
            help=_(
                "The task counts E, S, C and I for these gains in NDCG. Choose linear gains then; "
                "with a threshold of 1 only exact matches count as relevant."
            ),
        )
    with st.form(f"words.{needed.file}", border=False):
        grid = st.columns(4)
        grades = [
            grid[position % 4].number_input(
                ngettext(
                    "{word} ({n} row)",
                    "{word} ({n} rows)",
                    word.count,
                    word=markdown_safe(word.text, 60),
                ),
                value=word.gain if scale == _GAINS else word.grade,
                step=0.01 if scale == _GAINS else 1.0,
                format="%g",
                placeholder=_("not a label"),
                key=f"words.{needed.file}.{scale}.{position}",
            )
            for position, word in enumerate(needed.words)
        ]
        sent = read_or_forget(forget)
    return dict(zip((word.text for word in needed.words), grades, strict=True)) if sent else None


def read_or_forget(forget: Callable[[], None]) -> bool:
    """The buttons of a form that asks about files; whether its answer was sent."""
    with st.container(horizontal=True):
        sent = st.form_submit_button(_("Read"), type="primary")
        st.form_submit_button(_("Forget these files"), on_click=forget)
    return sent
