"""The list of queries with its bars and files, and the layout of the list and the open query."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import language, number, percent, signed, speaking
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import csv_bytes
from rankdash.core.data.ranking import digest
from rankdash.core.study.study import Study
from rankdash.core.words.latency import milliseconds
from rankdash.core.words.queries import outcome_words, state_words
from rankdash.core.words.verdicts import reason_words
from rankdash.core.workspace.notes import Corrections, Notes
from rankdash.features.queries import page_why, report_query
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.filters import OK, OUTCOMES, Filters, key_of
from rankdash.features.queries.study import Listing
from rankdash.kit.drawing import style
from rankdash.kit.html.tables import english, file_name
from rankdash.kit.widgets import address, stored, view
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.component import component
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import shortened

_HERE = Path(__file__)
_LIST = component(_HERE.with_name("query_list"))
_OPEN = component(_HERE.with_name("query_open"))

WINDOW = 200
"""The number of rows of the list that the browser has at a time."""

_LONGEST_TEXT = 60
_SIGNS = {"helped": "▲", "same": "=", "hurt": "▼"}
# Formats of the columns that a list can be sorted by and that its bars do not show.
_FORMATS: Mapping[str, Callable[[float], str]] = {
    **dict.fromkeys(("to_win", "spread", "ceiling"), number),
    **dict.fromkeys(("judged_before", "judged_after"), percent),
    "latency_ms": milliseconds,
}
# Side by side if the window and the page have room, both as high as the window allows.
STYLE = """<style>
.st-key-queries-above > .st-key-queries-tally { flex: 1 1 34rem; width: auto; }
[data-testid="stLayoutWrapper"]:has(> .st-key-reading-script) { display: none; }
.st-key-queries-panes { container: queries / inline-size; }
.st-key-queries-panes > :has(> [class*="st-key-queries-pane-"]) { flex: 1 1 100%; min-width: 0; }
.st-key-queries-pane-query { scroll-margin-top: 4rem; }
.st-key-queries-toolbar > :has(> .st-key-queries-steps) { flex: 0 1 auto; width: auto; }
@media (min-width: 641px) {
  .st-key-queries-toolbar > :has(> .st-key-queries-steps) { flex-shrink: 0; }
  .st-key-queries-steps { flex-wrap: nowrap; }
}
@media (min-width: 1000px) { @container queries (min-width: 760px) {
  .st-key-queries-panes > :has(> .st-key-queries-pane-list) { flex: 0 0 300px; }
  .st-key-queries-panes > :has(> .st-key-queries-pane-query) { flex: 1 1 0; }
  .st-key-queries-panes > :has(> .st-key-queries-pane-query), .st-key-queries-pane-query {
    height: max(24rem, 100vh - 19.5rem) !important; }
  .st-key-queries-pane-query { flex-wrap: nowrap; overflow-y: auto; padding-right: 0.5rem; }
} }
</style>"""
# The rows that the browser has, and the filters under which a query is open.
_SHOWN, _OPENED = "queries.window", "queries.opened"
# The length of the axis of values, in the data of the list.
_WHOLE = 1000


@dataclass(frozen=True, eq=False)
class Rows:
    """The queries that pass the filters, in order.

    frame: rows of the listing. ids: of the queries. key: different for other rows.
    """

    frame: pd.DataFrame
    ids: list[str]
    key: str


def rows(
    study: Study,
    challenger: str,
    filters: Filters,
    order: str,
    marks: pd.DataFrame,
    also: str | None = None,
) -> Rows:
    """Return the filtered rows, cached for all sessions with the same list. order: as in
    `query_table`. marks: query_id, tags, note. also: a query that is listed whatever the
    filters."""

    def make() -> Rows:
        listing = queries_study.listing(study, challenger)
        frame = listing.kept(filters, page_why.tags(marks), order, also)
        ids = frame["query_id"].tolist()
        return Rows(frame, ids, digest([each.encode("utf-8", "surrogatepass") for each in ids]))

    seen = (filters, order, marks[["query_id", "tags"]].to_numpy().tolist(), also)
    return cache(
        ("listed queries", *queries_study.table_key("listing", study, challenger), repr(seen)), make
    )


def opened(rows: Callable[[str | None], Rows], chosen: object) -> tuple[Rows, str | None]:
    """Return the rows and the id of the open query. If the filters exclude every query, show a line
    and return None for the id.

    An open query stays in the list until the filters change, even if a corrected label changes its
    values. rows: returns the rows; its argument is a query that is listed in any case. chosen: the
    filters.
    """
    requested = address.one("q")
    listed = rows(None)
    if requested not in listed.ids and st.session_state.get(_OPENED) == (requested, chosen):
        listed = rows(requested)
    if not listed.ids:
        st.info(_("No query matches these filters."), icon=":material/filter_alt_off:")
        return listed, None
    here = requested in listed.ids
    if requested is not None and address.came_by_link("q"):
        st.session_state[view.LANDING] = requested
    address.lose("q", None if here else requested)
    query_id = requested if here and requested is not None else listed.ids[0]
    address.set_default("q", query_id)
    address.publish()
    st.session_state[_OPENED] = (query_id, chosen)
    return listed, query_id


def steps(rows: Rows, opened: str) -> None:
    """Draw the buttons for the previous and the next query in the current order into a horizontal
    container."""
    ids = rows.ids
    position = ids.index(opened)
    st.button(
        _p("button", "Previous"),
        disabled=position == 0,
        on_click=_land,
        args=(ids[max(position - 1, 0)],),
        shortcut="k",
    )
    st.button(
        _p("button", "Next"),
        disabled=position == len(ids) - 1,
        on_click=_land,
        args=(ids[min(position + 1, len(ids) - 1)],),
        shortcut="j",
    )
    st.caption(_("{i} of {n}", i=number(position + 1, 0), n=number(len(ids), 0)), width="content")


def _land(query_id: str) -> None:
    address.choose("q", query_id)
    st.session_state[view.LANDING] = query_id


def files(study: Study, challenger: str, rows: Rows, marks: pd.DataFrame, opened: str) -> None:
    """Draw the menu of the files."""
    with st.popover(_p("button", "Download"), key="queries.files", width="content"):
        download(study, challenger, rows.frame, marks)
        button(study, challenger, opened)


# The list: the browser has the rows of a window, and requests others when it is scrolled.


def show_window(rows: Rows, opened: str) -> None:
    """Move the window to the open query when another query is opened or the rows change."""
    shown = st.session_state.get(_SHOWN)
    if shown is not None and shown[:2] == (rows.key, opened):
        return
    place = rows.ids.index(opened)
    first = shown[2] if shown is not None and shown[0] == rows.key else -WINDOW
    inside = first <= place < first + WINDOW
    st.session_state[_SHOWN] = (rows.key, opened, first if inside else place - WINDOW // 2)


def draw(rows: Rows, listing: Listing, marks: pd.DataFrame, order: str) -> None:
    """Draw the window. order: as in `query_table`."""
    key, query_id, first = st.session_state[_SHOWN]
    first = max(0, min(first, len(rows.ids) - WINDOW))

    def heard(event: Any) -> None:
        requested = event.get("window") if isinstance(event, dict) else None
        if isinstance(requested, int):
            st.session_state[_SHOWN] = (key, query_id, requested)

    frame = rows.frame.iloc[first : first + WINDOW]
    summaries = _summaries(frame, marks, order)
    words = list(dict.fromkeys(summaries))
    scale = _WHOLE / (listing.highest or 1.0)
    columns: Sequence[Iterable[Any]] = (
        frame["query_id"],
        [shortened(each, _LONGEST_TEXT) for each in _texts(frame)],
        *([None if math.isnan(each) else round(each * scale) for each in frame[side]]
          for side in ("before", "after")),
        map(_change, frame["outcome"], frame["delta"]),
        [OUTCOMES.index(each) if each in OUTCOMES else 1 for each in frame["outcome"]],
        map(words.index, summaries),
    )  # fmt: skip
    data = {
        "key": rows.key,
        "first": first,
        "total": len(rows.ids),
        "size": WINDOW,
        "colours": [style.BETTER, style.FIRST_STAGE, style.WORSE],
        "words": {"list": _p("heading", "Queries"), "said": words},
        "rows": [*map(list, zip(*columns, strict=True))],
    }
    _LIST("queries.list", data, heard)


def _texts(rows: pd.DataFrame) -> pd.Series:
    """Return the texts of queries, or their ids if there is no text."""
    return rows["text"].where(rows["text"].notna() & (rows["text"] != ""), rows["query_id"])


def _change(outcome: str, delta: float) -> str:
    """Return a change with a sign for its outcome, which is readable without colour."""
    return f"{_SIGNS[outcome]} {signed(delta)}" if outcome in _SIGNS else "–"


def _summaries(rows: pd.DataFrame, marks: pd.DataFrame, order: str) -> list[str]:
    """Return the reason of each query, before its tags. If the list is sorted by a value that no
    mark shows, this value comes first."""
    words = {**outcome_words(), **reason_words(), **state_words()}
    codes = rows["reason" if "reason" in rows else "outcome"]
    codes = codes.where(rows["state"] == OK, rows["state"])
    columns: list[Iterable[str]] = [[words.get(each, each) for each in codes]]
    shown = _FORMATS.get(key_of(order)[0])
    if shown is not None:
        columns.insert(0, [shown(each) for each in rows[key_of(order)[0]]])
    if len(marks):
        remarks = marks.set_index("query_id").reindex(rows["query_id"]).fillna("")
        tags = [shortened(each, _LONGEST_TEXT) for each in remarks["tags"]]
        columns += [tags, ["✎" if note else "" for note in remarks["note"]]]
    return [" · ".join(part for part in parts if part) for parts in zip(*columns, strict=True)]


# The layout: the list next to the open query if there is room, else above it.


def panes() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the containers of the list and of the open query; `STYLE` arranges them."""
    frame = st.container(key="queries.panes", horizontal=True)
    return frame.container(key="queries.pane.list"), frame.container(key="queries.pane.query")


