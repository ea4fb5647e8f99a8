"""The quality of a policy by one of its settings: depth, share skipped, deadline or floor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import brief, enumerated, level_percent, number, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import LEVEL
from rankdash.kit.drawing import draw, style

NO_LINES: Mapping[str, float] = {}
_HEIGHT, _PANEL, _FLAG, _LEGEND = 330, 110, 17, 24
# The share of the height for a second chart below.
_PART = 0.2
_MOST_POINTS = 6


def _quality_alt(
    table: pd.DataFrame,
    metric: str,
    *,
    x: str,
    title: str,
    lines: Mapping[str, float] = NO_LINES,
    marks: Mapping[str, float] = NO_LINES,
    chosen: float | None = None,
    written: Callable[[float], str] = number,
) -> str:
    at = {round(place) for place in np.linspace(0, len(table) - 1, min(len(table), _MOST_POINTS))}
    points = [
        _("{mean} at {setting}", mean=style.number(mean), setting=written(setting))
        for setting, mean in table[[x, "mean"]].iloc[sorted(at)].itertuples(index=False)
    ]
    sentences = [
        _(
            "{metric} by {setting}: {points}.",
            metric=metric,
            setting=title,
            points=enumerated(points),
        ),
        *(_("{name}: {facts}.", name=name, facts=style.number(at)) for name, at in lines.items()),
        *(
            _("{name}: {facts}.", name=name, facts=written(setting))
            for name, setting in _marked(marks, chosen).items()
        ),
    ]
    return paragraph(sentences)


def _with_ends(metric: str, mean: float, low: float, high: float) -> str:
    if not math.isfinite(low + high):
        return f"{metric} {style.number(mean)}"
    values = {"mean": mean, "low": low, "high": high}
    texts = {name: style.number(value) for name, value in values.items()}
    return _("{metric} {mean} ({low}…{high})", metric=metric, **texts)


@draw.chart(_quality_alt)
def quality(
    ink: style.Ink,
    table: pd.DataFrame,
    metric: str,
    *,
    x: str,
    title: str,
    lines: Mapping[str, float] = NO_LINES,
    marks: Mapping[str, float] = NO_LINES,
    chosen: float | None = None,
    share: str = "",
    share_title: str = "",
    other: str = "",
    other_title: str = "",
    scale: Literal["linear", "log", "even", "percent"] = "linear",
    written: Callable[[float], str] = number,
    hover: Sequence[str] = (),
    level: float = LEVEL,
) -> go.Figure:
    """Draw the metric with its interval as a band; below it, if requested, a share of the queries.

    table: one row for each setting, ascending: the columns `x`, mean, low, high and `share`. Empty
        cells are omitted. metric: its title. title: of the horizontal axis. lines: label → metric
        of a reference, such as the first stage. marks: label → setting, such as a target. chosen:
        the user's setting. share, share_title: a column from 0 to 1, and its name. other,
        other_title: a column with the metric of another method, and its name. scale: "even" spaces
        the rows evenly, "percent" is for shares. written: formats a setting. hover: more text for
        each row. level: of the interval.
    """
    settings = table[x].astype(float).tolist()
    place = _placed(settings, scale)
    xs = [place(setting) for setting in settings]
    mean = table["mean"].tolist()
    known = table["low"].notna() & table["high"].notna()
    low, high = table.loc[known, "low"].tolist(), table.loc[known, "high"].tolist()
    reach = style.reach(
        [*mean, *low, *high, *lines.values(), *(table[other] if other else ())], 0.06, 0.01
    )
    top = [0.36, 1.0] if share else [0.0, 1.0]
    height = _HEIGHT + _PANEL * bool(share)
    more = [f"<br>{text}" for text in hover] or [""] * len(xs)
    values = [
        _with_ends(style.short(metric), *each)
        for each in table[["mean", "low", "high"]].itertuples(index=False)
    ]
    traces = [
        draw.band(
            [at for at, has in zip(xs, known, strict=True) if has], low, high, style.BETTER, 0.25,
            {"width": 0}, name=_("{level} interval", level=level_percent(level)) if low else None,
        ),
        draw.scatter(
            xs,
            mean,
            "lines" if len(xs) > 2 * _MOST_POINTS else "lines+markers",
            line={"color": style.BETTER, "width": 2.5},
            marker={"color": style.BETTER, "size": 7},
            hover=[
                _("{part}: {value}", part=written(setting), value=f"{value}{text}")
                for setting, value, text in zip(settings, values, more, strict=True)
            ],
        ),
    ]  # fmt: skip
    if other:
        dotted = {"color": style.FIRST_STAGE, "width": 2, "dash": "dot"}
        traces.append(draw.scatter(xs, table[other].tolist(), "lines", line=dotted))
    if chosen in settings:
        ring = draw.marker(ink.text, "circle-open", 16)
        traces.append(draw.scatter([place(chosen)], [mean[settings.index(chosen)]], "markers",
                                   marker=ring))  # fmt: skip
    if share:
        traces.append(
            draw.scatter(
                xs,
                table[share].tolist(),
                "lines",
                yaxis="y2",
                line={"color": style.FIRST_STAGE, "width": 1.5},
                hover=[
                    _(
                        "{part}: {value}",
                        part=written(setting),
                        value=f"{style.short(share_title)} {value:.0%}",
                    )
                    for setting, value in zip(settings, table[share], strict=True)
                ],
            )
        )
    flagged = _marked(marks, chosen)
    uprights, labels = _flags(flagged, chosen, place, xs, height, scale, written, ink)
    ends = {**lines, **({other_title: table[other].iloc[-1]} if other else {})}
    names, margin = draw.end_labels(
        [(name, style.FIRST_STAGE, value) for name, value in ends.items()],
        (reach[0], reach[1]),
        height * (top[1] - top[0]) - 60,
        ink,
        xref="paper",
        x=1,
    )
    lower = style.axis("", domain=[0.0, _PART], range=[-0.02, 1.02], tickformat=".0%", nticks=3)
    if share:
        above = {"yref": "paper", "yanchor": "bottom", "xref": "paper", "xanchor": "left"}
        names.append(draw.note(0, _PART, style.short(share_title), ink.muted, **above))
    return style.finish(
        traces,
        ink,
        height + _LEGEND,
        margin={"t": 12 + _LEGEND + _FLAG * len(labels), **margin},
        shapes=[*(draw.target_line(value, ink, "y") for value in lines.values()), *uprights],
        annotations=[*names, *labels],
        xaxis={
            **style.axis(title, anchor="y2" if share else "y"),
            **_scaled(xs, settings, flagged, scale, written),
        },
        yaxis=style.axis(
            style.short(metric), tickformat=".2f", zeroline=False, range=reach, domain=top
        ),
        **({"yaxis2": lower} if share else {}),
    )


def _marked(marks: Mapping[str, float], chosen: float | None) -> dict[str, float]:
    own = {} if chosen is None else {_p("chart", "chosen"): chosen}
    return {**marks, **own}


def _placed(settings: Sequence[float], scale: str) -> Callable[[float], float]:
    """Return the position of a setting on the axis; between two rows it is in proportion."""
    if scale != "even":
        return float
    return lambda setting: float(np.interp(setting, settings, range(len(settings))))


def _scaled(
    xs: Sequence[float],
    settings: Sequence[float],
    marks: Mapping[str, float],
    scale: str,
    written: Callable[[float], str],
) -> dict[str, object]:
    if scale == "even":
        return {"tickvals": list(xs), "ticktext": [written(setting) for setting in settings]}
    if scale == "percent":
        return {"tickformat": ".0%"}
    return draw.log_axis(draw.reach([*settings, *marks.values()], 0.02)) if scale == "log" else {}


def _flags(
    marks: Mapping[str, float],
    chosen: float | None,
    place: Callable[[float], float],
    xs: Sequence[float],
    height: int,
    scale: str,
    written: Callable[[float], str],
    ink: style.Ink,
) -> tuple[list[style.Trace], list[style.Trace]]:
    """Return the line of each mark, and its label, which has a separate row above the chart."""
    lines, labels = [], []
    middle = (
        place((min(xs) + max(xs)) / 2)
        if scale in ("linear", "percent")
        else sorted(xs)[len(xs) // 2]
    )
    for row, (name, setting) in enumerate(marks.items()):
        at, own = place(setting), setting == chosen
        left = at <= middle
        ends = {"y1": 1 + (row + 0.8) * _FLAG / (height - 80)}
        dash, width = ("solid", 2) if own else ("dash", 1)
        lines.append(draw.upright(at, ink.text, dash, width) | ends)
        labels.append(
            draw.note(
                math.log10(at) if scale == "log" else at,
                1,
                _(
                    "{part}: {value}",
                    part=style.short(name),
                    value=style.short(written(setting)),
                ),
                ink.text,
                yref="paper",
                yanchor="bottom",
                yshift=row * _FLAG - 2,
                xanchor="left" if left else "right",
                xshift=3 if left else -3,
            )
        )
    return lines, labels


# Quality, latency and price of a policy, of the first stage and of full reranking.

_ROW, _FURNITURE = 44, 70


@dataclass(frozen=True)
class Outcome:
    """A way to serve searches. quality: mean, low and high. p95_ms: of reranking, NaN if unknown.
    price: of 1,000 searches, None if unknown."""

    name: str
    quality: Mapping[str, float]
    p95_ms: float
    price: float | None


def _panels(
    rows: Sequence[Outcome], money: Callable[[float], str]
) -> list[tuple[str, list[float], list[str]]]:
    """Return title, values and their texts of each further panel, if the values are known."""
    latency = [row.p95_ms for row in rows]
    price = [math.nan if row.price is None else row.price for row in rows]
    panels = [
        (_("reranking, p95"), latency, [_("{ms} ms", ms=brief(each)) for each in latency]),
        (_("price of 1,000 searches"), price, [money(each) for each in price]),
    ]
    return [panel for panel in panels if all(map(math.isfinite, panel[1]))]


def _outcomes_alt(
    rows: Sequence[Outcome], metric: str, *, money: Callable[[float], str] = str
) -> str:
    panels = _panels(rows, money)
    sentences = []
    for at, row in enumerate(rows):
        words = [_with_ends(metric, *(row.quality[name] for name in ("mean", "low", "high")))]
        words += [f"{title} {texts[at]}" for title, _values, texts in panels]
        sentences.append(_("{name}: {facts}.", name=row.name, facts=enumerated(words)))
    return paragraph(sentences)


@draw.chart(_outcomes_alt)
def outcomes(
    ink: style.Ink,
    rows: Sequence[Outcome],
    metric: str,
    *,
    money: Callable[[float], str] = str,
) -> go.Figure:
    """Draw a row for each way to serve searches: quality as a dot with its interval; bars of the
    latency and the price, if known for all.

    rows: from the top; the first is the first stage. metric: its title. money: formats an amount.
    """
    panels = _panels(rows, money)
    places = list(range(len(rows)))[::-1]
    means = [row.quality["mean"] for row in rows]
    low, high = ([row.quality[end] for row in rows] for end in ("low", "high"))
    first, others = style.FIRST_STAGE, [style.BETTER, ink.text]
    traces: list[style.Trace] = []
    for row, at, colour, symbol in zip(
        rows, places, [first, *others], ["circle-open-dot", "circle", "diamond"], strict=False
    ):
        quality = row.quality
        traces += draw.whiskers([quality["low"]], [quality["high"]], [at], colour)
        spot = draw.marker(colour, symbol, 11)
        traces.append(draw.scatter([quality["mean"]], [at], "markers", marker=spot))
    traces.append(
        draw.texts(
            [
                value if math.isfinite(value) else mean
                for value, mean in zip(high, means, strict=True)
            ],
            places,
            [f"\u00a0\u00a0{style.number(mean)}" for mean in means],
            ink,
        )
    )
    reach = style.reach([*means, *low, *high], 0.06, 0.01)
    reach[1] += 0.16 * (reach[1] - reach[0])
    widths: dict[int, list[list[float]]] = {
        0: [[0, 1]],
        1: [[0, 0.6], [0.66, 1]],
        2: [[0, 0.46], [0.55, 0.75], [0.79, 0.99]],
    }
    domains = widths[len(panels)]
    layout: dict[str, object] = {
        "xaxis": style.axis(
            style.short(metric, 16), domain=domains[0], range=reach, tickformat=".2f", nticks=5,
            showgrid=True,
        )
    }  # fmt: skip
    for number_, (title, values, texts) in enumerate(panels, start=2):
        axis = f"x{number_}"
        traces.append(
            draw.bar(values, places, orientation="h", xaxis=axis, width=0.4,
                     marker={"color": style.FIRST_STAGE})
        )  # fmt: skip
        labels = draw.texts(values, places, [f"\u00a0{style.short(each)}" for each in texts], ink)
        traces.append(labels | {"xaxis": axis})
        layout[f"xaxis{number_}"] = style.axis(
            style.whole(title, 10), domain=domains[number_ - 1],
            range=[0, (max(values) or 1.0) * 1.5],
            showticklabels=False,
        )  # fmt: skip
    return style.finish(
        traces,
        ink,
        _FURNITURE + _ROW * len(rows),
        yaxis=style.row_labels(
            ink,
            tickvals=places,
            ticktext=[style.short(row.name, 24) for row in rows],
            range=[-0.6, len(rows) - 0.4],
        ),
        **layout,
    )
