"""Labels whose lowest grade is the best: reverse them, and undo it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, finding_text, number, plain
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.dataset import Dataset
from rankdash.core.readers import put_right, reversed_note
from rankdash.core.readers.checks.check import CheckReport, check
from rankdash.core.workspace.notes.corrections import Corrections
from rankdash.features.label.page_successor import keep_beside
from rankdash.kit.widgets import action_errors, stored
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import table_html

_NO_INTEREST = 5


def draw(dataset_id: str, report: CheckReport) -> None:
    """Offer to reverse labels, first of all those that seem to be reversed, or to undo it."""
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
        _("Grade that means not relevant"),
        (highest, highest + 1),
        # Cranfield's 1 to 4 are all relevant: -1 stands for its 5, "of no interest". A scale that
        # reaches 5 holds its own worst grade, and what is below 0 is unjudged, or spam.
        index=int(labels[0] < 0 and highest < _NO_INTEREST),
        format_func=lambda grade: (
            plain(grade)
            if grade == highest
            else _("{grade} (no document has it)", grade=plain(grade))
        ),
        help=_("It becomes 0, and the lowest grade the highest. Labels below 0 are unchanged."),
    )
    before = np.array([bar.low for bar in report.label_histogram])
    st.html(
        table_html(
            (_("label"), _("becomes"), _("pairs")),
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
    """Keep the data set with its labels reversed beside this one; of reversed ones, that is the
    data set as it came."""
    old = stored.dataset(dataset_id)
    own = {each.code for each in check(old, (), {}).findings}
    noticed = [each for each in report.findings if each.code not in {*own, "label_direction"}]
    suffix = _(", labels reversed")
    if report.reversed_at is None:
        noticed.append(reversed_note(worst))
        name = f"{old.name}{suffix}"
    else:
        noticed = [each for each in noticed if each.code != reversed_note(worst).code]
        name = old.name.removesuffix(suffix)
    try:
        made = Dataset(
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
            made,
            noticed,
            name=name,
            corrected=lambda label: float(put_right(np.array([label]), worst)[0]),
        )
    except RankdashError as error:
        action_errors.say(error_text(error))
    else:
        st.rerun()
