"""The charts of a comparison, as a report and a zip show them: in any ink, with what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.analysis.labels.query_groups import DERIVED_SEGMENTS
from rankdash.analysis.latency import ecdf, latencies
from rankdash.analysis.reasons.headroom import shares
from rankdash.analysis.statistics.verdict import FEWEST_QUERIES
from rankdash.charts import style
from rankdash.charts.cost import break_even as break_even_chart
from rankdash.charts.latency import latency_ecdf as latency_chart
from rankdash.charts.quality import cutoffs as cutoffs_chart
from rankdash.charts.quality import deltas as deltas_chart
from rankdash.charts.quality import grades as grades_chart
from rankdash.charts.quality import headroom as headroom_chart
from rankdash.charts.quality import query_groups as segments_chart
from rankdash.charts.quality import systems as systems_chart
from rankdash.charts.style import Ink
from rankdash.i18n import gettext as _
from rankdash.reporting.html_page import Chart
from rankdash.study.cost_options import choices
from rankdash.study.study import Subject
from rankdash.study.systems import Money
from rankdash.value.assumptions import ASSUMPTIONS
from rankdash.value.sensitivity import PRICE, input_value, net_grid, net_per_month
from rankdash.words.money import money as amount_in
from rankdash.words.money import symbol
from rankdash.words.verdicts import p_labels

DERIVED = {each.name: each for each in DERIVED_SEGMENTS}

_MOST_GROUPS = 12
# Of one chart of groups: more would be taller than a page of paper.
_MOST_ROWS = 18
_TARGET_MS = 500.0
# Of the map of break-even, either way.
_CELLS = 31


@dataclass(frozen=True)
class Drawing:
    """A chart before it has an ink. alt: what it says, in words. title: what it is about, where it
    does not say so itself."""

    draw: Callable[[Ink], go.Figure]
    alt: str
    title: str = ""

    def in_both_inks(self) -> Chart:
        light, dark = (self.draw(style.INKS[name]) for name in ("light", "dark"))
        return Chart(light, dark, self.alt)


def drawings(subject: Subject) -> dict[str, Drawing]:
    """Name, such as "systems" or "changes-2" (the second challenger) → every chart there is."""
    found: dict[str, Drawing | None] = {
        "systems": systems(subject),
        "cutoffs": cutoffs(subject),
        "headroom": headroom(subject),
        "latency": latency(subject),
    }
    for place, challenger in enumerate(subject.challengers, start=1):
        found[f"changes-{place}"] = changes(subject, challenger)
        found[f"break-even-{place}"] = break_even(subject, challenger)
        for part, drawn in enumerate(segments(subject, challenger), start=1):
            found[f"segments-{place}-{part}"] = drawn
    return {name: drawn for name, drawn in found.items() if drawn is not None}


def systems(subject: Subject) -> Drawing:
    """Every metric of every system against the baseline."""
    table = subject.comparison.frame
    table = table[table["metric"] != subject.spec_of("judged")]
    labels = p_labels(systems_chart.Labels, subject.statistics)
    level, names, titles = subject.statistics.level, subject.names, subject.titles
    return Drawing(
        lambda ink: systems_chart.figure(
            table, subject.baseline, ink, labels, level=level, names=names, titles=titles
        ),
        systems_chart.alt(table, subject.baseline, labels, level=level, names=names, titles=titles),
    )


def cutoffs(subject: Subject) -> Drawing | None:
    """The metric against k; None where it has none."""
    curves = subject.curves
    if curves.empty:
        return None
    title, labels = subject.measure.metric.title, cutoffs_chart.Labels.translated(_)
    return Drawing(
        lambda ink: cutoffs_chart.figure(
            curves,
            title,
            subject.baseline,
            ink,
            labels,
            k=subject.cutoff,
            level=subject.statistics.level,
            names=subject.names,
        ),
        cutoffs_chart.alt(curves, title, labels, names=subject.names),
    )


def changes(subject: Subject, challenger: str) -> Drawing:
    """Every query's change, worst first."""
    pairs, title = subject.pairs(challenger), subject.measure.title
    labels, band = deltas_chart.Labels.translated(_), subject.statistics.tie_band
    return Drawing(
        lambda ink: deltas_chart.figure(
            pairs, title, ink, labels, tie_band=band, names=subject.texts
        ),
        deltas_chart.alt(pairs, title, labels, tie_band=band),
    )


def headroom(subject: Subject) -> Drawing | None:
    """Where quality is lost; None where there is nothing to split."""
    table = shares({system: subject.headroom(system) for system in subject.challengers})
    if table.empty:
        return None
    title = subject.measure.title
    labels = headroom_chart.Labels.translated(_)
    return Drawing(
        lambda ink: headroom_chart.figure(table, title, ink, labels, names=subject.names),
        headroom_chart.alt(table, title, labels, names=subject.names),
    )


