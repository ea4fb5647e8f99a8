"""Baseline against challengers on the pages: cards, table, curves, per-query changes."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from rankdash.analysis.compare import (
    TIE_BAND,
    by_cutoff,
    counts,
    left_out,
    paired,
    systems_table,
)
from rankdash.analysis.query_table import query_table
from rankdash.charts import cutoffs as cutoffs_chart
from rankdash.charts import deltas as deltas_chart
from rankdash.charts import systems as systems_chart
from rankdash.metrics import Evaluation, parse_measure
from rankdash.ui import services
from rankdash.ui.appearance import ink, show
from rankdash.ui.frame import CUTOFFS, View
from rankdash.ui.i18n import gettext as _
from rankdash.ui.i18n import ngettext, number, percent, signed
from rankdash.ui.query_list import outcome_words
from rankdash.ui.text import markdown_safe

_SHOWN = ("ndcg", "mrr", "map", "recall", "precision", "hit", "judged")
_CARDS = ("ndcg", "mrr", "map", "judged")


def specs(view: View) -> tuple[str, ...]:
    """The chosen metric first, then the usual ones, all at the chosen cutoff."""
    return tuple(dict.fromkeys([view.spec, *(view.spec_of(name) for name in _SHOWN)]))


def evaluations(view: View) -> dict[str, Evaluation]:
    return services.evaluations(view.dataset_id, view.chosen, specs(view), view.conventions)


def cards(view: View) -> None:
    """Four means of the last challenger (of the baseline, when it is alone), with its change."""
    table = systems_table(evaluations(view), view.baseline)
    system = view.challengers[-1] if view.challengers else view.baseline
    names = (*tuple(dict.fromkeys([view.metric, *_CARDS]))[:3], "judged")
    alone = system == view.baseline
    st.markdown(
        _("Means of **{system}**", system=markdown_safe(view.name(system), 60))
        if alone
        else _(
            "Means of **{system}**, and the change against {baseline}",
            system=markdown_safe(view.name(system), 60),
            baseline=markdown_safe(view.name(view.baseline), 60),
        )
    )
    for column, name in zip(st.columns(4), dict.fromkeys(names), strict=False):
        spec = view.spec_of(name)
        row = table[(table["system"] == system) & (table["metric"] == spec)].iloc[0]
        column.metric(
            view.title(spec),
            percent(row["mean"]) if name == "judged" else number(row["mean"]),
            delta=None if alone else signed(row["delta"]),
            # Grey: without an interval a change is not yet good or bad news.
            delta_color="off",
            help=_(parse_measure(spec).metric.meaning),
            border=True,
        )


def systems(view: View) -> None:
    st.subheader(_("Systems and metrics"), anchor=False)
    table = systems_table(evaluations(view), view.baseline)
    table = table[table["metric"] != view.spec_of("judged")]
    labels = systems_chart.Labels.translated(_)
    shown = {
        "names": {system: view.name(system) for system in view.chosen},
        "titles": {spec: view.title(spec) for spec in specs(view)},
    }
    show(
        systems_chart.figure(table, view.baseline, ink(), labels, **shown),
        alt=systems_chart.alt(table, view.baseline, labels, **shown),
        key="overview.systems",
    )
    with st.expander(_("As a table")):
        _means_table(view)


def _means_table(view: View) -> None:
    found = evaluations(view)
    titles = {spec: view.title(spec) for spec in specs(view)}
    st.dataframe(
        pd.DataFrame(
            [
                {_("system"): view.name(system)}
                | {title: found[system].mean(spec) for spec, title in titles.items()}
                for system in view.chosen
            ]
        ),
        hide_index=True,
        column_config={
            title: st.column_config.NumberColumn(format="%.4f") for title in titles.values()
        },
        alt=_("Mean of each metric for each system"),
    )


def cutoffs(view: View) -> None:
    measure = parse_measure(view.spec)
    st.subheader(_("{metric} against k", metric=measure.metric.title), anchor=False)
    if not measure.metric.has_cutoff:
        st.caption(_("{metric} looks at the whole list.", metric=measure.metric.title))
        return
    curves = by_cutoff(
        {
            system: services.judged(view.dataset_id, system, view.conventions)
            for system in view.chosen
        },
        view.spec,
        CUTOFFS,
        view.conventions,
        {system: services.left_out(system) for system in view.chosen},
    )
    labels = cutoffs_chart.Labels.translated(_)
    names = {system: view.name(system) for system in view.chosen}
    title = measure.metric.title
    show(
        cutoffs_chart.figure(
            curves, title, view.baseline, ink(), labels, k=view.cutoff, names=names
        ),
        alt=cutoffs_chart.alt(curves, title, labels, names=names),
        key="overview.cutoffs",
    )
    with st.expander(_("As a table")):
        table = curves.pivot(index="k", columns="system", values="mean")[list(view.chosen)]
        st.dataframe(
            pd.DataFrame(table.to_numpy(), index=table.index, columns=list(names.values())),
            alt=_("The metric at each cutoff for each system"),
        )


def changes(view: View) -> str | None:
    """Sorted per-query changes for each challenger; returns a query that was clicked."""
    st.subheader(_("Queries, most hurt first"), anchor=False)
    picked: str | None = None
    texts = services.query_texts(view.dataset_id)
    for column, system in zip(_columns(len(view.challengers)), view.challengers, strict=True):
        with column:
            tally_line(view, system)
            pairs, title = pairs_of(view, system), view.title(view.spec)
            labels = deltas_chart.Labels.translated(_)
            event = show(
                deltas_chart.figure(pairs, title, ink(), labels, names=texts),
                alt=deltas_chart.alt(pairs, title, labels),
                key=f"overview.deltas.{system}",
                on_select="rerun",
            )
            points = event["selection"]["points"]
            if points:
                picked = str(points[0]["customdata"][0])
    return picked


def tally_line(view: View, system: str) -> None:
    """Helped, same, hurt with the tie band, and what was left out and why."""
    pairs = pairs_of(view, system)
    tally = counts(pairs)
    words = outcome_words()
    out = [f"{number(n, 0)} {words[reason]}" for reason, n in left_out(pairs).items()]
    line = _(
        "**{name}**: {helped} helped · {same} same (±{band}) · {hurt} hurt, of {queries}",
        name=markdown_safe(view.name(system), 60),
        helped=number(tally.helped, 0),
        same=number(tally.same, 0),
        hurt=number(tally.hurt, 0),
        band=number(TIE_BAND),
        queries=ngettext("{n} query", "{n} queries", tally.queries),
    )
    st.markdown(f"{line} · {_('left out')}: {', '.join(out)}" if out else line)


def pairs_of(view: View, system: str) -> pd.DataFrame:
    found = evaluations(view)
    return paired(found[view.baseline], found[system], view.spec)


def query_rows(view: View, system: str) -> pd.DataFrame:
    """The rows of the query list for one challenger."""
    return query_table(services.dataset(view.dataset_id).queries, pairs_of(view, system))


def _columns(n: int) -> list[st.delta_generator.DeltaGenerator]:
    return st.columns(min(n, 2)) * math.ceil(n / 2) if n > 1 else [st.container()]
