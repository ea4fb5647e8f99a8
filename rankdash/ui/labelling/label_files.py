"""The labels as a file that every reader of labels reads, with draws, people and times."""

from __future__ import annotations

import streamlit as st

from rankdash.analysis.labelling.answers import labels_table
from rankdash.i18n import gettext as _
from rankdash.spreadsheet import csv_bytes
from rankdash.ui.labels import label_plan


def draw(dataset_id: str) -> None:
    """A download, made when it is asked for: labels are given while the button stands there."""
    st.download_button(
        _("Labels with draws, people and times (CSV)"),
        lambda: table_bytes(dataset_id),
        file_name="labels.csv",
        mime="text/csv",
        key="labelling.csv",
        on_click="ignore",
    )


def table_bytes(dataset_id: str) -> bytes:
    """The labels of now; nothing where the plan was deleted meanwhile."""
    labelling = label_plan.current(dataset_id)
    return b"" if labelling is None else csv_bytes(labels_table(labelling.plan, labelling.answered))
