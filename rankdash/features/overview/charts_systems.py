"""Systems × metrics against a named baseline: how far each moved, on one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import enumerated, level_percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import LEVEL
from rankdash.core.metrics import parse_measure
from rankdash.core.statistics.verdict import is_proven
from rankdash.kit.drawing import draw, style

_ROW = 26
_FURNITURE = 110
# What the words for whisker and star take of the legend.
_KEYS = 30
# Of the widest change, written beside the last mark.
_MARGIN = 44
_TITLE_WIDTH = 22
_BLOCK_GAP = 0.7
_LEAST_STEP, _MOST_TICKS = 0.01, 7


def _systems_alt(
    table: pd.DataFrame,
    baseline: str,
    *,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
    titles: Mapping[str, str] = style.NO_NAMES,
) -> str:
    systems = list(dict.fromkeys(table["system"]))
    challengers = [name for name in systems if name != baseline]
    rows = _rows(table, level, challengers)
    changes = [
        _(
            "{system}: {changes}.",
            system=names.get(name, name),
            changes=enumerated(_in_words(row, titles, level) for row in rows if row.system == name),
        )
        for name in challengers
    ]
    return " ".join(
        [
            _(
                "Means of each system against the baseline {baseline}.",
                baseline=names.get(baseline, baseline),
            ),
            *changes,
        ]
    )


@draw.chart(_systems_alt)
def systems_chart(
    ink: style.Ink,
    table: pd.DataFrame,
    baseline: str,
    *,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
    titles: Mapping[str, str] = style.NO_NAMES,
    marks: Mapping[str, style.Mark] | None = None,
    corrected: bool = True,
) -> go.Figure:
    """A block of rows for each metric, a row for each challenger: a hollow grey ring where the
    baseline stands, joined to the challenger's own mark by a line, dotted where it lost. The
    change is written beside it; around the mark runs the interval of the change, and a proven
    change is bold and has a star.

    table: as the frame of `statistics.compare`, or one without the columns of its
    intervals. level: of the intervals, and 1 - level of the significance. names: system → the
    name shown; titles: metric spec → its title. marks: system → its mark. corrected: whether
    p allows for the other comparisons.
    """
    systems = list(dict.fromkeys(table["system"]))
    challengers = [name for name in systems if name != baseline]
    drawn = challengers or [baseline]
    rows = _rows(table, level, drawn)
    traces = [
        _links([row for row in rows if row.delta >= 0], ink, "solid"),
        _links([row for row in rows if row.delta < 0], ink, "dot"),
    ]
    hover = {(row.system, row.metric): _hover(row, names, titles, level, corrected) for row in rows}
    # The baseline last: its ring stays visible around a mark in the same place.
    marks = marks or style.marks_in_order(systems, baseline)
    for name, mark in sorted(marks.items(), key=lambda item: item[0] == baseline):
        alone = name == baseline
        selected = rows if alone else [row for row in rows if row.system == name]
        shown = style.short(names.get(name, name))
        places = [row.place for row in selected]
        if not alone:
            ends = [row.low for row in selected], [row.high for row in selected]
            traces += draw.whiskers(*ends, places, mark.colour)
        traces.append(
            draw.scatter(
                [row.before if alone else row.after for row in selected],
                places,
                "markers",
                name=_("{system} (baseline)", system=shown) if alone else shown,
                legendrank=1 if alone else 2,
                marker=draw.marker(mark.colour, mark.symbol, 11),
                customdata=[name] * len(selected),
                hover=[hover[row.system, row.metric] for row in selected],
            )
        )
    traces.append(_changes([row for row in rows if row.system != baseline], ink))
    keyed = bool(challengers) and any(math.isfinite(row.low) for row in rows)
    if keyed:
        traces += draw.keys(
            _("{level} interval of the change"), draw.p_limit(corrected), level, ink.text
        )
    # Room at both ends for the changes that are written beside the marks.
    drawn_x = (x for row in rows for x in (row.before, row.after, row.low, row.high))
    reach = style.reach(drawn_x, 0.25, 0.02)
    ticks = _middles(table, len(drawn))
    bottom = max((row.place for row in rows), default=0) + 1
    words = [style.short(titles.get(metric, metric), _TITLE_WIDTH) for metric in ticks]
    return style.finish(
        traces,
        ink,
        round(bottom * _ROW) + _FURNITURE + (_KEYS if keyed else 0),
        margin={"r": _MARGIN},
        xaxis=style.axis(
            _("mean over the queries that both systems have") if challengers else _("mean"),
            showgrid=True,
            range=reach,
            tickvals=_ticks(reach, _highest(table)),
        ),
        yaxis=style.row_labels(
            ink, tickvals=list(ticks.values()), ticktext=words, range=[bottom - 0.3, -0.7]
        ),
    )


@dataclass(frozen=True)
class _Row:
    """What is drawn of one system by one metric. low and high: where its whisker ends, NaN without
    an interval; interval: that of the change in words. place: from the top, in rows."""

    system: str
    metric: str
    paired: int
    before: float
    after: float
    delta: float
    low: float
    high: float
    interval: str
    p: float
    proven: bool
    place: float


def _rows(table: pd.DataFrame, level: float, drawn: Sequence[str]) -> list[_Row]:
    """The rows of the systems to draw, in the order of the table. Where there is no challenger,
    the baseline has a row of its own."""
    order = {name: place for place, name in enumerate(drawn)}
    metrics = {metric: place for place, metric in enumerate(dict.fromkeys(table["metric"]))}
    block = len(drawn) + _BLOCK_GAP
    missing = [math.nan] * len(table)
    keys = (table[name].tolist() for name in ("system", "metric", "paired"))
    means = (table[name].tolist() for name in ("before", "after", "delta"))
    tests = (
        table[name].tolist() if name in table else missing
        for name in ("delta_low", "delta_high", "p_corrected")
    )
    rows = []
    for system, metric, paired, before, after, delta, low, high, p in zip(
        *keys, *means, *tests, strict=True
    ):
        if system in order:
            lowest, highest = parse_measure(metric).metric.range
            rows.append(
                _Row(
                    system=system,
                    metric=metric,
                    paired=paired,
                    before=before,
                    after=after,
                    delta=delta,
                    # A change can look larger than what there is to gain or lose.
                    low=min(max(before + low, lowest), highest),
                    high=min(max(before + high, lowest), highest),
                    interval=draw.span(low, high),
                    p=p,
                    proven=is_proven(low, high, p, level),
                    place=metrics[metric] * block + order[system],
                )
            )
    return rows


def _middles(table: pd.DataFrame, drawn: int) -> dict[str, float]:
    """metric → the middle of its block."""
    metrics = enumerate(dict.fromkeys(table["metric"]))
    return {metric: place * (drawn + _BLOCK_GAP) + (drawn - 1) / 2 for place, metric in metrics}


def _links(rows: Sequence[_Row], ink: style.Ink, dash: str) -> style.Trace:
    return draw.scatter(
        [x for row in rows for x in (row.before, row.after, math.nan)],
        [y for row in rows for y in (row.place, row.place, math.nan)],
        "lines",
        line={"color": ink.line, "width": 2, "dash": dash},
    )


def _changes(rows: Sequence[_Row], ink: style.Ink) -> style.Trace:
    """Each change beside its mark, on the far side from the baseline and outside the interval."""
    room = "\u00a0" * 4
    x, texts, sides = [], [], []
    for row in rows:
        lost = row.delta < 0
        text = draw.changed(row.delta, row.proven)
        texts.append(f"{text}{room}" if lost else f"{room}{text}")
        sides.append("middle left" if lost else "middle right")
        ends = [end for end in (row.after, row.low if lost else row.high) if math.isfinite(end)]
        x.append((min if lost else max)(ends, default=math.nan))
    return draw.texts(x, [row.place for row in rows], texts, ink, sides)


def _values(row: _Row, titles: Mapping[str, str], level: float) -> dict[str, object]:
    """What the templates of hover and words need of a row."""
    return {
        "metric": titles.get(row.metric, row.metric),
        "before": style.number(row.before),
        "after": style.number(row.after),
        "delta": style.signed(row.delta),
        "queries": style.queries(row.paired),
        "level": level_percent(level),
        "interval": row.interval,
        "p": draw.chance(row.p),
    }


def _in_words(row: _Row, titles: Mapping[str, str], level: float) -> str:
    template = (
        _("{metric} {before} to {after} ({delta}, {level} interval {interval}{mark})")
        if row.interval
        else _("{metric} {before} to {after} ({delta})")
    )
    mark = _(", proven") if row.proven else ""
    return template.format(**_values(row, titles, level), mark=mark)


def _hover(
    row: _Row, names: Mapping[str, str], titles: Mapping[str, str], level: float, corrected: bool
) -> str:
    values = _values(row, titles, level)
    values["metric"] = style.short(str(values["metric"]))
    lines = [
        style.whole(names.get(row.system, row.system)),
        _("{metric}: {before} → {after} ({delta}), {queries}", **values),
    ]
    if row.interval:
        lines.append(_("{level} interval {interval}", **values))
    if values["p"]:
        lines.append(draw.p_text(corrected, str(values["p"])))
    return "<br>".join(lines)


def _highest(table: pd.DataFrame) -> float:
    """What the metrics of the table reach at most."""
    return max((parse_measure(each).metric.range[1] for each in set(table["metric"])), default=1.0)


def _ticks(reach: Sequence[float], highest: float) -> list[float]:
    """Round values over the reach of the data, and none that no metric can have."""
    first, last = reach
    least = max((last - first) / _MOST_TICKS, _LEAST_STEP)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= least)
    ticks = (place * step for place in range(math.ceil(first / step), math.floor(last / step) + 1))
    return [round(tick, 2) for tick in ticks if -1e-9 <= tick <= highest + 1e-9]
