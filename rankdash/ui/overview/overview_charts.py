"""Systems and metrics, the metric against k, and every query's change."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from rankdash.charts.quality import cutoffs as cutoffs_chart
from rankdash.charts.quality import deltas as deltas_chart
from rankdash.charts.quality import systems as systems_chart
from rankdash.i18n import gettext as _
from rankdash.i18n import percent
from rankdash.metrics import parse_measure
from rankdash.ui.sidebar import comparison
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import services
from rankdash.ui.widgets.plotly_chart import ink, show
from rankdash.words.verdicts import chip, p_labels

_CURVE = (1, 3, 5, 10, 20, 50, 100)


def systems(view: View) -> None:
    st.subheader(_("Systems and metrics"), anchor=False)
    table = comparison.compared(view).frame
    table = table[table["metric"] != view.spec_of("judged")]
    labels = p_labels(systems_chart.Labels, view.statistics)
    names, titles, level = comparison.names(view), comparison.titles(view), view.statistics.level
    show(
        systems_chart.figure(
            table, view.baseline, ink(), labels, level=level, names=names, titles=titles
        ),
        alt=systems_chart.alt(
            table, view.baseline, labels, level=level, names=names, titles=titles
        ),
        key="overview.systems",
    )


def systems_table(view: View) -> None:
    """Every number behind the chart, sortable."""
    table = comparison.compared(view).frame
    names, titles = comparison.names(view), comparison.titles(view)
    own = table["system"] == view.baseline
    columns = {
        "metric": table["metric"].map(titles),
        "system": table["system"].map(names),
        "mean": table["mean"],
        "interval": _interval(table, "mean_low", "mean_high"),
        "delta": table["delta"].where(~own),
        "change_interval": _interval(table[~own], "delta_low", "delta_high").reindex(table.index),
        "p": table["p"],
        **({"p_corrected": table["p_corrected"]} if _corrected(view) else {}),
        "effect_size": table["effect_size"],
        "verdict": table["verdict"].map(chip),
        "helped": table["helped"],
        "same": table["same"],
        "hurt": table["hurt"],
        "n": table["n"],
        "left_out": table["left_out"],
        "smallest_detectable": table["smallest_detectable"],
        "queries_to_settle": table["queries_to_settle"],
    }
    level = percent(view.statistics.level)
    decimal, count = "%.4f", "%.0f"
    config = {
        "metric": st.column_config.TextColumn(_("metric"), pinned=True),
        "system": st.column_config.TextColumn(_("system"), pinned=True),
        "mean": st.column_config.NumberColumn(_("mean"), format=decimal),
        "interval": st.column_config.TextColumn(_("{level} of the mean", level=level)),
        "delta": st.column_config.NumberColumn(_("change"), format="%+.4f"),
        "change_interval": st.column_config.TextColumn(_("{level} of the change", level=level)),
        "p": st.column_config.NumberColumn("p", format=decimal),
        "p_corrected": st.column_config.NumberColumn(_("corrected p"), format=decimal),
        "effect_size": st.column_config.NumberColumn(_("effect size d"), format="%.2f"),
        "verdict": st.column_config.TextColumn(_("verdict")),
        "helped": st.column_config.NumberColumn(_("helped"), format=count),
        "same": st.column_config.NumberColumn(_("same"), format=count),
        "hurt": st.column_config.NumberColumn(_("hurt"), format=count),
        "n": st.column_config.NumberColumn(_("queries"), format=count),
        "left_out": st.column_config.NumberColumn(_("left out"), format=count),
        "smallest_detectable": st.column_config.NumberColumn(
            _("smallest provable change"), format=decimal
        ),
        "queries_to_settle": st.column_config.NumberColumn(
            _("queries to prove this change"), format=count
        ),
    }
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        placeholder="–",
        column_config=config,
        alt=_("Means, intervals, tests and verdicts for each metric and system"),
    )


def _corrected(view: View) -> bool:
    """Whether a p allows for the other comparisons."""
    return view.statistics.correction != "none"


def _interval(table: pd.DataFrame, low: str, high: str) -> pd.Series[str]:
    words = [
        f"{a:.3f} … {b:.3f}" if math.isfinite(a) and math.isfinite(b) else "–"
        for a, b in zip(table[low], table[high], strict=True)
    ]
    return pd.Series(words, index=table.index, dtype=object)


def cutoffs(view: View) -> None:
    measure = parse_measure(view.spec)
    st.subheader(_("{metric} against k", metric=measure.metric.title), anchor=False)
    if not measure.metric.has_cutoff:
        st.caption(_("{metric} looks at the whole list.", metric=measure.metric.title))
        return
    cutoffs = tuple(sorted({*_CURVE, view.cutoff or _CURVE[-1]}))
    curves = services.curves(
        view.dataset_id, view.chosen, view.metric, cutoffs, view.conventions, view.statistics
    )
    labels = cutoffs_chart.Labels.translated(_)
    names, title = comparison.names(view), measure.metric.title
    show(
        cutoffs_chart.figure(
            curves, title, view.baseline, ink(), labels, k=view.cutoff, names=names
        ),
        alt=cutoffs_chart.alt(curves, title, labels, names=names),
        key="overview.cutoffs",
    )
    with st.expander(_("As a table")):
        means = dict(
            zip(zip(curves["system"], curves["k"], strict=True), curves["mean"], strict=True)
        )
        columns = {names[system]: [means[system, k] for k in cutoffs] for system in view.chosen}
        st.dataframe(
            pd.DataFrame(columns, index=pd.Index(cutoffs, name="k")),
            alt=_("The metric at each cutoff for each system"),
        )


def changes(view: View, system: str) -> str | None:
    """Sorted per-query changes of one challenger; returns a query that was clicked."""
    comparison.tally_line(view, system)
    pairs, title = comparison.pairs_of(view, system), view.title(view.spec)
    labels = deltas_chart.Labels.translated(_)
    figure = deltas_chart.figure(
        pairs,
        title,
        ink(),
        labels,
        tie_band=view.statistics.tie_band,
        names=services.query_texts(view.dataset_id),
    )
    event = show(
        figure,
        alt=deltas_chart.alt(pairs, title, labels),
        key=f"overview.deltas.{system}",
        on_select="rerun",
    )
    points = event["selection"]["points"]
    return str(points[0]["customdata"][0]) if points else None
