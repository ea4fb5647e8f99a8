"""Charts on a page: the colours of the theme, the toolbar, the width."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from rankdash.core.words.verdicts import chip
from rankdash.kit.drawing.draw import Drawing
from rankdash.kit.drawing.style import INKS, Ink
from rankdash.kit.html.tables import file_name

_CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}


def ink() -> Ink:
    return INKS["dark" if st.context.theme.type == "dark" else "light"]


def show(figure: Any, *, alt: str, key: str, on_select: Any = "ignore") -> Any:
    """Draw a figure in its own colours, without Streamlit's chart theme. Its camera button saves it
    as SVG, created by the browser."""
    return st.plotly_chart(
        figure,
        theme=None,
        # Plotly adds the ending itself.
        config={
            **_CONFIG,
            "toImageButtonOptions": {
                "format": "svg",
                "filename": file_name("", key, "svg").removesuffix(".svg"),
            },
        },
        key=key,
        alt=alt,
        on_select=on_select,
        selection_mode="points",
    )


def drawn(drawing: Drawing) -> tuple[Any, str]:
    """Return the figure in the ink of the theme, and its alternative text, for `show` from a
    cache."""
    return drawing.draw(ink()), drawing.alt


def draw(drawing: Drawing, *, key: str, on_select: Any = "ignore") -> Any:
    """Show a chart with its alternative text."""
    figure, alt = drawn(drawing)
    return show(figure, alt=alt, key=key, on_select=on_select)


# Verdicts as badges: the word and the icon are clear without the colour.

Colour = Literal["blue", "orange", "gray"]
Look = tuple[str, Colour]

_UNKNOWN: Look = (":material/block:", "gray")
_VERDICTS: dict[str, Look] = {
    "better": (":material/trending_up:", "blue"),
    "small": (":material/north_east:", "blue"),
    "equal": (":material/equal:", "gray"),
    "unproven": (":material/help:", "gray"),
    "worse": (":material/trending_down:", "orange"),
    "identical": (":material/drag_handle:", "gray"),
}


def verdict(kind: str) -> None:
    """Draw a badge that shows whether a system is better."""
    icon, colour = _VERDICTS.get(kind, _UNKNOWN)
    st.badge(chip(kind), icon=icon, color=colour)
