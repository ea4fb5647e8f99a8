"""The labels as files: qrels for other tools, and a table with draws, people and times."""

from __future__ import annotations

import streamlit as st

from rankdash.analysis.labelling.answers import labels_table
from rankdash.i18n import gettext as _
from rankdash.spreadsheet import csv_bytes
from rankdash.ui.labels.label_plan import Labelling


def draw(labelling: Labelling) -> None:
    """A download, made when it is asked for."""
    st.download_button(
        _("Labels with draws, people and times (CSV)"),
        lambda: csv_bytes(labels_table(labelling.plan, labelling.answered)),
        file_name="labels.csv",
        mime="text/csv",
        key="labelling.csv",
    )
