"""Labels that come back: a filled-in list of what to label, merged into a data set."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from rankdash.analysis.labels.labelling import CONFLICTS, Conflict, Merged, merge_labels
from rankdash.errors import RankdashError
from rankdash.i18n import enumerated, error_text, ngettext
from rankdash.i18n import gettext as _
from rankdash.readers import Source, read, reversed_note
from rankdash.ui.labels.successor import keep_beside
from rankdash.ui.state import pickers, stored
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
    report = stored.check_report(dataset_id)
    worst = None if report is None else report.reversed_at
    # That labels were reversed stays with the data set.
    noticed = [] if worst is None else [reversed_note(worst)]
    st.session_state[_SAID] = _summary(merged)
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    keep_beside(dataset_id, merged.dataset, noticed, name=_named(merged))
    st.rerun()


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
