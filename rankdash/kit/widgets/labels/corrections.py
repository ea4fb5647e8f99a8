"""Corrected and added labels, as lists, forms and files."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base import text as base_text
from rankdash.core.base.errors import Finding, RankdashError
from rankdash.core.base.i18n import enumerated, error_text, moment, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import csv_bytes
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import digest
from rankdash.core.intake.reading import tried
from rankdash.core.readers import Source, read, read_beside, reversed_note
from rankdash.core.readers.checks.check import check
from rankdash.core.readers.rated import read_rated
from rankdash.core.sampling.label_plan import draws_table
from rankdash.core.study.labelling import CONFLICTS, Conflict, Merged, as_in, merge_labels
from rankdash.core.words.queries import label_words
from rankdash.core.workspace import RunRow
from rankdash.core.workspace.notes import (
    LONGEST_NAME,
    Correction,
    Corrections,
    Layer,
    Notes,
    Pair,
)
from rankdash.kit.html.tables import file_name, qrels_bytes
from rankdash.kit.widgets import address, dialogs, language, pickers, stored
from rankdash.kit.widgets.labels import plan as labels_plan
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import shortened
from rankdash.kit.widgets.uploader import uploader

_UNDONE = "corrections.undone"
_TEXT = 120
_MOST_SHOWN = 1_000


def draw(dataset_id: str, query_id: str | None = None) -> None:
    """Draw the corrections of a data set, or of one of its queries, with buttons to undo some or
    all of them. dataset_id: of the stored one."""
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
            _p("button", "Restore"),
            icon=":material/redo:",
            key=f"corrections.restore.{place}",
            on_click=_restore,
            args=(dataset_id, query_id, undone),
            width="stretch",
        )


def exports(dataset_id: str) -> None:
    """Draw downloads of corrections, corrected labels and notes; each file is created on
    request."""
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
                _("TREC files cannot contain IDs with spaces.") if blank else "",
            )
        if notes:
            _file(
                _("Notes (CSV)"),
                file_name(data, "notes", "csv"),
                partial(notes_csv, dataset_id),
            )


def corrections_csv(dataset_id: str) -> bytes:
    """Return a CSV file of query_id, doc_id, uploaded, corrected (empty: not judged), who,
    made_utc."""
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
    """Return every label of the data set, with corrections."""
    return qrels_bytes(stored.dataset(stored.with_corrections(dataset_id, layer.revision)).qrels)


def notes_csv(dataset_id: str) -> bytes:
    """Return a CSV file of query_id, query, tags, note, changed_utc."""
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
    """Clear the undone corrections after another correction, so that they cannot be restored."""
    st.session_state.pop(_UNDONE, None)


def _table(dataset_id: str, rows: Sequence[Correction], place: str) -> None:
    titles, texts = (
        stored.dataset(dataset_id).document_names[0],
        stored.dataset(dataset_id).query_names,
    )
    shown = rows[:_MOST_SHOWN]
    columns = {
        _p("column", "document"): [
            shortened(titles.get(each.doc_id, each.doc_id), _TEXT) for each in shown
        ],
        _p("correction", "uploaded"): [label_words(_uploaded(dataset_id, each)) for each in shown],
        _p("correction", "corrected"): [label_words(each.label) for each in shown],
        _("corrected by"): [each.who for each in shown],
        _("date (UTC)"): [moment(each.made) for each in shown],
    }
    if place == "data":
        queries = [shortened(texts.get(each.query_id, each.query_id), _TEXT) for each in shown]
        columns = {_p("column", "query"): queries, **columns}
    if len(rows) > _MOST_SHOWN:
        st.caption(_("The latest {n} are shown.", n=number(_MOST_SHOWN, 0)))
    event = st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        # A selection is a row number, so the key includes the rows.
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
            (_("Undo selected"), chosen, "some"),
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


# The label of a document for a query, corrected in place.

_WHO = "analyst"


def correct(dataset_id: str, pair: Pair, label: float | None, *, withdraw: bool = False) -> None:
    """Store the label of a pair. label: None if the annotator cannot tell. The uploaded label, or
    `withdraw`, undoes the correction."""
    query_id, doc_id = pair
    uploaded = stored.uploaded_labels(dataset_id, query_id).get(doc_id)
    layer = Corrections(workspace())
    forget_undone()
    if withdraw or (label is not None and label == uploaded):
        layer.withdraw(dataset_id, [pair])
    else:
        who = language.person_name() or workspace().setting(_WHO) or ""
        layer.correct(dataset_id, pair, label, who)


def cannot_tell(dataset_id: str, query_id: str) -> set[str]:
    """Return the documents of a query that an annotator could not label."""
    every = Corrections(workspace()).all(dataset_id)
    return {each.doc_id for each in every if each.query_id == query_id and each.label is None}


def draw_name() -> None:
    """Draw a field for the name that is stored with corrections, unless a login provides it."""
    if not language.person_name():
        st.text_input(
            _("Your name, stored with the correction"),
            value=workspace().setting(_WHO) or "",
            max_chars=LONGEST_NAME,
            key="labels.who",
            on_change=_remember,
            placeholder=_p("choice", "optional"),
        )


def _remember() -> None:
    workspace().set_setting(_WHO, st.session_state["labels.who"].strip())


# Uploaded labels: labels of a plan's draws are added to its answers, so that the estimate uses
# them; others are merged into a data set.

_PAIR = ["query_id", "doc_id"]
_SAID = "labels.said"
_GENERATION = "labels.generation"


def draw_new_labels(dataset_id: str) -> None:
    """Draw the upload of labels for the chosen data set. The result is a new data set with the same
    runs; the old one stays."""
    if _SAID in st.session_state:
        st.success(st.session_state.pop(_SAID), icon=":material/check_circle:")
    files = uploader(
        _("A filled-in labelling list, or any file of labels for this data set"),
        f"labels.file.{st.session_state.get(_GENERATION, 0)}",
    )
    conflict: Conflict = st.selectbox(
        _("If a pair already has a label"),
        get_args(Conflict),
        format_func=lambda rule: _p("choice", CONFLICTS[rule]),
        key=pickers.in_words("labels.conflict"),
    )
    if not files or not st.button(_("Add these labels"), type="primary", key="labels.add"):
        return
    [source] = files
    try:
        tried([source])
        if take_answers(dataset_id, source):
            st.rerun()
        parsed = read([source])
        report = stored.check_report(dataset_id)
        merged = merge_labels(
            stored.dataset(dataset_id),
            parsed.qrels,
            conflict=conflict,
            unranked=report is not None and bool(report.of_fetch),
        )
    except RankdashError as error:
        dialogs.show_error(error_text(error))
        return
    worst = None if report is None else report.reversed_at
    # The note on reversed labels stays with the data set.
    noticed = [] if worst is None else [reversed_note(worst)]
    st.session_state[_SAID] = _summary(merged)
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    keep_beside(dataset_id, merged.dataset, noticed, name=_named(merged))
    st.rerun()


def take_answers(dataset_id: str, source: Source) -> bool:
    """Store the labels of a file as answers of the current plan if the plan sampled their pairs;
    return whether it did. Raises DataError for a label above the top of the plan's scale; then no
    label is stored."""
    labelling = labels_plan.current(dataset_id)
    draws = read_beside([source], {}).draws if labelling is not None else None
    if labelling is None or draws is None:
        return False
    plan = labelling.plan
    places = plan.pool.index
    sampled = _named_as_in(draws[draws["draw"].notna()], places)
    planned = (
        draws_table(plan)["draw"].set_axis(places).reindex(pd.MultiIndex.from_frame(sampled[_PAIR]))
    )
    if not np.array_equal(planned.to_numpy(dtype=np.float64, na_value=np.nan), sampled["draw"]):
        return False
    rated = read_rated(source)
    if rated is None:
        uploaded = _named_as_in(read([source]).qrels, places)
        labels = uploaded.merge(sampled[_PAIR], "right", _PAIR).assign(
            rater=language.person_name() or workspace().setting(_WHO) or "", time=""
        )
    else:
        # Without labels from before the plan.
        labels = _named_as_in(rated[0], places).merge(sampled[_PAIR], "inner", _PAIR)
    plan.metric.gains(labels["label"].to_numpy(dtype=np.float64))
    columns = (labels[name].tolist() for name in ("query_id", "doc_id", "label", "rater", "time"))
    rows = [
        Correction(query, doc, None if math.isnan(label) else label, who, made)
        for query, doc, label, who, made in zip(*columns, strict=True)
    ]
    Corrections(workspace()).take_in(dataset_id, rows)
    st.session_state[_SAID] = ngettext(
        "{n} label added to the plan; the estimate counts it.",
        "{n} labels added to the plan; the estimate counts them.",
        len(rows),
    )
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    return True


def _named_as_in(table: pd.DataFrame, places: pd.MultiIndex) -> pd.DataFrame:
    """Return the rows with ids as the plan spells them."""
    renamed = table.copy()
    for at, name in enumerate(_PAIR):
        renamed[name] = np.array(as_in(table[name], set(places.levels[at])), dtype=object)
    return renamed


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
                "{n} not used: query or document not in this data set",
                "{n} not used: queries or documents not in this data set",
                merged.unknown,
            )
        )
    if merged.unranked:
        parts.append(
            ngettext(
                "{n} label is of a document that no ranking contains; it counts as not retrieved",
                "{n} labels are of documents that no ranking contains; they count as not retrieved",
                merged.unranked,
            )
        )
    return enumerated(parts)


# A data set with changed labels, stored in addition to the original.


def keep_beside(
    old: str,
    made: Dataset,
    noticed: Sequence[Finding],
    *,
    name: str,
    corrected: Callable[[float], float] = float,
) -> None:
    """Save `made` with the runs, notes and corrected labels of the data set `old`, and open it. The
    old one stays, and so do runs whose files are damaged.

    noticed: findings for the check report in addition to its own. name: the name of a new data set;
        an existing one is not renamed. corrected: converts a corrected label.
    """
    runs = [(row, workspace().run(row.id)) for row in stored.rows(old).values()]
    before = stored.check_report(old)
    noticed = [*noticed, *(() if before is None else before.of_fetch)]
    report = check(made, noticed, {run.name: run.ranking for _row, run in runs})
    existing = {row.id: row.name for row in workspace().datasets()}
    new = workspace().save_dataset(made, source="upload", report_json=report.to_json())
    if new not in existing:
        workspace().rename_dataset(new, base_text.free(name, existing.values()))
    if new != old:
        known = {_origin(row) for row in workspace().runs(new)}
        for row, run in runs:
            if _origin(row) not in known:
                run_id = digest([new.encode(), run.id.encode()])
                workspace().save_run(replace(run, id=run_id, dataset_id=new))
        _carry_remarks(old, new, corrected)
    address.choose("data", new)
    for field in ("base", "system", "vs"):
        address.choose(field, None)


def _origin(row: RunRow) -> tuple[str, str, str]:
    """Return an identity of a run that is the same in every data set to which it was copied."""
    return row.reranker, row.created, row.name


def _carry_remarks(old: str, new: str, corrected: Callable[[float], float]) -> None:
    """Copy notes and corrections, except corrections that the new labels agree with."""
    notes, corrections = Notes(workspace()), Corrections(workspace())
    noted = {note.query_id for note in notes.all(new)}
    for note in notes.all(old):
        if note.query_id not in noted:
            notes.store(new, note.query_id, note.tags, note.text)
    if not corrections.layer(new).count:
        carried = [_carried(each, corrected) for each in corrections.all(old)]
        corrections.restore(
            new,
            [
                each
                for each in carried
                if stored.uploaded_labels(new, each.query_id).get(each.doc_id) != each.label
            ],
        )


def _carried(correction: Correction, corrected: Callable[[float], float]) -> Correction:
    if correction.label is None:
        return correction
    return replace(correction, label=corrected(correction.label))
