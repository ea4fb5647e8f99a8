"""What can be taken away beside the report: each with a line on what it is for, made on a click."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import language, speaking
from rankdash.core.study.study import Study
from rankdash.features.report import report_report, report_triplet_lines, report_zip_file
from rankdash.features.report.report_report import Front
from rankdash.kit.html import downloads, images
from rankdash.kit.html.downloads import english, file_name
from rankdash.kit.widgets.text import name_safe

_NAME = 40
_CSV, _TEXT = "text/csv", "text/plain"


@dataclass(frozen=True)
class _File:
    """A button. name: what the file is, with its ending. language: that it is made in. hindered:
    why it cannot be made, "" where it can."""

    label: str
    name: str
    kind: str
    make: Callable[[], bytes]
    language: str = "en"
    hindered: str = ""


def draw(study: Study, front: Front | None) -> None:
    """front: of the report that goes into the zip; None for a zip without one."""
    named = english(study)
    parts = {part.name: part for part in report_zip_file.tables(named)}
    st.subheader(_("Numbers and files"), anchor=False)
    st.caption(
        _(
            "Every file is made when you request it. The report and the pictures are in the "
            "language of this page; tables and files for a program are in English, their columns "
            "named alike for every data set."
        )
    )
    _row(
        study.dataset.name,
        _("Everything"),
        _(
            "One zip with the report, all files below, the charts as pictures and a manifest "
            "that describes each file. To archive a decision, or to hand everything over."
        ),
        [_File("ZIP", "all.zip", "application/zip", partial(whole, study, front), language())],
        extra=_charts_note(),
    )
    _row(
        study.dataset.name,
        _("Every query"),
        _(
            "One row per query and system: values, change, outcome and reason, failures with "
            "their reason, latency. CSV for a spreadsheet; Parquet and JSON for a program."
        ),
        [
            _File("CSV", "queries.csv", _CSV, parts["queries.csv"].make),
            _File(
                "Parquet",
                "queries.parquet",
                "application/vnd.apache.parquet",
                parts["queries.parquet"].make,
            ),
            _File("JSON", "queries.json", "application/json", parts["queries.json"].make),
        ],
    )
    _row(
        study.dataset.name,
        _("Tables for a text or a paper"),
        _(
            "Systems × metrics, the best in bold, significant changes marked. Markdown, with the "
            "verdicts, for a pull request; LaTeX for a paper; CSV with every unrounded number."
        ),
        [
            _File("Markdown", "summary.md", "text/markdown", parts["summary.md"].make),
            _File("LaTeX", "summary.tex", "application/x-tex", parts["summary.tex"].make),
            _File(
                _("LaTeX with intervals"),
                "comparison.tex",
                "application/x-tex",
                parts["comparison.tex"].make,
            ),
            _File("CSV", "comparison.csv", _CSV, parts["comparison.csv"].make),
        ],
    )
    _row(
        study.dataset.name,
        _("Rankings and labels"),
        _(
            "In the formats of TREC, for trec_eval and compatible tools. A query without a "
            "result is not in its ranking, so that nothing counts it as 0."
        ),
        _trec(study, named),
    )
    _row(
        study.dataset.name,
        _("Hard negatives for training"),
        _(
            "JSON lines of query, positive and negative, as sentence-transformers reads triplets: "
            "each relevant document with documents labelled not relevant that the system ranks "
            "above it."
        ),
        _triplets(study, named),
    )


def _triplets(study: Study, named: Study) -> list[_File]:
    """The files of the study as it is named in English, each called as it is on the page."""
    lacking = report_triplet_lines.lacks_texts(study)
    hindered = _("The data set has no texts of queries and documents.") if lacking else ""
    return [
        _File(
            name_safe(study.name(system), _NAME),
            f"hard negatives {part.name.rpartition('/')[2]}",
            "application/jsonl",
            part.make,
            hindered=hindered,
        )
        for system, part in zip(study.chosen, report_zip_file.training_files(named), strict=True)
    ]


def whole(study: Study, front: Front | None) -> bytes:
    """The zip, the report in it as it is set on the page, in the language in force."""
    first = []
    if front is not None:
        what = _("The report: one page that opens without a network.")
        first = [downloads.ZipPart("report.html", what, lambda: report_report.html(study, front))]
    return report_zip_file.bundle(study, datetime.now(UTC), first=first)


def _spoken(make: Callable[[], bytes], code: str) -> bytes:
    """The file in the language `code`: it is made outside of the session that asked for it."""
    with speaking(code):
        return make()


def _trec(study: Study, named: Study) -> list[_File]:
    """The files of the study as it is named in English, each called as it is on the page."""
    blank = study.dataset.ids_with_blanks
    hindered = _("Ids with blanks cannot stand in a TREC file.") if blank else ""
    labels, *runs = report_zip_file.trec_files(named)
    return [
        _File(
            _("Judgments (relevance labels)"), "qrels.txt", _TEXT, labels.make, hindered=hindered
        ),
        *(
            _File(
                name_safe(study.name(system), _NAME),
                part.name.rpartition("/")[2],
                _TEXT,
                part.make,
                hindered=hindered,
            )
            for system, part in zip(study.chosen, runs, strict=True)
        ),
    ]


def _charts_note() -> str:
    camera = _("The camera above any chart saves it as SVG, in the colours you see it in.")
    if images.browser() is None:
        missing = _(
            "The zip has no pictures: drawing them needs Chrome, Chromium or Edge on the machine "
            "that runs rankdash."
        )
        return f"{missing} {camera}"
    return camera


def _row(data: str, title: str, what: str, files: Sequence[_File], extra: str = "") -> None:
    """data: the name of the data set."""
    with st.container(border=True):
        st.markdown(f"**{title}** · {what}")
        if extra:
            st.caption(extra)
        with st.container(horizontal=True):
            for file in files:
                st.download_button(
                    file.label,
                    data=partial(_spoken, file.make, file.language),
                    file_name=file_name(data, *file.name.rsplit(".", 1)),
                    mime=file.kind,
                    icon=":material/download:",
                    key=f"report.file.{file.name}",
                    on_click="ignore",
                    disabled=bool(file.hindered),
                    help=file.hindered or None,
                )
