"""Documents without a label: their possible effect, and which to label first."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, finding_text, ngettext, number, plain, signed
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import csv_bytes
from rankdash.core.data.dataset import Dataset
from rankdash.core.readers import put_right, reversed_note
from rankdash.core.readers.checks.check import CheckReport, check
from rankdash.core.sampling.label_plan import ADDITIVE, labels_table, next_pairs
from rankdash.core.study.labelling import MOST_ROWS, sampled_to_label, to_label, to_label_jsonl
from rankdash.core.study.study import Study
from rankdash.core.study.unjudged.system_bounds import UnjudgedComparison
from rankdash.core.workspace.notes import Corrections, LabelNotes, LabelPlans
from rankdash.kit.html.tables import file_name
from rankdash.kit.widgets import dialogs, stored
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.labels.corrections import keep_beside
from rankdash.kit.widgets.labels.plan import LabelSettings
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import name_rows, name_safe, table_html

_DRAWN, _LARGEST = "drawn", "largest"
_WRITERS: tuple[tuple[str, Callable[[pd.DataFrame], bytes], str], ...] = (
    ("csv", csv_bytes, "text/csv"),
    ("jsonl", to_label_jsonl, "application/x-ndjson"),
)


def draw(study: Study) -> None:
    bounds = study.unjudged
    names = study.names
    st.dataframe(
        pd.DataFrame(
            {
                _p("column", "system"): bounds["system"].map(names),
                _p("column", "judged"): bounds["judged"],
                _("documents without a label"): bounds["unjudged"],
                _("as not relevant"): bounds["value"],
                _("lowest possible"): bounds["lowest"],
                _("highest possible"): bounds["highest"],
                _p("column", "bounds"): [_kind(kind) for kind in bounds["kind"]],
            }
        ),
        hide_index=True,
        row_height=name_rows(names.values()),
        column_config={
            _p("column", "judged"): st.column_config.NumberColumn(format="percent"),
            **{
                name: st.column_config.NumberColumn(format="%.3f")
                for name in (_("as not relevant"), _("lowest possible"), _("highest possible"))
            },
        },
        alt=_("Bounds by unjudged documents, for each system"),
    )
    open_labels = study.challengers and bounds["unjudged"].any()
    sampled = bool(open_labels) and _order(study)
    for system in study.challengers:
        _difference(study, system, names, listed=not sampled)


def _order(study: Study) -> bool:
    """Draw the choice of the order in which to label; return whether it is the sampling order."""
    chosen = st.segmented_control(
        _("Order of the documents to label next"),
        [_DRAWN, _LARGEST],
        format_func=lambda each: (
            _p("choice", "sampled") if each == _DRAWN else _("largest effect first")
        ),
        key="unjudged.order",
        default=_DRAWN,
        required=True,
    )
    if chosen == _LARGEST:
        st.caption(
            _(
                "This order narrows the bounds with the fewest labels. It is not a random "
                "sample: a partly labelled list gives a biased difference."
            )
        )
        return False
    st.caption(
        _(
            "Each document is listed with its sampling probability, so the labels give an "
            "unbiased estimate of the difference at any time."
        )
    )
    labelling = plan.current(study.stored_id)
    if labelling is None:
        if not read_only() and st.button(
            _("Sample the documents"), icon=":material/casino:", key="unjudged.draw"
        ):
            _begin(study)
        return True
    files = st.container(horizontal=True)
    for suffix, write, kind in _WRITERS:
        files.download_button(
            _("Documents to label next ({format})", format=suffix.upper()),
            data=partial(sampled_bytes, write, study.stored_id),
            file_name=file_name(study.dataset.name, "to label", suffix),
            mime=kind,
            icon=":material/download:",
            key=f"unjudged.drawn.{suffix}",
            on_click="ignore",
        )
    return True


def _begin(study: Study) -> None:
    """Begin a labelling plan for the compared systems. It uses the study's metric, or DCG at the
    same cutoff if labels for a sample of pairs cannot estimate the metric."""
    measure = study.measure
    additive = measure.metric.name in ADDITIVE and measure.k is not None
    metric = study.spec if additive else f"dcg@{study.cutoff or 10}"
    values = study.dataset.label_values
    settings = LabelSettings(
        study.chosen,
        metric,
        max(float(values[-1]) if values else 1.0, 1.0),
        study.conventions.threshold,
        secrets.randbits(32),
    )
    try:
        plan.offered(study.stored_id, settings)
        LabelPlans(workspace()).begin(study.stored_id, asdict(settings), "")
    except RankdashError as error:
        dialogs.show_error(error_text(error))
        return
    st.rerun()


def sampled_bytes(write: Callable[[pd.DataFrame], bytes], dataset_id: str) -> bytes:
    """Return the next pairs to label, in the format of `write`; b"" if the plan was deleted."""
    labelling = plan.current(dataset_id)
    if labelling is None:
        return b""
    data = stored.dataset(dataset_id)
    chosen = next_pairs(labelling.plan, labelling.answered, "", MOST_ROWS)
    texts = data.query_text(), data.document_text()
    return write(sampled_to_label(labelling.plan, chosen, *texts))


def _difference(study: Study, system: str, names: dict[str, str], *, listed: bool = True) -> None:
    """Draw the bounds of a system's change. listed: whether to offer a list of documents to label
    next, the largest effect first."""
    settled = study.unjudged_change(system)
    open_range = settled.bounds
    fields = {"name": name_safe(names[system]), "delta": signed(open_range.delta)}
    if open_range.lowest == open_range.highest:
        st.markdown(_("**{name}**: missing labels cannot alter the change of {delta}.", **fields))
        return
    sentence = _(
        "**{name}**: with complete labels, the change of {delta} would lie between {low} and "
        "{high}.",
        low=signed(open_range.lowest),
        high=signed(open_range.highest),
        **fields,
    )
    if not math.isfinite(open_range.delta):
        st.markdown(_("**{name}**: no query can be compared.", name=name_safe(names[system])))
        return
    if not listed or not len(settled.pool):
        st.markdown(f"{sentence} {_needed(settled)}")
        return
    text, action = st.columns([3, 2], vertical_alignment="center")
    text.markdown(f"{sentence} {_needed(settled)}")
    pair = (names[study.baseline], names[system])
    data = study.dataset
    for suffix, write, kind in _WRITERS:
        action.download_button(
            _("Documents to label next ({format})", format=suffix.upper()),
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
    needed = settled.labels_to_settle
    if needed is None:
        return _("There is no difference that labels could confirm.")
    if needed == 0:
        return _("The result is conclusive: missing labels cannot change which system is ahead.")
    return ngettext(
        "{n} label may be enough to decide which system is ahead.",
        "{n} labels may be enough to decide which system is ahead.",
        needed,
    )


def _kind(kind: str) -> str:
    return {
        "tight": _p("state", "exact"),
        "outer": _("valid, possibly wide"),
        "range": _("range of the metric"),
    }[kind]


# Reversing labels whose lowest grade is the best, and undoing it.

_NO_INTEREST = 5


def draw_direction(dataset_id: str, report: CheckReport) -> None:
    """Offer to reverse labels, prominently if they seem to be reversed, or to undo it."""
    if report.reversed_at is not None:
        st.caption(finding_text(reversed_note(report.reversed_at)))
        if not read_only() and st.button(_("Undo the reversal"), icon=":material/undo:"):
            _reverse(dataset_id, report, report.reversed_at)
    elif report.labels and not read_only():
        suspected = bool(report.suspected_best)
        if suspected or st.checkbox(_("1 is the best grade"), key="labels.one_is_best"):
            with st.container(border=True):
                _offer(dataset_id, report)


def _offer(dataset_id: str, report: CheckReport) -> None:
    labels = stored.dataset(dataset_id).label_values
    corrected = [each.label or 0.0 for each in Corrections(workspace()).all(dataset_id)]
    highest = max(0.0, *labels, *corrected)
    st.markdown(f"**{_('Reverse the labels')}**")
    worst = st.selectbox(
        _("Grade for “not relevant”"),
        (highest, highest + 1),
        # Cranfield's 1 to 4 are all relevant: -1 represents its 5, "of no interest". A scale up to
        # 5 contains its own worst grade, and labels below 0 mean unjudged, or spam.
        index=int(labels[0] < 0 and highest < _NO_INTEREST),
        format_func=lambda grade: (
            plain(grade)
            if grade == highest
            else _("{grade} (not used by any label)", grade=plain(grade))
        ),
        help=_(
            "This grade becomes 0, and the lowest grade becomes the highest. Labels below 0 "
            "are unchanged."
        ),
    )
    before = np.array([bar.low for bar in report.label_histogram])
    st.html(
        table_html(
            (_p("column", "label"), _p("column", "becomes"), _p("column", "pairs")),
            [
                (plain(bar.low), plain(after), number(bar.count, 0))
                for bar, after in zip(report.label_histogram, put_right(before, worst), strict=True)
                if bar.low == bar.high
            ],
        )
    )
    if st.button(_("Reverse the labels"), type="primary", icon=":material/swap_vert:"):
        _reverse(dataset_id, report, worst)


def _reverse(dataset_id: str, report: CheckReport, worst: float) -> None:
    """Save a copy of the data set with reversed labels; reversing again restores the original."""
    old = stored.dataset(dataset_id)
    codes = {each.code for each in check(old, (), {}).findings}
    noticed = [each for each in report.findings if each.code not in {*codes, "label_direction"}]
    suffix = _(", labels reversed")
    if report.reversed_at is None:
        noticed.append(reversed_note(worst))
        name = f"{old.name}{suffix}"
    else:
        noticed = [each for each in noticed if each.code != reversed_note(worst).code]
        name = old.name.removesuffix(suffix)
    try:
        reversed_data = Dataset(
            old.name,
            old.queries,
            old.documents,
            old.qrels.assign(label=put_right(old.qrels["label"].to_numpy(), worst)),
            old.candidates,
            first_stage=old.first_stage,
            candidates_name=old.candidates_name,
        )
        keep_beside(
            dataset_id,
            reversed_data,
            noticed,
            name=name,
            corrected=lambda label: float(put_right(np.array([label]), worst)[0]),
        )
    except RankdashError as error:
        dialogs.show_error(error_text(error))
    else:
        st.rerun()


# The labels as a file that every reader of labels accepts, with sampling probabilities, annotators,
# times and notes.


def draw_files(dataset_id: str) -> None:
    """Draw a button to download the labels. The file is created on click, because labels are added
    while the button is shown."""
    st.download_button(
        _("Labels with sampling probabilities, annotators, times and notes (CSV)"),
        lambda: table_bytes(dataset_id),
        file_name="labels.csv",
        mime="text/csv",
        key="labelling.csv",
        on_click="ignore",
    )


def table_bytes(dataset_id: str) -> bytes:
    """Return the labels of the plan as CSV; b"" if the plan was deleted. A document with a note and
    without a label has a row with an empty label."""
    labelling = plan.current(dataset_id)
    if labelling is None:
        return b""
    table = labels_table(labelling.plan, labelling.answered)
    notes = LabelNotes(workspace()).all(dataset_id)
    rows = [
        (*pair, "; ".join(f"{who}: {note}" if who else note for who, note in remarks.items()))
        for pair, remarks in notes.items()
    ]
    noted = pd.DataFrame(rows, columns=["query_id", "doc_id", "note"])
    return csv_bytes(table.merge(noted, "outer", ["query_id", "doc_id"], sort=False))
