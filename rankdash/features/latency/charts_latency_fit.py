"""Latency against what a query asks of the system: its documents, or its tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import brief
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import SEED
from rankdash.core.study.latency import Fit
from rankdash.kit.drawing import draw, style

MOST_MARKS = 1000
"""Of more queries, all systems together, a share is drawn by chance."""

RULES_OF_THUMB = pd.DataFrame(
    {
        "documents": [20, 50, 100, 200],
        "p50": [80, 200, 400, 800],
        "p95": [120, 300, 600, 1200],
        "p99": [150, 400, 800, 1500],
    }
)
"""Milliseconds by documents reranked, as tutorials copy them from each other; no measurement."""

_HEIGHT = 400
_LINE_POINTS = 40


@dataclass(frozen=True)
class Cloud:
    """One system. points: x (documents or tokens) and ms, a row a query. fit: None for no line."""

    system: str
    name: str
    points: pd.DataFrame
    fit: Fit | None


def figure(
    clouds: Sequence[Cloud],
    marks: Mapping[str, style.Mark],
    against: Literal["documents", "tokens"],
    ink: style.Ink,
    *,
    rules: bool = False,
) -> go.Figure:
    """A mark for each query on a log axis, and each system's line, which bends there unless it goes
    through 0. rules: whether the rules of thumb are drawn (by documents only). marks: system → its
    mark."""
    title = (
        _("documents of the query") if against == "documents" else _("tokens read for the query")
    )
    share = min(1.0, MOST_MARKS / max(sum(len(cloud.points) for cloud in clouds), 1))
    traces: list[style.Trace] = []
    lines: list[style.Trace] = []
    for cloud in clouds:
        mark = marks[cloud.system]
        traces.append(_queries(cloud, mark, share, title))
        if cloud.fit is not None:
            lines.append(_line(cloud.fit, mark))
    # In front of every query.
    traces += lines
    times = [float(ms) for cloud in clouds for ms in cloud.points["ms"]]
    farthest = max((float(cloud.points["x"].max()) for cloud in clouds), default=1.0)
    if rules and against == "documents":
        near = RULES_OF_THUMB[RULES_OF_THUMB["documents"] <= max(2.2 * farthest, 50)]
        traces += _rules(near, ink)
        times += [*near["p50"].astype(float), *near["p95"].astype(float)]
        farthest = max(farthest, float(near["documents"].max()))
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        xaxis=style.axis(title, range=_across(clouds, farthest), tickformat=",~d"),
        yaxis=style.axis(
            _("milliseconds for one query"),
            **draw.log_axis(draw.reach(times, 0.08)),
        ),
    )


def alt(clouds: Sequence[Cloud], against: Literal["documents", "tokens"]) -> str:
    """What the chart says, in words."""
    sentences = []
    for cloud in clouds:
        found = cloud.fit
        if found is None:
            sentences.append(
                _(
                    "{name}: {queries}, no line.",
                    name=cloud.name,
                    queries=style.queries(len(cloud.points)),
                )
            )
            continue
        sentences.append(
            _(
                "{name}: about {first} ms at {low:,} and {last} ms at {high:,}.",
                name=cloud.name,
                first=brief(found.at(found.first)),
                low=int(found.first),
                last=brief(found.at(found.last)),
                high=int(found.last),
            )
        )
    title = (
        _("documents of the query") if against == "documents" else _("tokens read for the query")
    )
    return _("Latency against {x}. {systems}", x=title, systems=" ".join(sentences))


def _across(clouds: Sequence[Cloud], farthest: float) -> list[float]:
    """From 0, unless that would leave much of the chart empty."""
    nearest = min((float(cloud.points["x"].min()) for cloud in clouds), default=0.0)
    room = 0.05 * (farthest - nearest if nearest > 0.4 * farthest else farthest)
    return [nearest - max(room, 1.0) if nearest > 0.4 * farthest else 0.0, farthest + max(room, 1)]


def _queries(cloud: Cloud, mark: style.Mark, share: float, title: str) -> style.Trace:
    points = cloud.points
    if share < 1:
        points = points.sample(frac=share, random_state=SEED)
    name = style.whole(cloud.name)
    return draw.scatter(
        points["x"].tolist(),
        points["ms"].tolist(),
        "markers",
        name=style.short(cloud.name),
        marker={
            "color": mark.colour,
            "symbol": mark.symbol,
            "size": 7,
            "opacity": 0.55,
            "line": {"color": mark.colour, "width": 1},
        },
        hover=[
            _(
                "{name}<br>{x}: {value:,}<br>{ms} ms",
                name=name,
                x=title,
                value=int(x),
                ms=brief(ms),
            )
            for x, ms in zip(points["x"], points["ms"], strict=True)
        ],
    )


def _line(found: Fit, mark: style.Mark) -> style.Trace:
    x = np.linspace(found.first, found.last, _LINE_POINTS)
    ms = found.intercept + found.slope * x
    # Below 0 there is no time, and a log axis has no place for it.
    drawn = ms > 0
    return draw.scatter(
        x[drawn].tolist(),
        ms[drawn].tolist(),
        "lines",
        line={"color": mark.colour, "dash": mark.dash, "width": 2.5},
    )


def _rules(near: pd.DataFrame, ink: style.Ink) -> list[style.Trace]:
    documents = near["documents"].tolist()
    return [
        draw.scatter(
            documents,
            near[percentile].tolist(),
            "lines+markers",
            name=_("rules of thumb from tutorials, {percentile}", percentile=percentile),
            line={"color": ink.muted, "dash": dash, "width": 1.5},
            marker={"color": ink.muted, "symbol": symbol, "size": 9},
            hover=[
                _(
                    "rule of thumb from tutorials<br>{n} documents: {percentile} {ms} ms",
                    n=n,
                    percentile=percentile,
                    ms=brief(ms),
                )
                for n, ms in zip(documents, near[percentile], strict=True)
            ],
        )
        for percentile, dash, symbol in (
            ("p50", "dot", "line-ew-open"),
            ("p95", "longdash", "x-thin-open"),
        )
    ]
