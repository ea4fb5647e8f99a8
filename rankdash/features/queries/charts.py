"""Charts of all queries, and of the documents of one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import plain
from rankdash.core.base.rules import TIE_BAND
from rankdash.core.statistics.alignment import counts, direction
from rankdash.core.study.reasons.contributions import Split
from rankdash.core.study.study import Study
from rankdash.features.queries import charts_ladder
from rankdash.features.queries.ladder import Ladder
from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import Drawing


def waterfall(study: Study, challenger: str, split: Split, names: Mapping[str, str]) -> Drawing:
    """What each document adds to the change of a query. names: document id → name."""
    pair = (study.name(study.baseline), study.name(challenger))
    given = (split.documents, split.before, split.measure.title, pair)
    return Drawing(
        lambda ink: waterfall_figure(
            *given, ink, names=names, threshold=study.conventions.threshold
        ),
        waterfall_alt(*given, names=names),
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
        lambda ink: charts_ladder.ladder_figure(
            found, ink, titles=titles, names=names, focus=focus, every=every
        ),
        charts_ladder.ladder_alt(found, titles=titles, every=every),
    )


def changes(study: Study, challenger: str) -> Drawing:
    """Every query's change, worst first."""
    pairs, title = study.pairs(challenger), study.measure.title
    band = study.statistics.tie_band
    return Drawing(
        lambda ink: deltas_figure(
            pairs, title, ink, tie_band=band, names=study.dataset.query_names
        ),
        deltas_alt(pairs, title, tie_band=band),
    )


# Every query's change, sorted, worst first: how many were hurt, and how badly.

FloatArray = npt.NDArray[np.float64]

MOST_BARS = 1000
"""SVG bars beyond this make a page slow; above it, neighbours are drawn as one bar."""

_AGGREGATED_BARS = 400
_PATTERNED_BARS = 100
_HEIGHT = 340
_LEAST_REACH = 0.05


def deltas_figure(
    frame: pd.DataFrame,
    metric: str,
    ink: style.Ink,
    *,
    tie_band: float = TIE_BAND,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """Bars down for hurt, up for helped, dots for the same; a dotted line at the mean.

    frame: as from `compare.paired`. metric: its title. names: query id → the text shown for it.

    The first item of each mark's customdata is the query id, unescaped; where a bar stands for
    several queries (above `MOST_BARS`), the one that changed most. The second is how many.
    """
    known = frame["delta"].notna().to_numpy()
    pairs = frame if known.all() else frame[known]
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    bars = _bars(pairs, tie_band)
    tally = counts(pairs, tie_band)
    few = len(bars) <= _PATTERNED_BARS
    traces: list[style.Trace] = []
    for sign, name, colour in (
        (-1, _("{n} hurt", n=tally.hurt), style.WORSE),
        (1, _("{n} helped", n=tally.helped), style.BETTER),
    ):
        part = [bar for bar in bars if bar.sign == sign]
        traces.append(
            draw.bar(
                width=np.array([bar.n * (0.85 if few else 1.0) for bar in part]),
                name=name,
                legendrank=1 if sign < 0 else 3,
                marker=draw.solid(colour, ink, "/" if sign < 0 and few else ""),
                **_pointed(part, names),
            )
        )
    traces.append(
        draw.scatter(
            mode="markers",
            name=_("{n} same (±{band})", n=tally.same, band=plain(tie_band)),
            legendrank=2,
            marker={"color": ink.muted, "symbol": "circle", "size": 4, "line": {"width": 0}},
            **_pointed([bar for bar in bars if bar.sign == 0], names),
        )
    )
    if len(delta):
        mean = float(delta.mean())
        traces.append(
            draw.scatter(
                [0.5, len(delta) + 0.5],
                [mean, mean],
                "lines",
                name=_("mean {delta}", delta=style.signed(mean)),
                legendrank=4,
                line={"color": ink.text, "width": 1.5, "dash": "dot"},
            )
        )
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        shapes=[_same(tie_band, ink)],
        barmode="overlay",
        bargap=0,
        xaxis=style.axis(_("queries, worst first"), range=[0, len(delta) + 1]),
        yaxis=style.axis(
            _("change in {metric}", metric=style.short(metric)),
            zeroline=True,
            tickformat=".2~f",
            range=_reach(delta),
        ),
    )


