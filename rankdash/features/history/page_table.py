"""The table of the history: every run with its numbers and its note. The selection is in the
address."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base import text as base_text
from rankdash.core.base.i18n import enumerated, moment, ngettext, separated
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.ranking import digest
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.columns import columns
from rankdash.core.workspace import RunRow
from rankdash.features.history.page import CHOSEN, Past, note_on
from rankdash.kit.widgets import address, pickers, run_records
from rankdash.kit.widgets.run_records import reranker_title, settings_in_words
from rankdash.kit.widgets.text import compared_cells, signed_cells

_ROW, _MOST_SHOWN = 35, 14
# Width of names: pixels per letter, and letters. A longer name is shortened in its middle; the
# chart and the details below the table show it in full.
_LETTER, _NAME_COLUMNS = 7, 22
# Columns that are visible without scrolling; the others follow.
_FIRST = (
    *("number", "name", "mean", "delta", "verdict", "change_interval", "n", "p_corrected", "role"),
    *("note", "p95", "failed"),
)
# In pixels, of the columns of any comparison.
_WIDTHS = {
    "mean": 70,
    "interval": 140,
    "n": 62,
    "delta": 68,
    "change_interval": 140,
    "p_corrected": 80,
    "verdict": 100,
}


def draw(history: Past) -> list[str]:
    """Draw the systems, newest first, the first stage last.

    Returns the ids of the chosen systems; of a pair the baseline first.
    """
    listed = [*(run.id for run in reversed(history.runs)), FIRST_STAGE]
    chosen = [system for system in address.several(CHOSEN) if system in listed]
    unknown = [system for system in address.several(CHOSEN) if system not in listed]
    address.lose(CHOSEN, enumerated(unknown) or None)
    key = f"history.table.{digest([system.encode() for system in listed])}"
    # Selected from the address each time, because a link or the back button may have changed it.
    places = sorted(listed.index(system) for system in chosen)
    drawn = {"selection": {"rows": places, "columns": [], "cells": []}}

    def changed() -> None:
        picked = [listed[place] for place in st.session_state[key]["selection"]["rows"]]
        address.choose(CHOSEN, ordered(history, picked) or None)

    table, config, digits = _columns(history, listed)
    pickers.show(st.dataframe, key, drawn, changed)(
        signed_cells(table, digits, times=("p95",)),
        hide_index=True,
        placeholder="–",
        height=_ROW * (min(len(listed), _MOST_SHOWN) + 1) + 3,
        selection_mode="multi-row",
        column_config=config,
        alt=_("The runs of this data set with their numbers, newest first"),
    )
    return chosen


def ordered(history: Past, picked: Sequence[str]) -> list[str]:
    """Return the picked systems in the order for a comparison: the pinned baseline, then the
    current one, then runs from old to new."""
    first = [system for system in (history.pinned, history.study.baseline) if system in picked]
    return sorted(
        picked,
        key=lambda system: (first.index(system) if system in first else 2, history.number(system)),
    )


def _columns(
    history: Past, listed: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, Any], dict[str, int]]:
    """Return the table, the configuration of its columns, and the decimals of its changes."""
    study = history.study
    queries = history.trend.queries
    rows = [
        {**row, **dict.fromkeys(("n", "paired"), queries if row["on_line"] else row["answered"])}
        for row in map(history.row, listed)
    ]
    by_id = {run.id: run for run in history.runs}
    runs = [by_id.get(system) for system in listed]
    notes = [note_on(history, run) or None if run else None for run in runs]
    shown = [base_text.middle(study.systems[system].name, _NAME_COLUMNS) for system in listed]
    declared = columns(
        "history",
        study.statistics.level,
        study.statistics.corrects(history.trend.comparisons),
        study.title,
    )
    cells, config, digits = compared_cells(declared, rows)
    cells |= {
        "number": [history.number(system) or None for system in listed],
        "name": shown,
        "role": [_role(history, system) for system in listed],
        "note": notes,
        "p95": [history.p95_ms(run) if run else None for run in runs],
        "failed": [run.queries_failed if run else None for run in runs],
        "made": [moment(run.created) if run else None for run in runs],
        "reranker": [reranker_title(run.reranker) if run else None for run in runs],
        "remarks": [
            separated(_remarks(run, row)) or None for run, row in zip(runs, rows, strict=True)
        ],
        "settings": [settings_in_words(run.settings) or None if run else None for run in runs],
    }
    text, count = st.column_config.TextColumn, st.column_config.NumberColumn
    config |= {
        "number": count(_p("column", "run"), format="%.0f", width=42, pinned=True),
        "name": text(
            _p("column", "name"),
            width=_LETTER * max(map(base_text.columns, shown)) + 20,
            pinned=True,
        ),
        "role": text(_p("column", "baseline"), width=62),
        "p95": count(_("p95 ms"), width=70),
        "failed": count(_p("column", "failed"), format="%.0f", width=60),
        "note": text(_p("column", "note"), width="medium"),
        "made": text(_("created (UTC)"), width=170),
        "reranker": text(_p("column", "reranker"), width=130),
        "remarks": text(_p("column", "remarks"), width="medium"),
        "settings": text(_p("column", "settings"), width="medium"),
    }
    for name, width in _WIDTHS.items():
        config[name]["width"] = width
    order = [*_FIRST, *(name for name in cells if name not in _FIRST)]
    return pd.DataFrame({name: cells[name] for name in order}), config, digits


def _role(history: Past, system: str) -> str | None:
    if system == history.pinned:
        return _p("state", "pinned")
    return _p("state", "current") if system == history.study.baseline else None


def _remarks(run: RunRow | None, row: Mapping[Hashable, Any]) -> list[str]:
    """Return short remarks on how to read a run's numbers."""
    sentences = list(run_records.record(run.id).remarks()) if run is not None else []
    if row["missing"] > 0:
        sentences.append(
            ngettext(
                "{n} query without documents counts 0",
                "{n} queries without documents count 0",
                int(row["missing"]),
            )
        )
    return sentences