def groups(subject: Subject, challenger: str) -> pd.DataFrame:
    """The change in each group of each segment that has two to twelve of them, in the words of the
    reader: name, segment (its title), value, n, left_out, before, after, delta, low, high,
    p_corrected, helped, same, hurt, small."""
    parts = []
    for name in subject.segments:
        table = subject.segment(challenger, name)
        # Without a query to compare there is no change to tell of.
        table = table[table["n"] > 0]
        if not 2 <= len(table) <= _MOST_GROUPS:
            continue
        own = DERIVED[name] if name in DERIVED and name not in subject.dataset.segments else None
        values = table["segment"]
        parts.append(
            table.assign(
                name=name,
                segment=_(own.title) if own is not None else name,
                value=values if own is None else [_(value) for value in values],
                small=table["size"] != "enough",
            )
        )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def segments(subject: Subject, challenger: str) -> list[Drawing]:
    """The mean change in each group of queries that is large enough, a few segments a chart."""
    table = groups(subject, challenger)
    if table.empty:
        return []
    table = table[table["n"] >= FEWEST_QUERIES]
    drawn: list[Drawing] = []
    kept: list[pd.DataFrame] = []
    for _name, own in table.groupby("segment", sort=False):
        if len(own) < 2:
            continue
        if kept and sum(map(len, kept)) + len(own) > _MOST_ROWS:
            drawn.append(_segments(subject, pd.concat(kept)))
            kept = []
        kept.append(own)
    return [*drawn, _segments(subject, pd.concat(kept))] if kept else drawn


def _segments(subject: Subject, table: pd.DataFrame) -> Drawing:
    title, level = subject.measure.title, subject.statistics.level
    labels = p_labels(segments_chart.Labels, subject.statistics)
    return Drawing(
        lambda ink: segments_chart.figure(table, title, ink, labels, level=level),
        segments_chart.alt(table, title, labels, level=level),
        # Rows of one segment stand under no name.
        title=str(table["segment"].iloc[0]) if table["segment"].nunique() == 1 else "",
    )


def latency(subject: Subject) -> Drawing | None:
    """The share of queries answered within a time; None where nothing was measured."""
    curves = []
    for system in subject.chosen:
        run, summary = subject.run(system), subject.latency(system)
        if run is not None and summary is not None:
            steps = ecdf(latencies(run.queries))
            curves.append(latency_chart.Curve(system, subject.name(system), steps, summary))
    if not curves:
        return None
    marks = style.marks(subject.chosen, subject.baseline)
    labels = latency_chart.Labels.translated(_)
    return Drawing(
        lambda ink: latency_chart.figure(
            curves, marks, ink, labels, target_ms=latency_target(subject)
        ),
        latency_chart.alt(curves, labels),
    )


def latency_target(subject: Subject) -> float:
    """What 95 % of the queries should be answered within, in milliseconds."""
    return _TARGET_MS if subject.money is None else subject.money.assumptions.latency_target_ms


def grades(subject: Subject) -> Drawing | None:
    """How many pairs carry each label; None where the data set was not checked."""
    if subject.check is None:
        return None
    bars = [
        (f"{bar.low:g}" if bar.low == bar.high else f"{bar.low:g}…{bar.high:g}", bar.count)
        for bar in subject.check.label_histogram
    ]
    labels = grades_chart.Labels.translated(_)
    return Drawing(
        lambda ink: grades_chart.figure(bars, ink, labels), grades_chart.alt(bars, labels)
    )


def _in_unit(title: str, unit: str) -> str:
    return _("{title} ({unit})", title=title, unit=unit)


def break_even(subject: Subject, challenger: str) -> Drawing | None:
    """The net value a month over the price and what 1 % of quality is worth; None where there is no
    price or no gain, or it pays nowhere."""
    money = subject.money or Money()
    choice = next(each for each in choices(subject) if each.system == challenger)
    price = input_value(choice.option, money.assumptions, PRICE)
    now = net_per_month(choice.option, money.assumptions)
    if price is None or now is None:
        return None
    even, worth = choice.came.break_even_price.value, choice.came.break_even_elasticity.value
    elasticity = next(each for each in ASSUMPTIONS if each.name == "elasticity")
    at = money.assumptions.elasticity
    # Neither the present point nor the line is to lie at an edge.
    dearest = max(2 * price, 2 * (even or 0.0), 0.1)
    highest = min(max(1.3 * at, 2 * (worth or 0.0)) or elasticity.high, elasticity.most)
    across = break_even_chart.Axis(
        _in_unit(_("Price of 1,000 searches"), symbol(money.currency)),
        np.linspace(0, dearest, _CELLS).tolist(),
        price,
    )
    upward = break_even_chart.Axis(
        _in_unit(_(elasticity.title), _(elasticity.unit)),
        np.linspace(0, highest, _CELLS).tolist(),
        at,
    )
    net = net_grid(
        choice.option,
        money.assumptions,
        (PRICE, across.values),
        (elasticity.name, upward.values),
    )
    if not (net > 0).any():
        return None
    labels, written = (
        break_even_chart.Labels.translated(_),
        partial(amount_in, currency=money.currency),
    )
    period = _("a month")
    return Drawing(
        lambda ink: break_even_chart.figure(
            net, across, upward, ink, labels, now=now, period=period, money=written
        ),
        break_even_chart.alt(net, across, upward, labels, period=period, money=written),
        title=_(
            "Where {system} pays: net value {period} over its price and the value of better "
            "ranking",
            system=subject.name(challenger),
            period=period,
        ),
    )
