"""How far each two systems agree: Kendall's τ and rank-biased overlap, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import LEVEL
from rankdash.kit.drawing import draw, intervals, style

_ROW = 74
_FURNITURE = 120
_NAME_WIDTH = 22
_TAU_AT, _RBO_AT, _NAME_AT = 0.02, 0.3, -0.3
_ROOM = 0.24


def figure(
    table: pd.DataFrame,
    ink: style.Ink,
    *,
    p: float,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """A row for each two systems, their names above, a circle for τ and a diamond below it for the
    overlap, each with its whisker and its number.

    table: as from `agreement.pairwise`. p: of the overlap. level: of the intervals.
    names: system → the name shown.
    """
    rows = table.to_dict("records")
    traces: list[style.Trace] = []
    for name, title, symbol, colour, at in (
        ("tau", _("Kendall's τ, whole lists"), "circle", style.BETTER, _TAU_AT),
        (
            "rbo",
            _("overlap at the top (RBO, p = {p:g})", p=p),
            "diamond-open",
            style.SYSTEMS[1],
            _RBO_AT,
        ),
    ):
        values = [float(row[name]) for row in rows]
        ends = [[float(row[f"{name}_{end}"]) for row in rows] for end in ("low", "high")]
        places = [place + at for place in range(len(rows))]
        traces += intervals.whiskers(ends[0], ends[1], places, colour)
        traces.append(
            draw.scatter(
                values,
                places,
                "markers",
                name=title,
                marker=draw.marker(colour, symbol, 11),
                hover=[_hover(row, name, title, names) for row in rows],
            )
        )
        traces.append(
            draw.texts(
                [
                    max(value, high) if math.isfinite(high) else value
                    for value, high in zip(values, ends[1], strict=True)
                ],
                places,
                [f"\u00a0\u00a0\u00a0\u00a0{style.number(value, 2)}" for value in values],
                ink,
            )
        )
    low = min([0.0, *(float(row[end]) for row in rows for end in ("tau_low", "tau"))], key=_finite)
    left = low - 0.03
    traces.append(
        draw.texts(
            [left] * len(rows),
            [place + _NAME_AT for place in range(len(rows))],
            [_names(row, names) for row in rows],
            ink,
            size=style.FONT_SIZE,
        )
    )
    if any(math.isfinite(float(row["tau_low"])) for row in rows):
        traces.append(
            intervals.key(_("{level:g}% interval", level=100 * level), "line-ew", ink.text)
        )
    return style.finish(
        traces,
        ink,
        len(rows) * _ROW + _FURNITURE,
        margin=style.CLEAR_OF_CAMERA,
        xaxis=style.axis(
            _("agreement: 1 is the same order"),
            range=[left, 1 + _ROOM],
            tickvals=[tick / 4 for tick in range(-4, 5) if tick / 4 >= left],
            tickformat=".2~f",
            showgrid=True,
            zeroline=True,
        ),
        yaxis={
            "range": [len(rows) - 0.5, -0.6],
            "showticklabels": False,
            "ticks": "",
            "showgrid": False,
            "zeroline": False,
        },
    )


def alt(table: pd.DataFrame, *, names: Mapping[str, str] = style.NO_NAMES) -> str:
    """What the chart says, in words."""
    pairs = [
        _(
            "{one} and {other}: τ {tau}, RBO {rbo}, {queries}.",
            one=names.get(row["one"], row["one"]),
            other=names.get(row["other"], row["other"]),
            tau=style.number(row["tau"], 2),
            rbo=style.number(row["rbo"], 2),
            queries=style.queries(row["n"]),
        )
        for row in table.to_dict("records")
    ]
    return _("Agreement of each two systems. {pairs}", pairs=" ".join(pairs)).strip()


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def _names(row: Mapping[Hashable, object], names: Mapping[str, str]) -> str:
    one, other = (str(row[side]) for side in ("one", "other"))
    shown = (style.short(names.get(each, each), _NAME_WIDTH) for each in (one, other))
    return "<b>" + " – ".join(shown) + "</b>"


def _whole(row: Mapping[Hashable, object], names: Mapping[str, str]) -> str:
    pair = (str(row[side]) for side in ("one", "other"))
    return "<br>– ".join(style.whole(names.get(each, each)) for each in pair)


def _hover(row: Mapping[Hashable, object], name: str, title: str, names: Mapping[str, str]) -> str:
    value, low, high = (float(str(row[each])) for each in (name, f"{name}_low", f"{name}_high"))
    span = intervals.span(low, high)
    number = style.number(value)
    return f"{_whole(row, names)}<br>{title}: {number}" + (f" ({span})" if span else "")
