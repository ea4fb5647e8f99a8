"""Files on their way in: drop, read, map columns where needed, store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import streamlit as st

from rankdash.errors import RankdashError
from rankdash.loading import load
from rankdash.readers import Conflict, MappingNeeded, Source
from rankdash.ui import address, naming
from rankdash.ui.i18n import error_text, ngettext
from rankdash.ui.i18n import gettext as _
from rankdash.ui.server import open_sample, workspace
from rankdash.ui.text import markdown_safe

_GENERATION = "upload.generation"
_PENDING = "upload.pending"
_SAID = "upload.said"
_NO_COLUMN = ""


def sample_button(*, primary: bool) -> None:
    if st.button(
        _("Open the sample"),
        type="primary" if primary else "secondary",
        icon=":material/storefront:",
        help=_("A shop's help centre, written for rankdash: labelled queries and passages."),
    ):
        _stored(open_sample())


def upload_panel() -> None:
    """Drop files, say how to read them, read them; or finish the mapping of the last ones."""
    if _SAID in st.session_state:
        st.success(st.session_state.pop(_SAID), icon=":material/check_circle:")
    if _PENDING in st.session_state:
        _mapping_form()
        return
    files = st.file_uploader(
        _("Labelled queries and documents, rankings, or a zip of them"),
        accept_multiple_files=True,
        key=f"upload.files.{st.session_state.get(_GENERATION, 0)}",
        help=_(
            "CSV, TSV, JSON, JSONL, Parquet, TREC qrels and runs, BEIR folders as zip; plain, .gz "
            "or .zip. The format is found from the content. Several files of one set go together."
        ),
    )
    if not files:
        return
    left, middle, right = st.columns(3)
    name = left.text_input(_("Name"), placeholder=_("taken from the files"), max_chars=80)
    first = middle.selectbox(
        _("First-stage ranking"),
        ["", *(file.name for file in files)],
        format_func=lambda value: value or _("found from the names"),
        help=_("With several rankings: which one is the list that rerankers start from."),
    )
    conflict = right.selectbox(
        _("Where labels disagree"),
        get_args(Conflict),
        format_func=lambda value: {
            "highest": _("keep the highest"),
            "lowest": _("keep the lowest"),
            "mean": _("take the mean"),
            "refuse": _("refuse the file"),
        }[value],
        help=_("The same query and document labelled twice with different grades."),
    )
    label = ngettext("Read {n} file", "Read {n} files", len(files))
    if st.button(label, type="primary", icon=":material/upload_file:"):
        read = [Source(file.name, file.getvalue()) for file in files]
        _read(read, name=name, first_stage=first, conflict=conflict, mapping={})


def _read(
    files: Sequence[Source],
    *,
    name: str,
    first_stage: str,
    conflict: Conflict,
    mapping: dict[str, dict[str, str]],
) -> None:
    try:
        with st.spinner(_("Reading and checking"), show_time=True):
            loaded = load(
                files,
                name=name.strip() or None,
                mapping=mapping or None,
                conflict=conflict,
                first_stage=first_stage or None,
            )
            stored = workspace().save_dataset(
                loaded.dataset, source="upload", report_json=loaded.report.to_json()
            )
            others = {row.name for row in workspace().datasets() if row.id != stored}
            if loaded.dataset.name in others:
                workspace().rename_dataset(stored, naming.free(loaded.dataset.name, others))
            for run in loaded.runs:
                workspace().save_run(run)
    except MappingNeeded as needed:
        st.session_state[_PENDING] = {
            "files": files,
            "needed": needed,
            "mapping": mapping,
            "name": name,
            "first_stage": first_stage,
            "conflict": conflict,
        }
        _next_uploader()
    except RankdashError as error:
        # Files, options and mapping stay, so that one of them can be changed and read again.
        st.error(markdown_safe(error_text(error), 600), icon=":material/error:")
    else:
        st.session_state.pop(_PENDING, None)
        _stored(stored)


def _mapping_form() -> None:
    """Ask which column is which, starting from the reader's best guess."""
    pending = st.session_state[_PENDING]
    needed: MappingNeeded = pending["needed"]
    st.warning(
        _("Which column of {file} is which?", file=markdown_safe(needed.file)),
        icon=":material/table_view:",
    )
    st.caption(markdown_safe(error_text(needed), 400))
    st.dataframe(needed.preview, hide_index=True, alt=_("The first rows of the file"))
    columns = [_NO_COLUMN, *needed.columns]
    chosen: dict[str, str] = {}
    with st.form("mapping", border=False):
        grid = st.columns(4)
        for position, (field, guess) in enumerate(needed.guess.items()):
            chosen[field] = grid[position % 4].selectbox(
                field_title(field),
                columns,
                index=columns.index(guess) if guess in columns else 0,
                format_func=lambda value: value or _("not in this file"),
                key=f"mapping.{needed.file}.{field}",
            )
        read, drop = st.columns([1, 5])
        go = read.form_submit_button(_("Read"), type="primary")
        forget = drop.form_submit_button(_("Forget these files"))
    if forget:
        del st.session_state[_PENDING]
        st.rerun()
    if go:
        mapping = dict(pending["mapping"])
        mapping[needed.file] = {field: column for field, column in chosen.items() if column}
        _read(
            pending["files"],
            name=pending["name"],
            first_stage=pending["first_stage"],
            conflict=pending["conflict"],
            mapping=mapping,
        )


def field_title(field: str) -> str:
    titles = {
        "query_id": _("Query id"),
        "query": _("Query text"),
        "doc_id": _("Document id"),
        "document": _("Document text"),
        "title": _("Document title"),
        "label": _("Label"),
        "score": _("First-stage score"),
        "rank": _("First-stage rank"),
        "reranked": _("Score of another system"),
    }
    return titles[field]


def _stored(dataset_id: str) -> None:
    row = next(row for row in workspace().datasets() if row.id == dataset_id)
    address.choose("data", dataset_id)
    for field in ("base", "system", "q"):
        address.choose(field, None)
    st.session_state[_SAID] = _(
        "{name} is ready: {queries} and {documents}.",
        name=markdown_safe(row.name, 80),
        queries=ngettext("{n} query", "{n} queries", row.queries),
        documents=ngettext("{n} document", "{n} documents", row.documents),
    )
    _next_uploader()


def _next_uploader() -> None:
    # A new key empties the uploader, so the server does not keep the files for the whole session.
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    st.rerun()
