"""Report page: preview, form and exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import streamlit as st

from rankdash.core.base.errors import DataError
from rankdash.core.base.i18n import error_text, language, speaking
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study.labelling import only_estimates
from rankdash.core.study.study import Study
from rankdash.core.workspace.notes import Notes
from rankdash.features.report import charts_images, report, report_exports, report_zip
from rankdash.features.report.report import LONGEST_NOTE, LONGEST_TITLE, PRESETS, SECTIONS, Front
from rankdash.features.report.report_formats import FORMATS, Format, refusal
from rankdash.kit.html import html_page, tables
from rankdash.kit.html.tables import english, file_name
from rankdash.kit.widgets import dialogs, pickers, uploader
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import markdown_safe, name_safe, shortened

# Picture of the first page: scale of the screen size, and height in pixels.
_SCALE, _HEIGHT = 0.55, 620


def draw(study: Study) -> None:
    study = for_report(study)
    st.caption(
        _(
            "One HTML file for decision makers: a one-page summary, then the details. The file "
            "opens offline in any browser, prints to PDF, and is a static snapshot."
        )
    )
    form, shown = st.columns([2, 3], gap="large")
    usual_title = _("Reranking on {data}", data=study.dataset.name)
    with form:
        front = draw_form(usual_title, report.lacking(study))
    file = file_name(study.dataset.name, "report", "html")
    made = shown.download_button(
        _("Make the report and save it"),
        data=b"" if front is None else partial(report.html, study, front),
        file_name=file,
        mime="text/html",
        type="primary",
        icon=":material/description:",
        key="report.make",
        disabled=front is None,
        width="stretch",
    )
    if made:
        shown.info(
            _(
                "rankdash is creating the report. Your browser then saves it as **{file}** in its "
                "download folder.",
                file=markdown_safe(file),
            ),
            icon=":material/download:",
        )
    if front is not None:
        shown.container(border=True).iframe(
            report.first_page(study, front, _SCALE),
            height=_HEIGHT,
            alt=_("The first page of the report"),
        )
    if not only_estimates(study):
        draw_exports(study, front)


def for_report(study: Study) -> Study:
    """Return the study with the notes on queries and with the labels that are in progress.

    If most labels came with the data, the new labels are only a note; otherwise the report contains
    estimates only.
    """
    labelled = plan.under_way(study)
    if only_estimates(labelled) and plan.sampled(study.stored_id) is None:
        labelled = study
    return replace(
        labelled,
        notes={note.query_id: note for note in Notes(workspace()).all(study.stored_id)},
        corrections=study.corrections if study.corrected else 0,
    )


# Form of the report: title, note, logo and sections.
# The session stores all of it, so that visiting another page loses nothing.

_KEPT = "report.kept"
_LOGO, _REFUSED, _UPLOAD = "report.logo", "report.logo.refused", "report.logo.file"
_FILE_NAME = 40
_LOGO_MEGABYTES = 1


def draw_form(usual_title: str, lacking: Mapping[str, str]) -> Front | None:
    """Draw the form. Return its content in the reader's language, or None without a section.

    usual_title: title of the report if the user enters none. lacking: section id → the reason why
        the section would be empty.
    """
    title = _field(
        st.text_input,
        "title",
        "",
        label=_p("field", "Title"),
        placeholder=usual_title,
        max_chars=LONGEST_TITLE,
    )
    _preset(lacking)
    with st.container(gap="xxsmall"):
        sections = tuple(
            each.id
            for each in SECTIONS
            if _field(
                st.checkbox,
                f"section.{each.id}",
                True,
                label=_p("section", each.title),
                disabled=each.id in lacking,
                help=lacking.get(each.id),
            )
            and each.id not in lacking
        )
    note = _field(
        st.text_area,
        "note",
        "",
        label=_p("field", "Note"),
        placeholder=_("The decision, who made it, and the next steps"),
        max_chars=LONGEST_NOTE,
        help=_("Shown below the title, exactly as typed."),
    )
    picture = _logo()
    if not sections:
        st.info(_("Choose at least one section."), icon=":material/info:")
        return None
    return Front(title=title, note=note, logo=picture, sections=sections, language=language())


def _preset(lacking: Mapping[str, str]) -> None:
    """Draw a button for each preset, which selects its sections; the active preset is highlighted.

    These are buttons, because a selection that follows the checkboxes could undo a second click
    that arrives before the browser has received the result of the first.
    """
    saved: dict[str, Any] = st.session_state.setdefault(_KEPT, {})
    titles = {"decision": _("Decision, one page"), "full": _("Full report")}
    possible = [each.id for each in SECTIONS if each.id not in lacking]
    selected = {each for each in possible if saved.get(f"section.{each}", True)}
    with st.container(horizontal=True):
        for name, title in titles.items():
            sections = PRESETS[name]
            st.button(
                title,
                key=f"report.preset.{name}",
                type="primary" if selected == {*possible}.intersection(sections) else "secondary",
                on_click=saved.update,
                args=({f"section.{each.id}": each.id in sections for each in SECTIONS},),
            )


def _logo() -> bytes | None:
    """Draw the logo's field. Return the picture, which is checked on upload and stored outside of
    the uploader."""
    saved: tuple[str, bytes] | None = st.session_state.get(_LOGO)
    if saved is not None:
        name, content = saved
        with st.container(horizontal=True, vertical_alignment="center"):
            file = markdown_safe(shortened(name, _FILE_NAME))
            st.markdown(_("Logo: {file}", file=file), width="content")
            st.button(
                _p("button", "Remove"),
                icon=":material/close:",
                key="report.logo.away",
                on_click=lambda: st.session_state.pop(_LOGO),
            )
        return content
    uploader.field(_LOGO_MEGABYTES)
    st.file_uploader(
        _p("field", "Logo"),
        type=["png", "jpg", "jpeg", "gif", "webp"],
        max_upload_size=_LOGO_MEGABYTES,
        key=_UPLOAD,
        on_change=_take,
    )
    refused: DataError | None = st.session_state.pop(_REFUSED, None)
    if refused is not None:
        dialogs.show_error(error_text(refused))
    return None


def _take() -> None:
    """Store the uploaded picture, or the reason why it cannot be used."""
    upload = st.session_state[_UPLOAD]
    if upload is None:
        return
    content = upload.getvalue()
    try:
        html_page.data_uri(content)
    except DataError as error:
        st.session_state[_REFUSED] = error
    else:
        st.session_state[_LOGO] = (upload.name, content)


def _field(widget: Any, name: str, usual: Any, **settings: Any) -> Any:
    """Draw a widget and return its value, which the session stores. usual: the default value."""
    saved: dict[str, Any] = st.session_state.setdefault(_KEPT, {})
    key = f"report.{name}"

    def changed() -> None:
        saved[name] = st.session_state[key]

    pickers.show(widget, key, saved.get(name, usual), changed)(**settings)
    return saved.get(name, usual)


# Downloads besides the report: each has a description and is created on a click.

_NAME = 40
_CSV, _TEXT = "text/csv", "text/plain"


@dataclass(frozen=True)
class _File:
    """A file that a download button offers. label: of the button. name: without the data set's
    name. language: of the content. hindered: why the file cannot be created, or "". help: shown
    when the mouse is on the button."""

    label: str
    name: str
    kind: str
    make: Callable[[], bytes]
    language: str = "en"
    hindered: str = ""
    help: str = ""


def draw_exports(study: Study, front: Front | None) -> None:
    """Draw the section with all downloads. front: settings of the report in the zip; None to omit
    the report."""
    named = english(study)
    parts = {part.name: part for part in report_zip.tables(named)}
    st.header(_("Numbers and files"), anchor=False)
    st.caption(
        _(
            "rankdash creates each file when you click it. The report and the pictures use the "
            "language of this page. Tables and data files are in English and have the same column "
            "names for every data set."
        )
    )
    _row(
        study.dataset.name,
        _p("file", "Everything"),
        _(
            "One zip with the report, all files below, the charts as pictures and a manifest that "
            "describes each file. Use it to archive a decision or to share everything."
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
            "TREC formats, for trec_eval and compatible tools. A query without a result is "
            "omitted from the ranking, so that no tool counts it as 0."
        ),
        _trec(study, named),
    )
    _row(
        study.dataset.name,
        _("Files for other tools"),
        _(
            "Point at a button for its content. A zip is a folder of that tool. IDs never change; "
            "a format that cannot carry them is not offered."
        ),
        [_for_tool(named, form) for form in FORMATS.values()],
    )
    _row(
        study.dataset.name,
        _("Hard negatives for training"),
        _(
            "JSON lines with query, positive and negative, the triplet format of "
            "sentence-transformers. Each relevant document is paired with documents labelled not "
            "relevant that the system ranks above it."
        ),
        _triplets(study, named),
    )


def _for_tool(named: Study, form: Format) -> _File:
    """Return the download of a format; a folder as a zip. named: the study with English names."""
    error = refusal(named, form.name)
    hindered = "" if error is None else markdown_safe(error_text(error), 500)
    name = f"{form.name}.zip" if form.folder else form.file
    return _File(
        form.title, name, form.kind, partial(_tool_file, named, form),
        hindered=hindered, help=_(form.purpose),
    )  # fmt: skip


def _tool_file(study: Study, form: Format) -> bytes:
    files = form.files(study)
    return report_zip.zipped(files, datetime.now(UTC)) if form.folder else files[form.file]


def _triplets(study: Study, named: Study) -> list[_File]:
    """Return the downloads of hard negatives, one for each compared system. named: the study with
    English names, used in the files."""
    lacking = report_exports.lacks_texts(study)
    hindered = _("The data set has no texts of queries and documents.") if lacking else ""
    return [
        _File(
            name_safe(study.name(system), _NAME),
            f"hard negatives {part.name.rpartition('/')[2]}",
            "application/jsonl",
            part.make,
            hindered=hindered,
        )
        for system, part in zip(study.chosen, report_zip.training_files(named), strict=True)
    ]


def whole(study: Study, front: Front | None) -> bytes:
    """Return the zip; its report has the page's settings and language."""
    first = []
    if front is not None:
        what = _("The report: one page that opens without a network.")
        first = [tables.ZipPart("report.html", what, lambda: report.html(study, front))]
    return report_zip.bundle(study, datetime.now(UTC), first=first)


