"""The parts of Overview below the verdict: metrics, kinds of queries, and reasons for changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, paragraph
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import distinct
from rankdash.core.metrics import MetricDefinition, parse_measure, registry
from rankdash.core.study.groups import contrasts
from rankdash.core.study.headroom import SHARES, shares
from rankdash.core.study.study import Study
from rankdash.core.words import verdicts
from rankdash.core.words.columns import columns
from rankdash.core.words.methods import methods, rules_in_words
from rankdash.core.words.queries import count_words, excluded_text, metric_title
from rankdash.core.words.verdicts import p_title, reason_meanings, reason_words
from rankdash.features.overview import charts, charts_systems
from rankdash.features.overview.charts import part_titles
from rankdash.kit.drawing import changes as drawing_changes
from rankdash.kit.drawing import style
from rankdash.kit.widgets import address, component, pickers, view
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.text import (
    compared_cells,
    markdown_safe,
    name_rows,
    signed_cells,
)

METRICS = "overview.metrics"
"""Key of the part with all metrics."""

# In pixels: least width of a panel next to others, names included.
_PANEL_WIDTH, _MOST_PANELS = 300, 3


def draw(study: Study, in_focus: str) -> None:
    """Draw everything below the verdict, each part once it is in sight.

    in_focus: the challenger shown, or the baseline if there is none.
    """
    # Judged@k has no panel.
    rows = len(study.challengers)
    panels = charts_systems.height(len(study.specs) - 1, rows, _MOST_PANELS)
    component.when_seen(study, METRICS, _p("heading", "Metrics"), panels, metrics)
    left, right = st.columns(2) if study.challengers else (st.container(), None)
    with left:
        title = _("{metric} by cutoff", metric=study.measure.metric.title)
        component.when_seen(study, "overview.cutoffs", title, 370, partial(shared, cutoffs))
    if right is not None:
        with right:
            _part(study, "kinds", _("Kinds of queries"), kinds, in_focus)
        left, right = st.columns(2)
        with left:
            title = _("Potential gain")
            component.when_seen(study, "overview.headroom", title, 370, partial(shared, headroom))
        with right:
            _part(study, "reasons", _("Reasons for changes"), reasons, in_focus)
        _part(study, "changes", _("Queries, most hurt first"), changes, in_focus)
    fold(
        _("Table of all measurements"),
        "overview.table",
        ":material/table:",
        lambda: systems_table(study),
    )
    fold(
        _("How these numbers are computed"),
        "overview.definitions",
        ":material/function:",
        lambda: definitions(study, study.specs),
    )


def _part(
    study: Study, name: str, title: str, drawn: Callable[[Study, str], None], system: str
) -> None:
    """Draw a part about one challenger."""
    key = f"overview.{name}"
    component.when_seen(study, key, title, 370, lambda study: drawn(study, system), system)


def metrics(study: Study) -> None:
    """Draw every metric of every system, with as many panels per row as fit."""
    shared(_metrics, study, component.columns(METRICS, _PANEL_WIDTH, _MOST_PANELS))


def _metrics(study: Study, columns: int) -> None:
    widgets_charts.draw(charts.systems(study, columns), key="overview.systems")
    if any(map(study.stopped, study.chosen)):
        st.caption(
            _(
                "Each mean is over the queries that the system has a value for; changes compare "
                "the same queries."
            )
        )


def systems_table(study: Study) -> None:
    """Draw every number behind the chart as a sortable table."""
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
            "metric": st.column_config.TextColumn(_p("column", "metric"), pinned=True),
            "system": st.column_config.TextColumn(_p("column", "system"), pinned=True),
            **config,
        },
        row_height=name_rows(study.names.values()),
        alt=_("Means, intervals, tests and verdicts for each metric and system"),
    )


def cutoffs(study: Study) -> None:
    measure = study.measure
    drawn = charts.cutoffs(study)
    if drawn is None:
        st.caption(
            _(
                "{metric} has no cutoff: it is computed over the whole list.",
                metric=measure.metric.title,
            )
        )
        return
    widgets_charts.draw(drawn, key="overview.cutoffs")
    with st.expander(_("As a table")):
        means = study.curves.pivot(index="k", columns="system", values="mean")
        st.dataframe(
            means.reindex(columns=study.chosen).rename(columns=study.names),
            alt=_("The metric at each cutoff for each system"),
        )


def changes(study: Study, system: str) -> None:
    """Draw the sorted change per query of one challenger; a click opens the query."""
    view.tally_line(study, system)
    figure, alt = shared(_changes, study, system)
    event = widgets_charts.show(figure, alt=alt, key=f"overview.deltas.{system}", on_select="rerun")
    view.link("queries", _("All queries as a list"), ":material/list:")
    if points := event["selection"]["points"]:
        view.open_query(str(points[0]["customdata"][0]))


def _changes(study: Study, system: str) -> tuple[Any, str]:
    return widgets_charts.drawn(drawing_changes.changes(study, system))


def definitions(study: Study, specs: Sequence[str]) -> None:
    """Draw definitions and settings, and how many queries of each system were excluded by
    reason."""
    shown = {parse_measure(spec).metric for spec in specs}
    # Include the other forms of a metric, such as exponential gain, because they are easily
    # confused.
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
            columns=[_p("column", "setting"), _("current value")],
        ),
        hide_index=True,
        alt=_("Metric conventions used"),
    )
    corrected, weighted = study.comparison.corrected, study.conventions.weighted
    for what, how in methods(study.statistics, corrected, weighted=weighted):
        st.markdown(_("{part}: {value}", part=f"**{what}**", value=how))
    st.dataframe(_left_out(study, specs), hide_index=True, alt=_("Excluded queries of each system"))


def _definition(metric: MetricDefinition) -> None:
    """Draw a metric with its formula, and below it the formula as text."""
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**{_p('metric', metric.title)}** (`{metric.spec}`)  \n{_(metric.meaning)}")
        st.latex(metric.latex)
        source = _("Source: {source}.", source=_(metric.reference))
        # As code, because asterisks and underscores of a formula are not markup.
        words = [f"`{_(metric.formula)}`", _(metric.note), source]
        st.caption("  \n".join(each for each in words if each))


def _left_out(study: Study, specs: Sequence[str]) -> pd.DataFrame:
    titles = count_words()
    rows = []
    for system_id in study.chosen:
        evaluation = study.evaluate(system_id, tuple(specs))
        row: dict[str, object] = {_p("column", "system"): study.name(system_id)}
        row.update({title: evaluation.counts.get(key, 0) for key, title in titles.items()})
        rows.append(row)
    return pd.DataFrame(rows)


def headroom(study: Study) -> None:
    """Draw how the best possible mean splits: baseline, gain, remaining gain, not retrieved."""
    drawn = charts.headroom(study)
    if drawn is None:
        st.caption(_("No query can be compared on this metric."))
        return
    widgets_charts.draw(drawn, key="overview.headroom")
    with st.expander(_("As a table")):
        _headroom_table(study)
    if notes := verdicts.notes(study, partial(markdown_safe, limit=60)):
        st.caption(paragraph(notes))


def _headroom_table(study: Study) -> None:
    table = shares({system: study.headroom(system) for system in charts.ranked(study)})
    titles = part_titles()
    columns = {titles[part]: table[part].round(4) for part in SHARES}
    st.dataframe(
        pd.DataFrame({_p("column", "system"): table["system"].map(study.names), **columns}),
        hide_index=True,
        row_height=name_rows(study.names.values()),
        alt=_("How the best possible mean splits for each system"),
    )


def kinds(study: Study, system: str) -> None:
    """Draw the mean change in each group of queries, first for the kind with the most different
    groups."""
    own, kinds = study.dataset.segments, list(contrasts(study, system))
    if not kinds:
        st.caption(_("No kind of queries has two groups to compare."))
        return
    titles = {
        each: each if each in own else _p("segment", charts.DERIVED[each].title) for each in kinds
    }
    order = [_("The kind whose groups differ most is first (F test).")]
    # The test compares means per query.
    order = [] if study.conventions.weighted else order
    st.caption(paragraph([_against(study, system), *order]))
    chosen = pickers.pick_free(
        "segment",
        st.selectbox,
        lambda requested: requested if requested in titles else kinds[0],
        # The default is not stored, because it differs between studies.
        lambda name: None if name == kinds[0] else name,
        label=_("Grouped by"),
        options=kinds,
        format_func=distinct(titles).__getitem__,
    )
    shared(_groups, study, system, chosen)


def _groups(study: Study, system: str, chosen: str) -> None:
    derived = charts.DERIVED.get(chosen) if chosen not in study.dataset.segments else None
    table = charts.group(study, system, chosen)
    drawn = charts.group_chart(study, table)
    if drawn is not None:
        widgets_charts.draw(drawn, key="overview.segments.chart")
    corrected = charts.groups_corrected(study, table)
    with st.expander(_("As a table")):
        _table(table, p_title(corrected))
        notes = [_(derived.meaning), _(derived.note)] if derived is not None else []
        notes.append(
            _(
                "The grouping was chosen after the results were known, so a difference is "
                "not a proof: test it on new queries."
            )
        )
        if corrected:
            notes.append(_("p is corrected for {n} groups.", n=number(table["p"].count(), 0)))
        st.caption(paragraph([note for note in notes if note]))


def _table(table: pd.DataFrame, p: str) -> None:
    st.dataframe(
        signed_cells(
            pd.DataFrame(
                {
                    _p("column", "group"): table["value"],
                    _p("column", "queries"): table["n"],
                    _p("column", "change"): table["delta"],
                    _p("column", "low"): table["low"],
                    _p("column", "high"): table["high"],
                    p: table["p_corrected"],
                }
            ),
            dict.fromkeys((_p("column", "change"), _p("column", "low"), _p("column", "high")), 3),
        ),
        hide_index=True,
        placeholder="–",
        column_config={p: st.column_config.NumberColumn(format="%.4f")},
        alt=_("The change in each group of queries"),
    )


_REASONS = component.component(Path(__file__).with_name("reasons"))


def reasons(study: Study, system: str) -> None:
    """Draw what each reason adds to the mean change, largest gain first; a click opens its
    queries."""
    counts = study.reason_counts(system)
    if counts is None:
        st.caption(
            _(
                "{metric} cannot be split by document, so its changes have no reasons.",
                metric=study.title,
            )
        )
        return

    def heard(event: Any) -> None:
        if event in list(counts.index):
            address.choose("reason", event)
            view.go("queries")

    st.caption(paragraph([_against(study, system), _("Click a reason to open its queries.")]))
    _REASONS(f"overview.reasons.{system}", _bars(counts), heard)
    if out := excluded_text(study.comparison.excluded(system, study.spec)):
        st.caption(out)


def _against(study: Study, system: str) -> str:
    names = view.safe_name(study, system), view.safe_name(study, study.baseline)
    return _("{system} against {baseline}.", system=names[0], baseline=names[1])


def _bars(counts: pd.DataFrame) -> dict[str, Any]:
    """Return the data of the component. Positions and widths are percentages of the axis."""
    words, meanings = reason_words(), reason_meanings()
    low, high = min(counts["adds"].min(), 0.0), max(counts["adds"].max(), 0.0)
    scale = 100 / (high - low or 1)
    rows = [
        {
            "code": code,
            "reason": words[str(code)],
            "meaning": meanings[str(code)],
            "queries": style.queries(int(row["queries"])),
            "adds": style.signed(row["adds"]),
            "left": (min(row["adds"], 0.0) - low) * scale,
            "width": abs(row["adds"]) * scale,
            "colour": style.BETTER if row["adds"] > 0 else style.WORSE,
        }
        for code, row in counts.sort_values("adds", ascending=False, kind="stable").iterrows()
    ]
    label = _("Contribution of each reason to the mean change")
    return {"rows": rows, "zero": -low * scale, "words": {"label": label}}
