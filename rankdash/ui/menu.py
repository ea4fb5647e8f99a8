"""The pages, as links that carry what is chosen.

The navigation that Streamlit draws leads to a bare page, which then writes its own address: going
back takes two steps or more, and a page opened in another tab has forgotten everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.ui import address


def draw(place: DeltaGenerator, pages: Sequence[st.Page]) -> list[DeltaGenerator]:
    """One link a page, in their order; returns the links."""
    return [_link(place, page) for page in pages]


def again(links: Sequence[DeltaGenerator], pages: Sequence[st.Page]) -> None:
    """The same links with what has been chosen since. Each is put in the place of the old one,
    which stays where it is: a link that was taken away and came back would miss a click."""
    for link, page in zip(links, pages, strict=True):
        _link(link, page)


def _link(place: DeltaGenerator, page: st.Page) -> DeltaGenerator:
    return place.page_link(page, query_params=address.offered(), width="stretch")
