"""The list of queries: filters, order, and the one that is open."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.analysis.query_table import ORDERS, OUTCOMES, filtered, ordered
from rankdash.ui import address
from rankdash.ui.i18n import gettext as _
from rankdash.ui.i18n import ngettext, number
from rankdash.ui.text import markdown_safe

_STEPS = "queries.steps"
_SEGMENTS_OFFERED = 3
_VALUES_OFFERED = 50


def filters(table: pd.DataFrame, segments: list[str]) -> pd.DataFrame:
    """Draw the filters and return the rows they leave, in the chosen order."""
    offered = [column for column in segments if 1 < table[column].nunique() <= _VALUES_OFFERED][
        :_SEGMENTS_OFFERED
    ]
    columns = st.columns(3 + len(offered))
    words = outcome_words()
    order = address.pick_one(
        "sort",
        list(ORDERS),
        columns[0].selectbox,
        default="hurt",
        label=_("Order"),
        format_func=lambda value: {
            "hurt": _("most hurt first"),
            "helped": _("most helped first"),
            "changed": _("largest change first"),
            "lowest": _("lowest baseline first"),
            "given": _("as in the data"),
        }[value],
    )
    present = [*OUTCOMES, *sorted(set(table["outcome"]) - set(OUTCOMES))]
    outcomes = columns[1].multiselect(
        _("What became of it"),
        present,
        placeholder=_("all"),
        format_func=lambda value: words.get(value, value),
        key="queries.outcome",
        persist_state="session",
    )
    chosen = {
        column: tuple(
            columns[2 + position].multiselect(
                markdown_safe(column, 30),
                sorted(table[column].dropna().unique()),
                placeholder=_("all"),
                key=f"queries.segment.{column}",
                persist_state="session",
            )
        )
        for position, column in enumerate(offered)
    }
    text = columns[-1].text_input(
        _("Text or id"), key="queries.text", persist_state="session", icon=":material/search:"
    )
    kept = filtered(table, outcomes=tuple(outcomes), segments=chosen, text=text)
    return ordered(kept, order or "hurt")


def draw(rows: pd.DataFrame, before: str, after: str) -> str | None:
    """The table; returns the id of the query that is open, None when no row is left.

    rows: from `filters`; before, after: what the value columns are called.
    """
    if rows.empty:
        st.info(_("No query matches these filters."), icon=":material/filter_alt_off:")
        return None
    ids = list(rows["query_id"])
    opened = address.one("q")
    if opened not in ids:
        opened = ids[0]
    words = outcome_words()
    shown = pd.DataFrame(
        {
            "query": rows["text"].fillna("").where(rows["text"].notna(), rows["query_id"]),
            "before": rows["before"],
            "after": rows["after"],
            "delta": rows["delta"],
            "outcome": [words.get(value, value) for value in rows["outcome"]],
        }
    )
    # A selection is a row number, so the rows are part of the key; so are the steps made by button,
    # because a stored selection would win over the query they opened.
    key = f"queries.list.{hash(tuple(ids))}.{st.session_state.get(_STEPS, 0)}"

    def selected() -> None:
        picked = st.session_state[key]["selection"]["rows"]
        if picked:
            address.choose("q", ids[picked[0]])

    st.dataframe(
        shown,
        hide_index=True,
        height=300,
        key=key,
        on_select=selected,
        selection_mode="single-row-required",
        selection_default={"selection": {"rows": [ids.index(opened)]}},
        column_config={
            "query": st.column_config.TextColumn(_("query"), width="large"),
            "before": st.column_config.NumberColumn(before, format="%.3f", width="small"),
            "after": st.column_config.NumberColumn(after, format="%.3f", width="small"),
            "delta": st.column_config.NumberColumn(_("change"), format="%+.3f", width="small"),
            "outcome": st.column_config.TextColumn(_("outcome"), width="small"),
        },
        alt=ngettext("{n} query with both values", "{n} queries with both values", len(rows)),
    )
    address.choose("q", opened)
    address.publish()
    return opened


def steps(rows: pd.DataFrame, opened: str) -> None:
    """Previous and next in the current order."""
    ids = list(rows["query_id"])
    position = ids.index(opened)
    back, forward, where = st.columns([2, 2, 5], vertical_alignment="center")
    back.button(
        _("Previous"),
        icon=":material/arrow_upward:",
        disabled=position == 0,
        on_click=_open,
        args=(ids[max(position - 1, 0)],),
        width="stretch",
        shortcut="k",
    )
    forward.button(
        _("Next"),
        icon=":material/arrow_downward:",
        disabled=position == len(ids) - 1,
        on_click=_open,
        args=(ids[min(position + 1, len(ids) - 1)],),
        width="stretch",
        shortcut="j",
    )
    where.caption(_("{i} of {n}", i=number(position + 1, 0), n=number(len(ids), 0)))


def _open(query_id: str) -> None:
    address.choose("q", query_id)
    st.session_state[_STEPS] = st.session_state.get(_STEPS, 0) + 1


def outcome_words() -> dict[str, str]:
    return {
        "helped": _("helped ▲"),
        "same": _("same ="),
        "hurt": _("hurt ▼"),
        "failed": _("failed"),
        "skipped": _("not run"),
        "no_relevant": _("nothing relevant"),
        "missing": _("not ranked"),
        "undefined": _("undefined"),
        "absent": _("only on one side"),
    }
