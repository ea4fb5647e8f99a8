"""How an interval and its significance are drawn, wherever a chart has them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rankdash.core.base.i18n import gettext as _
from rankdash.kit.drawing import draw, style

MARK = "*"
"""Written beside a proven change, in bold: read without colour, and by a screen reader."""

_CAP = 9
_WIDTH = 1.75
_LAST = 2000
_LEAST_P = 0.0001


def p_limit(corrected: bool) -> str:
    """The words of a key for what is significant. corrected: whether p allows for the other
    comparisons."""
    return _("corrected p ≤ {p:g}") if corrected else _("p ≤ {p:g}")


def p_text(corrected: bool, p: str) -> str:
    """A p in a hover label."""
    return _("corrected p {p}", p=p) if corrected else _("p {p}", p=p)


def changed(delta: float, is_proven: bool) -> str:
    """A change as it is written in a chart."""
    text = style.signed(delta)
    return f"<b>{text}\u00a0{MARK}</b>" if is_proven else text


def span(low: float, high: float) -> str:
    """An interval of changes for the eye; "" where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{style.signed(low)}…{style.signed(high)}"


def chance(p: float) -> str:
    """A p value for a hover label, never with an exponent; "" where there is none."""
    if not math.isfinite(p):
        return ""
    return f"{p:.2g}" if p >= _LEAST_P else f"&lt;{_LEAST_P:.4f}"


def whiskers(
    low: Sequence[float], high: Sequence[float], row: Sequence[float], colour: str
) -> list[style.Trace]:
    """A thin horizontal line with caps from low to high in each row, as one trace; none where
    either is NaN, and no trace where none is left."""
    x: list[float] = []
    y: list[float] = []
    for start, end, place in zip(low, high, row, strict=True):
        if math.isfinite(start) and math.isfinite(end):
            x += (start, end, math.nan)
            y += (place, place, math.nan)
    if not x:
        return []
    return [
        draw.scatter(
            x,
            y,
            "lines+markers",
            line={"color": colour, "width": _WIDTH},
            marker={
                "symbol": "line-ns",
                "size": _CAP,
                "opacity": 1,
                "line": {"color": colour, "width": _WIDTH},
            },
            cliponaxis=False,
        )
    ]


def key(name: str, symbol: str, colour: str) -> style.Trace:
    """A last line of the legend, that stands for no one mark."""
    return draw.scatter(
        [None],
        [None],
        "markers",
        name=name,
        legendrank=_LAST,
        marker=draw.marker(colour, symbol, 10, width=_WIDTH),
    )


def keys(interval: str, significant: str, level: float, colour: str) -> list[style.Trace]:
    """The lines of the legend that say what a whisker and the star are. interval and significant:
    templates with {level} in percent, and {p}."""
    return [
        key(interval.format(level=100 * level), "line-ew", colour),
        key(significant.format(p=round(1 - level, 6)), "asterisk-open", colour),
    ]
