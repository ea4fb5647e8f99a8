"""The charts of a comparison, as a report and a zip show them: in any ink, with what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.analysis.labels.query_groups import DERIVED_SEGMENTS
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
from rankdash.study import latency as latency_of
from rankdash.study.costs import choices
from rankdash.study.study import Study
from rankdash.study.systems import Money
from rankdash.value.assumptions import ASSUMPTIONS
from rankdash.value.sensitivity import PRICE, input_value, net_grid, net_per_month
from rankdash.words.money import money as amount_in
from rankdash.words.money import symbol

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


def drawings(study: Study) -> dict[str, Drawing]:
    """Name, such as "systems" or "changes-2" (the second challenger) → every chart there is."""
    found: dict[str, Drawing | None] = {
        "systems": systems(study),
        "cutoffs": cutoffs(study),
        "headroom": headroom(study),
        "latency": latency(study),
    }
    for place, challenger in enumerate(study.challengers, start=1):
        found[f"changes-{place}"] = changes(study, challenger)
        found[f"break-even-{place}"] = break_even(study, challenger)
        for part, drawn in enumerate(segments(study, challenger), start=1):
            found[f"segments-{place}-{part}"] = drawn
    return {name: drawn for name, drawn in found.items() if drawn is not None}


def systems(study: Study) -> Drawing:
    """Every metric of every system against the baseline."""
    table = study.comparison.frame
    table = table[table["metric"] != study.spec_of("judged")]
    level, names, titles = study.statistics.level, study.names, study.titles
    return Drawing(
        lambda ink: systems_chart.figure(
            table,
            study.baseline,
            ink,
            level=level,
            names=names,
            titles=titles,
            corrected=study.statistics.correction != "none",
            marks=style.marks(study.places, study.baseline),
        ),
        systems_chart.alt(table, study.baseline, level=level, names=names, titles=titles),
    )


def cutoffs(study: Study) -> Drawing | None:
    """The metric against k; None where it has none."""
    curves = study.curves
    if curves.empty:
        return None
    title = study.measure.metric.title
    return Drawing(
        lambda ink: cutoffs_chart.figure(
            curves,
            title,
            study.baseline,
            ink,
            k=study.cutoff,
            level=study.statistics.level,
            names=study.names,
            marks=style.marks(study.places, study.baseline),
        ),
        cutoffs_chart.alt(curves, title, names=study.names),
    )


def changes(study: Study, challenger: str) -> Drawing:
    """Every query's change, worst first."""
    pairs, title = study.pairs(challenger), study.measure.title
    band = study.statistics.tie_band
    return Drawing(
        lambda ink: deltas_chart.figure(
            pairs, title, ink, tie_band=band, names=study.dataset.query_names
        ),
        deltas_chart.alt(pairs, title, tie_band=band),
    )


def headroom(study: Study) -> Drawing | None:
    """Where quality is lost; None where there is nothing to split."""
    table = shares({system: study.headroom(system) for system in study.challengers})
    if table.empty:
        return None
    title = study.measure.title
    return Drawing(
        lambda ink: headroom_chart.figure(table, title, ink, names=study.names),
        headroom_chart.alt(table, title, names=study.names),
    )


def group(study: Study, challenger: str, segment: str) -> pd.DataFrame:
    """The change in each group of one segment, as from `Study.segment`, in the words of the reader:
    name, segment (its title), value and small besides."""
    table = study.segment(challenger, segment)
    own = None if segment in study.dataset.segments else DERIVED.get(segment)
    values = table["segment"]
    return table.assign(
        name=segment,
        segment=_(own.title) if own is not None else segment,
        value=values if own is None else [_(value) for value in values],
        small=table["size"] != "enough",
    )


