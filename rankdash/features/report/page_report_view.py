"""The page: what the report is called and has in it, the button that makes it, and the files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.drawn import only_estimates
from rankdash.core.study.study import Study
from rankdash.core.workspace.notes.notes import Notes
from rankdash.features.report import (
    page_report_exports,
    page_report_form,
    page_report_preview,
    report_report,
)
from rankdash.kit.html.downloads import file_name
from rankdash.kit.widgets import label_plan, narrow
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.text import markdown_safe


def draw(study: Study) -> None:
    study = for_report(study)
    st.markdown(
        _(
            "One HTML file for decision makers: a page to decide by, then the details. It opens in "
            "any browser without a network, prints to PDF, and is a static snapshot."
        )
    )
    top = st.container()
    words, parts = st.container(key=narrow.STACKED).columns([1, 2], gap="large")
    usual_title = _("Reranking on {data}", data=study.dataset.name)
    front = page_report_form.draw(words, parts, usual_title, page_report_preview.of(study))
    file = file_name(study.dataset.name, "report", "html")
    made = words.download_button(
        _("Make the report and save it"),
        data=b"" if front is None else partial(report_report.html, study, front),
        file_name=file,
        mime="text/html",
        type="primary",
        icon=":material/description:",
        key="report.make",
        disabled=front is None,
        width="stretch",
    )
    if made and front is not None:
        with top:
            _show(study, front, file)
    if not only_estimates(study):
        page_report_exports.draw(study, front)


def _show(study: Study, front: report_report.Front, file: str) -> None:
    """Where the file went, and how it begins."""
    st.info(
        _(
            "The report is being made. Your browser then saves it as **{file}**, in its folder for "
            "downloads.",
            file=markdown_safe(file),
        ),
        icon=":material/download:",
    )
    first = replace(front, sections=front.sections[:1])
    st.iframe(
        report_report.html(study, first).decode(), height=640, alt=_("The first page of the report")
    )


def for_report(study: Study) -> Study:
    """With the notes on queries, and what the labels say that are being given: as a note if most
    labels came with the data, else as all there is."""
    labelled = label_plan.under_way(study)
    if only_estimates(labelled) and label_plan.sampled(study.stored_id) is None:
        labelled = study
    return replace(
        labelled,
        notes={note.query_id: note for note in Notes(workspace()).all(study.stored_id)},
        corrections=study.corrections if study.corrected else 0,
    )
