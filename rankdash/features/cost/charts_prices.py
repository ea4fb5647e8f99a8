"""Cost of 1,000 searches by document length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.kit.drawing import draw, style

_HEIGHT = 340
_NAME = 80


def _crossover_alt(
    lengths: Sequence[float],
    costs: Mapping[str, Sequence[float]],
    mean_length: float,
    *,
    names: Mapping[str, str] = style.NO_NAMES,
    money: Callable[[float], str] = str,
) -> str:
    place = list(lengths).index(mean_length)
    sentences = [
        _(
            "{name}: {low} at {first} tokens, {high} at {last}, {own} at your mean length.",
            name=names.get(key, key),
            low=money(cost[0]),
            first=f"{lengths[0]:,.0f}",
            high=money(cost[-1]),
            last=f"{lengths[-1]:,.0f}",
            own=money(cost[place]),
        )
        for key, cost in costs.items()
    ]
    return _(
        "Cost of 1,000 searches by document length. {prices}",
        prices=" ".join(sentences),
    ).strip()


@draw.chart(_crossover_alt)
def crossover_chart(
    ink: style.Ink,
    lengths: Sequence[float],
    costs: Mapping[str, Sequence[float]],
    mean_length: float,
    *,
    names: Mapping[str, str] = style.NO_NAMES,
    money: Callable[[float], str] = str,
) -> go.Figure:
    """Draw one line for each price, distinguished by colour, dash, and symbol at the mean length.

    lengths: (L,) tokens of a document, ascending, including `mean_length`. costs: price → (L,) cost
        of 1,000 searches. mean_length: mean length of the user's documents.
    """
    marks = style.marks_in_order(costs)
    place = list(lengths).index(mean_length)
    traces: list[style.Trace] = []
    for key, cost in costs.items():
        mark = marks[key]
        name = style.short(names.get(key, key), _NAME)
        line = {"color": mark.colour, "dash": mark.dash, "width": 2}
        traces.append(
            draw.scatter(
                list(lengths),
                list(cost),
                "lines+markers",
                name=name,
                line=line,
                marker={
                    "symbol": mark.symbol,
                    "color": mark.colour,
                    "size": [11 if each == place else 0 for each in range(len(lengths))],
                    "opacity": 1,
                },
                hover=[
                    _(
                        "{part}: {value}",
                        part=style.whole(names.get(key, key)),
                        value=style.short(money(each), 40),
                    )
                    for each in cost
                ],
            )
        )
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        hovermode="x unified",
        shapes=[draw.upright(mean_length, ink.line, "dot")],
        annotations=[
            draw.note(
                mean_length,
                1,
                _("your documents: {n}", n=f"{mean_length:,.0f}"),
                ink.muted,
                yref="paper",
                xanchor="left",
                yanchor="top",
                xshift=6,
            )
        ],
        xaxis=style.axis(_("tokens per document"), tickformat="~s"),
        yaxis=style.axis(_("cost of 1,000 searches"), rangemode="tozero", tickformat=",.2~f"),
    )
