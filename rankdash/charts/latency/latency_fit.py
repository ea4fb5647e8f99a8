"""Latency against what a query asks of the system: its documents, or its tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.analysis.latency import Fit
from rankdash.analysis.statistics.bootstrap import SEED
from rankdash.charts import milliseconds, style

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


@dataclass(frozen=True)
class Labels(style.Labels):
    documents: str = "documents of the query"
    tokens: str = "tokens read for the query"
    y: str = "milliseconds for one query"
    rule: str = "rules of thumb from tutorials, {percentile}"
    hover: str = "{name}<br>{x}: {value:,}<br>{ms} ms"
    hover_rule: str = "rule of thumb from tutorials<br>{n} documents: {percentile} {ms} ms"
    alt: str = "Latency against {x}. {systems}"
    alt_line: str = "{name}: about {first} ms at {low:,} and {last} ms at {high:,}."
    alt_no_line: str = "{name}: {n:,} queries, no line."


def figure(
    clouds: Sequence[Cloud],
    marks: Mapping[str, style.Mark],
    against: Literal["documents", "tokens"],
    ink: style.Ink,
    labels: Labels | None = None,
    *,
    rules: bool = False,
) -> go.Figure:
    """A mark for each query on a log axis, and each system's line, which bends there unless it goes
    through 0. rules: whether the rules of thumb are drawn (by documents only). marks: system → its
    mark."""
    labels = labels or Labels()
    title = labels.documents if against == "documents" else labels.tokens
    share = min(1.0, MOST_MARKS / max(sum(len(cloud.points) for cloud in clouds), 1))
    traces: list[style.Trace] = []
    lines: list[style.Trace] = []
    for cloud in clouds:
        mark = marks[cloud.system]
        traces.append(_queries(cloud, mark, share, title, labels))
        if cloud.fit is not None:
            lines.append(_line(cloud.fit, mark))
    # In front of every query.
    traces += lines
    times = [float(ms) for cloud in clouds for ms in cloud.points["ms"]]
    farthest = max((float(cloud.points["x"].max()) for cloud in clouds), default=1.0)
    if rules and against == "documents":
        near = RULES_OF_THUMB[RULES_OF_THUMB["documents"] <= max(2.2 * farthest, 50)]
        traces += _rules(near, ink, labels)
        times += [*near["p50"].astype(float), *near["p95"].astype(float)]
        farthest = max(farthest, float(near["documents"].max()))
    return style.finish(
        go.Figure(traces),
        ink,
        _HEIGHT,
        {
            "xaxis": {
                "title": {"text": title},
                "range": _across(clouds, farthest),
                "tickformat": ",~d",
            },
            "yaxis": {
                **milliseconds.log_axis(milliseconds.reach(times, 0.08)),
                "title": {"text": labels.y},
            },
        },
    )


def alt(
    clouds: Sequence[Cloud],
    against: Literal["documents", "tokens"],
    labels: Labels | None = None,
) -> str:
    """What the chart says, in words."""
    labels = labels or Labels()
    said = []
    for cloud in clouds:
        found = cloud.fit
        if found is None:
            said.append(labels.alt_no_line.format(name=cloud.name, n=len(cloud.points)))
            continue
        said.append(
            labels.alt_line.format(
                name=cloud.name,
                first=milliseconds.text(found.at(found.first)),
                low=int(found.first),
                last=milliseconds.text(found.at(found.last)),
                high=int(found.last),
            )
        )
    title = labels.documents if against == "documents" else labels.tokens
    return labels.alt.format(x=title, systems=" ".join(said))


def _across(clouds: Sequence[Cloud], farthest: float) -> list[float]:
    """From 0, unless that would leave much of the chart empty."""
    nearest = min((float(cloud.points["x"].min()) for cloud in clouds), default=0.0)
    room = 0.05 * (farthest - nearest if nearest > 0.4 * farthest else farthest)
    return [nearest - max(room, 1.0) if nearest > 0.4 * farthest else 0.0, farthest + max(room, 1)]


def _queries(
    cloud: Cloud, mark: style.Mark, share: float, title: str, labels: Labels
) -> style.Trace:
    points = cloud.points
    if share < 1:
        points = points.sample(frac=share, random_state=SEED)
    name = style.short(cloud.name, 40)
    return {
        "type": "scatter",
        "x": points["x"].tolist(),
        "y": points["ms"].tolist(),
        "mode": "markers",
        "name": style.short(cloud.name),
        "marker": {
            "color": mark.colour,
            "symbol": mark.symbol,
            "size": 7,
            "opacity": 0.55,
            "line": {"color": mark.colour, "width": 1},
        },
        "hovertext": [
            labels.hover.format(name=name, x=title, value=int(x), ms=milliseconds.text(ms))
            for x, ms in zip(points["x"], points["ms"], strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _line(found: Fit, mark: style.Mark) -> style.Trace:
    x = np.linspace(found.first, found.last, _LINE_POINTS)
    ms = found.intercept + found.slope * x
    # Below 0 there is no time, and a log axis has no place for it.
    drawn = ms > 0
    return {
        "type": "scatter",
        "x": x[drawn].tolist(),
        "y": ms[drawn].tolist(),
        "mode": "lines",
        "showlegend": False,
        "line": {"color": mark.colour, "dash": mark.dash, "width": 2.5},
        "hoverinfo": "skip",
    }


def _rules(near: pd.DataFrame, ink: style.Ink, labels: Labels) -> list[style.Trace]:
    documents = near["documents"].tolist()
    return [
        {
            "type": "scatter",
            "x": documents,
            "y": near[percentile].tolist(),
            "mode": "lines+markers",
            "name": labels.rule.format(percentile=percentile),
            "line": {"color": ink.muted, "dash": dash, "width": 1.5},
            "marker": {"color": ink.muted, "symbol": symbol, "size": 9},
            "hovertext": [
                labels.hover_rule.format(n=n, percentile=percentile, ms=milliseconds.text(ms))
                for n, ms in zip(documents, near[percentile], strict=True)
            ],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
        for percentile, dash, symbol in (
            ("p50", "dot", "line-ew-open"),
            ("p95", "longdash", "x-thin-open"),
        )
    ]
