"""Labels that come back: those of a plan's draws join its answers, so that the estimate has them;
others are merged into a data set."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import enumerated, error_text, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.intake.reading import tried
from rankdash.core.readers import Source, read, read_beside, reversed_note
from rankdash.core.readers.rated import read_rated
from rankdash.core.sampling.answers import draws_table
from rankdash.core.workspace.notes.corrections import Correction, Corrections
from rankdash.features.label.labelling import CONFLICTS, Conflict, Merged, as_in, merge_labels
from rankdash.features.label.page_successor import keep_beside
from rankdash.kit.widgets import action_errors, label_plan, person, pickers, stored
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.uploaded import uploader

_PAIR = ["query_id", "doc_id"]
_WHO = "analyst"
_SAID = "labels.said"
_GENERATION = "labels.generation"


def draw(dataset_id: str) -> None:
    """Upload labels for the chosen data set. It becomes a new data set, with its runs; the old one
    stays, so nothing is lost."""
    if _SAID in st.session_state:
        st.success(st.session_state.pop(_SAID), icon=":material/check_circle:")
    files = uploader(
        _("A filled-in labelling list, or any file of labels for this data set"),
        f"labels.file.{st.session_state.get(_GENERATION, 0)}",
    )
    conflict: Conflict = st.selectbox(
        _("Where a pair has a label already"),
        get_args(Conflict),
        format_func=lambda rule: _(CONFLICTS[rule]),
        key=pickers.in_words("labels.conflict"),
    )
    if not files or not st.button(_("Add these labels"), type="primary", key="labels.add"):
        return
    [source] = files
    try:
        tried([source])
        if take_answers(dataset_id, source):
            st.rerun()
        parsed = read([source])
        merged = merge_labels(stored.dataset(dataset_id), parsed.qrels, conflict=conflict)
    except RankdashError as error:
        action_errors.say(error_text(error))
        return
    report = stored.check_report(dataset_id)
    worst = None if report is None else report.reversed_at
    # That labels were reversed stays with the data set.
    noticed = [] if worst is None else [reversed_note(worst)]
    st.session_state[_SAID] = _summary(merged)
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    keep_beside(dataset_id, merged.dataset, noticed, name=_named(merged))
    st.rerun()


def take_answers(dataset_id: str, source: Source) -> bool:
    """Take the labels of a file as answers of the plan that is under way; whether they are draws of
    it. Raises DataError for a label above the top of its scale, and keeps none."""
    labelling = label_plan.current(dataset_id)
    draws = read_beside([source], {}).draws if labelling is not None else None
    if labelling is None or draws is None:
        return False
    plan = labelling.plan
    places = plan.pool.index
    drawn = _named_as_in(draws[draws["draw"].notna()], places)
    own = draws_table(plan)["draw"].set_axis(places).reindex(pd.MultiIndex.from_frame(drawn[_PAIR]))
    if not np.array_equal(own.to_numpy(dtype=np.float64, na_value=np.nan), drawn["draw"]):
        return False
    rated = read_rated(source)
    if rated is None:
        told = _named_as_in(read([source]).qrels, places)
        labels = told.merge(drawn[_PAIR], "right", _PAIR).assign(
            rater=person.name() or workspace().setting(_WHO) or "", time=""
        )
    else:
        # Without the labels that were there before the plan.
        labels = _named_as_in(rated[0], places).merge(drawn[_PAIR], "inner", _PAIR)
    plan.metric.gains(labels["label"].to_numpy(dtype=np.float64))
    columns = (labels[name].tolist() for name in ("query_id", "doc_id", "label", "rater", "time"))
    rows = [
        Correction(query, doc, None if math.isnan(label) else label, who, made)
        for query, doc, label, who, made in zip(*columns, strict=True)
    ]
    Corrections(workspace()).take_in(dataset_id, rows)
    st.session_state[_SAID] = ngettext(
        "{n} label added to the plan; the estimate counts it.",
        "{n} labels added to the plan; the estimate counts them.",
        len(rows),
    )
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    return True


def _named_as_in(table: pd.DataFrame, places: pd.MultiIndex) -> pd.DataFrame:
    """The rows with ids as the plan spells them."""
    found = table.copy()
    for at, name in enumerate(_PAIR):
        found[name] = np.array(as_in(table[name], set(places.levels[at])), dtype=object)
    return found


def _named(merged: Merged) -> str:
    added = ngettext("{n} new label", "{n} new labels", merged.added + merged.changed)
    return f"{merged.dataset.name} + {added}"[:80]


def _summary(merged: Merged) -> str:
    parts = [
        ngettext("{n} label added", "{n} labels added", merged.added),
        ngettext("{n} changed", "{n} changed", merged.changed),
        ngettext("{n} unchanged", "{n} unchanged", merged.kept + merged.same),
    ]
    if merged.unknown:
        parts.append(
            ngettext(
                "{n} not used: not a query and document of this data set",
                "{n} not used: not queries and documents of this data set",
                merged.unknown,
            )
        )
    return enumerated(parts)
