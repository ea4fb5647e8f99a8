"""Who labels in this window."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.workspace.notes.corrections import LONGEST_NAME, tidy_name
from rankdash.kit.widgets import person
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import name_safe

_WHO = "analyst"
_NAME, _TYPED = "labelling.name", "labelling.who"


def name() -> str:
    """Logged in, or the name that was typed in this window; "" before there is one."""
    known: str = person.name() or st.session_state.get(_NAME, "")
    return known


def ask() -> None:
    """A field for the name, and a button for the one that was typed here last."""
    field, same = st.columns([2, 1], vertical_alignment="bottom")
    with field:
        _field("")
    before = workspace().setting(_WHO)
    if before:
        # Never by itself: another person may sit at this window.
        same.button(
            _("Continue as {name}", name=name_safe(before)),
            key="labelling.same",
            on_click=_call,
            args=(before,),
        )


def change() -> None:
    """The name, and a field for another one; nothing where somebody is logged in."""
    if not person.name():
        # A field that stays under the cursor would take the keys that are meant for the document.
        with st.popover(name_safe(name()), icon=":material/person:"):
            _field(name())


def _field(now: str) -> None:
    st.text_input(
        _("Your name, stored with each label"),
        value=now,
        max_chars=LONGEST_NAME,
        key=_TYPED,
        on_change=_remember,
    )


def _remember() -> None:
    typed = tidy_name(st.session_state[_TYPED])
    _call(typed)
    if typed and not read_only():
        workspace().set_setting(_WHO, typed)


def _call(who: str) -> None:
    st.session_state[_NAME] = who
