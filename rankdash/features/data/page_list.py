"""The list of data sets, loading by name, and workspaces as files."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from rankdash import __version__
from rankdash.core.base import i18n
from rankdash.core.base import text as base_text
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import enumerated, error_text, finding_text, moment, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import distinct
from rankdash.core.intake.reading import imported
from rankdash.core.readers import sources_by_name
from rankdash.core.workspace import DatasetRow
from rankdash.core.workspace.notes import Corrections, Notes, RunNotes
from rankdash.core.workspace.workspace_file import archive
from rankdash.core.workspace.workspace_file.import_workspace import TakenIn
from rankdash.features.data import page_upload
from rankdash.kit.html.tables import file_name
from rankdash.kit.widgets import address, dialogs, pickers, redraw, stored
from rankdash.kit.widgets.labels import corrections
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe, name_rows
from rankdash.kit.widgets.uploader import uploader


def draw(rows: Sequence[DatasetRow]) -> None:
    st.header(_("Data sets in this workspace"), anchor=False)
    opened = address.one("data")
    st.dataframe(
        pd.DataFrame(
            {
                _p("column", "current"): ["●" if row.id == opened else "" for row in rows],
                _p("column", "name"): [row.name for row in rows],
                _p("column", "queries"): [row.queries for row in rows],
                _p("column", "documents"): [row.documents for row in rows],
                _("labels in the files"): [row.labels for row in rows],
                _("added (UTC)"): [moment(row.created) for row in rows],
            }
        ),
        hide_index=True,
        column_config=dict.fromkeys(
            (_p("column", "queries"), _p("column", "documents"), _("labels in the files")),
            st.column_config.NumberColumn(format="localized"),
        ),
        row_height=name_rows(row.name for row in rows),
        alt=_("The data sets in this workspace"),
    )
    chosen = next((row for row in rows if row.id == opened), None)
    if chosen is None:
        return
    st.caption(_("Current data set: {name}", name=markdown_safe(chosen.name, 80)))
    if not read_only():
        _change(chosen, rows)
    if stored.damage(chosen.id) is None:
        corrections.draw(chosen.id)
        corrections.exports(chosen.id)


def _change(chosen: DatasetRow, rows: Sequence[DatasetRow]) -> None:
    row_of_buttons = st.container(horizontal=True)
    if row_of_buttons.button(_p("button", "Rename"), icon=":material/edit:"):
        dialogs.rename(
            _("Rename the data set"),
            chosen.name,
            lambda name: workspace().rename_dataset(
                chosen.id, base_text.free(name, [row.name for row in rows if row is not chosen])
            ),
        )
    if row_of_buttons.button(_p("button", "Delete"), icon=":material/delete:"):
        dialogs.delete(_("Delete the data set?"), _what_goes(chosen), lambda: _delete(chosen.id))


def _what_goes(row: DatasetRow) -> list[str]:
    runs = len(workspace().runs(row.id))
    sentences = [
        _(
            "{name} will be deleted permanently. Your own files are not affected.",
            name=markdown_safe(row.name, 80),
        )
    ]
    notes = len(Notes(workspace()).all(row.id)) + len(RunNotes(workspace()).all(row.id))
    remarks = notes + Corrections(workspace()).layer(row.id).count
    if runs:
        sentences.append(
            ngettext("{n} run will be deleted too.", "{n} runs will be deleted too.", runs)
        )
    if remarks:
        sentences.append(
            ngettext(
                "{n} note or corrected label will be deleted too.",
                "{n} notes and corrected labels will be deleted too.",
                remarks,
            )
        )
    return sentences


def _delete(dataset_id: str) -> None:
    stored.by_this_session([dataset_id])
    workspace().delete_dataset(dataset_id)
    address.choose("data", None)


# Data sets of collections, loaded by name.

_TICKS_A_SIGN = 5


def draw_open_by_name() -> None:
    """Draw the form that loads data sets by name; download them and read them like uploaded
    files."""
    st.caption(
        _(
            "`ir_datasets:beir/scifact/test` loads a data set from the package ir_datasets, "
            "`hf:organization/name` from the Hugging Face hub. If the labels are in a separate "
            "repository, add its name after a space."
        )
    )
    with st.form("by_name", border=False):
        field, button = st.columns([5, 1], vertical_alignment="bottom")
        typed = field.text_input(
            _p("field", "Names"),
            placeholder="hf:BeIR/scifact hf:BeIR/scifact-qrels",
            max_chars=400,
            help=_(
                "A folder of a repository: hf:organization/name/folder. A branch, tag or commit: "
                "hf:organization/name@revision. Downloads are cached in the folders of these "
                "packages. If a data set has more than 100,000 documents, only documents with a "
                "label or a rank are read."
            ),
        )
        sent = button.form_submit_button(_p("button", "Open"), width="stretch")
    names = typed.split()
    if not sent or not names:
        return
    sign = st.empty()
    ticks = 0

    def waiting() -> None:
        # A script of a closed page ends at its next output, so write some from time to time.
        nonlocal ticks
        ticks += 1
        if ticks % _TICKS_A_SIGN == 0:
            sign.empty()

    try:
        with st.spinner(_("Downloading. Leaving the page cancels it."), show_time=True):
            sources = sources_by_name(names, waiting=waiting)
    except RankdashError as error:
        dialogs.show_error(i18n.problem_text(error), 800)
        return
    page_upload.read_sources(sources)


# The workspace as one file: export and import.

_SAID = "sharing.said"
_GENERATION = "sharing.generation"
_MOST_FINDINGS = 20


def draw_sharing_files(rows: Sequence[DatasetRow]) -> None:
    """Draw export and import; in a read-only workspace only the export."""
    if rows:
        _export(rows)
    if not read_only():
        _said()
        _import()


def _said() -> None:
    """Show the result of the last import once."""
    outcome: TakenIn | None = st.session_state.pop(_SAID, None)
    if outcome is None:
        return
    st.success(added(outcome), icon=":material/check_circle:")
    shown = outcome.findings[:_MOST_FINDINGS]
    lines = [f"- {markdown_safe(finding_text(each), 300)}" for each in shown]
    more = len(outcome.findings) - len(shown)
    if more:
        lines.append("- " + ngettext("and {n} more", "and {n} more", more))
    if lines:
        redraw.pause()
        heading = _("Existing content was not changed. Differences in the file:")
        st.warning("\n".join([heading, "", *lines]), icon=":material/info:")


def _export(rows: Sequence[DatasetRow]) -> None:
    names = distinct({row.id: row.name for row in rows})
    st.caption(
        _(
            "The file contains data sets with their runs, notes, corrected labels, judges and "
            "explanations, and the scenarios, prices and targets. Keys, cached scores, unfinished "
            "runs and paths on this machine are not exported."
        )
    )
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    chosen = left.multiselect(
        _("Data sets in the file"),
        list(names),
        default=list(names),
        format_func=names.__getitem__,
        key=pickers.in_words("sharing.data"),
    )
    damaged_names = [names[each] for each in chosen if stored.damage(each) is not None]
    damaged_names += [name for each in chosen for name, _error in stored.damaged(each).values()]
    if damaged_names:
        damaged = enumerated(markdown_safe(name, 80) for name in damaged_names)
        st.warning(
            _("Not exported because damaged: {names}.", names=damaged), icon=":material/warning:"
        )
    right.download_button(
        _p("button", "Export"),
        data=lambda: exported(chosen),
        file_name=file_name(
            names[chosen[0]] if len(chosen) == 1 else "", "workspace", archive.SUFFIX[1:]
        ),
        mime="application/zip",
        icon=":material/download:",
        key="sharing.export",
        on_click="ignore",
        disabled=not chosen,
        width="stretch",
    )


def exported(dataset_ids: Sequence[str]) -> bytes:
    """Return the bytes of a workspace file with these data sets."""
    target = io.BytesIO()
    archive.export(workspace(), target, __version__, dataset_ids)
    return target.getvalue()


def _import() -> None:
    files = uploader(
        _("A workspace file to import"),
        f"sharing.file.{st.session_state.get(_GENERATION, 0)}",
        type=["zip"],
        help=_(
            "The file is checked first and added completely or not at all. The content of this "
            "workspace stays unchanged."
        ),
    )
    if not files or not st.button(
        _p("button", "Import"), type="primary", icon=":material/upload:", key="sharing.import"
    ):
        return
    bar = st.progress(0.0, text=_p("state", "Checking"))

    def progress(done: int, total: int) -> None:
        words = _("{done} of {total} checked", done=number(done, 0), total=number(total, 0))
        bar.progress(done / total, text=words)

    try:
        outcome = imported(workspace(), files[0], progress)
    except RankdashError as error:
        bar.empty()
        dialogs.show_error(error_text(error))
        return
    st.session_state[_SAID] = outcome
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    if outcome.datasets:
        address.choose("data", outcome.datasets[0])
    st.rerun()


def added(outcome: TakenIn) -> str:
    new = outcome.added
    words = {
        "datasets": ngettext("{n} data set", "{n} data sets", new["datasets"]),
        "runs": ngettext("{n} run", "{n} runs", new["runs"]),
        "notes": ngettext("{n} note", "{n} notes", new["notes"]),
        "corrections": ngettext("{n} corrected label", "{n} corrected labels", new["corrections"]),
        "explanations": ngettext("{n} explanation", "{n} explanations", new["explanations"]),
        "judges": ngettext("{n} judge", "{n} judges", new["judges"]),
        "settings": _("scenarios, prices or targets"),
    }
    parts = [text for kind, text in words.items() if new[kind]]
    if not parts:
        return _("This workspace already contains everything in the file.")
    return _("Imported: {what}.", what=enumerated(parts))
