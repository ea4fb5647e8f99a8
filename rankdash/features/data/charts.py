"""The chart of the labels of a data set."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from rankdash.core.base.i18n import enumerated, plain
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.readers.checks.check import CheckReport
from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import Drawing


def grades(report: CheckReport) -> Drawing:
    """Draw the number of query–document pairs with each label."""
    bars = [
        (
            plain(bar.low) if bar.low == bar.high else f"{plain(bar.low)}…{plain(bar.high)}",
            bar.count,
        )
        for bar in report.label_histogram
    ]
    return grades_chart(bars)


# The number of pairs with each label.

_HEIGHT = 220


def _grades_alt(bars: Sequence[tuple[str, int]]) -> str:
    return _(
        "How many pairs carry each label: {bars}.",
        bars=enumerated(
            _("{part}: {value}", part=label, value=f"{count:,}") for label, count in bars
        ),
    )


@draw.chart(_grades_alt)
def grades_chart(ink: style.Ink, bars: Sequence[tuple[str, int]]) -> go.Figure:
    """Draw a bar for each label or range of labels, lowest first, with its count above.

    bars: (label, count).
    """
    return style.finish(
        [
            draw.bar(
                [label for label, _ in bars],
                [count for _, count in bars],
                text=[f"{count:,}" for _, count in bars],
                textposition="outside",
                cliponaxis=False,
                marker={"color": style.BETTER},
            )
        ],
        ink,
        _HEIGHT,
        # Room for the count above the highest bar.
        margin={"t": 24},
        bargap=0.4,
        xaxis=style.axis(_p("chart", "label"), type="category"),
        yaxis=style.axis(_p("chart", "pairs"), rangemode="tozero", nticks=4),
    )
