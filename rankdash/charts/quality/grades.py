"""How many pairs carry each label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from rankdash.charts import style

_HEIGHT = 220


@dataclass(frozen=True)
class Labels(style.Labels):
    x: str = "label"
    y: str = "pairs"
    alt: str = "How many pairs carry each label: {bars}."


def figure(
    bars: Sequence[tuple[str, int]], ink: style.Ink, labels: Labels | None = None
) -> go.Figure:
    """A bar for each label or range of labels, lowest first, its count above.

    bars: (label, count).
    """
    labels = labels or Labels()
    chart = go.Figure()
    chart.add_bar(
        x=[label for label, _ in bars],
        y=[count for _, count in bars],
        text=[f"{count:,}" for _, count in bars],
        textposition="outside",
        cliponaxis=False,
        marker={"color": style.BETTER},
        hoverinfo="skip",
    )
    return style.finish(
        chart,
        ink,
        _HEIGHT,
        {
            # Room for the count above the highest bar.
            "margin": {"t": 24},
            "showlegend": False,
            "bargap": 0.4,
            "xaxis": {"title": {"text": labels.x}, "type": "category"},
            "yaxis": {"title": {"text": labels.y}, "rangemode": "tozero", "nticks": 4},
        },
    )


def alt(bars: Sequence[tuple[str, int]], labels: Labels | None = None) -> str:
    """What the chart says, in words."""
    labels = labels or Labels()
    return labels.alt.format(bars=", ".join(f"{label}: {count:,}" for label, count in bars))
