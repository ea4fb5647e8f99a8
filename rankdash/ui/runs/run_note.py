"""The note on a run, written where the run is looked at: saved at once, and undone."""

from __future__ import annotations

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.i18n import moment
from rankdash.store.notes.notes import LONGEST_NOTE
from rankdash.store.notes.run_notes import RunNote, RunNotes
from rankdash.ui.state import pickers
from rankdash.ui.state.server import read_only, workspace
from rankdash.ui.widgets import action_errors

_PLACE = "run_note"
_BEFORE = "run_note.before"


def draw(run_id: str) -> None:
    note = RunNotes(workspace()).of(run_id)
    if read_only():
        if note.text:
            st.caption(_("Note on this run"))
            st.text(note.text)
        return
    key = f"run_note.text.{run_id}"

    def changed() -> None:
        _keep(note, st.session_state[key])

    # Drawn from the store each time: another window may have changed it.
    pickers.show(st.text_area, key, note.text, changed)(
        _("Note on this run"),
        max_chars=LONGEST_NOTE,
        height=100,
        placeholder=_("What changed, and why it was made"),
    )
    action_errors.refused(_PLACE)
    before: RunNote | None = st.session_state.get(_BEFORE)
    if before is not None and before.run_id != run_id:
        before = None
    if not note.changed and before is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        text = _("Saved {when} UTC", when=moment(note.changed)) if note.changed else _("Deleted")
        st.caption(text, width="content")
        if note.text:
            st.button(
                _("Delete the note"),
                icon=":material/delete:",
                key="run_note.delete",
                on_click=_keep,
                args=(note, ""),
            )
        if before is not None:
            st.button(
                _("Undo"),
                icon=":material/undo:",
                key="run_note.undo",
                on_click=_keep,
                args=(note, before.text),
            )


def _keep(before: RunNote, text: str) -> None:
    if action_errors.attempt(_PLACE, lambda: RunNotes(workspace()).keep(before.run_id, text)):
        st.session_state[_BEFORE] = before
