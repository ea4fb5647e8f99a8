"""Charts of all systems and of groups of queries."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import enumerated, level_percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import FEWEST_QUERIES, LEVEL
from rankdash.core.study.groups import DERIVED_SEGMENTS
from rankdash.core.study.headroom import SHARES, shares
from rankdash.core.study.leaderboard import standings
from rankdash.core.study.study import Study
from rankdash.features.overview import charts_systems
from rankdash.kit.drawing import changes, draw, style
from rankdash.kit.drawing.draw import Drawing

DERIVED = {each.name: each for each in DERIVED_SEGMENTS}

_MOST_GROUPS = 12

# Most rows in one chart of groups; more would not fit on a printed page.
_MOST_ROWS = 18


def systems(study: Study, columns: int = 1) -> Drawing:
    """Draw every metric of every system against the baseline, the best system first.

    columns: panels per row; one fits every width, also of a report on a phone.
    """
    table = study.comparison.frame
    table = table[table["metric"] != study.spec_of("judged")]
    return charts_systems.systems_chart(
        table,
        study.baseline,
        ranked(study),
        level=study.statistics.level,
        names=study.names,
        titles=study.titles,
        corrected=study.comparison.corrected,
        columns=columns,
    )


def ranked(study: Study) -> list[str]:
    """Return the challengers in the order of the leaderboard."""
    return [row.system for row in standings(study) if row.system != study.baseline]


def cutoffs(study: Study) -> Drawing | None:
    """Draw the metric by cutoff k; None if the metric has no cutoff."""
    curves = study.curves
    if curves.empty:
        return None
    title = study.measure.metric.title
    return cutoffs_chart(
        curves,
        title,
        study.baseline,
        k=study.cutoff,
        level=study.statistics.level,
        names=study.names,
        marks=style.marks(study.places, study.baseline),
    )


def headroom(study: Study) -> Drawing | None:
    """Draw the parts of the best possible mean, by system; None without a comparable query."""
    table = shares({system: study.headroom(system) for system in ranked(study)})
    if table.empty:
        return None
    title = study.title
    return headroom_chart(table, title, names=study.names)


def group(study: Study, challenger: str, segment: str) -> pd.DataFrame:
    """Return the change in each group of one segment with translated titles.

    The columns are the ones of `Study.segment` plus name, segment (title), value and small (too few
    queries).
    """
    table = study.segment(challenger, segment)
    derived = None if segment in study.dataset.segments else DERIVED.get(segment)
    values = table["segment"]
    return table.assign(
        name=segment,
        segment=_p("segment", derived.title) if derived is not None else segment,
        value=values if derived is None else [_p("segment", value) for value in values],
        small=table["size"] != "enough",
    )


def groups(study: Study, challenger: str) -> pd.DataFrame:
    """Return `group` for each segment with two to twelve groups that have a query to compare."""
    tables = (group(study, challenger, name) for name in study.segments)
    compared = [table[table["n"] > 0] for table in tables]
    parts = [table for table in compared if 2 <= len(table) <= _MOST_GROUPS]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def groups_corrected(study: Study, table: pd.DataFrame) -> bool:
    """Return whether any p of these groups is corrected for the other groups of its segment."""
    tested = table.groupby("name")["p_corrected"].count()
    return any(study.statistics.corrects(n) for n in tested)


def drawn_groups(table: pd.DataFrame) -> pd.DataFrame:
    """Return the groups that a chart shows; groups of few queries are in the table only."""
    return table[table["n"] >= FEWEST_QUERIES].head(_MOST_GROUPS)


def group_chart(study: Study, table: pd.DataFrame) -> Drawing | None:
    """Draw the groups of one segment; None if no group has enough queries."""
    drawn = drawn_groups(table)
    return _segments(study, drawn) if len(drawn) else None


def segments(study: Study, challenger: str) -> list[Drawing]:
    """Draw the mean change in each group with enough queries, several segments per chart."""
    table = groups(study, challenger)
    if table.empty:
        return []
    table = table[table["n"] >= FEWEST_QUERIES]
    drawn: list[Drawing] = []
    batch: list[pd.DataFrame] = []
    for _name, rows in table.groupby("segment", sort=False):
        if len(rows) < 2:
            continue
        if batch and sum(map(len, batch)) + len(rows) > _MOST_ROWS:
            drawn.append(_segments(study, pd.concat(batch)))
            batch = []
        batch.append(rows)
    return [*drawn, _segments(study, pd.concat(batch))] if batch else drawn


def _segments(study: Study, table: pd.DataFrame) -> Drawing:
    title, level = study.title, study.statistics.level
    return replace(
        changes.group_changes_chart(
            table, title, level=level, corrected=groups_corrected(study, table)
        ),
        title=str(table["segment"].iloc[0]) if table["segment"].nunique() == 1 else "",
    )


# The metric by cutoff.

# In pixels: least height of the plot, height per line, height above and below the plot.
_HEIGHT, _LINE_HEIGHT, _AROUND = 250, 16, 90
# Opacity of a band, and the largest number of bands that are drawn with it; more are fainter.
_BAND, _FAINT = 0.13, 4
_EDGE = 0.45
# Two cutoffs have labels if they are at least this far apart, in powers of ten.
_APART = 0.15
_HOVER = "{value} ({low}…{high})"


def _cutoffs_alt(
    curve: pd.DataFrame, metric: str, *, names: Mapping[str, str] = style.NO_NAMES
) -> str:
    sentences = [
        _(
            "{system}: {first} at {first_k}, {last} at {last_k}.",
            system=names.get(name, name),
            first=_value(points[0], _("{value} ({low} to {high})")),
            first_k=points[0].k,
            last=_value(points[-1], _("{value} ({low} to {high})")),
            last_k=points[-1].k,
        )
        for name, points in _curves(curve).items()
    ]
    return _(
        "{metric} by the cutoff k. {curves}", metric=metric, curves=" ".join(sentences)
    ).strip()


@draw.chart(_cutoffs_alt)
def cutoffs_chart(
    ink: style.Ink,
    curve: pd.DataFrame,
    metric: str,
    baseline: str,
    *,
    k: int | None = None,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
    marks: Mapping[str, style.Mark] | None = None,
) -> go.Figure:
    """Draw a line per system with its own colour, dash and symbol and the name at its end, k on a
    log axis.

    Systems with intervals have a translucent band behind all lines, with edges in the line's dash.

    curve: columns system, k and mean; optionally low and high. metric: title without a cutoff.
    k: the chosen cutoff, which is marked. level: of the intervals. names: system → name shown.
        marks: system → mark.
    """
    curves = _curves(curve)
    marks = marks or style.marks_in_order(curves, baseline)
    ordered = sorted(curves, key=lambda system: system != baseline)
    share = min(1.0, _FAINT / max(len(curves), 1))
    bands = [band for name in ordered for band in _band(curves[name], marks[name], share)]
    lines = []
    for name in ordered:
        shown = style.short(names.get(name, name))
        label = _("{system} (baseline)", system=shown) if name == baseline else shown
        lines.append(_line(curves[name], marks[name], label))
    traces = [*bands, *lines]
    if bands:
        words = _("{level} interval of the mean", level=level_percent(level))
        traces.append(draw.key(words, "square", style.faded(ink.muted, 2 * _BAND)))
    cutoffs = sorted({point.k for points in curves.values() for point in points})
    written = [k] if k in cutoffs else []
    for each in cutoffs:
        if all(abs(math.log10(each / other)) >= _APART for other in written):
            written.append(each)
    # Most metrics end at 1; a sum of gains, such as DCG, does not.
    reach = style.reach(_ends(curves), 0.08, 0.025, -0.01, 1.0)
    ends = [
        (names.get(name, name), marks[name].colour, points[-1].mean)
        for name, points in curves.items()
        if math.isfinite(points[-1].mean)
    ]
    height = max(_HEIGHT, _LINE_HEIGHT * len(ends))
    last = math.log10(cutoffs[-1]) if cutoffs else 0.0
    labels, room = draw.end_labels(ends, (reach[0], reach[1]), height, ink, x=last)
    return style.finish(
        traces,
        ink,
        height + _AROUND,
        annotations=labels,
        margin=room,
        shapes=[draw.upright(k, ink.line, "dot", layer="below")] if k in cutoffs else [],
        hovermode="x unified",
        xaxis=style.axis(
            _("cutoff k"),
            type="log",
            tickvals=written,
            ticktext=[f"<b>{each}</b>" if each == k else str(each) for each in written],
            minor={"ticks": ""},
            range=[math.log10(cutoffs[0]) - 0.04 * last, 1.04 * last] if last else None,
        ),
        yaxis=style.axis(
            _("{metric} at k", metric=style.short(metric)),
            tickformat=".2f",
            range=reach,
            zeroline=False,
        ),
    )


class _Point(NamedTuple):
    """Mean at one cutoff. low and high are NaN without an interval."""

    k: int
    mean: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        return not (math.isnan(self.low) or math.isnan(self.high))


def _curves(curve: pd.DataFrame) -> dict[str, list[_Point]]:
    """Return system → points, both in the order of the frame."""
    missing = [math.nan] * len(curve)
    ends = (curve[end].tolist() if end in curve else missing for end in ("low", "high"))
    points = zip(curve["k"].tolist(), curve["mean"].tolist(), *ends, strict=True)
    curves: dict[str, list[_Point]] = {}
    for system, values in zip(curve["system"].tolist(), points, strict=True):
        curves.setdefault(system, []).append(_Point(*values))
    return curves


def _line(points: Sequence[_Point], mark: style.Mark, name: str) -> style.Trace:
    return draw.scatter(
        [point.k for point in points],
        [point.mean for point in points],
        name=name,
        showlegend=False,
        cliponaxis=False,
        hover=[_value(point, _HOVER) for point in points],
        hovertemplate="%{hovertext}",
        **draw.curve(mark),
    )


def _band(points: Sequence[_Point], mark: style.Mark, share: float) -> list[style.Trace]:
    """Draw the band around the points that have an interval. share: of the usual opacity."""
    there = sorted(point for point in points if point.has_interval)
    if not there:
        return []
    k, low, high = ([getattr(point, name) for point in there] for name in ("k", "low", "high"))
    edge = {"color": style.faded(mark.colour, share * _EDGE), "width": 1, "dash": mark.dash}
    return [draw.band(k, low, high, mark.colour, share * _BAND, edge)]


def _value(point: _Point, template: str) -> str:
    """Return the rounded mean, with its interval in the form of `template` if it has one."""
    value = style.number(point.mean)
    if not point.has_interval:
        return value
    return template.format(value=value, low=style.number(point.low), high=style.number(point.high))


def _ends(curves: Mapping[str, Sequence[_Point]]) -> list[float]:
    return [end for points in curves.values() for point in points for end in point[1:]]


# Split of the best possible mean: baseline, gain, remaining gain, documents that were not
# retrieved.

# Charts of more systems have no numbers below the bars: these are in the hover text and the table.
_ROW, _MOST_NUMBERED, _LOW_ROW = 78, 7, 46
_FURNITURE = 120
_BAR = 0.3
_NAME_AT, _NUMBERS_AT = -0.31, 0.3
_NAME_WIDTH, _NOTE_WIDTH = 44, 24
# Width of one number as a share of the narrowest plot (about 340 pixels).
_LABEL_SHARE = 0.135


def _headroom_alt(
    table: pd.DataFrame, metric: str, *, names: Mapping[str, str] = style.NO_NAMES
) -> str:
    titles = part_titles()
    systems = []
    for row in table.to_dict("records"):
        parts = [
            _("{part} {value}", part=titles[kind], value=_value_headroom(kind, value))
            for kind, value in _named(row)
        ]
        system = str(row["system"])
        name = names.get(system, system)
        if row["own"]:
            name = _("{system} ({note})", system=name, note=_("own list"))
        systems.append(_("{system}: {parts}.", system=name, parts=enumerated(parts)))
    return _(
        "How the best possible mean {metric} splits. {systems}",
        metric=metric,
        systems=" ".join(systems),
    ).strip()


@draw.chart(_headroom_alt)
def headroom_chart(
    ink: style.Ink, table: pd.DataFrame, metric: str, *, names: Mapping[str, str] = style.NO_NAMES
) -> go.Figure:
    """Draw a bar for each system, with its name above and its numbers below.

    The parts are the baseline's mean, the gain by reranking, the gain that a perfect reranker would
    add, and the part that no reranker can reach. If reranking lowered the mean, the baseline and
    the remaining gain overlap by the loss. This range is then drawn as three thin bars: the
    baseline above, the loss in the middle, the remaining gain below. The total length of a part's
    rectangles is its value.

    table: as returned by `study.headroom.shares`; won may be negative. The best possible order is
        over the system's own list if own is set, otherwise over the first stage's candidates.
        metric: title.
    names: system → name shown.
    """
    bars = [_split(row) for row in table.to_dict("records")]
    titles = part_titles()
    systems = [str(system) for system in table["system"]]
    traces: list[style.Trace] = []
    for kind, look in _looks(ink).items():
        pieces = [
            (row, piece)
            for row, bar in enumerate(bars)
            for piece in bar.pieces
            if piece.kind == kind
        ]
        if not pieces:
            continue
        owners = [systems[row] for row, _ in pieces]
        traces.append(
            draw.bar(
                [piece.end - piece.start for _system, piece in pieces],
                [row for row, _ in pieces],
                orientation="h",
                base=[piece.start for _system, piece in pieces],
                offset=[piece.top for _system, piece in pieces],
                width=[piece.height for _system, piece in pieces],
                name=titles[kind],
                legendrank=list(titles).index(kind) + 1,
                marker=look,
                customdata=owners,
                hover=[
                    f"{style.whole(names.get(system, system))}<br>"
                    + _(
                        "{part}: {value}",
                        part=titles[kind],
                        value=_value_headroom(kind, piece.value),
                    )
                    for system, (_kind, piece) in zip(owners, pieces, strict=True)
                ],
            )
        )
    best = max((bar.end for bar in bars), default=0.0) or 1.0
    numbered = len(bars) <= _MOST_NUMBERED
    traces += _texts(_headings(table, names), bars if numbered else [], best, ink)
    return style.finish(
        traces,
        ink,
        len(bars) * (_ROW if numbered else _LOW_ROW) + _FURNITURE,
        barmode="overlay",
        margin=style.CLEAR_OF_CAMERA,
        xaxis=style.axis(
            _("mean {metric}", metric=style.short(metric)),
            range=[0, best],
            tickformat=".2~f",
            nticks=6,
        ),
        yaxis={
            "range": [len(bars) - 0.5, -0.5],
            "showticklabels": False,
            "ticks": "",
            "zeroline": False,
            "showgrid": False,
        },
    )


@dataclass(frozen=True)
class _Piece:
    """A rectangle of a bar. top, height: in rows, measured downwards from the middle of the bar."""

    kind: str
    value: float
    start: float
    end: float
    top: float = -_BAR / 2
    height: float = _BAR


@dataclass(frozen=True)
class _Bar:
    """The rectangles of a bar. numbers: (text, middle of its part on the x axis), from left to
    right. end: right end of the bar."""

    pieces: tuple[_Piece, ...]
    numbers: tuple[tuple[str, float], ...]
    end: float


def _named(row: Mapping[Hashable, object]) -> list[tuple[str, float]]:
    """Return (kind, value) for each part of a row; a loss, stored as a negative `won`, has the kind
    "lost"."""
    values = {part: float(str(row[part])) for part in SHARES}
    lost = values["won"] < 0
    return [("lost" if lost and part == "won" else part, values[part]) for part in SHARES]


def _split(row: Mapping[Hashable, object]) -> _Bar:
    parts = _named(row)
    (_, before), (moved, won), (_, to_win), (_, retriever) = parts
    after = before + won
    ceiling = after + to_win
    perfect = ceiling + retriever
    if not math.isfinite(perfect):
        return _Bar((), ((style.number(math.nan), 0.0),), 0.0)
    lower, reached = min(before, after), max(before, after)
    pieces = [_Piece("baseline", before, 0.0, lower)]
    pieces += (
        [
            _Piece("baseline", before, lower, reached, height=_BAR / 3),
            _Piece("lost", won, lower, reached, top=-_BAR / 6, height=_BAR / 3),
        ]
        if moved == "lost"
        else [_Piece("won", won, lower, reached)]
    )
    spans = {"to_win": (after, ceiling), "retriever": (ceiling, perfect)}
    for kind, (start, end) in spans.items():
        value = dict(parts)[kind]
        # Up to the higher mean of baseline and challenger, only the lowest third of the bar is
        # free.
        pieces.append(_Piece(kind, value, start, min(end, reached), top=_BAR / 6, height=_BAR / 3))
        pieces.append(_Piece(kind, value, max(start, reached), end))
    middles = [before / 2, (before + after) / 2, *(sum(span) / 2 for span in spans.values())]
    numbers = [
        (_value_headroom(kind, value), middle)
        for (kind, value), middle in zip(parts, middles, strict=True)
        if round(value, 3)
    ]
    return _Bar(
        tuple(piece for piece in pieces if piece.end > piece.start),
        tuple(numbers),
        max(reached, ceiling, perfect),
    )


def _value_headroom(kind: str, value: float) -> str:
    return style.signed(value) if kind in ("won", "lost") else style.number(value)


def part_titles() -> dict[str, str]:
    """Return part of the best possible mean → title, in the order of the legend."""
    return {
        "baseline": _p("chart", "baseline"),
        "won": _("potential gain realised"),
        "lost": _("lost by reranking"),
        "to_win": _("potential gain left"),
        "retriever": _("not in its list"),
    }


def _looks(ink: style.Ink) -> dict[str, dict[str, object]]:
    """Return kind of rectangle → its colour and pattern: solid for values that are reached, hatched
    for all others."""
    return {
        "baseline": {"color": style.FIRST_STAGE, "line": {"width": 0}},
        "won": {"color": style.BETTER, "line": {"width": 0}},
        "to_win": draw.hatched(style.BETTER, "/", ink),
        "retriever": draw.hatched(ink.muted, "x", ink),
        "lost": draw.hatched(style.WORSE, "\\", ink),
    }


def _headings(table: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """Return the heading above each bar."""
    note = _("own list")
    headings = []
    for system, own_list in zip(table["system"], table["own"], strict=True):
        name = names.get(str(system), str(system))
        headings.append(
            f"<b>{style.short(name, _NAME_WIDTH - _NOTE_WIDTH)}</b> · {note}"
            if own_list
            else f"<b>{style.short(name, _NAME_WIDTH)}</b>"
        )
    return headings


def _texts(
    headings: Sequence[str], bars: Sequence[_Bar], best: float, ink: style.Ink
) -> list[style.Trace]:
    """Draw each heading above its bar and the numbers below it without overlap."""
    numbers = [
        (text, x, place + _NUMBERS_AT)
        for place, bar in enumerate(bars)
        for (text, _), x in zip(bar.numbers, _apart(bar.numbers, best), strict=True)
    ]
    return [
        draw.texts(
            [0.0] * len(headings),
            [place + _NAME_AT for place in range(len(headings))],
            list(headings),
            ink,
            size=style.FONT_SIZE,
        ),
        draw.texts(
            [x for _, x, _ in numbers],
            [y for *_, y in numbers],
            [text for text, *_ in numbers],
            ink,
            "middle center",
        ),
    ]


def _apart(numbers: Sequence[tuple[str, float]], best: float) -> list[float]:
    """Return x positions for the numbers below a bar, so that they do not overlap. Each is as near
    as possible to the middle of its part."""
    room = _LABEL_SHARE * best
    places: list[float] = []
    for _text, middle in numbers:
        places.append(max(middle, places[-1] + room if places else room / 2))
    limit = best - room / 2
    for place in reversed(range(len(places))):
        places[place] = min(places[place], limit)
        limit = places[place] - room
    return places
