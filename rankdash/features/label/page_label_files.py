"""The labels as a file that every reader of labels reads, with draws, people, times and notes."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.spreadsheet import csv_bytes
from rankdash.core.sampling.answers import labels_table
from rankdash.core.workspace.notes.label_notes import LabelNotes
from rankdash.kit.widgets import label_plan
from rankdash.kit.widgets.server import workspace


def draw(dataset_id: str) -> None:
    """A download, made when it is asked for: labels are given while the button stands there."""
    st.download_button(
        _("Labels with draws, people, times and notes (CSV)"),
        lambda: table_bytes(dataset_id),
        file_name="labels.csv",
        mime="text/csv",
        key="labelling.csv",
        on_click="ignore",
    )


def table_bytes(dataset_id: str) -> bytes:
    """The labels of now; nothing where the plan was deleted meanwhile. A document with a note and
    no label has a row too, whose label is empty."""
    labelling = label_plan.current(dataset_id)
    if labelling is None:
        return b""
    table = labels_table(labelling.plan, labelling.answered)
    notes = LabelNotes(workspace()).all(dataset_id)
    rows = [
        (*pair, "; ".join(f"{who}: {note}" if who else note for who, note in said.items()))
        for pair, said in notes.items()
    ]
    noted = pd.DataFrame(rows, columns=["query_id", "doc_id", "note"])
    return csv_bytes(table.merge(noted, "outer", ["query_id", "doc_id"], sort=False))
