"""What the documents without a label leave open, and which ones to label next."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from rankdash.analysis.labels.labelling import to_label, to_label_jsonl
from rankdash.analysis.unjudged.system_bounds import UnjudgedComparison
from rankdash.dataset import Dataset
from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext, signed
from rankdash.reporting.exports.downloads import file_name
from rankdash.spreadsheet import csv_bytes
from rankdash.study.study import Study
from rankdash.ui.widgets.text import name_rows, name_safe


def draw(study: Study) -> None:
    bounds = study.unjudged
    names = study.names
    st.dataframe(
        pd.DataFrame(
            {
                _("system"): bounds["system"].map(names),
                _("judged"): bounds["judged"],
                _("documents without a label"): bounds["unjudged"],
                _("as not relevant"): bounds["value"],
                _("lowest possible"): bounds["lowest"],
                _("highest possible"): bounds["highest"],
                _("bounds"): [_kind(kind) for kind in bounds["kind"]],
            }
        ),
        hide_index=True,
        row_height=name_rows(names.values()),
        column_config={
            _("judged"): st.column_config.NumberColumn(format="percent"),
            **{
                name: st.column_config.NumberColumn(format="%.3f")
                for name in (_("as not relevant"), _("lowest possible"), _("highest possible"))
            },
        },
        alt=_("Bounds by unjudged documents, for each system"),
    )
    for system in study.challengers:
        _difference(study, system, names)


def _difference(study: Study, system: str, names: dict[str, str]) -> None:
    settled = study.unjudged_change(system)
    open_range = settled.bounds()
    given = {"name": name_safe(names[system]), "delta": signed(open_range.delta)}
    if open_range.lowest == open_range.highest:
        st.markdown(_("**{name}**: no missing label can alter the change of {delta}.", **given))
        return
    sentence = _(
        "**{name}**: with all labels complete, the change of {delta} could be anywhere from "
        "{low} to {high}.",
        low=signed(open_range.lowest),
        high=signed(open_range.highest),
        **given,
    )
    if not math.isfinite(open_range.delta):
        st.markdown(_("**{name}**: no query can be compared.", name=name_safe(names[system])))
        return
    text, action = st.columns([3, 2], vertical_alignment="center")
    text.markdown(f"{sentence} {_needed(settled)}")
    if not len(settled.pool):
        return
    pair = (names[study.baseline], names[system])
    data = study.dataset
    writers: tuple[tuple[str, Callable[[pd.DataFrame], bytes], str], ...] = (
        ("csv", csv_bytes, "text/csv"),
        ("jsonl", to_label_jsonl, "application/x-ndjson"),
    )
    for suffix, write, kind in writers:
        action.download_button(
            _("What to label next ({format})", format=suffix.upper()),
            data=partial(_list_bytes, write, data, settled, pair),
            file_name=file_name(data.name, f"to label {study.spec}", suffix),
            mime=kind,
            icon=":material/download:",
            key=f"unjudged.{system}.{suffix}",
            on_click="ignore",
        )


def _list_bytes(
    write: Callable[[pd.DataFrame], bytes],
    data: Dataset,
    settled: UnjudgedComparison,
    pair: tuple[str, str],
) -> bytes:
    return write(to_label(data, settled, pair))


def _needed(settled: UnjudgedComparison) -> str:
    needed = settled.labels_to_settle()
    if needed is None:
        return _("There is no difference that labels could settle.")
    if needed == 0:
        return _("It is settled which system is ahead, whatever the missing labels are.")
    return ngettext(
        "{n} label may be enough to settle which is ahead.",
        "{n} labels may be enough to settle which is ahead.",
        needed,
    )


def _kind(kind: str) -> str:
    return {"tight": _("exact"), "outer": _("safe, maybe wide"), "range": _("range of the metric")}[
        kind
    ]
