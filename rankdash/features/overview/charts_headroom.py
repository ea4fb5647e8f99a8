"""Where quality is lost: what each system won, what it left, what the retriever never found."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import enumerated
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.headroom import SHARES
from rankdash.kit.drawing import draw, style

_ROW = 78
_FURNITURE = 120
_BAR = 0.3
_NAME_AT, _NUMBERS_AT = -0.31, 0.3
_NAME_WIDTH, _NOTE_WIDTH = 44, 24
# What one number takes of the narrowest plot, about 340 pixels wide.
_LABEL_SHARE = 0.135


def figure(
    table: pd.DataFrame, metric: str, ink: style.Ink, *, names: Mapping[str, str] = style.NO_NAMES
) -> go.Figure:
    """A bar for each system, its name above and its numbers below: the baseline's mean, what was
    won, what a perfect reranker would still win, and what no reranker can. Where reranking did
    harm, the baseline and what is to be won overlap by the loss: there the bar is split in three,
    the baseline above, what is to be won below, and the loss between them. The rectangles of each
    part are together as long as its number says.

    table: as from `study.headroom.shares`; won may be negative. The best possible order
    is the one of the documents that are named beside the system: its own list, or else the first
    stage's candidates. metric: its title.
    names: system → the name shown.
    """
    bars = [_split(row) for row in table.to_dict("records")]
    titles = part_titles()
    systems = [str(system) for system in table["system"]]
    traces: list[style.Trace] = []
    for kind, look in _looks(ink).items():
        found = [
            (row, piece)
            for row, bar in enumerate(bars)
            for piece in bar.pieces
            if piece.kind == kind
        ]
        if not found:
            continue
        owners = [systems[row] for row, _ in found]
        traces.append(
            draw.bar(
                [piece.end - piece.start for _system, piece in found],
                [row for row, _ in found],
                orientation="h",
                base=[piece.start for _system, piece in found],
                offset=[piece.top for _system, piece in found],
                width=[piece.height for _system, piece in found],
                name=titles[kind],
                legendrank=list(titles).index(kind) + 1,
                marker=look,
                customdata=owners,
                hover=[
                    f"{style.whole(names.get(system, system))}<br>"
                    + _("{part}: {value}", part=titles[kind], value=_value(kind, piece.value))
                    for system, (_kind, piece) in zip(owners, found, strict=True)
                ],
            )
        )
    best = max((bar.end for bar in bars), default=0.0) or 1.0
    traces += _texts(_headings(table, names), bars, best, ink)
    return style.finish(
        traces,
        ink,
        len(bars) * _ROW + _FURNITURE,
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


def alt(table: pd.DataFrame, metric: str, *, names: Mapping[str, str] = style.NO_NAMES) -> str:
    """What the chart says, in words."""
    titles = part_titles()
    systems = []
    for row in table.to_dict("records"):
        parts = [
            _("{part} {value}", part=titles[kind], value=_value(kind, value))
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


@dataclass(frozen=True)
class _Piece:
    """One rectangle: top and height in rows from the bar's middle, downwards."""

    kind: str
    value: float
    start: float
    end: float
    top: float = -_BAR / 2
    height: float = _BAR


@dataclass(frozen=True)
class _Bar:
    """pieces: what to draw. numbers: (text, the middle of what it stands for), left to right.
    end: where the bar ends."""

    pieces: tuple[_Piece, ...]
    numbers: tuple[tuple[str, float], ...]
    end: float


def _named(row: Mapping[Hashable, object]) -> list[tuple[str, float]]:
    """(kind, value) of the parts of a row; a negative `won` is the kind "lost"."""
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
    kept, reached = min(before, after), max(before, after)
    pieces = [_Piece("baseline", before, 0.0, kept)]
    pieces += (
        [
            _Piece("baseline", before, kept, reached, height=_BAR / 3),
            _Piece("lost", won, kept, reached, top=-_BAR / 6, height=_BAR / 3),
        ]
        if moved == "lost"
        else [_Piece("won", won, kept, reached)]
    )
    spans = {"to_win": (after, ceiling), "retriever": (ceiling, perfect)}
    for kind, (start, end) in spans.items():
        value = dict(parts)[kind]
        # Up to what baseline or challenger reached, only the lowest third of the bar is free.
        pieces.append(_Piece(kind, value, start, min(end, reached), top=_BAR / 6, height=_BAR / 3))
        pieces.append(_Piece(kind, value, max(start, reached), end))
    middles = [before / 2, (before + after) / 2, *(sum(span) / 2 for span in spans.values())]
    numbers = [
        (_value(kind, value), middle)
        for (kind, value), middle in zip(parts, middles, strict=True)
        if round(value, 3)
    ]
    return _Bar(
        tuple(piece for piece in pieces if piece.end > piece.start),
        tuple(numbers),
        max(reached, ceiling, perfect),
    )


def _value(kind: str, value: float) -> str:
    return style.signed(value) if kind in ("won", "lost") else style.number(value)


def part_titles() -> dict[str, str]:
    """Part of the best possible mean → its words, in the order of the legend."""
    return {
        "baseline": _("baseline"),
        "won": _("potential gain realised"),
        "lost": _("lost by reranking"),
        "to_win": _("potential gain left"),
        "retriever": _("not in its list"),
    }


def _looks(ink: style.Ink) -> dict[str, dict[str, object]]:
    """Kind of piece → colour and pattern. What was reached is solid, what was not is hatched on
    the background."""
    return {
        "baseline": {"color": style.FIRST_STAGE, "line": {"width": 0}},
        "won": {"color": style.BETTER, "line": {"width": 0}},
        "to_win": draw.hatched(style.BETTER, "/", ink),
        "retriever": draw.hatched(ink.muted, "x", ink),
        "lost": draw.hatched(style.WORSE, "\\", ink),
    }


def _headings(table: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """What stands above each bar."""
    note = _("own list")
    headings = []
    for system, own in zip(table["system"], table["own"], strict=True):
        name = names.get(str(system), str(system))
        headings.append(
            f"<b>{style.short(name, _NAME_WIDTH - _NOTE_WIDTH)}</b> · {note}"
            if own
            else f"<b>{style.short(name, _NAME_WIDTH)}</b>"
        )
    return headings


def _texts(
    headings: Sequence[str], bars: Sequence[_Bar], best: float, ink: style.Ink
) -> list[style.Trace]:
    """Each heading above its bar and the numbers below it, apart from each other."""
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
    """Where to write the numbers: as near to their middles as leaves each its own room."""
    room = _LABEL_SHARE * best
    places: list[float] = []
    for _text, middle in numbers:
        places.append(max(middle, places[-1] + room if places else room / 2))
    limit = best - room / 2
    for place in reversed(range(len(places))):
        places[place] = min(places[place], limit)
        limit = places[place] - room
    return places
