"""Small multiples: one panel per metric, with a row for each system against the baseline."""

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
from rankdash.core.statistics.verdict import PROVEN, is_proven
from rankdash.kit.drawing import draw, style
from rankdash.kit.html.interval import colour_of

_ROW = 20
# In pixels, per panel: the title above the rows, the axis numbers below them.
_TITLE, _AXIS = 26, 34
_LEGEND = 44
# Shares of the width: the gap between panels; the numbers of a panel in one column, in several.
_GAP = 0.02
_NUMBERS = (0.42, 0.32)
_NAME_WIDTH, _TITLE_WIDTH = 24, 18
_LEAST_REACH, _MOST_TICKS = 0.01, (3, 4)


def height(panels: int, rows: int, columns: int) -> int:
    """Return how many pixels high the chart is. rows: in each panel; columns: of panels."""
    return math.ceil(panels / columns) * (_TITLE + _ROW * max(rows, 1) + _AXIS) + _LEGEND


def _systems_alt(
    table: pd.DataFrame,
    baseline: str,
    order: Sequence[str],
    *,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
    titles: Mapping[str, str] = style.NO_NAMES,
) -> str:
    rows = _rows(table, baseline, order, level)
    against = _(
        "Means of each system against the baseline {baseline}.",
        baseline=names.get(baseline, baseline),
    )
    sentences = [
        _(
            "{system}: {changes}.",
            system=names.get(name, name),
            changes=enumerated(
                _in_words(row, titles, level)
                if order
                else f"{titles.get(row.metric, row.metric)} {style.number(row.at)}"
                for row in rows
                if row.system == name
            ),
        )
        for name in order or [baseline]
    ]
    return " ".join([against, *sentences] if order else sentences)


@draw.chart(_systems_alt)
def systems_chart(
    ink: style.Ink,
    table: pd.DataFrame,
    baseline: str,
    order: Sequence[str],
    *,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
    titles: Mapping[str, str] = style.NO_NAMES,
    corrected: bool = True,
    columns: int = 1,
) -> go.Figure:
    """Draw a panel with its own axis for each metric.

    Each row shows a challenger's change as a dot on its interval, followed by mean and change. The
    vertical line at 0 is the baseline; without challengers, its means are in the rows. A change
    that is not proven has a hollow dot.

    table: the frame of `statistics.compare`, with or without the columns of its intervals. order:
        challengers from top to bottom. level: of the intervals; the significance level is 1 -
        level. names: system → name shown. titles: metric spec → title. corrected: p is corrected
        for the other comparisons. columns: panels per row.
    """
    rows = _rows(table, baseline, order, level)
    metrics = list(dict.fromkeys(row.metric for row in rows))
    drawn, lines = len(order) or 1, math.ceil(len(metrics) / columns) or 1
    labels = [style.short(names.get(name, name), _NAME_WIDTH) for name in order or [baseline]]
    traces: list[style.Trace] = []
    axes: dict[str, dict[str, object]] = {}
    headings = []
    pixel = 1 / lines / (_TITLE + _ROW * drawn + _AXIS)
    width = (1 - _GAP * (columns - 1)) / columns
    for place, metric in enumerate(metrics):
        inside = [row for row in rows if row.metric == metric]
        line, column = divmod(place, columns)
        number = str(place + 1) if place else ""
        left, top = column * (width + _GAP), 1 - line / lines - _TITLE * pixel
        low, high = style.reach(_ends(inside, bool(order)), 0.08, _LEAST_REACH)
        end = low + (high - low) / (1 - _NUMBERS[columns > 1])
        hover = [_hover(row, names, titles, level, corrected) for row in inside]
        on = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        traces += [{**each, **on} for each in _marks(inside, hover, end, ink, bool(order))]
        axes[f"xaxis{number}"] = {
            "domain": [left, left + width],
            "anchor": f"y{number}",
            "range": [low, end],
            **_ticks(low, high, _MOST_TICKS[columns > 1], changes=bool(order)),
            "zeroline": bool(order),
            # Each axis that may move the margins costs time in the browser.
            "automargin": line == lines - 1,
        }
        axes[f"yaxis{number}"] = style.row_labels(
            ink,
            domain=[top - _ROW * drawn * pixel, top],
            anchor=f"x{number}",
            range=[drawn - 0.5, -0.5],
            tickvals=list(range(drawn)) if column == 0 else [],
            ticktext=labels if column == 0 else [],
            automargin=column == 0,
        )
        heading = f"<b>{style.short(titles.get(metric, metric), _TITLE_WIDTH)}</b>"
        if order:
            mean = style.number(_mean(table, metric, baseline))
            heading += f"  {_('baseline {mean}', mean=mean)}"
        settings = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        headings.append(draw.note(left, top, heading, ink.text, **settings))
    if order:
        traces += _keys(names.get(baseline, baseline), rows, level, corrected, ink)
    return style.finish(
        traces, ink, height(len(metrics), drawn, columns), annotations=headings, **axes
    )


