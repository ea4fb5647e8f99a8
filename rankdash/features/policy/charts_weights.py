"""The gain of tuned fusion weights: on the queries they were tuned on, and held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import level_percent
from rankdash.core.base.rules import LEVEL
from rankdash.features.policy.weights import Gain
from rankdash.kit.drawing import draw, style

_HEIGHT, _LEAST_ROOM = 260, 0.01


class _Row(NamedTuple):
    name: str
    gain: Gain
    in_sample: bool


def _rows(gains: Sequence[Gain], single: str) -> Sequence[_Row]:
    in_sample, held_out, over_single = gains
    return (
        _Row(_("On the queries it was tuned on, over equal RRF"), in_sample, True),
        _Row(_("Held out, over equal RRF"), held_out, False),
        _Row(_("Held out, over {system}", system=style.short(single)), over_single, False),
    )


def _gains_alt(gains: Sequence[Gain], metric: str, single: str, *, level: float = LEVEL) -> str:
    sentences = [
        _(
            "{name}: {change} ({level} interval {interval}{mark}).",
            name=row.name,
            change=style.signed(row.gain.change),
            level=level_percent(level),
            interval=draw.span(row.gain.low, row.gain.high) or "–",
            mark=_(", proven") if row.gain.proven else "",
        )
        for row in _rows(gains, single)
    ]
    return _(
        "Mean change in {metric} by tuned fusion weights. {rows}",
        metric=metric,
        rows=" ".join(sentences),
    )


@draw.chart(_gains_alt)
def gains_chart(
    ink: style.Ink,
    gains: Sequence[Gain],
    spread: tuple[float, float],
    metric: str,
    single: str,
    *,
    level: float = LEVEL,
) -> go.Figure:
    """Draw a row for each gain: its mean and interval, hollow if it is not proven or in-sample; for
    the held-out gain also the middle 90 % of the splits, as a wide line.

    gains: in-sample, held out, and held out over the best single system. spread: of the splits.
        metric: its title. single: the name of the best single system.
    """
    rows = _rows(gains, single)
    traces = [
        draw.scatter(
            spread,
            [1, 1],
            "lines",
            name=_("middle 90% of the splits"),
            line={"color": style.faded(style.FIRST_STAGE, 0.6), "width": 14},
        )
    ]
    for place, row in enumerate(rows):
        gain, colour = row.gain, ink.muted
        if gain.proven and not row.in_sample:
            colour = style.BETTER if gain.change > 0 else style.WORSE
        solid = gain.proven and not row.in_sample
        words = _("{level} interval {interval}", level=level_percent(level),
                  interval=draw.span(gain.low, gain.high) or "–")  # fmt: skip
        traces += draw.whiskers([gain.low], [gain.high], [place], colour)
        traces.append(
            draw.scatter(
                [gain.change],
                [place],
                "markers",
                marker=draw.marker(colour, "circle" if solid else "circle-open", 11),
                hover=[
                    _("{part}: {value}", part=row.name, value=style.signed(gain.change))
                    + f"<br>{words}"
                ],
            )
        )
    traces += [
        draw.key(_("{level} interval", level=level_percent(level)), "line-ew", ink.text),
        draw.key(_("in-sample, or not proven"), "circle-open", ink.muted),
        *(
            [draw.key(_("{mark} held out, and proven", mark=draw.MARK), "circle", ink.text)]
            if any(row.gain.proven and not row.in_sample for row in rows)
            else []
        ),
        draw.scatter([None], [None], "markers", yaxis="y2"),
    ]
    scale = style.row_labels(ink, range=[len(rows) - 0.4, -0.6], tickvals=list(range(len(rows))))
    changes = [draw.changed(row.gain.change, row.gain.proven and not row.in_sample) for row in rows]
    ends = [end for row in rows for end in (row.gain.low, row.gain.change, row.gain.high)]
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        shapes=[draw.upright(0, ink.line, "solid", width=2, layer="below")],
        yaxis={**scale, "ticktext": [row.name for row in rows]},
        yaxis2={**scale, "ticktext": changes, "side": "right", "overlaying": "y"},
        xaxis=style.axis(
            _("mean change in {metric}", metric=style.short(metric, 16)),
            range=style.reach([0.0, *ends, *spread], 0.06, _LEAST_ROOM),
            tickformat=".2~f",
            nticks=6,
            showgrid=True,
        ),
    )
