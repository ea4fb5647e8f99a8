"""Charts of throughput, text lengths, and latency by documents or tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import brief, enumerated, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import SEED
from rankdash.core.data.measured import Level
from rankdash.core.runs.concurrency import within_target
from rankdash.core.study.latency import Against, Fit, TokenLengths
from rankdash.kit.drawing import draw, style

_HEIGHT = 420
_SPLIT = 0.5


@dataclass(frozen=True)
class Measurement:
    """One system with its concurrency levels, in the order of measurement."""

    system: str
    name: str
    levels: Sequence[Level]


def _throughput_alt(measured: Sequence[Measurement]) -> str:
    if not measured:
        return _("No throughput was measured.")
    sentences = []
    for each in measured:
        levels = [
            _(
                "concurrency {n}: {rate}/s, p95 {p95} ms",
                n=level.in_flight,
                rate=brief(level.queries_per_second),
                p95=brief(level.p95_ms),
            )
            for level in each.levels
        ]
        sentences.append(_("{name}: {levels}.", name=each.name, levels=enumerated(levels)))
    return _("Queries per second by concurrent queries. {systems}", systems=" ".join(sentences))


@draw.chart(_throughput_alt)
def throughput_chart(
    ink: style.Ink,
    measured: Sequence[Measurement],
    marks: Mapping[str, style.Mark],
    *,
    target_ms: float,
) -> go.Figure:
    """Draw throughput on top; below it p95 and p50 (thin) on a log axis with the target dashed. A
    ring marks the highest throughput that meets the target. marks: system → its mark."""
    traces: list[style.Trace] = []
    rings: list[Level] = []
    for each in measured:
        traces += _curves(each, marks[each.system])
        best = within_target(each.levels, target_ms)
        if best is not None:
            rings.append(best)
    if rings:
        traces.append(_rings(rings, ink))
    levels = [level for each in measured for level in each.levels]
    clients = sorted({level.in_flight for level in levels})
    waits = [target_ms, *(ms for level in levels for ms in (level.p50_ms, level.p95_ms))]
    highest = max((level.queries_per_second for level in levels), default=1.0)
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        shapes=[draw.target_line(target_ms, ink, "y2")],
        annotations=[
            draw.note(
                0,
                math.log10(target_ms),
                _("target {ms} ms", ms=brief(target_ms)),
                ink.muted,
                xref="paper",
                xanchor="left",
                yref="y2",
                yanchor="bottom",
            )
        ],
        xaxis=style.axis(
            _("concurrent queries"),
            type="log",
            tickvals=clients,
            ticktext=[str(each) for each in clients],
            anchor="y2",
        ),
        yaxis=style.axis(
            _("queries per second"),
            domain=[_SPLIT + 0.04, 1],
            range=[0, 1.18 * highest],
            tickformat=style.ticks(highest),
            nticks=5,
        ),
        yaxis2=style.axis(
            _("p95 and p50 (thin), ms"),
            **draw.log_axis(draw.reach(waits, 0.16), short=True),
            domain=[0, _SPLIT - 0.04],
        ),
    )


def _curves(each: Measurement, mark: style.Mark) -> list[style.Trace]:
    name = style.short(each.name)
    hover = [
        _(
            (
                "{name}, concurrency {n}<br>{rate} queries/s · {pairs} pairs/s<br>p50 {p50} ms · "
                "p95 {p95} ms<br>{queries:,} answered, {failed:,} failed"
            ),
            name=style.whole(each.name),
            n=level.in_flight,
            rate=brief(level.queries_per_second),
            pairs=brief(level.pairs_per_second),
            p50=brief(level.p50_ms),
            p95=brief(level.p95_ms),
            queries=level.queries,
            failed=level.failed,
        )
        for level in each.levels
    ]
    traces = []
    for values, title, axis, dash, symbol in (
        ([level.queries_per_second for level in each.levels], name, "y", mark.dash, mark.symbol),
        (
            [level.p50_ms for level in each.levels],
            _("{name}, p50", name=name),
            "y2",
            mark.dash,
            "line-ew-open",
        ),
        (
            [level.p95_ms for level in each.levels],
            _("{name}, p95", name=name),
            "y2",
            mark.dash,
            mark.symbol,
        ),
    ):
        traces.append(
            draw.scatter(
                [level.in_flight for level in each.levels],
                values,
                "lines+markers",
                yaxis=axis,
                name=title,
                showlegend=axis == "y",
                cliponaxis=False,
                line={
                    "color": mark.colour,
                    "dash": dash,
                    "width": 1 if symbol == "line-ew-open" else 2,
                },
                marker={"color": mark.colour, "symbol": symbol, "size": 8},
                hover=[f"{title}<br>{text}" for text in hover],
            )
        )
    return traces


def _rings(best: Sequence[Level], ink: style.Ink) -> style.Trace:
    return draw.scatter(
        [level.in_flight for level in best],
        [level.queries_per_second for level in best],
        "markers",
        name=_("highest throughput within the target"),
        marker=draw.marker(ink.text, "circle-open", 18),
    )


# Lengths of query and document together, in the model's tokens, and the truncated part.

_HEIGHT_TOKEN_LENGTHS = 320


def _token_lengths_alt(lengths: TokenLengths, name: str) -> str:
    """Return the chart as text. name: of the system."""
    cut = _("No pair is truncated.")
    if lengths.limit is not None:
        cut = _(
            "{n:,} are truncated; the model reads at most {limit:,} tokens.",
            n=lengths.cut,
            limit=lengths.limit,
        )
    return ngettext(
        "Lengths of {n} pair in {name}: half have up to {p50:,} tokens, 95% up to {p95:,}. {cut}",
        "Lengths of {n} pairs in {name}: half have up to {p50:,} tokens, 95% up to {p95:,}. {cut}",
        lengths.pairs,
        name=name,
        p50=round(lengths.p50),
        p95=round(lengths.p95),
        cut=cut,
    )


@draw.chart(_token_lengths_alt)
def token_lengths_chart(ink: style.Ink, lengths: TokenLengths, *, name: str) -> go.Figure:
    """Draw a bar for each range of lengths, hatched for truncated pairs, and a line at the longest
    input of the model. The last bar contains all longer pairs."""
    table = lengths.table
    width = float(table["stop"].iloc[0] - table["start"].iloc[0])
    ranges = list(zip(table["start"], table["stop"], strict=True))
    middles = [start + width / 2 for start, _ in ranges]
    end = middles[-1] + width / 2
    names = [
        _("{start:,} to {last:,}", start=int(start), last=int(stop) - 1)
        if math.isfinite(stop)
        else _("{start:,} or more", start=int(start))
        for start, stop in ranges
    ]
    traces: list[style.Trace] = []
    for column, title, look in (
        ("whole", _("read completely ({n:,})"), {"color": style.BETTER, "line": {"width": 0}}),
        ("cut", _("truncated ({n:,}, {share:.0%})"), draw.hatched(style.WORSE, "/", ink)),
    ):
        counts = [int(each) for each in table[column]]
        if not sum(counts):
            continue
        traces.append(
            draw.bar(
                middles,
                [count / lengths.pairs for count in counts],
                width=0.92 * width,
                name=title.format(n=sum(counts), share=sum(counts) / lengths.pairs),
                marker=look,
                hover=[
                    ngettext(
                        "{bin} tokens<br>{n} pair, {share:.1%}",
                        "{bin} tokens<br>{n} pairs, {share:.1%}",
                        count,
                        bin=bin_name,
                        share=count / lengths.pairs,
                    )
                    for bin_name, count in zip(names, counts, strict=True)
                ],
            )
        )
    highest = float((table["whole"] + table["cut"]).max()) / lengths.pairs
    if lengths.limit is not None:
        traces.append(
            draw.scatter(
                [lengths.limit, lengths.limit],
                [0, 1.08 * highest],
                "lines",
                name=_("model limit: {n:,}", n=lengths.limit),
                line={"color": ink.text, "width": 1.5, "dash": "dash"},
            )
        )
    last = int(table["start"].iloc[-1])
    beyond = math.isinf(ranges[-1][1])
    # The last bar contains all longer pairs, as its tick shows.
    regular = list(range(0, round(end) + 1, max(int(width) * 5, 1)))
    ticks = [*(tick for tick in regular if tick < last - 2 * width), last] if beyond else regular
    return style.finish(
        traces,
        ink,
        _HEIGHT_TOKEN_LENGTHS,
        barmode="stack",
        legend={"traceorder": "normal"},
        xaxis=style.axis(
            _(
                "tokens of query and document, before truncation<br>{name}",
                name=style.short(name),
            ),
            tickvals=ticks,
            ticktext=[f"{tick:,} …" if beyond and tick == last else f"{tick:,}" for tick in ticks],
            range=[0, end],
        ),
        yaxis=style.axis(
            _("share of pairs"), tickformat=".1~%", range=[0, 1.1 * highest], nticks=5
        ),
    )


# Latency by documents or tokens of a query.

MOST_MARKS = 1000
"""Highest number of drawn queries, all systems together; of more queries, a random sample is
drawn."""

RULES_OF_THUMB = pd.DataFrame(
    {
        "documents": [20, 50, 100, 200],
        "p50": [80, 200, 400, 800],
        "p95": [120, 300, 600, 1200],
        "p99": [150, 400, 800, 1500],
    }
)
"""Milliseconds by reranked documents that tutorials copy from each other; not measurements."""

_FIT_HEIGHT = 400
_LINE_POINTS = 40


@dataclass(frozen=True)
class Cloud:
    """The measurements of one system.

    points: x (documents or tokens) and ms, one row per query. fit: None for no line.
    """

    system: str
    name: str
    points: pd.DataFrame
    fit: Fit | None


def _latency_fit_alt(clouds: Sequence[Cloud], against: Against) -> str:
    sentences = []
    for cloud in clouds:
        fit = cloud.fit
        if fit is None:
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
                first=brief(fit.at(fit.first)),
                low=int(fit.first),
                last=brief(fit.at(fit.last)),
                high=int(fit.last),
            )
        )
    title = _("documents per query") if against == "documents" else _("tokens read per query")
    return _("Latency by {x}. {systems}", x=title, systems=" ".join(sentences))


@draw.chart(_latency_fit_alt)
def latency_fit_chart(
    ink: style.Ink,
    clouds: Sequence[Cloud],
    marks: Mapping[str, style.Mark],
    against: Against,
    *,
    rules: bool = False,
) -> go.Figure:
    """Draw a mark for each query on a log axis, and a line for each system, which is curved on this
    axis unless it goes through 0. rules: whether to draw the rules of thumb (by documents only).
    marks: system → its mark."""
    title = _("documents per query") if against == "documents" else _("tokens read per query")
    share = min(1.0, MOST_MARKS / max(sum(len(cloud.points) for cloud in clouds), 1))
    traces: list[style.Trace] = []
    lines: list[style.Trace] = []
    for cloud in clouds:
        mark = marks[cloud.system]
        traces.append(_queries(cloud, mark, share, title))
        if cloud.fit is not None:
            lines.append(_line_fit(cloud.fit, mark))
    # Lines are drawn in front of the marks.
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
        _FIT_HEIGHT,
        xaxis=style.axis(title, range=_across(clouds, farthest), tickformat=",~d"),
        yaxis=style.axis(
            _("milliseconds for one query"),
            **draw.log_axis(draw.reach(times, 0.08)),
        ),
    )


def _across(clouds: Sequence[Cloud], farthest: float) -> list[float]:
    """Return the range of the X axis: from 0, unless most of the chart would then be empty."""
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


def _line_fit(fit: Fit, mark: style.Mark) -> style.Trace:
    x = np.linspace(fit.first, fit.last, _LINE_POINTS)
    ms = fit.intercept + fit.slope * x
    # Times are above 0, and a log axis cannot show other values.
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
