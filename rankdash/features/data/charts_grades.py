"""How many pairs carry each label."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.kit.drawing import draw, style

_HEIGHT = 220


def figure(bars: Sequence[tuple[str, int]], ink: style.Ink) -> go.Figure:
    """A bar for each label or range of labels, lowest first, its count above.

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
        xaxis=style.axis(_("label"), type="category"),
        yaxis=style.axis(_("pairs"), rangemode="tozero", nticks=4),
    )


def alt(bars: Sequence[tuple[str, int]]) -> str:
    """What the chart says, in words."""
    return _(
        "How many pairs carry each label: {bars}.",
        bars=", ".join(f"{label}: {count:,}" for label, count in bars),
    )
