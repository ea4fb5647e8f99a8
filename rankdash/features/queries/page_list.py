"""The list of queries with its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import language, ngettext, number, speaking, three_digits
from rankdash.core.base.text import csv_bytes
from rankdash.core.data.ranking import digest
from rankdash.core.study.study import Study
from rankdash.core.words.queries import state_words
from rankdash.core.words.verdicts import reason_words
from rankdash.core.workspace.notes import Corrections, Notes
from rankdash.features.queries import page_why, report_query
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.study import OK, Filters, by_column, key_of
from rankdash.kit.drawing import style
from rankdash.kit.html.tables import english, file_name
from rankdash.kit.widgets import address, stored, view
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import markdown_safe, rounded

_STEPS = "queries.steps"
_ROW, _LONG = 35, 352
# What a click on the heading of a column sorts by, where that is another column of the table.
_SORTED_BY = {"query": "text", "bar": "delta"}
_UNSORTED = ("tags", "note")
# A bar is one of so many lengths: pictures are sent once each, however many queries share them.
_LEVELS = 32
_WIDTH, _HEIGHT = 64, 20


@dataclass(frozen=True, eq=False)
class Rows:
    """What the filters leave, in order.

    frame: rows of the listing. ids: of the queries. shown: the table as the browser gets it.
    columns: of it, the ones to begin with. key: another one for other rows.
    """

    frame: pd.DataFrame
    ids: list[str]
    shown: pa.Table
    columns: list[str]
    key: str


def rows(study: Study, challenger: str, filters: Filters, order: str, marks: pd.DataFrame) -> Rows:
    """The same for all sessions that see the same list. order: as in `query_table`. marks:
    query_id, tags, note."""

    def make() -> Rows:
        listing = queries_study.listing(study, challenger)
        matching = listing.kept(filters, page_why.tags(marks), order)
        shown = _shown(matching, marks, listing.reach)
        shown["state"] = shown["state"].cat.rename_categories({state_words()[OK]: ""})
        shown["delta"] = rounded(shown["delta"], 3)
        ids = matching["query_id"].tolist()
        key = digest([each.encode("utf-8", "surrogatepass") for each in ids])
        table = pa.Table.from_pandas(shown, preserve_index=False)
        return Rows(matching, ids, table, _columns(matching, shown, order), key)

    seen = (filters, order, marks.to_numpy().tolist(), language())
    return cache(
        ("listed queries", *queries_study.table_key("listing", study, challenger), repr(seen)), make
    )


def opened(rows: Rows) -> str | None:
    """The id of the query that is open; None, and a line that says so, where no row is left."""
    if not rows.ids:
        st.info(_("No query matches these filters."), icon=":material/filter_alt_off:")
        return None
    requested = address.one("q")
    here = requested in rows.ids
    if requested is not None and address.came_by_link("q"):
        st.session_state[view.LANDING] = requested
    address.lose("q", None if here else requested)
    chosen = requested if here and requested is not None else rows.ids[0]
    address.settle("q", chosen)
    address.publish()
    return chosen


def height(rows: Rows) -> int:
    """Of the table, in pixels: as many rows as there are, up to what leaves room below."""
    return min((len(rows.ids) + 1) * _ROW + 2, _LONG)


def draw(rows: Rows, order: str, titles: Mapping[str, str], chosen: str) -> None:
    """The table. A click on a heading makes another order, which the next and the previous query
    follow: the browser's own order would be known to nobody else.

    order: as in `query_table`. titles: from `titles`. chosen: the query that is open.
    """
    ids = rows.ids
    # A selection is a row number, so the rows are part of the key; so are the steps made by button,
    # because a stored selection would win over the query they opened.
    key = f"queries.list.{rows.key}.{st.session_state.get(_STEPS, 0)}"

    def selected() -> None:
        selection = st.session_state[key]["selection"]
        if selection["columns"]:
            sort_by(str(selection["columns"][0]), order)
        elif selection["rows"]:
            address.choose("q", ids[selection["rows"][0]])

    st.dataframe(
        rows.shown,
        hide_index=True,
        # A long list fills the room there is beside the query.
        height="stretch" if height(rows) == _LONG else "content",
        placeholder="–",
        key=key,
        on_select=selected,
        selection_mode=["single-row-required", "single-column"],
        selection_default={"selection": {"rows": [ids.index(chosen)]}},
        column_order=rows.columns,
        column_config=_config(_arrowed(titles, order)),
        alt=ngettext("{n} query with both values", "{n} queries with both values", len(ids)),
    )


def sort_by(column: str, order: str) -> None:
    """Order the list by a column whose heading was clicked, from the order that it has."""
    if column not in _UNSORTED:
        address.choose("sort", by_column(_SORTED_BY.get(column, column), order))
        address.choose("q", None)
    # The table is drawn anew, without the mark on the column.
    _redraw()


def steps(rows: Rows, opened: str) -> None:
    """Previous and next in the current order, side by side in a horizontal container."""
    ids = rows.ids
    position = ids.index(opened)
    st.button(
        _("Previous"),
        icon=":material/arrow_upward:",
        disabled=position == 0,
        on_click=_open,
        args=(ids[max(position - 1, 0)],),
        shortcut="k",
    )
    st.button(
        _("Next"),
        icon=":material/arrow_downward:",
        disabled=position == len(ids) - 1,
        on_click=_open,
        args=(ids[min(position + 1, len(ids) - 1)],),
        shortcut="j",
    )
    st.caption(_("{i} of {n}", i=number(position + 1, 0), n=number(len(ids), 0)), width="content")


def _open(query_id: str) -> None:
    address.choose("q", query_id)
    st.session_state[view.LANDING] = query_id
    _redraw()


def _redraw() -> None:
    st.session_state[_STEPS] = st.session_state.get(_STEPS, 0) + 1


def _shown(rows: pd.DataFrame, marks: pd.DataFrame, reach: float) -> pd.DataFrame:
    text = rows["text"]
    frame = {
        "query": text.where(text.notna() & (text != ""), rows["query_id"]),
        "before": rows["before"],
        "after": rows["after"],
        "delta": rows["delta"],
        "bar": _bars(rows, reach),
        **{name: rows[name] for name in ("ceiling",) if name in rows},
        "reason": _worded(rows["reason"], reason_words()),
        "state": _worded(rows["state"], state_words()),
        **{name: rows[name] for name in ("to_win", "spread") if name in rows},
        **{
            name: rows[name].map(three_digits, na_action="ignore")
            for name in ("latency_ms",)
            if name in rows
        },
        "judged_before": rows["judged_before"],
        "judged_after": rows["judged_after"],
    }
    if len(marks):
        remarks = marks.set_index("query_id").reindex(rows["query_id"])
        frame |= {name: remarks[name].fillna("").to_numpy() for name in ("tags", "note")}
    return pd.DataFrame(frame)


def _worded(codes: pd.Series, words: Mapping[str, str]) -> pd.Categorical:
    """Codes as their words; sent as a code each and the words once."""
    known = pd.Categorical(codes)
    return known.rename_categories(lambda code: words.get(code, code))


def _columns(rows: pd.DataFrame, shown: pd.DataFrame, order: str) -> list[str]:
    """The columns to begin with, and what the order goes by; the others are a click away."""
    by = key_of(order)[0]
    states = ["state"] if (rows["state"] != OK).any() else []
    preferred = ["query", "delta", "bar", by, "reason", *states, "before", "after", "ceiling",
              "tags", "note"]  # fmt: skip
    return [name for name in dict.fromkeys(preferred) if name in shown]


def titles(before: str, after: str) -> dict[str, str]:
    """Column → what it is called. before, after: the names of the systems."""
    return {
        "query": _("query"),
        "before": before,
        "after": after,
        "delta": _("change"),
        "bar": _("◀ change ▶"),
        "ceiling": _("best possible (oracle)"),
        "reason": _("why"),
        "state": _("state"),
        "to_win": _("potential gain left"),
        "spread": _("disagreement"),
        "latency_ms": _("ms"),
        "judged_before": _("judged, baseline"),
        "judged_after": _("judged, compared"),
        "tags": _("tags"),
        "note": _("note"),
    }


def _arrowed(titles: Mapping[str, str], order: str) -> dict[str, str]:
    """The same with an arrow at the column by which the rows are ordered."""
    column, highest_first = key_of(order)
    name = next((name for name, by in _SORTED_BY.items() if by == column != "delta"), column)
    marked = dict(titles)
    if name in marked:
        # First, as a long name is cut at its end.
        marked[name] = f"{'↓' if highest_first else '↑'} {marked[name]}"
    return marked


def _config(titles: Mapping[str, str]) -> dict[str, Any]:
    column = st.column_config
    decimal = "%.3f"
    return {
        "query": column.TextColumn(titles["query"], width=200),
        "delta": column.NumberColumn(titles["delta"], format=decimal, width=60),
        "bar": column.ImageColumn(
            titles["bar"],
            width=_WIDTH + 10,
            help=_(
                "Left: worse; right: better; all on one axis. The tick marks where the bar would "
                "end with the best possible order."
            ),
        ),
        "before": column.NumberColumn(
            titles["before"], format=decimal, width=66, help=_value_of(titles["before"])
        ),
        "after": column.NumberColumn(
            titles["after"], format=decimal, width=66, help=_value_of(titles["after"])
        ),
        "ceiling": column.NumberColumn(
            titles["ceiling"],
            format=decimal,
            width=62,
            help=_(
                "The best value that an order of the candidates can reach; if a system ranks "
                "other documents, that of an order of all documents of the systems."
            ),
        ),
        "reason": column.TextColumn(titles["reason"], width=135),
        "state": column.TextColumn(titles["state"], width=90),
        "to_win": column.NumberColumn(titles["to_win"], format=decimal, width=80),
        "spread": column.NumberColumn(
            titles["spread"],
            format=decimal,
            width=90,
            help=_("Highest minus lowest value among the systems compared with the baseline."),
        ),
        "latency_ms": column.NumberColumn(titles["latency_ms"], format="plain", width=60),
        "judged_before": column.NumberColumn(titles["judged_before"], format="percent", width=80),
        "judged_after": column.NumberColumn(titles["judged_after"], format="percent", width=80),
        "tags": column.TextColumn(titles["tags"], width=120),
        "note": column.TextColumn(titles["note"], width=160),
    }


def _value_of(system: str) -> str:
    """The whole name, which a narrow column cuts."""
    return _("Value of {system}", system=markdown_safe(system, 80))


def _bars(rows: pd.DataFrame, reach: float) -> pd.Categorical:
    """A signed bar for each query; none where it has no change."""
    scale = _LEVELS / (reach or 1.0)
    delta = rows["delta"].to_numpy(dtype=np.float64)
    room = (
        (rows["ceiling"] - rows["before"]).to_numpy(dtype=np.float64)
        if "ceiling" in rows
        else np.full(len(rows), np.nan)
    )
    none = np.isnan(delta)
    length = np.where(none, 0, np.round(np.nan_to_num(delta) * scale)).astype(np.int64)
    # What is not nothing is seen.
    length = np.where((length == 0) & (np.abs(np.nan_to_num(delta)) > 0), np.sign(delta), length)
    tick = np.where(np.isnan(room), -1, np.round(np.nan_to_num(room) * scale)).astype(np.int64)
    codes, pairs = pd.factorize(
        (length.astype(np.int64) + _LEVELS) * (2 * _LEVELS + 2) + np.clip(tick, -1, _LEVELS) + 1
    )
    pictures = [
        _picture(int(pair) // (2 * _LEVELS + 2) - _LEVELS, int(pair) % (2 * _LEVELS + 2) - 1)
        for pair in pairs
    ]
    return pd.Categorical.from_codes(np.where(none, -1, codes), pd.Index(pictures, dtype=object))


@lru_cache(maxsize=4096)
def _picture(length: int, tick: int) -> str:
    """length: of the bar, -`_LEVELS` to `_LEVELS`. tick: where the ceiling is, -1 for nowhere."""
    unit = (_WIDTH - 4) / 2 / _LEVELS
    middle = _WIDTH / 2
    start, wide = (middle + min(length, 0) * unit, abs(length) * unit)
    colour = style.BETTER if length > 0 else style.WORSE
    parts = [
        f"<path d='M2 10H{_WIDTH - 2}' stroke='{style.FIRST_STAGE}' stroke-opacity='.35'/>",
        f"<rect x='{start:.1f}' y='4' width='{wide:.1f}' height='12' fill='{colour}'/>",
        f"<path d='M{middle:g} 1V19' stroke='{style.FIRST_STAGE}' stroke-width='1.5'/>",
    ]
    if tick >= 0:
        x = middle + tick * unit
        parts.append(
            f"<path d='M{x:.1f} 2V18' stroke='{style.FIRST_STAGE}' stroke-width='2.5' "
            "stroke-dasharray='3 2'/>"
        )
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{_HEIGHT}' "
        f"viewBox='0 0 {_WIDTH} {_HEIGHT}'>{''.join(parts)}</svg>"
    )
    return f"data:image/svg+xml;utf8,{quote(svg, safe=' =/:<>')}"


# The list of queries as a file for a spreadsheet: in English, whatever the interface speaks.

_COLUMNS = (
    *("before", "after", "delta", "ceiling", "to_win", "spread", "reason", "state"),
    *("latency_ms", "judged_before", "judged_after"),
)


def download(study: Study, challenger: str, rows: pd.DataFrame, marks: pd.DataFrame) -> None:
    """rows: what the filters leave, in order, as from `queries.study.listing`. marks: query_id,
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


# One query as one file that needs no network: what the page shows, to send to someone.


def button(study: Study, challenger: str, query_id: str) -> None:
    """Offer the file; it is made when it is asked for."""
    st.download_button(
        _("Save this query as a file"),
        data=partial(export_html, study, challenger, query_id, language()),
        file_name=file_name(study.dataset.name, f"query {query_id}", "html"),
        mime="text/html",
        icon=":material/download:",
        key="queries.export",
        on_click="ignore",
        help=_("One page with its charts and texts, which opens without a network."),
    )


def export_html(study: Study, challenger: str, query_id: str, code: str) -> bytes:
    """The file, in the language `code`: it is made outside of the session that asked for it."""
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
