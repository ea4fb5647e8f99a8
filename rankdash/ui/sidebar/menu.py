"""The pages, as links that carry what is chosen.

The navigation that Streamlit draws leads to a bare page, which then writes its own address: going
back takes two steps or more, and a page opened in another tab has forgotten everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.ui.state import address


def draw(places: Sequence[DeltaGenerator], pages: Sequence[st.Page]) -> list[DeltaGenerator]:
    """One link a page, each in its place; returns the links.

    The places may be the links that were drawn before, which then stay where they are: a link that
    is taken away and comes back misses a click.
    """
    carried = address.offered()
    return [
        place.page_link(page, query_params=carried, width="stretch")
        for place, page in zip(places, pages, strict=True)
    ]
