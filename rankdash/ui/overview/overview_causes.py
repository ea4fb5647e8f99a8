"""Where the quality is lost, and for which kinds of queries it changes."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext, number, percent
from rankdash.reporting import figures
from rankdash.study.study import Study
from rankdash.ui.state import pickers
from rankdash.ui.widgets import plotly_chart
from rankdash.ui.widgets.signed_cells import signed_cells
from rankdash.ui.widgets.text import markdown_safe


def headroom(study: Study) -> None:
    """How the best possible mean splits: baseline, won, still to win, lost to the retriever."""
    st.subheader(_("Where quality is lost"), anchor=False)
    drawn = figures.headroom(study)
    if drawn is None:
        st.caption(_("Nothing to split: no query can be compared on this metric."))
        return
    plotly_chart.draw(drawn, key="overview.headroom")
    splits = (study.headroom(system) for system in study.challengers)
    recall = next(split.recall_ceiling for split in splits if split is not None)
    if recall is not None:
        st.caption(
            _(
                "The first stage found {recall} of the relevant documents; no reranker can bring "
                "back the rest.",
                recall=percent(recall),
            )
        )


def segments(study: Study, system: str) -> None:
    """The mean change in each group of queries, with its interval."""
    given = study.dataset.segments
    chosen = pickers.pick_one(
        "segment",
        list(study.segments),
        st.selectbox,
        label=_("Grouped by"),
        format_func=lambda name: name if name in given else _(figures.DERIVED[name].title),
    )
    if chosen is None:
        return
    derived = figures.DERIVED.get(chosen) if chosen not in given else None
    st.caption(
        _(
            "{system} against {baseline}",
            system=markdown_safe(study.name(system), 60),
            baseline=markdown_safe(study.name(study.baseline), 60),
        )
    )
    table = figures.group(study, system, chosen)
    drawn = figures.group_chart(study, table)
    if drawn is not None:
        plotly_chart.draw(drawn, key="overview.segments.chart")
    shown = figures.drawn_groups(table)
    if len(shown) < len(table):
        st.caption(
            ngettext(
                "{n} smaller group is in the table only.",
                "{n} smaller groups are in the table only.",
                len(table) - len(shown),
            )
        )
    _table(table)
    notes = [_(derived.meaning), _(derived.note)] if derived is not None else []
    notes.append(
        _(
            "Looked at after the fact: a reason to test, not a proof. Corrected for {n} groups.",
            n=number(len(table), 0),
        )
    )
    st.caption(" ".join(note for note in notes if note))


def _table(table: pd.DataFrame) -> None:
    st.dataframe(
        signed_cells(
            pd.DataFrame(
                {
                    _("group"): table["value"],
                    _("queries"): table["n"],
                    _("change"): table["delta"],
                    _("low"): table["low"],
                    _("high"): table["high"],
                    _("corrected p"): table["p_corrected"],
                }
            ),
            dict.fromkeys((_("change"), _("low"), _("high")), 3),
        ),
        hide_index=True,
        placeholder="–",
        column_config={_("corrected p"): st.column_config.NumberColumn(format="%.4f")},
        alt=_("The change in each group of queries"),
    )
