"""How far the systems agree on the order of documents."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, paragraph
from rankdash.core.study.study import Study
from rankdash.features.rank_shifts import charts_agreement as agreement_chart
from rankdash.features.rank_shifts import ranks
from rankdash.features.rank_shifts.agreement import PERSISTENCE
from rankdash.kit.widgets.plotly_chart import ink, show
from rankdash.kit.widgets.text import name_rows
from rankdash.kit.widgets.view import safe_name


def draw(study: Study) -> None:
    """How far each two of the systems agree."""
    st.subheader(_("Do the systems agree?"), anchor=False)
    table = ranks.agreement_table(study)
    names, level = study.names, study.statistics.level
    show(
        agreement_chart.figure(table, ink(), p=PERSISTENCE, level=level, names=names),
        alt=agreement_chart.alt(table, names=names),
        key="shifts.agreement",
    )
    sentences = [
        _(
            "Means over queries. τ (τ-b, equal scores tied) counts pairs of documents in the same "
            "order: 0 is chance, -1 the reverse. RBO weighs the top: the first ten ranks hold 86% "
            "of it."
        )
    ]
    for system in study.chosen:
        run = study.run(system)
        if run is not None and run.depth is not None:
            sentences.append(
                _(
                    "{system} reranked the first {depth} alone: below them it keeps the first "
                    "stage's order, which brings its τ nearer to 1.",
                    system=safe_name(study, system),
                    depth=number(run.depth, 0),
                )
            )
    st.caption(paragraph(sentences))
    with st.expander(_("As a table")):
        _table(study, table)


def _table(study: Study, table: pd.DataFrame) -> None:
    names = study.names
    columns = {
        _("system"): table["one"].map(names),
        _("other system"): table["other"].map(names),
        _("queries"): table["n"],
        "τ": table["tau"],
        _("τ, low"): table["tau_low"],
        _("τ, high"): table["tau_high"],
        "RBO": table["rbo"],
        _("RBO, lower bound"): table["rbo_low"],
        _("RBO, upper bound"): table["rbo_high"],
    }
    decimal = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        placeholder="–",
        row_height=name_rows(study.names.values()),
        column_config=dict.fromkeys(list(columns)[3:], decimal),
        alt=_("Agreement of each two systems"),
    )
