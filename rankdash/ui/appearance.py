"""How charts meet the page: the ink of the theme, the mode bar, the width."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rankdash.charts.style import INKS, Ink

_CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}


def ink() -> Ink:
    return INKS["dark" if st.context.theme.type == "dark" else "light"]


def show(figure: Any, *, alt: str, key: str, on_select: Any = "ignore") -> Any:
    """Draw a figure as it was made: Streamlit's own chart theme would recolour it."""
    return st.plotly_chart(
        figure,
        theme=None,
        config=_CONFIG,
        key=key,
        alt=alt,
        on_select=on_select,
        selection_mode="points",
    )
