"""The stored data sets: choose, rename, delete."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from rankdash.core.base import names
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import moment, ngettext
from rankdash.core.workspace import DatasetRow
from rankdash.core.workspace.notes.corrections import Corrections
from rankdash.core.workspace.notes.notes import Notes
from rankdash.core.workspace.notes.run_notes import RunNotes
from rankdash.features.label import page_corrections_list
from rankdash.kit.widgets import address, deleted, dialogs, stored
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe, name_rows


def draw(rows: Sequence[DatasetRow]) -> None:
    st.subheader(_("Data sets in this workspace"), anchor=False)
    opened = address.one("data")
    st.dataframe(
        pd.DataFrame(
            {
                _("current"): ["●" if row.id == opened else "" for row in rows],
                _("name"): [row.name for row in rows],
                _("queries"): [row.queries for row in rows],
                _("documents"): [row.documents for row in rows],
                _("labels in the files"): [row.labels for row in rows],
                _("added (UTC)"): [moment(row.created) for row in rows],
            }
        ),
        hide_index=True,
        row_height=name_rows(row.name for row in rows),
        alt=_("The data sets in this workspace"),
    )
    chosen = next((row for row in rows if row.id == opened), None)
    if chosen is None:
        return
    st.caption(_("Open: {name}", name=markdown_safe(chosen.name, 80)))
    if not read_only():
        _change(chosen, rows)
    if stored.damage(chosen.id) is None:
        page_corrections_list.draw(chosen.id)
        page_corrections_list.exports(chosen.id)


def _change(chosen: DatasetRow, rows: Sequence[DatasetRow]) -> None:
    row_of_buttons = st.container(horizontal=True)
    if row_of_buttons.button(_("Rename"), icon=":material/edit:"):
        dialogs.rename(
            _("Rename the data set"),
            chosen.name,
            lambda name: workspace().rename_dataset(
                chosen.id, names.free(name, [row.name for row in rows if row is not chosen])
            ),
        )
    if row_of_buttons.button(_("Delete"), icon=":material/delete:"):
        dialogs.delete(_("Delete the data set?"), _what_goes(chosen), lambda: _delete(chosen.id))


def _what_goes(row: DatasetRow) -> list[str]:
    runs = len(workspace().runs(row.id))
    sentences = [
        _(
            "{name} will be deleted permanently. Your own files stay where they are.",
            name=markdown_safe(row.name, 80),
        )
    ]
    notes = len(Notes(workspace()).all(row.id)) + len(RunNotes(workspace()).all(row.id))
    remarks = notes + Corrections(workspace()).layer(row.id).count
    if runs:
        sentences.append(ngettext("{n} run goes with it.", "{n} runs go with it.", runs))
    if remarks:
        sentences.append(
            ngettext(
                "{n} note or corrected label goes with it.",
                "{n} notes and corrected labels go with it.",
                remarks,
            )
        )
    return sentences


def _delete(dataset_id: str) -> None:
    deleted.by_this_session([dataset_id])
    workspace().delete_dataset(dataset_id)
    address.choose("data", None)