def follow(rows: Rows, opened: str) -> None:
    """Scroll the open query into view if a link or a key opened it, and open a query that is
    clicked in the list."""

    def heard(event: Any) -> None:
        chosen = event.get("open") if isinstance(event, dict) else None
        if chosen in rows.ids:
            address.choose("q", chosen)

    land = st.session_state.get(view.LANDING) == opened
    _OPEN("queries.open", {"query": opened, "land": land}, heard)


def titles(before: str, after: str) -> dict[str, str]:
    """Return column → its title in the orders. before, after: the names of the systems."""
    return {
        "text": _p("column", "query"),
        "before": before,
        "after": after,
        "delta": _p("column", "change"),
        "ceiling": _("best possible (oracle)"),
        "reason": _p("column", "reason"),
        "state": _p("column", "state"),
        "to_win": _("potential gain left"),
        "spread": _p("column", "disagreement"),
        "latency_ms": _p("column", "ms"),
        "judged_before": _("judged, baseline"),
        "judged_after": _("judged, challenger"),
    }


# The list of queries as a file for a spreadsheet: in English in every language of the interface.

_COLUMNS = (
    *("before", "after", "delta", "ceiling", "to_win", "spread", "reason", "fault"),
    *("state", "latency_ms", "judged_before", "judged_after"),
)


