"""Where the quality is lost, and for which kinds of queries it changes."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.analysis.labels.query_groups import DERIVED_SEGMENTS
from rankdash.analysis.reasons.headroom import shares
from rankdash.analysis.statistics.verdict import FEWEST_QUERIES
from rankdash.charts.quality import headroom as headroom_chart
from rankdash.charts.quality import query_groups as segments_chart
from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext, number, percent
from rankdash.ui.overview import verdict_strip
from rankdash.ui.sidebar import comparison
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import address, services
from rankdash.ui.widgets.plotly_chart import ink, show
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words.verdicts import p_labels

_MOST_DRAWN = 12
_DERIVED = {each.name: each for each in DERIVED_SEGMENTS}


def headroom(view: View) -> None:
    """How the best possible mean splits: baseline, won, still to win, lost to the retriever."""
    st.subheader(_("Where quality is lost"), anchor=False)
    splits = {system: verdict_strip.headroom(view, system) for system in view.challengers}
    table = shares(splits)
    if table.empty:
        st.caption(_("Nothing to split: no query can be compared on this metric."))
        return
    labels = headroom_chart.Labels.translated(_)
    names, title = comparison.names(view), view.title(view.spec)
    show(
        headroom_chart.figure(table, title, ink(), labels, names=names),
        alt=headroom_chart.alt(table, title, labels, names=names),
        key="overview.headroom",
    )
    recall = next(split.recall_ceiling for split in splits.values() if split is not None)
    if recall is not None:
        st.caption(
            _(
                "The first stage found {recall} of the relevant documents; no reranker can bring "
                "back the rest.",
                recall=percent(recall),
            )
        )


def segments(view: View, system: str) -> None:
    """The mean change in each group of queries, with its interval."""
    given = services.dataset(view.dataset_id).segments
    # A derived segment may be called like a column of the data; the column goes first.
    offered = [*given, *(name for name in _DERIVED if name not in given)]
    chosen = address.pick_one(
        "segment",
        offered,
        st.selectbox,
        label=_("Grouped by"),
        format_func=lambda name: name if name in given else _(_DERIVED[name].title),
    )
    if chosen is None:
        return
    derived = _DERIVED.get(chosen) if chosen not in given else None
    st.caption(
        _(
            "{system} against {baseline}",
            system=markdown_safe(view.name(system), 60),
            baseline=markdown_safe(view.name(view.baseline), 60),
        )
    )
    table = services.segments(
        view.dataset_id,
        (view.baseline, system),
        chosen,
        comparison.specs(view),
        view.spec,
        view.conventions,
        view.statistics,
    )
    if derived is not None:
        table = table.assign(value=[_(value) for value in table["value"]])
    labels, title = p_labels(segments_chart.Labels, view.statistics), view.title(view.spec)
    level = view.statistics.level
    # A group of one query is an anecdote: it stands in the table, and not in the picture.
    drawn = table[table["n"] >= FEWEST_QUERIES].head(_MOST_DRAWN)
    if len(drawn):
        show(
            segments_chart.figure(drawn, title, ink(), labels, level=level),
            alt=segments_chart.alt(drawn, title, labels, level=level),
            key="overview.segments.chart",
        )
    if len(drawn) < len(table):
        st.caption(
            ngettext(
                "{n} smaller group is in the table only.",
                "{n} smaller groups are in the table only.",
                len(table) - len(drawn),
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
    decimal = st.column_config.NumberColumn(format="%+.3f")
    st.dataframe(
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
        hide_index=True,
        placeholder="–",
        column_config={
            **dict.fromkeys((_("change"), _("low"), _("high")), decimal),
            _("corrected p"): st.column_config.NumberColumn(format="%.4f"),
        },
        alt=_("The change in each group of queries"),
    )


address.FIELDS.setdefault("segment", None)
