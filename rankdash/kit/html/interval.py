"""HTML for Streamlit and reports: an estimate as a dot on its interval, and counts as a stacked
bar."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rankdash.core.base.text import html_safe
from rankdash.kit.drawing import style

Ends = tuple[float, float]
"""The ends of an axis."""

_HEIGHT, _RADIUS = 16, 5
_MIDDLE = _HEIGHT // 2
# A printed page has no backgrounds, so every mark is a border.
_PLACED = "position:absolute;box-sizing:border-box;"
# An outline for colours that are too pale on some backgrounds.
_EDGE = "outline:1px solid color-mix(in srgb, currentColor 55%, transparent);outline-offset:-1px"


def common_axis(values: Iterable[float], zero: float = 0.0) -> Ends:
    """Return the ends of an axis that shows all finite values and zero, with room on both sides."""
    low, high = style.reach([*values, zero], 0.06, 1e-9)
    return low, high


def share(value: float, axis: Ends) -> float:
    """Return the position of a value on an axis, from 0 to 1; values beyond an end are at the
    end."""
    return min(max((value - axis[0]) / (axis[1] - axis[0]), 0.0), 1.0)


def colour_of(change: float, *, proven: bool) -> str:
    """Return the colour of a change: better, worse, or grey if it is not proven."""
    if not proven:
        return style.FIRST_STAGE
    return style.BETTER if change > 0 else style.WORSE


def interval_html(
    value: float,
    low: float,
    high: float,
    axis: Ends,
    words: str,
    *,
    proven: bool,
    zero: float | None = 0.0,
    threshold: float | None = None,
    labelled: bool = False,
    colour: str = "",
    width: str = "100%",
) -> str:
    """Return a dot at value and a line from low to high; NaN values are omitted.

    axis: of all compared rows (`common_axis`). words: the description, for screen readers and the
        tooltip.
    proven: whether the dot is filled. zero: the position of the grey line; None for no line.
    threshold: the position of a dashed line, if the user set one. labelled: whether a small 0 is
        above the grey line.
    colour: by default `colour_of` the distance from zero. width: of the picture, in CSS.
    """
    colour = colour or colour_of(value - (zero or 0.0), proven=proven)
    parts = [
        f'<span style="{_PLACED}left:0;right:0;top:{_MIDDLE - 1}px;border-top:1px solid '
        f'{style.faded(style.FIRST_STAGE, 0.4)}"></span>'
    ]
    parts += [
        _line(place, axis, look)
        for place, look in ((zero, "solid"), (threshold, "dashed"))
        if place is not None and math.isfinite(place)
    ]
    if labelled and zero is not None:
        parts.append(
            f'<span style="{_PLACED}left:{100 * share(zero, axis):.2f}%;bottom:{_HEIGHT - 1}px;'
            f'transform:translateX(-50%);font-size:0.7rem;line-height:1">{zero:g}</span>'
        )
    if math.isfinite(value):
        parts += _marks(value, low, high, axis, colour, hollow=not proven)
    text = html_safe(words)
    return (
        f'<span role="img" aria-label="{text}" title="{text}" style="position:relative;'
        f"display:inline-block;vertical-align:middle;height:{_HEIGHT}px;width:{width}"
        f'">{"".join(parts)}</span>'
    )


def _line(value: float, axis: Ends, look: str) -> str:
    left = f"left:{100 * share(value, axis):.2f}%"
    return (
        f'<span style="{_PLACED}{left};top:0;height:100%;border-left:1px {look} '
        f'{style.FIRST_STAGE}"></span>'
    )


def _marks(
    value: float, low: float, high: float, axis: Ends, colour: str, *, hollow: bool
) -> list[str]:
    at = 100 * share(value, axis)
    marks = []
    if math.isfinite(low) and math.isfinite(high):
        start, end = 100 * share(low, axis), 100 * share(high, axis)
        # The inside of a hollow dot is transparent on any background.
        clear = _RADIUS if hollow else 0
        for left, right in (
            (f"{start:.2f}%", f"calc({100 - at:.2f}% + {clear}px)"),
            (f"calc({at:.2f}% + {clear}px)", f"{100 - end:.2f}%"),
        ):
            marks.append(
                f'<span style="{_PLACED}left:{left};right:{right};top:{_MIDDLE - 1}px;'
                f'border-top:2px solid {colour}"></span>'
            )
    border = 2 if hollow else _RADIUS
    marks.append(
        f'<span style="{_PLACED}left:calc({at:.2f}% - {_RADIUS}px);top:{_MIDDLE - _RADIUS}px;'
        f"width:{2 * _RADIUS}px;height:{2 * _RADIUS}px;border:{border}px solid {colour};"
        f'border-radius:50%"></span>'
    )
    return marks


_CELLS = ("2 1 13rem", "2 1 10rem", "1 1 17rem;font-size:0.9rem")


def rows_html(rows: Iterable[tuple[str, str, str]]) -> str:
    """Return a line for each (title, picture, numbers): the pictures share one axis.

    title and numbers: texts. picture: from `interval_html`, as wide as possible.
    """
    lines = []
    for title, picture, numbers in rows:
        cells = (f"<b>{html_safe(title)}</b>", picture, html_safe(numbers))
        shown = "".join(
            f'<span style="flex:{flex};min-width:0;overflow-wrap:anywhere">{cell}</span>'
            for cell, flex in zip(cells, _CELLS, strict=True)
        )
        lines.append(
            '<div style="display:flex;flex-wrap:wrap;align-items:center;gap:0 1rem;'
            f'margin:0.4rem 0">{shown}</div>'
        )
    return "".join(lines)


def stacked_html(parts: Sequence[tuple[float, str]], words: str, *, width: str = "100%") -> str:
    """Return a bar of adjacent parts.

    parts: (count, colour) from left to right. words: the description, for screen readers and the
        tooltip. width: of the bar, in CSS.
    """
    text = html_safe(words)
    shown = "".join(
        f'<span style="flex:{count:g} 0 2px;border-top:10px solid {colour};{_EDGE}"></span>'
        for count, colour in parts
        if count
    )
    return (
        f'<span role="img" aria-label="{text}" title="{text}" style="display:inline-flex;gap:1px;'
        f'vertical-align:middle;width:{width}">{shown}</span>'
    )


def tally_html(helped: int, same: int, hurt: int, words: str, *, width: str = "100%") -> str:
    """Return the bar of the queries that a system helped, did not change, and hurt."""
    colours = (style.BETTER, style.faded(style.FIRST_STAGE, 0.5), style.WORSE)
    return stacked_html(list(zip((helped, same, hurt), colours, strict=True)), words, width=width)


SHADES = tuple(
    f"color-mix(in srgb, currentColor {share}%, transparent)" for share in (80, 50, 28, 12)
)
"""Shades for parts of one quantity, on any background."""


def parts_html(parts: Sequence[tuple[float, str]], words: str, *, width: str = "100%") -> str:
    """Return a bar of up to four parts in shades, the darkest first, with a legend.

    parts: (count, title), without empty ones; a part without a title belongs to the previous one.
    words, width: as for `stacked_html`.
    """
    shaded = [(n, colour, text) for (n, text), colour in zip(parts, SHADES, strict=False) if n]
    square = (
        f"display:inline-block;width:0.7rem;margin-right:0.4rem;{_EDGE};border-top:0.7rem solid"
    )
    key = "".join(
        f'<span style="display:inline-block;margin-right:1.2rem"><span style="{square} {colour}">'
        f"</span>{html_safe(text)}</span> "
        for _count, colour, text in shaded
        if text
    )
    bar = stacked_html([(count, colour) for count, colour, _text in shaded], words, width=width)
    return f'{bar}<div style="font-size:0.875rem;margin-top:0.3rem">{key}</div>'
