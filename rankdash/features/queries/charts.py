"""Charts of the change of one query and of the ranks of its documents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import plain
from rankdash.core.study.reasons.contributions import Split
from rankdash.core.study.study import Study
from rankdash.features.queries import charts_ladder
from rankdash.features.queries.ladder import Ladder
from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import Drawing


def waterfall(study: Study, challenger: str, split: Split, names: Mapping[str, str]) -> Drawing:
    """Draw the contribution of each document to the change of a query. names: document id →
    name."""
    pair = (study.name(study.baseline), study.name(challenger))
    arguments = (split.documents, split.before, split.measure.title, pair)
    return waterfall_chart(*arguments, names=names, threshold=study.conventions.threshold)


def ladder(
    query_ladder: Ladder,
    titles: Mapping[str, str],
    names: Mapping[str, str],
    *,
    focus: str | None = None,
    every: bool = False,
) -> Drawing:
    """Draw the ranks of a query's documents in each system. titles: system → name. focus: the
    document to follow. every: draw all documents near the top, not only the notable ones."""
    return charts_ladder.ladder_chart(
        query_ladder, titles=titles, names=names, focus=focus, every=every
    )


# Waterfall of one query: from the baseline's value to the challenger's, document by document.

MOST_BARS_WATERFALL = 8
"""The largest number of documents that get their own bar. The others share one bar."""

_ROW = 38
_FURNITURE = 100
_BAR = 0.5
NAME_WIDTH = 30
_ZERO = 1e-12

_Step = tuple[str, float, float, float, float, int]


@dataclass(frozen=True)
class Bar:
    """A step of the waterfall. doc_id: "" for the documents that share a bar. start, end: the ends
    of the bar on the axis."""

    doc_id: str
    rank_before: float
    rank_after: float
    label: float
    delta: float
    start: float
    end: float
    documents: int = 1


def bars(documents: pd.DataFrame, before: float) -> list[Bar]:
    """Return the steps from `before` to the value after: losses, then the shared bar, then gains,
    each group with the largest first. In this order no step leaves the range of the metric.

    documents: as from `contributions.split`, the largest |delta| first.
    """
    moved = documents[documents["delta"].abs() > _ZERO]
    drawn = moved if len(moved) <= MOST_BARS_WATERFALL + 1 else moved.head(MOST_BARS_WATERFALL)
    rest = moved["delta"].iloc[len(drawn) :]
    columns = ("doc_id", "rank_before", "rank_after", "label", "delta")
    lists = [drawn[column].tolist() for column in columns]
    steps: list[_Step] = [(*row, 1) for row in zip(*lists, strict=True)]
    others: list[_Step] = [("", math.nan, math.nan, math.nan, float(rest.sum()), len(rest))]
    entries, value = [], before
    for doc_id, was, now, label, delta, count in (
        *(step for step in steps if step[4] < 0),
        *(others if len(rest) else ()),
        *(step for step in steps if step[4] > 0),
    ):
        entries.append(Bar(doc_id, was, now, label, delta, value, value + delta, count))
        value += delta
    return entries


def _waterfall_alt(
    documents: pd.DataFrame,
    before: float,
    metric: str,
    systems: tuple[str, str],
    *,
    names: Mapping[str, str] = style.NO_NAMES,
) -> str:
    steps = bars(documents, before)
    parts = [
        _(
            "{document}: {delta}, rank {ranks}.",
            document=names.get(step.doc_id, step.doc_id),
            delta=style.signed(step.delta),
            ranks=_ranks(step),
        )
        if step.doc_id
        else _(
            "{others}: {delta}.",
            others=_("{n} other documents", n=step.documents),
            delta=style.signed(step.delta),
        )
        for step in steps
    ]
    return _(
        ("{metric} of one query: {before} ({before_name}), then {after} ({after_name}). {parts}"),
        metric=metric,
        before=style.number(before),
        after=style.number(_after(steps, before)),
        before_name=systems[0],
        after_name=systems[1],
        parts=" ".join(parts),
    ).strip()


@draw.chart(_waterfall_alt)
def waterfall_chart(
    ink: style.Ink,
    documents: pd.DataFrame,
    before: float,
    metric: str,
    systems: tuple[str, str],
    *,
    names: Mapping[str, str] = style.NO_NAMES,
    threshold: float = 1.0,
) -> go.Figure:
    """Draw a bar for each system and, between them, one for each document whose contribution
    changed. Each bar starts at the end of the one above. Direction is shown by position, sign,
    pattern and colour; names of documents with a label of at least `threshold` are bold, with the
    label.

    documents, before: as for `bars`. systems: the names of the two systems. names: document id →
        the text shown for it. The customdata of a document's bar is its id, unescaped.
    """
    steps = bars(documents, before)
    after = _after(steps, before)
    rows = len(steps) + 2
    traces: list[style.Trace] = [
        draw.bar(
            [before, after],
            [0, rows - 1],
            orientation="h",
            width=_BAR,
            marker={"color": style.FIRST_STAGE, "line": {"width": 0}},
        )
    ]
    for sign, name, colour in (
        (1, _("contributes more"), style.BETTER),
        (-1, _("contributes less"), style.WORSE),
    ):
        matching = [(row, step) for row, step in enumerate(steps, 1) if sign * step.delta > 0]
        traces.append(
            draw.bar(
                [step.delta for _, step in matching],
                [row for row, _ in matching],
                orientation="h",
                base=[step.start for _, step in matching],
                width=_BAR,
                name=name,
                showlegend=bool(matching),
                marker=draw.solid(colour, ink, "/" if sign < 0 else ""),
                customdata=[step.doc_id for _, step in matching],
                hover=[_hover_waterfall(step, names) for _, step in matching],
            )
        )
    ends = [before, *(step.end for step in steps)]
    traces.append(
        # From each bar to the next, at the value that both share.
        draw.scatter(
            [x for end in ends for x in (end, end, None)],
            [y for row in range(rows - 1) for y in (row, row + 1, None)],
            "lines",
            yaxis="y2",
            line={"color": ink.line, "width": 1, "dash": "dot"},
        )
    )
    scale = style.row_labels(ink, range=[rows - 0.5, -0.5], tickvals=list(range(rows)), ticks="")
    sides = [f"<b>{style.short(system, NAME_WIDTH)}</b>" for system in systems]
    named = [_tick(step, names, threshold) for step in steps]
    values = [style.number(before), *(_signed(step.delta) for step in steps), style.number(after)]
    return style.finish(
        traces,
        ink,
        rows * _ROW + _FURNITURE,
        barmode="overlay",
        xaxis=style.axis(
            _("{metric} of the query", metric=style.short(metric)),
            range=[0, 1.02 * max(*ends, 0.05)],
            tickformat=".2~f",
            nticks=6,
        ),
        yaxis={**scale, "ticktext": [sides[0], *named, sides[1]]},
        yaxis2={**scale, "ticktext": values, "side": "right", "overlaying": "y"},
    )


def _after(steps: list[Bar], before: float) -> float:
    # A sum can be slightly below 0 by rounding, and "−0.000" would look like a value.
    return max(steps[-1].end, 0.0) if steps else before


def _ranks(step: Bar) -> str:
    def shown(value: float) -> str:
        return _("–") if math.isnan(value) else plain(value)

    return _(
        "{before} → {after} · label {label}",
        before=shown(step.rank_before),
        after=shown(step.rank_after),
        label=shown(step.label),
    )


def _tick(step: Bar, names: Mapping[str, str], threshold: float) -> str:
    if not step.doc_id:
        return _("{n} other documents", n=step.documents)
    name = style.short(names.get(step.doc_id, step.doc_id), NAME_WIDTH)
    bold = f"<b>{name}</b>" if step.label >= threshold else name
    return f"{bold}<br>{_ranks(step)}"


def _signed(delta: float) -> str:
    arrow = "▲" if delta > 0 else "▼"
    return f"{arrow} {style.signed(delta)}"


def _hover_waterfall(step: Bar, names: Mapping[str, str]) -> str:
    change = _signed(step.delta)
    if not step.doc_id:
        return f"{_('{n} other documents', n=step.documents)}<br>{change}"
    name = style.short(names.get(step.doc_id, step.doc_id), 60)
    return f"{name}<br>{_ranks(step)}<br>{change}"
