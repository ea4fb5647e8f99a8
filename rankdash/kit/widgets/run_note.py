"""The note on a run, written where the run is looked at: saved at once, and undone."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import moment
from rankdash.core.workspace.notes.notes import LONGEST_NOTE, Note
from rankdash.core.workspace.notes.run_notes import RunNote, RunNotes
from rankdash.kit.widgets import action_errors, person, pickers
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe

_PLACE = "run_note"
_BEFORE = "run_note.before"


def draw(run_id: str) -> None:
    note = RunNotes(workspace()).of(run_id)
    if read_only():
        if note.text:
            st.caption(_("Note on this run"))
            st.text(note.text)
            if note.who:
                st.caption(saved(note))
        return
    key = f"run_note.text.{run_id}"

    def changed() -> None:
        _keep(note, st.session_state[key])

    # Drawn from the store each time: another window may have changed it.
    pickers.show(st.text_area, key, note.text, changed)(
        _("Note on this run"),
        max_chars=LONGEST_NOTE,
        height=100,
        placeholder=_("What changed, and why you made this run"),
    )
    action_errors.refused(_PLACE)
    before: RunNote | None = st.session_state.get(_BEFORE)
    if before is not None and before.run_id != run_id:
        before = None
    if not note.changed and before is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(saved(note) if note.changed else _("Deleted"), width="content")
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


def saved(note: Note | RunNote) -> str:
    """When a note was written, and by whom where that is known; safe for Markdown."""
    when = moment(note.changed)
    if note.who:
        return _("Saved {when} UTC by {name}", when=when, name=markdown_safe(note.who, 60))
    return _("Saved {when} UTC", when=when)


def _keep(before: RunNote, text: str) -> None:
    notes = RunNotes(workspace())
    if action_errors.attempt(_PLACE, lambda: notes.keep(before.run_id, text, person.name())):
        st.session_state[_BEFORE] = before
