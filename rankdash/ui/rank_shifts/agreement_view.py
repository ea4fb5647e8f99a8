"""How far the systems agree on the order of documents."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.analysis.ranks.agreement import PERSISTENCE
from rankdash.charts.ranks import agreement as agreement_chart
from rankdash.i18n import gettext as _
from rankdash.i18n import number, paragraph
from rankdash.ui.rank_shifts import shift_services
from rankdash.ui.sidebar import comparison
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.widgets.plotly_chart import ink, show
from rankdash.ui.widgets.text import markdown_safe


def draw(view: View) -> None:
    """How far each two of the systems agree."""
    st.subheader(_("Do the systems agree?"), anchor=False)
    table = shift_services.agreement_table(
        view.dataset_id, view.chosen, view.conventions, view.statistics
    )
    names, level = comparison.names(view), view.statistics.level
    labels = agreement_chart.Labels.translated(_)
    show(
        agreement_chart.figure(table, ink(), labels, p=PERSISTENCE, level=level, names=names),
        alt=agreement_chart.alt(table, labels, names=names),
        key="shifts.agreement",
    )
    said = [
        _(
            "Means over queries. τ (τ-b, equal scores tied) counts pairs of documents in the same "
            "order: 0 is chance, −1 the reverse. RBO weighs the top: the first ten ranks hold 86% "
            "of it."
        )
    ]
    for system in view.chosen:
        run = view.systems[system].run
        if run is not None and run.depth is not None:
            said.append(
                _(
                    "{system} reranked the first {depth} alone: below them it keeps the first "
                    "stage's order, which brings its τ nearer to 1.",
                    system=markdown_safe(run.name, 40),
                    depth=number(run.depth, 0),
                )
            )
    st.caption(paragraph(said))
    with st.expander(_("As a table")):
        _table(view, table)


def _table(view: View, table: pd.DataFrame) -> None:
    names = comparison.names(view)
    columns = {
        _("system"): table["one"].map(names),
        _("other system"): table["other"].map(names),
        _("queries"): table["n"],
        "τ": table["tau"],
        _("τ, low"): table["tau_low"],
        _("τ, high"): table["tau_high"],
        "RBO": table["rbo"],
        _("RBO, low"): table["rbo_low"],
        _("RBO, high"): table["rbo_high"],
    }
    decimal = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        placeholder="–",
        column_config=dict.fromkeys(list(columns)[3:], decimal),
        alt=_("Agreement of each two systems"),
    )
