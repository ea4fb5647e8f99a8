"""The list of queries as a file for a spreadsheet: in English, whatever the interface speaks."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.spreadsheet import csv_bytes
from rankdash.core.study.study import Study
from rankdash.kit.html.downloads import english, file_name

_COLUMNS = (
    *("before", "after", "delta", "ceiling", "to_win", "spread", "reason", "state"),
    *("latency_ms", "judged_before", "judged_after"),
)


def download(study: Study, challenger: str, rows: pd.DataFrame, marks: pd.DataFrame) -> None:
    """rows: what the filters leave, in order, as from `study.queries.listing`. marks: query_id,
    tags, note."""
    named = english(study)
    systems = named.name(study.baseline), named.name(challenger)
    st.download_button(
        _("List as CSV"),
        data=partial(as_csv, rows, marks, systems),
        file_name=file_name(study.dataset.name, "query list", "csv"),
        mime="text/csv",
        icon=":material/table:",
        key="queries.csv",
        on_click="ignore",
        help=_("The filtered queries, in this order, with all columns."),
    )


def as_csv(rows: pd.DataFrame, marks: pd.DataFrame, systems: tuple[str, str]) -> bytes:
    """The list with its cells defused. systems: names of the baseline and of the challenger, whose
    values are in the columns before and after."""
    baseline, challenger = systems
    table = rows[["query_id", "text"]].assign(baseline=baseline, challenger=challenger)
    table = table.join(rows[[name for name in _COLUMNS if name in rows]])
    return csv_bytes(table.merge(marks, on="query_id", how="left") if len(marks) else table)
