"""Systems and metrics, the metric against k, every query's change, and how the numbers are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import percent
from rankdash.core.metrics import MetricDefinition, parse_measure, registry
from rankdash.core.statistics.planning import POWER
from rankdash.core.study.study import Study
from rankdash.core.words.methods import methods
from rankdash.core.words.queries import count_words, metric_title
from rankdash.core.words.settings import rules_in_words
from rankdash.core.words.verdict_chips import change_interval, chip, interval
from rankdash.features.overview import charts
from rankdash.features.queries import charts as queries_charts
from rankdash.kit.widgets import plotly_chart
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.signed_cells import signed_cells
from rankdash.kit.widgets.text import name_rows
from rankdash.kit.widgets.view import tally_line


def systems(study: Study) -> None:
    st.subheader(_("Systems and metrics"), anchor=False)
    plotly_chart.draw(charts.systems(study), key="overview.systems")


def systems_table(study: Study) -> None:
    """Every number behind the chart, sortable."""
    table = study.comparison.frame
    names = study.names
    own = table["system"] == study.baseline
    columns = {
        "metric": table["metric"].map(metric_title),
        "system": table["system"].map(names),
        "mean": table["mean"],
        "interval": [
            interval(*ends) for ends in zip(table["mean_low"], table["mean_high"], strict=True)
        ],
        "delta": table["delta"].where(~own),
        "change_interval": [
            "–" if first else change_interval(low, high)
            for first, low, high in zip(own, table["delta_low"], table["delta_high"], strict=True)
        ],
        "p": table["p"],
        **({"p_corrected": table["p_corrected"]} if study.comparison.corrected else {}),
        "effect_size": table["effect_size"],
        "verdict": table["verdict"].map(chip),
        "helped": table["helped"],
        "same": table["same"],
        "hurt": table["hurt"],
        "n": table["n"],
        "left_out": table["left_out"],
        "smallest_detectable": table["smallest_detectable"],
        "more_queries": table["more_queries"],
    }
    level, power = percent(study.statistics.level), percent(POWER)
    decimal, count = "%.4f", "%.0f"
    config = {
        "metric": st.column_config.TextColumn(_("metric"), pinned=True),
        "system": st.column_config.TextColumn(_("system"), pinned=True),
        "mean": st.column_config.NumberColumn(_("mean"), format=decimal),
        "interval": st.column_config.TextColumn(_("{level} interval of the mean", level=level)),
        "delta": st.column_config.NumberColumn(_("change")),
        "change_interval": st.column_config.TextColumn(
            _("{level} interval of the change", level=level)
        ),
        "p": st.column_config.NumberColumn("p", format=decimal),
        "p_corrected": st.column_config.NumberColumn(_("corrected p"), format=decimal),
        "effect_size": st.column_config.NumberColumn(_("effect size d"), format="%.2f"),
        "verdict": st.column_config.TextColumn(_("verdict")),
        "helped": st.column_config.NumberColumn(_("helped"), format=count),
        "same": st.column_config.NumberColumn(_("same"), format=count),
        "hurt": st.column_config.NumberColumn(_("hurt"), format=count),
        "n": st.column_config.NumberColumn(_("queries"), format=count),
        "left_out": st.column_config.NumberColumn(_("excluded"), format=count),
        "smallest_detectable": st.column_config.NumberColumn(
            _("minimum detectable change"),
            format=decimal,
            help=_(
                "The true change that this many queries prove in {power} of all cases.", power=power
            ),
        ),
        "more_queries": st.column_config.NumberColumn(
            _("more queries, for the change seen"),
            format=count,
            help=_(
                "If the true change is the observed one, this many more queries like these prove "
                "it in {power} of all cases.",
                power=power,
            ),
        ),
    }
    st.dataframe(
        signed_cells(pd.DataFrame(columns), {"delta": 4}),
        hide_index=True,
        placeholder="–",
        column_config=config,
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
    plotly_chart.draw(drawn, key="overview.cutoffs")
    with st.expander(_("As a table")):
        curves, names = study.curves, study.names
        means = dict(
            zip(zip(curves["system"], curves["k"], strict=True), curves["mean"], strict=True)
        )
        cutoffs = sorted(curves["k"].unique())
        columns = {
            names[system]: [means.get((system, k)) for k in cutoffs] for system in study.chosen
        }
        st.dataframe(
            pd.DataFrame(columns, index=pd.Index(cutoffs, name="k")),
            alt=_("The metric at each cutoff for each system"),
        )


def changes(study: Study, system: str) -> str | None:
    """Sorted per-query changes of one challenger; returns a query that was clicked."""
    tally_line(study, system)
    figure, alt = shared(_changes, study, system)
    event = plotly_chart.show(figure, alt=alt, key=f"overview.deltas.{system}", on_select="rerun")
    points = event["selection"]["points"]
    return str(points[0]["customdata"][0]) if points else None


def _changes(study: Study, system: str) -> tuple[Any, str]:
    drawing = queries_charts.changes(study, system)
    return drawing.draw(plotly_chart.ink()), drawing.alt


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
        found = study.evaluate(system_id, tuple(specs))
        row: dict[str, object] = {_("system"): study.name(system_id)}
        row.update({title: found.counts.get(key, 0) for key, title in titles.items()})
        rows.append(row)
    return pd.DataFrame(rows)
