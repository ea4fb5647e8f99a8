"""Charts of all systems, and the causes of a change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, paragraph
from rankdash.core.metrics import MetricDefinition, parse_measure, registry
from rankdash.core.study.headroom import SHARES, shares
from rankdash.core.study.study import Study
from rankdash.core.words import verdicts
from rankdash.core.words.columns import columns
from rankdash.core.words.methods import methods, rules_in_words
from rankdash.core.words.queries import count_words, left_out_text, metric_title
from rankdash.core.words.verdicts import p_title, reason_meanings, reason_words
from rankdash.features.overview import charts
from rankdash.features.overview.charts import part_titles
from rankdash.kit.drawing import changes as drawing_changes
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets import pickers
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.text import (
    compared_cells,
    markdown_safe,
    name_rows,
    name_safe,
    signed_cells,
)
from rankdash.kit.widgets.view import tally_line


def systems(study: Study) -> None:
    st.subheader(_("Systems and metrics"), anchor=False)
    widgets_charts.draw(charts.systems(study), key="overview.systems")


def systems_table(study: Study) -> None:
    """Every number behind the chart, sortable."""
    comparison = study.comparison
    rows = comparison.frame.to_dict("records")
    names = {
        "metric": [metric_title(row["metric"]) for row in rows],
        "system": [study.name(row["system"]) for row in rows],
    }
    declared = columns("overview", study.statistics.level, comparison.corrected)
    cells, config, digits = compared_cells(declared, rows)
    st.dataframe(
        signed_cells(pd.DataFrame(names | cells), digits),
        hide_index=True,
        placeholder="–",
        column_config={
            "metric": st.column_config.TextColumn(_("metric"), pinned=True),
            "system": st.column_config.TextColumn(_("system"), pinned=True),
            **config,
        },
        row_height=name_rows(study.names.values()),
        alt=_("Means, intervals, tests and verdicts for each metric and system"),
    )


def cutoffs(study: Study) -> None:
    measure = study.measure
    st.subheader(_("{metric} by cutoff", metric=measure.metric.title), anchor=False)
    drawn = charts.cutoffs(study)
    if drawn is None:
        st.caption(_("{metric} looks at the whole list.", metric=measure.metric.title))
        return
    widgets_charts.draw(drawn, key="overview.cutoffs")
    with st.expander(_("As a table")):
        means = study.curves.pivot(index="k", columns="system", values="mean")
        st.dataframe(
            means.reindex(columns=study.chosen).rename(columns=study.names),
            alt=_("The metric at each cutoff for each system"),
        )


def changes(study: Study, system: str) -> str | None:
    """Sorted per-query changes of one challenger; returns a query that was clicked."""
    tally_line(study, system)
    figure, alt = shared(_changes, study, system)
    event = widgets_charts.show(figure, alt=alt, key=f"overview.deltas.{system}", on_select="rerun")
    points = event["selection"]["points"]
    return str(points[0]["customdata"][0]) if points else None


def _changes(study: Study, system: str) -> tuple[Any, str]:
    return widgets_charts.drawn(drawing_changes.changes(study, system))


def definitions(study: Study, specs: Sequence[str]) -> None:
    """Definitions, settings, and which queries were left out of which system, and why."""
    shown = {parse_measure(spec).metric for spec in specs}
    # Beside a metric its other forms, such as exponential gain: which one is meant differs.
    families = tuple(metric.name for metric in shown)
    for metric in registry.values():
        if metric in shown or metric.name.startswith(families):
            _definition(metric)
    st.caption(
        _(
            "rel_i: the label at rank i; rel*_i: at rank i of the best order of all labelled "
            "documents. g_i: 1 if the document at rank i is relevant, else 0. P_i: precision of "
            "the first i. R: relevant documents among the labels of the query. k: the cutoff."
        )
    )
    st.dataframe(
        pd.DataFrame(
            rules_in_words(study.conventions, study.statistics),
            columns=[_("setting"), _("current value")],
        ),
        hide_index=True,
        alt=_("Metric conventions used"),
    )
    for what, how in methods(study.statistics, study.comparison.corrected):
        st.markdown(f"**{what}**: {how}")
    st.dataframe(_left_out(study, specs), hide_index=True, alt=_("Excluded queries of each system"))


def _definition(metric: MetricDefinition) -> None:
    """A metric with its formula drawn, and the same in words below."""
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**{_(metric.title)}** (`{metric.spec}`)  \n{_(metric.meaning)}")
        st.latex(metric.latex)
        source = _("Source: {source}.", source=metric.reference)
        # Plain text: asterisks and underscores of a formula are no markup.
        words = [f"`{_(metric.formula)}`", _(metric.note), source]
        st.caption("  \n".join(each for each in words if each))


def _left_out(study: Study, specs: Sequence[str]) -> pd.DataFrame:
    titles = count_words()
    rows = []
    for system_id in study.chosen:
        evaluation = study.evaluate(system_id, tuple(specs))
        row: dict[str, object] = {_("system"): study.name(system_id)}
        row.update({title: evaluation.counts.get(key, 0) for key, title in titles.items()})
        rows.append(row)
    return pd.DataFrame(rows)


# Where the quality is lost, why queries changed, and for which kinds of queries.

_ROW, _HEADER = 35, 38


def headroom(study: Study) -> None:
    """How the best possible mean splits: baseline, won, still to win, lost to the retriever."""
    st.subheader(_("Where quality is lost"), anchor=False)
    drawn = charts.headroom(study)
    if drawn is None:
        st.caption(_("Nothing to split: no query can be compared on this metric."))
        return
    widgets_charts.draw(drawn, key="overview.headroom")
    with st.expander(_("As a table")):
        _headroom_table(study)
    if notes := verdicts.notes(study, partial(markdown_safe, limit=60)):
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
    dataset_segments = study.dataset.segments
    chosen = pickers.pick_one(
        "segment",
        list(study.segments),
        st.selectbox,
        label=_("Grouped by"),
        format_func=lambda name: (
            name if name in dataset_segments else _(charts.DERIVED[name].title)
        ),
    )
    if chosen is None:
        return
    derived = charts.DERIVED.get(chosen) if chosen not in dataset_segments else None
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
        widgets_charts.draw(drawn, key="overview.segments.chart")
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
