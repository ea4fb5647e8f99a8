"""Tags and a note on a query, and its labels: what an analyst has to say about it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import error_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.names import distinct
from rankdash.core.data.ranking import digest
from rankdash.core.study.study import Study
from rankdash.core.workspace.notes.notes import LONGEST_NOTE, MOST_TAGS, Note, Notes, tags_in_use
from rankdash.features.label import page_corrections_form, page_corrections_list
from rankdash.kit.widgets import action_errors, person, pickers
from rankdash.kit.widgets.run_note import saved
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe

_PLACE = "notes"
# Narrower than this, in pixels, remarks and labels stand below each other.
_HALF = 260
_BEFORE = "notes.before"


def draw(study: Study, query_id: str) -> None:
    """The remarks on the query beside the labels of its documents; both are saved as they are
    made."""
    if read_only():
        _shown(Notes(workspace()).of(study.stored_id, query_id))
        page_corrections_list.draw(study.stored_id, query_id)
        return
    beside = st.grid(2, min_column_width=_HALF)
    with beside.cell():
        _remarks(study.stored_id, query_id)
    with beside.cell():
        page_corrections_form.draw(study, query_id)
    page_corrections_list.draw(study.stored_id, query_id)


def marks(study: Study) -> pd.DataFrame:
    """query_id, tags (joined by commas) and note, one row for each query that has any."""
    notes = Notes(workspace()).all(study.stored_id)
    return pd.DataFrame(
        [(note.query_id, ", ".join(note.tags), note.text) for note in notes],
        columns=["query_id", "tags", "note"],
        dtype=object,
    )


def _shown(note: Note) -> None:
    """The remarks of a workspace that is only shown."""
    _unread(note)
    if note.tags:
        st.caption(" · ".join(markdown_safe(tag, 60) for tag in note.tags))
    if note.text:
        st.text(note.text)
    if not note.changed:
        st.caption(_("No note."))
    elif note.who:
        st.caption(saved(note))


def _unread(note: Note) -> None:
    if note.unread is not None:
        st.warning(markdown_safe(error_text(note.unread), 300), icon=":material/warning:")


def _remarks(dataset_id: str, query_id: str) -> None:
    notes = Notes(workspace())
    note = notes.of(dataset_id, query_id)
    name = _named(dataset_id, query_id)
    tags_key, text_key = f"notes.tags.{name}", f"notes.text.{name}"
    _unread(note)
    # Drawn from the store each time: another window may have changed it.
    tags, offered = list(note.tags), tags_in_use(notes.all(dataset_id))

    def changed() -> None:
        _keep(dataset_id, note, st.session_state[tags_key], st.session_state[text_key])

    titles = distinct({tag: tag for tag in (*tags, *offered)})
    pickers.show(st.multiselect, tags_key, tags, changed)(
        _("Tags"),
        list(titles),
        format_func=lambda tag: titles.get(tag, tag),
        accept_new_options=True,
        max_selections=MOST_TAGS,
        placeholder=_("choose or type"),
    )
    pickers.show(st.text_area, text_key, note.text, changed)(
        _("Note"),
        max_chars=LONGEST_NOTE,
        height=110,
        placeholder=_("Your findings, for yourself and for the report"),
    )
    action_errors.refused(_PLACE)
    before: dict[str, Any] = st.session_state.get(_BEFORE, {})
    if note.changed or before.get("name") == name:
        _saved(dataset_id, note, before.get("note") if before.get("name") == name else None)


def _saved(dataset_id: str, note: Note, before: Note | None) -> None:
    line, undo = st.columns([3, 1], vertical_alignment="center")
    line.caption(saved(note) if note.changed else _("Empty"))
    if before is not None:
        undo.button(
            _("Undo"),
            icon=":material/undo:",
            key="notes.undo",
            on_click=_keep,
            args=(dataset_id, note, before.tags, before.text),
            width="stretch",
        )


def _keep(dataset_id: str, before: Note, tags: list[str], text: str) -> None:
    query_id = before.query_id
    if action_errors.attempt(
        _PLACE, lambda: Notes(workspace()).keep(dataset_id, query_id, tags, text, person.name())
    ):
        st.session_state[_BEFORE] = {"name": _named(dataset_id, query_id), "note": before}


def _named(dataset_id: str, query_id: str) -> str:
    """A query in the names of widgets, whatever stands in its id."""
    return digest([dataset_id.encode(), query_id.encode("utf-8", "surrogatepass")])


def tags(marks: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Query id → its tags, from `marks`."""
    return {
        query: tuple(own.split(", "))
        for query, own in zip(marks["query_id"], marks["tags"], strict=True)
        if own
    }
