"""The labels that were corrected: seen, undone, and taken away as files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import moment, ngettext
from rankdash.core.base.spreadsheet import csv_bytes
from rankdash.core.data.ranking import digest
from rankdash.core.words.queries import label_words
from rankdash.core.workspace.notes.corrections import Correction, Corrections, Layer
from rankdash.core.workspace.notes.notes import Notes
from rankdash.kit.html.downloads import file_name
from rankdash.kit.html.trec import qrels_bytes
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import shortened

_UNDONE = "corrections.undone"
_TEXT = 120
_MOST_SHOWN = 1_000


def draw(dataset_id: str, query_id: str | None = None) -> None:
    """The corrections of a data set, or of one of its queries: choose rows to undo them, or undo
    all. dataset_id: of the stored one."""
    rows = [
        each
        for each in Corrections(workspace()).all(dataset_id)
        if query_id is None or each.query_id == query_id
    ]
    place = "query" if query_id is not None else "data"
    if rows:
        st.markdown(ngettext("**{n} label corrected**", "**{n} labels corrected**", len(rows)))
        _table(dataset_id, rows, place)
    if read_only():
        return
    undone: list[Correction] = st.session_state.get(_UNDONE, {}).get((dataset_id, query_id), [])
    if undone:
        line, back = st.columns([3, 2], vertical_alignment="center")
        line.caption(ngettext("{n} correction undone.", "{n} corrections undone.", len(undone)))
        back.button(
            _("Put back"),
            icon=":material/redo:",
            key=f"corrections.restore.{place}",
            on_click=_restore,
            args=(dataset_id, query_id, undone),
            width="stretch",
        )


def exports(dataset_id: str) -> None:
    """Corrections, corrected labels and notes as files; each is made when it is asked for."""
    layer = Corrections(workspace()).layer(dataset_id)
    notes, data = Notes(workspace()).all(dataset_id), stored.dataset(dataset_id).name
    with st.container(horizontal=True):
        if layer.count:
            _file(
                _("Corrections (CSV)"),
                file_name(data, "corrections", "csv"),
                partial(corrections_csv, dataset_id),
            )
            labels = partial(corrected_qrels, dataset_id, layer)
            blank = stored.dataset(dataset_id).ids_with_blanks
            _file(
                _("Corrected labels (TREC)"),
                file_name(data, "corrected qrels", "tsv"),
                labels,
                _("Ids with blanks cannot stand in a TREC file.") if blank else "",
            )
        if notes:
            _file(
                _("Notes (CSV)"),
                file_name(data, "notes", "csv"),
                partial(notes_csv, dataset_id),
            )


def corrections_csv(dataset_id: str) -> bytes:
    """query_id, doc_id, uploaded, corrected (empty: not judged), who, made_utc."""
    rows = Corrections(workspace()).all(dataset_id)
    return csv_bytes(
        pd.DataFrame(
            {
                "query_id": [each.query_id for each in rows],
                "doc_id": [each.doc_id for each in rows],
                "uploaded": [_uploaded(dataset_id, each) for each in rows],
                "corrected": [each.label for each in rows],
                "who": [each.who for each in rows],
                "made_utc": [each.made for each in rows],
            }
        )
    )


def corrected_qrels(dataset_id: str, layer: Layer) -> bytes:
    """Every label of the data set, the corrected ones as corrected."""
    return qrels_bytes(stored.dataset(stored.with_corrections(dataset_id, layer.revision)).qrels)


def notes_csv(dataset_id: str) -> bytes:
    """query_id, query, tags, note, changed_utc."""
    notes, texts = Notes(workspace()).all(dataset_id), stored.dataset(dataset_id).query_names
    return csv_bytes(
        pd.DataFrame(
            {
                "query_id": [note.query_id for note in notes],
                "query": [texts.get(note.query_id, "") for note in notes],
                "tags": [", ".join(note.tags) for note in notes],
                "note": [note.text for note in notes],
                "changed_utc": [note.changed for note in notes],
            }
        )
    )


def forget_undone() -> None:
    """A label was corrected since: what was undone before is no longer offered to be put back."""
    st.session_state.pop(_UNDONE, None)


def _table(dataset_id: str, rows: Sequence[Correction], place: str) -> None:
    titles, texts = (
        stored.dataset(dataset_id).document_names[0],
        stored.dataset(dataset_id).query_names,
    )
    shown = rows[:_MOST_SHOWN]
    columns = {
        _("document"): [shortened(titles.get(each.doc_id, each.doc_id), _TEXT) for each in shown],
        _("uploaded"): [label_words(_uploaded(dataset_id, each)) for each in shown],
        _("corrected"): [label_words(each.label) for each in shown],
        _("who"): [each.who for each in shown],
        _("when (UTC)"): [moment(each.made) for each in shown],
    }
    if place == "data":
        queries = [shortened(texts.get(each.query_id, each.query_id), _TEXT) for each in shown]
        columns = {_("query"): queries, **columns}
    if len(rows) > _MOST_SHOWN:
        st.caption(_("The latest {n} are shown.", n=f"{_MOST_SHOWN:,}"))
    event = st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        # A selection is a row number, so the rows are part of the key.
        key=f"corrections.{place}.{digest([repr(each).encode() for each in shown])}",
        on_select="rerun",
        selection_mode="multi-row",
        alt=_("The corrected labels, the latest first"),
    )
    if read_only():
        return
    chosen = [shown[row] for row in event["selection"]["rows"] if row < len(shown)]
    with st.container(horizontal=True):
        for label, some, key in (
            (_("Undo the chosen"), chosen, "some"),
            (_("Undo all"), list(rows), "all"),
        ):
            st.button(
                label,
                icon=":material/undo:",
                key=f"corrections.undo.{key}.{place}",
                disabled=not some,
                on_click=_undo,
                args=(dataset_id, rows[0].query_id if place == "query" else None, some),
            )


def _undo(dataset_id: str, query_id: str | None, rows: Sequence[Correction]) -> None:
    Corrections(workspace()).withdraw(dataset_id, [each.pair for each in rows])
    st.session_state.setdefault(_UNDONE, {})[dataset_id, query_id] = list(rows)


def _restore(dataset_id: str, query_id: str | None, rows: Sequence[Correction]) -> None:
    Corrections(workspace()).restore(dataset_id, rows)
    st.session_state[_UNDONE].pop((dataset_id, query_id))


def _uploaded(dataset_id: str, correction: Correction) -> float | None:
    return stored.uploaded_labels(dataset_id, correction.query_id).get(correction.doc_id)


def _file(label: str, name: str, make: partial[bytes], hindered: str = "") -> None:
    st.download_button(
        label,
        data=make,
        file_name=name,
        mime="text/csv" if name.endswith(".csv") else "text/plain",
        icon=":material/download:",
        key=f"corrections.file.{name}",
        on_click="ignore",
        disabled=bool(hindered),
        help=hindered or None,
    )