def deltas_alt(frame: pd.DataFrame, metric: str, *, tie_band: float = TIE_BAND) -> str:
    """What the chart says, in words."""
    delta = frame["delta"].dropna()
    if delta.empty:
        return _("No query can be compared.")
    tally = counts(frame, tie_band)
    return _(
        (
            "Change in {metric} for {queries}, worst first: {hurt} hurt (worst "
            "{worst}), {same} same, {helped} helped (best {best}). The mean change is "
            "{mean}."
        ),
        metric=metric,
        queries=style.queries(tally.queries),
        hurt=tally.hurt,
        same=tally.same,
        helped=tally.helped,
        worst=style.signed(float(delta.min())),
        best=style.signed(float(delta.max())),
        mean=style.signed(float(delta.mean())),
    )


def _same(tie_band: float, ink: style.Ink) -> style.Trace:
    """The tie band, behind the bars."""
    return {
        "type": "rect",
        "xref": "x domain",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": -tie_band,
        "y1": tie_band,
        "fillcolor": ink.grid,
        "line": {"width": 0},
        "layer": "below",
    }


def _reach(delta: FloatArray) -> list[float]:
    """From the worst to the best change, and never so narrow that the tie band fills it."""
    low, high = (float(delta.min()), float(delta.max())) if len(delta) else (0.0, 0.0)
    room = 0.05 * (high - low)
    return [min(low - room, -_LEAST_REACH), max(high + room, _LEAST_REACH)]


class _Bar(NamedTuple):
    """One mark, for n queries that changed in one direction: delta is their mean, low and high
    their extremes; query_id, before and after are those of the one that changed most."""

    x: float
    n: int
    sign: int
    delta: float
    low: float
    high: float
    query_id: str
    before: float
    after: float


