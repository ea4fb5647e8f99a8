"""The page: what the report is called and has in it, the button that makes it, and the files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.reporting import report
from rankdash.reporting.exports.downloads import file_name
from rankdash.store.notes.notes import Notes
from rankdash.study.study import Study
from rankdash.ui.report import report_exports, report_form, report_preview
from rankdash.ui.state.server import workspace


def draw(study: Study) -> None:
    study = for_report(study)
    st.markdown(
        _(
            "One page that opens in any browser without a network, with interactive charts, for "
            "decision makers. It prints to PDF and is a static snapshot."
        )
    )
    words, parts = st.columns([1, 2], gap="large")
    usual_title = _("Reranking on {data}", data=study.dataset.name)
    front = report_form.draw(words, parts, usual_title, report_preview.of(study))
    words.download_button(
        _("Make the report and save it"),
        data=b"" if front is None else partial(report.html, study, front),
        file_name=file_name(study.dataset.name, "report", "html"),
        mime="text/html",
        type="primary",
        icon=":material/description:",
        key="report.make",
        on_click="ignore",
        disabled=front is None,
        width="stretch",
    )
    report_exports.draw(study, front)


def for_report(study: Study) -> Study:
    """With the notes on queries."""
    return replace(
        study,
        notes={note.query_id: note for note in Notes(workspace()).all(study.stored_id)},
        corrections=study.corrections if study.corrected else 0,
    )
