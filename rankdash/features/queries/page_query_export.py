"""One query as one file that needs no network: what the page shows, to send to someone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import language, speaking
from rankdash.core.study.study import Study
from rankdash.core.workspace.notes.corrections import Corrections
from rankdash.core.workspace.notes.notes import Notes
from rankdash.features.queries import report_query_file
from rankdash.kit.html.downloads import file_name
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.server import workspace


def button(study: Study, challenger: str, query_id: str) -> None:
    """Offer the file; it is made when it is asked for."""
    st.download_button(
        _("Save this query as a file"),
        data=partial(html, study, challenger, query_id, language()),
        file_name=file_name(study.dataset.name, f"query {query_id}", "html"),
        mime="text/html",
        icon=":material/download:",
        key="queries.export",
        on_click="ignore",
        help=_("One page with its charts and texts, which opens without a network."),
    )


def html(study: Study, challenger: str, query_id: str, code: str) -> bytes:
    """The file, in the language `code`: it is made outside of the session that asked for it."""
    note = Notes(workspace()).of(study.stored_id, query_id)
    corrections = Corrections(workspace()).all(study.stored_id) if study.corrected else ()
    own = [each for each in corrections if each.query_id == query_id]
    uploaded = stored.uploaded_labels(study.dataset_id, query_id) if own else {}
    with speaking(code):
        return report_query_file.html(
            replace(study, notes={query_id: note}), challenger, query_id, own, uploaded
        )