@dataclass(frozen=True)
class _Row:
    """One system on one metric. at: x position of the mark, a challenger's change or, without
    challengers, the baseline's mean. low, high: ends of its interval, NaN without one. interval:
    text of the change's interval. place: row number from the top."""

    system: str
    metric: str
    paired: int
    before: float
    after: float
    delta: float
    at: float
    low: float
    high: float
    interval: str
    p: float
    proven: bool
    place: int


def _rows(table: pd.DataFrame, baseline: str, order: Sequence[str], level: float) -> list[_Row]:
    """Return the rows by metric in the order of the table, then by system from top to bottom."""
    places = {name: place for place, name in enumerate(order or [baseline])}
    kind = "delta" if order else "mean"
    rows = []
    for row in table.to_dict("records"):
        if row["system"] in places:
            low, high = (float(row.get(f"{kind}_{end}", math.nan)) for end in ("low", "high"))
            p = float(row.get("p_corrected", math.nan))
            # An interval may exceed the largest change that is possible.
            origin = row["before"] if order else 0.0
            least, most = (end - origin for end in parse_measure(row["metric"]).metric.range)
            shown = ("system", "metric", "paired", "before", "after", "delta")
            rows.append(
                _Row(
                    **{name: row[name] for name in shown},
                    at=row["delta" if order else "after"],
                    low=min(max(low, least), most),
                    high=min(max(high, least), most),
                    interval=draw.span(low, high) if order else "",
                    p=p,
                    proven=not order
                    or (
                        row["verdict"] in PROVEN
                        if "verdict" in row
                        else is_proven(low, high, p, level)
                    ),
                    place=places[row["system"]],
                )
            )
    metrics = list(dict.fromkeys(row.metric for row in rows))
    return sorted(rows, key=lambda row: (metrics.index(row.metric), row.place))


def _mean(table: pd.DataFrame, metric: str, system: str) -> float:
    chosen = table[(table["metric"] == metric) & (table["system"] == system)]
    return float(chosen["after"].iloc[0]) if len(chosen) else math.nan


def _ends(rows: Sequence[_Row], changes: bool) -> list[float]:
    """Return the values that a panel's axis must include; 0 is one of them for changes."""
    ends = [end for row in rows for end in (row.at, row.low, row.high)]
    return [0.0, *ends] if changes else ends


def _marks(
    rows: Sequence[_Row], hover: Sequence[str], end: float, ink: style.Ink, changes: bool
) -> list[style.Trace]:
    """Draw the intervals, the dots, and the numbers at the end of each row."""
    colours = [colour_of(row.delta, proven=row.proven) if changes else ink.text for row in rows]
    traces = []
    for colour in dict.fromkeys(colours):
        part = [row for row, own in zip(rows, colours, strict=True) if own == colour]
        ends = [row.low for row in part], [row.high for row in part]
        traces += draw.whiskers(*ends, [row.place for row in part], colour)
    places = [row.place for row in rows]
    # The inside of a hollow dot covers the interval.
    inside = [
        colour if row.proven else ink.background for row, colour in zip(rows, colours, strict=True)
    ]
    outline = {"color": colours, "width": 2}
    dots = {"symbol": "circle", "size": 9, "color": inside, "line": outline, "opacity": 1}
    systems = [row.system for row in rows]
    traces.append(
        draw.scatter(
            [row.at for row in rows],
            places,
            "markers",
            marker=dots,
            customdata=systems,
            hover=hover,
        )
    )
    numbers = [
        f"{style.number(row.after)} <b>{style.signed(row.delta)}</b>"
        if changes and row.proven
        else f"{style.number(row.after)} {style.signed(row.delta)}"
        if changes
        else style.number(row.at)
        for row in rows
    ]
    return [*traces, draw.texts([end] * len(rows), places, numbers, ink, "middle left")]


def _keys(
    baseline: str, rows: Sequence[_Row], level: float, corrected: bool, ink: style.Ink
) -> list[style.Trace]:
    """Draw the legend of line, dot and interval."""
    traces = [draw.key(_("{system} (baseline)", system=style.short(baseline)), "line-ns", ink.line)]
    if any(math.isfinite(row.low) for row in rows):
        words = _("{level} interval of the change", level=level_percent(level))
        limit = draw.p_limit(corrected).format(p=round(1 - level, 6))
        proven = _("proven ({limit})", limit=limit)
        traces += [
            draw.key(words, "line-ew", ink.text),
            draw.key(proven, "circle", ink.text),
            draw.key(_("not proven"), "circle-open", ink.text),
        ]
    return traces


def _values(row: _Row, titles: Mapping[str, str], level: float) -> dict[str, object]:
    """Return the values for the templates of the hover text and the text alternative."""
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


def _ticks(low: float, high: float, most: int, *, changes: bool) -> dict[str, object]:
    """Return at most `most` round steps between `low` and `high`, with a sign for changes."""
    least = (high - low) / most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= least)
    ticks = [place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    written = style.signed if changes else style.number
    texts = [written(tick, digits) if tick or not changes else "0" for tick in ticks]
    return {"tickvals": ticks, "ticktext": texts, "tickangle": 0}
