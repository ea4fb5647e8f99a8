"""Several judges of a data set beside each other: which of them saves most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import moment, number, signed
from rankdash.core.study.study import Study
from rankdash.core.words.verdict_chips import change_interval
from rankdash.core.workspace.jobs.judges import JudgeRow
from rankdash.features.judge.choosing import ranked_judges
from rankdash.features.judge.judging import agreed, verdicts
from rankdash.kit.widgets import label_plan, stored_judges, view
from rankdash.kit.widgets.text import table_html


def draw(study: Study, rows: Sequence[JudgeRow]) -> None:
    """rows: judges with grades, at least two."""
    challenger = view.in_focus(study)
    found, study = {}, label_plan.under_way(study)
    for row in rows:
        judge = stored_judges.judgements(row)
        judged = replace(study, judge=judge)
        found[row.id] = verdicts(judged, judge)[challenger].three, agreed(judged, judge)
    names = {row.id: f"{row.name} · {moment(row.created)}" for row in rows}
    cells = [
        [
            names[each["judge"]],
            number(each["kappa"], 2),
            signed(each["alone"], 4),
            change_interval(each["low"], each["high"]),
            number(each["worth"], 2),
            number(each["saved"], 0),
        ]
        for each in ranked_judges(found).to_dict("records")
    ]
    headings = [
        *(_("Judge"), _("kappa"), _("judge alone"), _("corrected by people")),
        *(_("worth × the labels"), _("queries saved")),
    ]
    st.html(table_html(headings, cells))
    st.caption(
        _(
            "The judge that makes the change most certain comes first. One with a higher kappa may "
            "save less: what counts is how well its changes follow people's."
        )
    )