def _bars(pairs: pd.DataFrame, tie_band: float) -> list[_Bar]:
    """Worst first."""
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    order = np.argsort(delta, kind="stable")
    delta = delta[order]
    sign = direction(delta, tie_band)
    size = 1 if len(delta) <= MOST_BARS else -(-len(delta) // _AGGREGATED_BARS)
    # Blocks start anew with each direction: no bar stands for both hurt and helped.
    turns = np.flatnonzero(np.diff(sign, prepend=np.int8(2)))
    ends = np.append(turns, len(delta))[1:]
    starts = np.concatenate(
        [np.arange(a, b, size) for a, b in zip(turns, ends, strict=True)] or [np.zeros(0, int)]
    ).astype(np.int64)
    stops = np.append(starts, len(delta))[1:]
    n = stops - starts
    # Sorted, so the ends of a block are its extremes; the one farther from 0 changed most.
    low, high = delta[starts], delta[stops - 1]
    farthest = order[np.where(np.abs(low) > np.abs(high), starts, stops - 1)]
    columns = (
        (starts + stops + 1) / 2,
        n,
        sign[starts],
        np.add.reduceat(delta, starts) / n if len(starts) else delta,
        low,
        high,
        *(pairs[name].take(farthest) for name in ("query_id", "before", "after")),
    )
    return [_Bar(*values) for values in zip(*(each.tolist() for each in columns), strict=True)]


def _hover(bar: _Bar, names: Mapping[str, str]) -> str:
    if bar.n > 1:
        ends = {"low": style.signed(bar.low), "high": style.signed(bar.high)}
        return _("{n} queries, {low} to {high}", n=bar.n, **ends)
    change = f"{style.number(bar.before)} → {style.number(bar.after)} ({style.signed(bar.high)})"
    return f"{style.short(names.get(bar.query_id, bar.query_id), 60)}<br>{change}"


def _pointed(part: Sequence[_Bar], names: Mapping[str, str]) -> style.Trace:
    """Where marks stand, and what a click and a hover find in them."""
    return {
        # As arrays, because of their number: a list is checked and copied item by item.
        "x": np.array([bar.x for bar in part]),
        "y": np.array([bar.delta for bar in part]),
        "customdata": np.array([(bar.query_id, bar.n) for bar in part], dtype=object),
        "hover": [_hover(bar, names) for bar in part],
    }


# One query: from the baseline's value to the challenger's, document by document.

MOST_BARS_WATERFALL = 8
"""Documents beyond this share one bar."""

_ROW = 38
_FURNITURE = 100
_BAR = 0.5
NAME_WIDTH = 30
_ZERO = 1e-12

_Step = tuple[str, float, float, float, float, int]


@dataclass(frozen=True)
class Bar:
    """doc_id: "" for the documents that share a bar. start, end: where it runs on the axis."""

    doc_id: str
    rank_before: float
    rank_after: float
    label: float
    delta: float
    start: float
    end: float
    documents: int = 1


def bars(documents: pd.DataFrame, before: float) -> list[Bar]:
    """The steps from `before` to the value after: losses, then what shares a bar, then gains, each
    the largest first, so that no step leaves the range of the metric.

    documents: as from `contributions.split`, the largest |delta| first.
    """
    moved = documents[documents["delta"].abs() > _ZERO]
    drawn = moved if len(moved) <= MOST_BARS_WATERFALL + 1 else moved.head(MOST_BARS_WATERFALL)
    rest = moved["delta"].iloc[len(drawn) :]
    columns = ("doc_id", "rank_before", "rank_after", "label", "delta")
    lists = [drawn[column].tolist() for column in columns]
    steps: list[_Step] = [(*row, 1) for row in zip(*lists, strict=True)]
    others: list[_Step] = [("", math.nan, math.nan, math.nan, float(rest.sum()), len(rest))]
    found, value = [], before
    for doc_id, was, now, label, delta, count in (
        *(step for step in steps if step[4] < 0),
        *(others if len(rest) else ()),
        *(step for step in steps if step[4] > 0),
    ):
        found.append(Bar(doc_id, was, now, label, delta, value, value + delta, count))
        value += delta
    return found


def waterfall_figure(
    documents: pd.DataFrame,
    before: float,
    metric: str,
    systems: tuple[str, str],
    ink: style.Ink,
    *,
    names: Mapping[str, str] = style.NO_NAMES,
    threshold: float = 1.0,
) -> go.Figure:
    """A bar for each side and, between them, one for each document that counts for more or less,
    each starting where the one above ends. Direction by place, sign, pattern and colour; documents
    with a label of at least `threshold` in bold, with their label.

    documents, before: as for `bars`. systems: the names of the two sides. names: document id → the
    text shown for it. The customdata of a document's bar is its id, unescaped.
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
        (1, _("counts for more"), style.BETTER),
        (-1, _("counts for less"), style.WORSE),
    ):
        own = [(row, step) for row, step in enumerate(steps, 1) if sign * step.delta > 0]
        traces.append(
            draw.bar(
                [step.delta for _, step in own],
                [row for row, _ in own],
                orientation="h",
                base=[step.start for _, step in own],
                width=_BAR,
                name=name,
                showlegend=bool(own),
                marker=draw.solid(colour, ink, "/" if sign < 0 else ""),
                customdata=[step.doc_id for _, step in own],
                hover=[_hover_waterfall(step, names) for _, step in own],
            )
        )
    ends = [before, *(step.end for step in steps)]
    traces.append(
        # From each bar to the next, at the value they share.
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


def waterfall_alt(
    documents: pd.DataFrame,
    before: float,
    metric: str,
    systems: tuple[str, str],
    *,
    names: Mapping[str, str] = style.NO_NAMES,
) -> str:
    """What the chart says, in words."""
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


def _after(steps: list[Bar], before: float) -> float:
    # Sums may end a hair below 0, and "−0.000" would look like a value.
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
