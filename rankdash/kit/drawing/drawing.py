"""Charts before they have an ink, with what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import plotly.graph_objects as go

from rankdash.kit.drawing import style
from rankdash.kit.drawing.style import Ink


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart in the ink of a light and of a dark page. alt: what it says, in words."""

    light: go.Figure
    dark: go.Figure
    alt: str


@dataclass(frozen=True)
class Drawing:
    """A chart before it has an ink. alt: what it says, in words. title: what it is about, where it
    does not say so itself."""

    draw: Callable[[Ink], go.Figure]
    alt: str
    title: str = ""

    def in_both_inks(self) -> Chart:
        light, dark = (self.draw(style.INKS[name]) for name in ("light", "dark"))
        return Chart(light, dark, self.alt)