def download(study: Study, challenger: str, rows: pd.DataFrame, marks: pd.DataFrame) -> None:
    """Offer the list as CSV. rows: the filtered rows in order, as from `queries.study.listing`.
    marks: query_id, tags, note."""
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
    """Return the list as CSV, protected against formulas in cells. systems: names of the baseline
    and the challenger, which the columns before and after refer to."""
    baseline, challenger = systems
    table = rows[["query_id", "text"]].assign(baseline=baseline, challenger=challenger)
    table = table.join(rows[[name for name in _COLUMNS if name in rows]])
    return csv_bytes(table.merge(marks, on="query_id", how="left") if len(marks) else table)


# One query as one file that needs no network and can be sent by mail.


def button(study: Study, challenger: str, query_id: str) -> None:
    """Draw the download button of the open query's page. The file is created on download."""
    st.download_button(
        _("Save this query as a file"),
        data=partial(export_html, study, challenger, query_id, language()),
        file_name=file_name(study.dataset.name, f"query {query_id}", "html"),
        mime="text/html",
        icon=":material/download:",
        key="queries.export",
        on_click="ignore",
        help=_("A single page with charts and texts, which opens offline."),
    )


def export_html(study: Study, challenger: str, query_id: str, code: str) -> bytes:
    """Return the file in the language `code`, because it is created outside of the session."""
    note = Notes(workspace()).of(study.stored_id, query_id)
    corrections = Corrections(workspace()).all(study.stored_id) if study.corrected else ()
    query_corrections = [each for each in corrections if each.query_id == query_id]
    uploaded = stored.uploaded_labels(study.dataset_id, query_id) if query_corrections else {}
    with speaking(code):
        return report_query.html(
            replace(study, notes={query_id: note}),
            challenger,
            query_id,
            query_corrections,
            uploaded,
        )
