"""Labels that look wrong: the checks, a chart, and the candidates with links to their query."""

from __future__ import annotations

from functools import partial

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number
from rankdash.core.base.text import csv_bytes
from rankdash.core.readers.checks.doubtful_labels import DoubtfulLabels, doubtful_labels
from rankdash.features.data import charts, words_labels
from rankdash.kit.html.tables import file_name
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets import stored, view
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.text import markdown_safe, table_html

# The most systems that the labels are compared with, the newest ones, and the most rows on a page.
_MOST_SYSTEMS = 12
_MOST_ROWS = 500
# Of the columns, in pixels.
_WIDTHS = (170, 200, 160, 60, 320)


def draw(dataset_id: str) -> None:
    """Draw the checks of the current labels of a stored data set."""
    with st.spinner(_("Checking the labels …")):
        found = _found(dataset_id)
    for warning in words_labels.warnings(found):
        st.error(markdown_safe(warning, 800), icon=":material/error:")
    if found.words is None:
        notes = st.container()
    else:
        chart, notes = st.columns([3, 2])
        with chart:
            widgets_charts.draw(
                charts.words_chart(
                    found.words.table["chance"].tolist(),
                    found.words.of_others.tolist(),
                    found.checks[-1].level,
                ),
                key="doubtful.words",
            )
    for note in words_labels.notes(found):
        notes.caption(note)
    st.html(table_html(words_labels.check_headings(), words_labels.check_rows(found)))
    if len(found.candidates):
        _candidates(found, dataset_id)


def _found(dataset_id: str) -> DoubtfulLabels:
    current = stored.in_force(dataset_id)
    systems = [each for each, system in stored.systems(current).items() if system.load][
        -_MOST_SYSTEMS:
    ]
    judges = [row for row in stored.judge_rows(current).values() if row.graded]
    graded = [f"{row.id}:{row.graded}" for row in judges]

    def find() -> DoubtfulLabels:
        return doubtful_labels(
            stored.dataset(current),
            stored.rankings(current, systems),
            [stored.judgements(row) for row in judges],
        )

    return cache(("doubtful labels", current, *systems, *graded), find)


def _candidates(found: DoubtfulLabels, dataset_id: str) -> None:
    """Draw the candidates and their file; a click on a row opens its query."""
    data = stored.dataset(stored.in_force(dataset_id))
    count = len(found.candidates)
    text, download = st.columns([3, 1], vertical_alignment="center")
    sentence = ngettext("{n} label for a second look.", "{n} labels for a second look.", count)
    hint = _("Tick a row to open its query, where its labels can be corrected.")
    text.markdown(f"**{sentence}** {hint}")
    download.download_button(
        _("Candidates (CSV)"),
        data=partial(_csv, dataset_id),
        file_name=file_name(data.name, "labels to check", "csv"),
        mime="text/csv",
        icon=":material/download:",
        key="doubtful.csv",
        on_click="ignore",
    )
    shown = words_labels.table(found, data).head(_MOST_ROWS)
    event = st.dataframe(
        shown,
        hide_index=True,
        placeholder="–",
        key="doubtful.candidates",
        on_select="rerun",
        selection_mode="single-row",
        alt=_("Labels that look wrong, with the evidence"),
        # All columns in one width of the page.
        column_config={
            title: st.column_config.Column(width=width)
            for title, width in zip(shown.columns, _WIDTHS, strict=True)
        },
    )
    if count > _MOST_ROWS:
        st.caption(_("The table shows {n} rows. The file contains all.", n=number(_MOST_ROWS, 0)))
    # A selection may be of the candidates before a correction.
    rows = [row for row in event["selection"]["rows"] if row < len(shown)]
    if rows:
        view.open_query(str(found.candidates["query_id"].iloc[rows[0]]))


def _csv(dataset_id: str) -> bytes:
    data = stored.dataset(stored.in_force(dataset_id))
    return csv_bytes(words_labels.exported(_found(dataset_id), data))
