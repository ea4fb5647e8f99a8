"""Times on a log axis: where the ticks stand, and the line of a target."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rankdash.core.base.i18n import brief
from rankdash.kit.drawing import style

_FASTEST = 1e-3
_DECADES_WITH_STEPS = 2.6


def reach(values: Iterable[float], room: float) -> tuple[float, float]:
    """The ends of a log axis that holds all values, as powers of ten. room: on either side, as a
    share of what lies between them."""
    powers = [math.log10(max(value, _FASTEST)) for value in values if math.isfinite(value)]
    low, high = min(powers, default=0.0), max(powers, default=1.0)
    more = max((high - low) * room, 0.12)
    return low - more, high + more


def log_axis(ends: tuple[float, float], *, short: bool = False) -> dict[str, Any]:
    """The layout of an axis from one power of ten to the other, ticks at 1, 2 and 5 of each power,
    or where there are many powers for its length at those alone. short: as a part of a chart."""
    low, high = ends
    most = _DECADES_WITH_STEPS / (2 if short else 1)
    steps = (1, 2, 5) if high - low < most else (1,)
    ticks = [
        step * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for step in steps
        if low <= math.log10(step * 10.0**power) <= high
    ]
    return {
        "type": "log",
        "range": [low, high],
        "tickvals": ticks,
        "ticktext": [brief(tick) for tick in ticks],
        "showgrid": True,
        "zeroline": False,
    }


def target_line(target_ms: float, ink: style.Ink, axis: str = "x") -> dict[str, object]:
    """A dashed line across the chart at a time on the axis "x", "y", "y2" …"""
    other = "x" if axis.startswith("y") else "y"
    along, across = axis[0], other
    return {
        "type": "line",
        f"{along}ref": axis,
        f"{along}0": target_ms,
        f"{along}1": target_ms,
        f"{across}ref": "paper",
        f"{across}0": 0,
        f"{across}1": 1,
        "layer": "below",
        "line": {"color": ink.muted, "width": 1.5, "dash": "dash"},
    }
