"""What the result hangs on most: how far it swings when one assumption changes, the rest fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.kit.drawing import draw, style

_ROW = 50
_TOP = 96
# Of a line of a name, in columns of text.
_NAME_WIDTH = 28


@dataclass(frozen=True)
class Row:
    """One assumption. net_low, net_high: the net value at its lower and its upper value, which
    `low` and `high` say in words."""

    name: str
    net_low: float
    net_high: float
    low: str
    high: str


def figure(
    rows: Sequence[Row],
    net: float,
    ink: style.Ink,
    *,
    period: str = "a month",
    money: Callable[[float], str] = str,
) -> go.Figure:
    """One row an assumption, the widest swing on top; a bar to either side of what it is now.

    rows: the widest first. net: what it is now. period: what amounts are for. money: an
    amount in words.
    Better is solid and right of the line, worse is hatched and left of it.
    """
    upward = list(reversed(rows))
    titles = [style.whole(row.name, _NAME_WIDTH) for row in upward]
    # At the ends of the bars the values would run into the titles.
    ticks = [
        f"{title}<br>{style.short(row.low, 14)} … {style.short(row.high, 14)}"
        for title, row in zip(titles, upward, strict=True)
    ]
    traces: list[style.Trace] = []
    for better in (True, False):
        spans = [_span(row, net, better) for row in upward]
        traces.append(
            draw.bar(
                [end - net for end, _ in spans],
                list(range(len(upward))),
                orientation="h",
                base=net,
                name=_("better than now") if better else _("worse than now"),
                marker=draw.solid(style.BETTER, ink)
                if better
                else draw.solid(style.WORSE, ink, "/"),
                hover=[
                    _(
                        "{name} = {value}: {net}",
                        name=title,
                        value=style.short(said, 40),
                        net=style.short(money(end), 40),
                    )
                    for title, (end, said) in zip(titles, spans, strict=True)
                ],
            )
        )
    reach = [net, 0.0, *(end for row in rows for end in (row.net_low, row.net_high))]
    room = 0.05 * (max(reach) - min(reach) or 1.0)
    return style.finish(
        traces,
        ink,
        _TOP + _ROW * len(rows),
        barmode="overlay",
        bargap=0.35,
        shapes=[draw.upright(0.0, ink.line, "dot"), draw.upright(net, ink.line, "solid")],
        annotations=[
            draw.note(
                net,
                1,
                _("now: {net}", net=style.short(money(net), 40)),
                ink.text,
                yref="paper",
                yanchor="bottom",
            )
        ],
        margin={"t": 62},
        xaxis=style.axis(
            _("net value {period}", period=style.short(period)),
            range=[min(reach) - room, max(reach) + room],
            showgrid=True,
            tickformat=style.ticks(max(map(abs, reach))),
        ),
        yaxis=style.row_labels(ink, tickvals=list(range(len(upward))), ticktext=ticks),
    )


def alt(
    rows: Sequence[Row], net: float, *, period: str = "a month", money: Callable[[float], str] = str
) -> str:
    """What the chart says, in words."""
    sentences = [
        _(
            "{name} from {low} to {high}: {net_low} to {net_high}.",
            name=row.name,
            low=row.low,
            high=row.high,
            net_low=money(row.net_low),
            net_high=money(row.net_high),
        )
        for row in rows
    ]
    return _(
        "Net value {period}, now {net}, when one assumption changes. {swings}",
        period=period,
        net=money(net),
        swings=" ".join(sentences),
    ).strip()


def _span(row: Row, net: float, better: bool) -> tuple[float, str]:
    """(the net at the end on this side, the assumption's value there); `net` where neither end is
    on this side."""
    ends = [(row.net_low, row.low), (row.net_high, row.high)]
    own = [(end, said) for end, said in ends if (end > net if better else end < net)]
    if not own:
        return net, ""
    return max(own) if better else min(own)
