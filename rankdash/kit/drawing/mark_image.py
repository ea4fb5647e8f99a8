"""The mark of a system as a small picture, for tables and texts beside the charts."""

from __future__ import annotations

import math
from urllib.parse import quote

from rankdash.kit.drawing.style import Mark

_SIDE = 16
_RADIUS = 6.0
_LINE = 2.0
# Points of plotly's symbols on a unit circle or square, y downward.
_CROSS = ((-1, -0.35), (-0.35, -0.35), (-0.35, -1), (0.35, -1), (0.35, -0.35), (1, -0.35))
_POLYGONS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    "diamond": ((0, -1.1), (1.1, 0), (0, 1.1), (-1.1, 0)),
    "triangle-up": ((0, -1), (1, 0.8), (-1, 0.8)),
    "cross": (*_CROSS, *((-x, -y) for x, y in _CROSS)),
    "hexagon": tuple(
        (math.sin(turn * math.pi / 3), -math.cos(turn * math.pi / 3)) for turn in range(6)
    ),
    "star": tuple(
        (reach * math.sin(turn * math.pi / 5), -reach * math.cos(turn * math.pi / 5))
        for turn in range(10)
        for reach in [1.15 if turn % 2 == 0 else 0.5]
    ),
}


def mark_image(mark: Mark) -> str:
    """The address of an SVG picture of 16 × 16 pixels, the picture itself inside."""
    shape, hollow, dotted = mark.symbol, "-open" in mark.symbol, mark.symbol.endswith("-dot")
    shape = shape.removesuffix("-dot").removesuffix("-open")
    inside = "none" if hollow else mark.colour
    look = f"fill='{inside}' stroke='{mark.colour}' stroke-width='{_LINE if hollow else 0}'"
    middle = _SIDE / 2
    drawn = f"<circle cx='{middle}' cy='{middle}' r='{_RADIUS}' {look}/>"
    if shape != "circle":
        turned = f" transform='rotate(45 {middle} {middle})'" if shape == "x" else ""
        corners = " ".join(
            f"{middle + _RADIUS * x:.2f},{middle + _RADIUS * y:.2f}"
            for x, y in _POLYGONS["cross" if shape == "x" else shape]
        )
        drawn = f"<polygon points='{corners}'{turned} {look}/>"
    if dotted:
        drawn += f"<circle cx='{middle}' cy='{middle}' r='1.5' fill='{mark.colour}'/>"
    size = f"width='{_SIDE}' height='{_SIDE}' viewBox='0 0 {_SIDE} {_SIDE}'"
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{drawn}</svg>"
    return f"data:image/svg+xml,{quote(svg)}"
