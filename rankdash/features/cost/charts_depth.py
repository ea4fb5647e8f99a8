"""How deep to rerank: quality, waiting and cost over one axis of depth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.words.latency import milliseconds
from rankdash.kit.drawing import draw, style

_PANEL = 150
_TOP = 250


def figure(
    table: pd.DataFrame,
    metric: str,
    marks: dict[str, int],
    ink: style.Ink,
    *,
    latency: Sequence[float] = (),
    cost: Sequence[float] = (),
    money: Callable[[float], str] = str,
) -> go.Figure:
    """Quality with its band on top, below it p95 latency and cost, where they are known.

    table: depth, mean, low and high. marks: any of "best", "most" and "enough" → depth. latency: ms
        and cost: of 1,000 searches, for each row of the table; empty or all NaN: not drawn.
    Depths are evenly spaced: they grow by factors.
    """
    depths = [int(depth) for depth in table["depth"]]
    place = {depth: at for at, depth in enumerate(depths)}
    xs = list(range(len(depths)))
    panels = [
        (title, list(values), written)
        for title, values, written in (
            (_("p95, ms"), latency, milliseconds),
            (_("cost of 1,000"), cost, money),
        )
        # Not reranking takes no time and no money, known or not.
        if any(math.isfinite(value) and value > 0 for value in values)
    ]
    traces = [*_quality(table, xs, metric)]
    traces += _marked(table, place, marks, ink)
    for number, (title, values, written) in enumerate(panels, start=2):
        traces.append(
            draw.bar(
                xs,
                [value if math.isfinite(value) else None for value in values],
                yaxis=f"y{number}",
                marker={"color": style.FIRST_STAGE},
                width=0.5,
                name=title,
                showlegend=False,
                hover=[
                    style.short(written(value), 40) if math.isfinite(value) else "–"
                    for value in values
                ],
            )
        )
    layout: dict[str, object] = {
        "xaxis": style.axis(
            _("documents reranked"),
            tickvals=xs,
            ticktext=[_("not reranked") if depth == 0 else f"{depth:,}" for depth in depths],
            anchor=f"y{len(panels) + 1}" if panels else "y",
        ),
        "yaxis": style.axis(
            style.short(metric), tickformat=".2f", zeroline=False, domain=_domain(0, len(panels))
        ),
    }
    for number, (title, values, _written) in enumerate(panels, start=1):
        layout[f"yaxis{number + 1}"] = style.axis(
            title,
            rangemode="tozero",
            nticks=4,
            tickformat=style.ticks(max(value for value in values if math.isfinite(value))),
            domain=_domain(number, len(panels)),
        )
    return style.finish(traces, ink, _TOP + _PANEL * len(panels), **layout)


def _marked_depth(name: str, depth: object) -> str:
    words = {
        "best": _("best: {depth}", depth=depth),
        "most": _("90% of the gain: {depth}", depth=depth),
        "enough": _("within noise of the best: {depth}", depth=depth),
    }
    return words[name]


def alt(table: pd.DataFrame, metric: str, marks: dict[str, int]) -> str:
    """What the chart says, in words."""
    points = [
        _(
            "{mean} at {depth}",
            mean=style.number(mean),
            depth=_("not reranked") if depth == 0 else f"{depth:,}",
        )
        for depth, mean in zip(table["depth"], table["mean"], strict=True)
    ]
    sentences = [_marked_depth(name, depth) for name, depth in marks.items()]
    return _(
        "{metric} by the number of documents reranked: {points}. {marks}",
        metric=metric,
        points=", ".join(points),
        marks=". ".join(sentences),
    ).strip()


def _quality(table: pd.DataFrame, xs: list[int], metric: str) -> list[style.Trace]:
    known = table["low"].notna() & table["high"].notna()
    there = [x for x, has in zip(xs, known, strict=True) if has]
    high, low = table.loc[known, "high"].tolist(), table.loc[known, "low"].tolist()
    return [
        draw.band(
            there, low, high, style.BETTER, 0.15, {"width": 0}, name=_("interval of the mean")
        ),
        draw.scatter(
            xs,
            table["mean"].tolist(),
            "lines+markers",
            line={"color": style.BETTER, "width": 2},
            marker={"color": style.BETTER, "size": 7},
            name=style.short(metric),
            hover=[
                f"{style.short(metric)} {style.number(mean)} ({style.number(a)}…{style.number(b)})"
                for mean, a, b in zip(table["mean"], table["low"], table["high"], strict=True)
            ],
        ),
    ]


def _marked(
    table: pd.DataFrame, place: dict[int, int], marks: dict[str, int], ink: style.Ink
) -> list[style.Trace]:
    """A ring of its own shape and size for each mark, so that marks on one depth all show."""
    looks = {"best": ("star-open", 18), "most": ("square-open", 22), "enough": ("circle-open", 28)}
    return [
        draw.scatter(
            [place[depth]],
            [float(table["mean"].iloc[place[depth]])],
            "markers",
            marker=draw.marker(ink.text, looks[name][0], looks[name][1]),
            name=_marked_depth(name, _("not reranked") if depth == 0 else f"{depth:,}"),
        )
        for name, depth in marks.items()
    ]


def _domain(number: int, panels: int) -> list[float]:
    """Quality takes the room that the panels below it leave."""
    if not panels:
        return [0.0, 1.0]
    share, gap = 0.22, 0.06
    if number == 0:
        return [panels * share, 1.0]
    top = (panels - number + 1) * share - gap
    return [max(top - share + gap, 0.0), top]