def groups(study: Study, challenger: str) -> pd.DataFrame:
    """The same for each segment that has two to twelve groups with a query to compare."""
    tables = (group(study, challenger, name) for name in study.segments)
    compared = [table[table["n"] > 0] for table in tables]
    parts = [table for table in compared if 2 <= len(table) <= _MOST_GROUPS]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def drawn_groups(table: pd.DataFrame) -> pd.DataFrame:
    """The groups that a chart shows: one of few queries is an anecdote, and stands in a table."""
    return table[table["n"] >= FEWEST_QUERIES].head(_MOST_GROUPS)


def group_chart(study: Study, table: pd.DataFrame) -> Drawing | None:
    """The groups of one segment; None where none has enough queries."""
    drawn = drawn_groups(table)
    return _segments(study, drawn) if len(drawn) else None


def segments(study: Study, challenger: str) -> list[Drawing]:
    """The mean change in each group of queries that is large enough, a few segments a chart."""
    table = groups(study, challenger)
    if table.empty:
        return []
    table = table[table["n"] >= FEWEST_QUERIES]
    drawn: list[Drawing] = []
    kept: list[pd.DataFrame] = []
    for _name, own in table.groupby("segment", sort=False):
        if len(own) < 2:
            continue
        if kept and sum(map(len, kept)) + len(own) > _MOST_ROWS:
            drawn.append(_segments(study, pd.concat(kept)))
            kept = []
        kept.append(own)
    return [*drawn, _segments(study, pd.concat(kept))] if kept else drawn


def _segments(study: Study, table: pd.DataFrame) -> Drawing:
    title, level = study.measure.title, study.statistics.level
    return Drawing(
        lambda ink: segments_chart.figure(
            table, title, ink, level=level, corrected=study.statistics.correction != "none"
        ),
        segments_chart.alt(table, title, level=level),
        # Rows of one segment stand under no name.
        title=str(table["segment"].iloc[0]) if table["segment"].nunique() == 1 else "",
    )


def latency(study: Study) -> Drawing | None:
    """The share of queries answered within a time; None where nothing was measured."""
    timed = {system: latency_of.times(study, system) for system in study.chosen}
    curves = [
        latency_chart.Curve(system, study.name(system), times.steps, times.summary)
        for system, times in timed.items()
        if times is not None and times.summary.n
    ]
    if not curves:
        return None
    marks = style.marks(study.places, study.baseline)
    return Drawing(
        lambda ink: latency_chart.figure(curves, marks, ink, target_ms=latency_target(study)),
        latency_chart.alt(curves),
    )


def latency_target(study: Study) -> float:
    """What 95 % of the queries should be answered within, in milliseconds."""
    return _TARGET_MS if study.money is None else study.money.assumptions.latency_target_ms


def grades(study: Study) -> Drawing | None:
    """How many pairs carry each label; None where the data set was not checked."""
    if study.check is None:
        return None
    bars = [
        (f"{bar.low:g}" if bar.low == bar.high else f"{bar.low:g}…{bar.high:g}", bar.count)
        for bar in study.check.label_histogram
    ]
    return Drawing(
        lambda ink: grades_chart.figure(
            bars,
            ink,
        ),
        grades_chart.alt(bars),
    )


def _in_unit(title: str, unit: str) -> str:
    return _("{title} ({unit})", title=title, unit=unit)


def break_even(study: Study, challenger: str) -> Drawing | None:
    """The net value a month over the price and what 1 % of quality is worth; None where there is no
    price or no gain, or it pays nowhere."""
    money = study.money or Money()
    choice = next(each for each in choices(study) if each.system == challenger)
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
    written = partial(amount_in, currency=money.currency)
    period = _("a month")
    return Drawing(
        lambda ink: break_even_chart.figure(
            net, across, upward, ink, now=now, period=period, money=written
        ),
        break_even_chart.alt(net, across, upward, period=period, money=written),
        title=_(
            "Where {system} pays: net value {period} over its price and the value of better "
            "ranking",
            system=study.name(challenger),
            period=period,
        ),
    )
