"""Labels that come back: a filled-in list of what to label, merged into a data set."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import streamlit as st

from rankdash.analysis.labels.check import check
from rankdash.analysis.labels.labelling import CONFLICTS, Conflict, Merged, merge_labels
from rankdash.errors import RankdashError
from rankdash.i18n import enumerated, error_text, ngettext
from rankdash.i18n import gettext as _
from rankdash.ranking.ranking import digest
from rankdash.readers import Source, read
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.notes import Notes
from rankdash.ui.state import address, pickers, stored
from rankdash.ui.state.server import workspace
from rankdash.ui.widgets.text import markdown_safe

_SAID = "labels.said"
_GENERATION = "labels.generation"


def draw(dataset_id: str) -> None:
    """Upload labels for the chosen data set. It becomes a new data set, with its runs; the old one
    stays, so nothing is lost."""
    if _SAID in st.session_state:
        st.success(st.session_state.pop(_SAID), icon=":material/check_circle:")
    file = st.file_uploader(
        _("A filled-in labelling list, or any file of labels for this data set"),
        key=f"labels.file.{st.session_state.get(_GENERATION, 0)}",
    )
    conflict: Conflict = st.selectbox(
        _("Where a pair has a label already"),
        get_args(Conflict),
        format_func=lambda rule: _(CONFLICTS[rule]),
        key=pickers.in_words("labels.conflict"),
    )
    if file is None or not st.button(_("Add these labels"), type="primary", key="labels.add"):
        return
    try:
        parsed = read([Source(file.name, file.getvalue())])
        merged = merge_labels(stored.dataset(dataset_id), parsed.qrels, conflict=conflict)
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 600), icon=":material/error:")
        return
    new_id = _store(dataset_id, merged)
    st.session_state[_SAID] = _summary(merged)
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    address.choose("data", new_id)
    for field in ("base", "system", "vs"):
        address.choose(field, None)
    st.rerun()


def _store(old: str, merged: Merged) -> str:
    """Save the merged data set beside the old one, and its runs with it."""
    runs = [workspace().run(row.id) for row in workspace().runs(old)]
    report = check(merged.dataset, (), {run.name: run.ranking for run in runs})
    new_id = workspace().save_dataset(merged.dataset, source="upload", report_json=report.to_json())
    if new_id != old:
        workspace().rename_dataset(new_id, _named(merged))
        for run in runs:
            own = digest([new_id.encode(), run.id.encode()])
            workspace().save_run(replace(run, id=own, dataset_id=new_id))
        _carry_remarks(old, new_id)
    return new_id


def _carry_remarks(old: str, new: str) -> None:
    """Notes and corrections go along, but for corrections that the new labels agree with."""
    notes, corrections = Notes(workspace()), Corrections(workspace())
    known = {note.query_id for note in notes.all(new)}
    for note in notes.all(old):
        if note.query_id not in known:
            notes.keep(new, note.query_id, note.tags, note.text)
    if not corrections.layer(new).count:
        corrections.restore(
            new,
            [
                each
                for each in corrections.all(old)
                if stored.uploaded_labels(new, each.query_id).get(each.doc_id) != each.label
            ],
        )


def _named(merged: Merged) -> str:
    added = ngettext("{n} new label", "{n} new labels", merged.added + merged.changed)
    return f"{merged.dataset.name} + {added}"[:80]


def _summary(merged: Merged) -> str:
    parts = [
        ngettext("{n} label added", "{n} labels added", merged.added),
        ngettext("{n} changed", "{n} changed", merged.changed),
        ngettext("{n} unchanged", "{n} unchanged", merged.kept + merged.same),
    ]
    if merged.unknown:
        parts.append(
            ngettext(
                "{n} not used: not a query and document of this data set",
                "{n} not used: not queries and documents of this data set",
                merged.unknown,
            )
        )
    return enumerated(parts)