def _in_language(make: Callable[[], bytes], code: str) -> bytes:
    """Return the file in the language `code`, because Streamlit creates it outside of the
    session."""
    with speaking(code):
        return make()


def _trec(study: Study, named: Study) -> list[_File]:
    """Return the downloads in TREC format: the labels, and the run of each compared system. named:
    the study with English names, used in the files."""
    blank = study.dataset.ids_with_blanks
    hindered = _("TREC files cannot contain IDs with spaces.") if blank else ""
    labels, *runs = report_zip.trec_files(named)
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
    camera = _("The camera button above a chart saves the chart as SVG in its current colours.")
    if charts_images.browser() is None:
        missing = _(
            "The zip has no pictures: drawing them needs Chrome, Chromium or Edge on the machine "
            "that runs rankdash."
        )
        return f"{missing} {camera}"
    return camera


def _row(data: str, title: str, what: str, files: Sequence[_File], extra: str = "") -> None:
    """Draw a description with download buttons. data: name of the data set."""
    with st.container(border=True):
        st.markdown(f"**{title}** · {what}")
        if extra:
            st.caption(extra)
        with st.container(horizontal=True):
            for file in files:
                st.download_button(
                    file.label,
                    data=partial(_in_language, file.make, file.language),
                    file_name=file_name(data, *file.name.rsplit(".", 1)),
                    mime=file.kind,
                    icon=":material/download:",
                    key=f"report.file.{file.name}",
                    on_click="ignore",
                    disabled=bool(file.hindered),
                    help=file.hindered or file.help or None,
                )
