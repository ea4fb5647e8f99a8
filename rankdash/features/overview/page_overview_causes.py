"""Where the quality is lost, why queries changed, and for which kinds of queries."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, paragraph
from rankdash.core.study.reasons.headroom import SHARES, shares
from rankdash.core.study.study import Study
from rankdash.core.words import headroom as headroom_words
from rankdash.core.words.queries import left_out_text
from rankdash.core.words.reasons import reason_meanings, reason_words
from rankdash.core.words.verdict_chips import p_title
from rankdash.features.overview import charts
from rankdash.features.overview.charts_headroom import part_titles
from rankdash.kit.widgets import pickers, plotly_chart
from rankdash.kit.widgets.signed_cells import signed_cells
from rankdash.kit.widgets.text import markdown_safe, name_rows, name_safe

_ROW, _HEADER = 35, 38


def headroom(study: Study) -> None:
    """How the best possible mean splits: baseline, won, still to win, lost to the retriever."""
    st.subheader(_("Where quality is lost"), anchor=False)
    drawn = charts.headroom(study)
    if drawn is None:
        st.caption(_("Nothing to split: no query can be compared on this metric."))
        return
    plotly_chart.draw(drawn, key="overview.headroom")
    with st.expander(_("As a table")):
        _headroom_table(study)
    if notes := headroom_words.notes(study, partial(markdown_safe, limit=60)):
        st.caption(paragraph(notes))


def _headroom_table(study: Study) -> None:
    table = shares({system: study.headroom(system) for system in study.challengers})
    titles = part_titles()
    columns = {titles[part]: table[part].round(4) for part in SHARES}
    st.dataframe(
        pd.DataFrame({_("system"): table["system"].map(study.names), **columns}),
        hide_index=True,
        row_height=name_rows(study.names.values()),
        alt=_("How the best possible mean splits for each system"),
    )


def segments(study: Study, system: str) -> None:
    """The mean change in each group of queries, with its interval."""
    given = study.dataset.segments
    chosen = pickers.pick_one(
        "segment",
        list(study.segments),
        st.selectbox,
        label=_("Grouped by"),
        format_func=lambda name: name if name in given else _(charts.DERIVED[name].title),
    )
    if chosen is None:
        return
    derived = charts.DERIVED.get(chosen) if chosen not in given else None
    st.caption(
        _(
            "{system} against {baseline}",
            system=name_safe(study.name(system)),
            baseline=name_safe(study.name(study.baseline)),
        )
    )
    table = charts.group(study, system, chosen)
    drawn = charts.group_chart(study, table)
    if drawn is not None:
        plotly_chart.draw(drawn, key="overview.segments.chart")
    shown = charts.drawn_groups(table)
    if len(shown) < len(table):
        st.caption(
            ngettext(
                "{n} smaller group is in the table only.",
                "{n} smaller groups are in the table only.",
                len(table) - len(shown),
            )
        )
    corrected = charts.groups_corrected(study, table)
    _table(table, p_title(corrected))
    notes = [_(derived.meaning), _(derived.note)] if derived is not None else []
    notes.append(_("Chosen after the results were known: a reason to test, not a proof."))
    if corrected:
        notes.append(_("p is corrected for {n} groups.", n=number(table["p"].count(), 0)))
    st.caption(paragraph([note for note in notes if note]))


def _table(table: pd.DataFrame, p: str) -> None:
    st.dataframe(
        signed_cells(
            pd.DataFrame(
                {
                    _("group"): table["value"],
                    _("queries"): table["n"],
                    _("change"): table["delta"],
                    _("low"): table["low"],
                    _("high"): table["high"],
                    p: table["p_corrected"],
                }
            ),
            dict.fromkeys((_("change"), _("low"), _("high")), 3),
        ),
        hide_index=True,
        placeholder="–",
        column_config={p: st.column_config.NumberColumn(format="%.4f")},
        alt=_("The change in each group of queries"),
    )


def reasons(study: Study, system: str) -> str | None:
    """How many queries each reason explains and what they add to the mean change; returns the
    reason whose row was chosen."""
    st.subheader(_("Why queries changed"), anchor=False)
    counts = study.reason_counts(system)
    if counts is None:
        st.caption(
            _(
                "{metric} cannot be split by document, so its changes have no reasons.",
                metric=study.measure.title,
            )
        )
        return None
    words, meanings = reason_words(), reason_meanings()
    picked = st.dataframe(
        signed_cells(
            pd.DataFrame(
                {
                    "reason": [words[code] for code in counts.index],
                    "queries": counts["queries"],
                    "mean": counts["mean"],
                    "adds": counts["adds"],
                    "meaning": [meanings[code] for code in counts.index],
                }
            ),
            {"mean": 3, "adds": 3},
        ),
        hide_index=True,
        placeholder="–",
        height=_HEADER + _ROW * len(counts),
        key=f"overview.reasons.{system}",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "reason": st.column_config.TextColumn(_("why"), width=190),
            "queries": st.column_config.ProgressColumn(
                _("queries"),
                format="%d",
                min_value=0,
                max_value=int(counts["queries"].max()) if len(counts) else 1,
                width=120,
            ),
            "mean": st.column_config.NumberColumn(_("mean change"), width=90),
            "adds": st.column_config.NumberColumn(
                _("adds to the mean"),
                width=110,
                help=_("The contribution of these queries to the mean change over all queries."),
            ),
            "meaning": st.column_config.TextColumn(_("meaning"), width="large"),
        },
        alt=ngettext(
            "How many of {n} query each reason explains",
            "How many of {n} queries each reason explains",
            int(counts["queries"].sum()),
        ),
    )
    out = left_out_text(study.comparison.left_out(system, study.spec))
    hint = _("Choose a row to see its queries.")
    st.caption(paragraph([hint, out]) if out else hint)
    chosen = picked["selection"]["rows"]
    return str(counts.index[chosen[0]]) if chosen and chosen[0] < len(counts) else None
