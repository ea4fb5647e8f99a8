"""The charts of a comparison, as a report and a zip show them: in any ink, with what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from rankdash.analysis.labels.check import CheckReport
from rankdash.analysis.labels.query_groups import DERIVED_SEGMENTS
from rankdash.analysis.ranks.ladder import Ladder
from rankdash.analysis.reasons.contributions import Split
from rankdash.analysis.reasons.headroom import shares
from rankdash.analysis.statistics.verdict import FEWEST_QUERIES
from rankdash.charts import style
from rankdash.charts.cost import break_even as break_even_chart
from rankdash.charts.latency import latency_ecdf as latency_chart
from rankdash.charts.quality import cutoffs as cutoffs_chart
from rankdash.charts.quality import deltas as deltas_chart
from rankdash.charts.quality import grades as grades_chart
from rankdash.charts.quality import headroom as headroom_chart
from rankdash.charts.quality import label_curve as label_curve_chart
from rankdash.charts.quality import query_groups as segments_chart
from rankdash.charts.quality import systems as systems_chart
from rankdash.charts.quality import waterfall as waterfall_chart
from rankdash.charts.ranks import ladder as ladder_chart
from rankdash.charts.style import Ink
from rankdash.i18n import gettext as _
from rankdash.i18n import plain
from rankdash.reporting.html_page import Chart
from rankdash.study import latency as latency_of
from rankdash.study.costs import Choice, choices
from rankdash.study.judging import verdicts
from rankdash.study.study import Study
from rankdash.study.systems import Money
from rankdash.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.value.sensitivity import GAIN, PRICE, input_value, net_grid, net_per_month
from rankdash.words.assumptions import unit
from rankdash.words.judged import three_ways as three_ways_of
from rankdash.words.money import money as amount_in
from rankdash.words.money import symbol

DERIVED = {each.name: each for each in DERIVED_SEGMENTS}

_MOST_GROUPS = 12
# Of one chart of groups: more would be taller than a page of paper.
_MOST_ROWS = 18
_TARGET_MS = 500.0
# Of the map of break-even, either way.
_CELLS = 31
_BY_NAME = {each.name: each for each in ASSUMPTIONS}


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
        found[f"judge-{place}"] = three_ways(study, challenger)
        found[f"judge-curve-{place}"] = label_curve(study, challenger)
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
            corrected=study.comparison.corrected,
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


def three_ways(study: Study, challenger: str) -> Drawing | None:
    """The change by people alone, by the judge alone and corrected; None without a judge."""
    if study.judge is None:
        return None
    found = verdicts(study, study.judge)[challenger]
    ways = three_ways_of(found.three)
    # Nothing is proven by a judge alone.
    p = [found.three.people.p, math.nan, found.p]
    table = pd.DataFrame(
        {
            "segment": found.judge,
            "value": [title for title, _change in ways],
            "n": [change.n for _title, change in ways],
            "delta": [change.mean for _title, change in ways],
            "low": [change.low for _title, change in ways],
            "high": [change.high for _title, change in ways],
            "p_corrected": p,
            "small": False,
        }
    )
    title, level = study.measure.title, study.statistics.level
    return Drawing(
        lambda ink: segments_chart.figure(table, title, ink, level=level, corrected=False),
        segments_chart.alt(table, title, level=level),
    )


def label_curve(study: Study, challenger: str) -> Drawing | None:
    """What labelling more queries would bring, without the judge and with it; None where nothing
    can be corrected."""
    if study.judge is None:
        return None
    found = verdicts(study, study.judge)[challenger]
    curves, title = {found.judge: found.three.curve()}, study.measure.title
    if not found.three.enough or not found.three.corrected.error > 0:
        return None
    return Drawing(
        lambda ink: label_curve_chart.figure(curves, title, ink),
        label_curve_chart.alt(curves, title),
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


def groups_corrected(study: Study, table: pd.DataFrame) -> bool:
    """Whether any p of these groups allows for the others of its segment."""
    tested = table.groupby("name")["p_corrected"].count()
    return any(study.statistics.corrects(n) for n in tested)


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
            table, title, ink, level=level, corrected=groups_corrected(study, table)
        ),
        segments_chart.alt(table, title, level=level),
        # Rows of one segment stand under no name.
        title=str(table["segment"].iloc[0]) if table["segment"].nunique() == 1 else "",
    )


def latency(study: Study, target_ms: float | None = None) -> Drawing | None:
    """The share of queries answered within a time; None where nothing was measured."""
    curves = [
        latency_chart.Curve(system, study.name(system), times.steps, times.summary)
        for system, times in latency_of.timed(study).items()
    ]
    if not curves:
        return None
    marks = style.marks(study.places, study.baseline)
    target = latency_target(study) if target_ms is None else target_ms
    return Drawing(
        lambda ink: latency_chart.figure(curves, marks, ink, target_ms=target),
        latency_chart.alt(curves),
    )


def latency_target(study: Study) -> float:
    """What 95 % of the queries should be answered within, in milliseconds."""
    return _TARGET_MS if study.money is None else study.money.assumptions.latency_target_ms


def grades(report: CheckReport) -> Drawing:
    """How many pairs carry each label."""
    bars = [
        (
            plain(bar.low) if bar.low == bar.high else f"{plain(bar.low)}…{plain(bar.high)}",
            bar.count,
        )
        for bar in report.label_histogram
    ]
    return Drawing(lambda ink: grades_chart.figure(bars, ink), grades_chart.alt(bars))


def waterfall(study: Study, challenger: str, split: Split, names: Mapping[str, str]) -> Drawing:
    """What each document adds to the change of a query. names: document id → name."""
    pair = (study.name(study.baseline), study.name(challenger))
    given = (split.documents, split.before, split.measure.title, pair)
    return Drawing(
        lambda ink: waterfall_chart.figure(
            *given, ink, names=names, threshold=study.conventions.threshold
        ),
        waterfall_chart.alt(*given, names=names),
    )


def ladder(
    found: Ladder,
    titles: Mapping[str, str],
    names: Mapping[str, str],
    *,
    focus: str | None = None,
    every: bool = False,
) -> Drawing:
    """Where the documents of a query went. titles: system → name. focus: the document to follow.
    every: all near the top, and not just those that tell something."""
    return Drawing(
        lambda ink: ladder_chart.figure(
            found, ink, titles=titles, names=names, focus=focus, every=every
        ),
        ladder_chart.alt(found, titles=titles, every=every),
    )


def break_even(study: Study, challenger: str) -> Drawing | None:
    """The net value a month over the price and what 1 % of quality is worth; None where there is no
    price, no value of a search or no gain, or it pays nowhere."""
    money = study.money or Money()
    choice = next(each for each in choices(study) if each.system == challenger)
    if choice.lacks_value:
        return None
    found = net_map(choice, money.assumptions, PRICE, "elasticity", money.currency)
    if found is None or not (found.net > 0).any():
        return None
    period = _("a month")
    title = _(
        "Break-even of {system}: net value {period} by its price and the value of better ranking",
        system=study.name(challenger),
        period=period,
    )
    if choice.demonstrated:
        title = _("{title} (example values)", title=title)
    return replace(found.drawing(period, money.currency), title=title)


@dataclass(frozen=True, eq=False)
class NetMap:
    """The net value over two inputs of a calculation. net: upward × across. now: as things are."""

    across: break_even_chart.Axis
    upward: break_even_chart.Axis
    net: npt.NDArray[np.float64]
    now: float

    def drawing(self, period: str, currency: str) -> Drawing:
        """period: what the values are for, in words."""
        written = partial(amount_in, currency=currency)
        given = (self.net, self.across, self.upward)
        return Drawing(
            lambda ink: break_even_chart.figure(
                *given, ink, now=self.now, period=period, money=written
            ),
            break_even_chart.alt(*given, period=period, money=written),
        )


def net_map(
    choice: Choice, scenario: Assumptions, across: str, upward: str, currency: str, months: int = 1
) -> NetMap | None:
    """across, upward: two of `sensitivity.INPUTS`. None where there is no price or no gain."""
    now = net_per_month(choice.option, scenario)
    if now is None:
        return None
    first, second = (_axis(choice, scenario, name, currency) for name in (across, upward))
    net = net_grid(choice.option, scenario, (across, first.values), (upward, second.values))
    return NetMap(first, second, months * net, months * now)


def _axis(choice: Choice, scenario: Assumptions, name: str, currency: str) -> break_even_chart.Axis:
    """From next to nothing to a few times what it is now, or over its slider where it is 0; far
    enough to have the break-even inside."""
    now = input_value(choice.option, scenario, name) or 0.0
    came = choice.came
    found = {
        PRICE: came.break_even_price,
        "elasticity": came.break_even_elasticity,
        "searches_per_day": came.break_even_searches,
    }.get(name)
    even = found.value if found is not None else None
    unit_of = symbol(currency) if name == PRICE else ""
    if name not in (PRICE, GAIN):
        unit_of = unit(_BY_NAME[name], currency)
    title = input_title(name)
    title = _("{title} ({unit})", title=title, unit=unit_of) if unit_of else title
    if name == GAIN:
        reach = max(abs(now) * 2, 0.05)
        return break_even_chart.Axis(title, np.linspace(-reach / 4, reach, _CELLS).tolist(), now)
    if name == PRICE:
        high = max(2 * now, 2 * (even or 0.0), 0.1)
        return break_even_chart.Axis(title, np.linspace(0, high, _CELLS).tolist(), now)
    each = _BY_NAME[name]
    if each.logarithmic and now > 0:
        reach = 100 * max(now, even or 0.0)
        low, high = max(min(now, even or now) / 100, each.least, 1e-9), min(reach, each.most)
        return break_even_chart.Axis(title, np.geomspace(low, high, _CELLS).tolist(), now, True)
    # Neither the present point nor the line is to lie at an edge.
    high = max(1.3 * now, 2 * even) if even is not None and now > 0 else max(2 * now, each.high)
    high = min(high, each.most)
    return break_even_chart.Axis(title, np.linspace(each.low, high, _CELLS).tolist(), now)


def input_title(name: str) -> str:
    """What one of `sensitivity.INPUTS` is called."""
    if name == PRICE:
        return _("Price of 1,000 searches")
    return _("Measured gain") if name == GAIN else _(_BY_NAME[name].title)
