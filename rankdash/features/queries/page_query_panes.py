"""The list of queries and the open one: side by side where there is room, else below each other.

Streamlit knows containers of a fixed height and columns that stack on a phone, but neither of them
as a matter of the width and height of the window: that takes the few rules here, of containers that
are named by their keys.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.data.ranking import digest
from rankdash.kit.widgets import view
from rankdash.kit.widgets.narrow import WIDE

# What stands above of them, so that both end where a window ends.
_ABOVE = "22rem"
_SHORTEST = "28rem"
_PANES, _LIST, _QUERY = "queries.panes", "queries.pane.list", "queries.pane.query"

_STYLE = f"""<style>
.st-key-queries-panes > :has(> [class*="st-key-queries-pane-"]) {{ flex: 1 1 100%; }}
[class*="st-key-queries-pane-query-"] {{ scroll-margin-top: 4rem; }}
/* The tools of a table stand above of it. */
.st-key-queries-panes .st-key-queries-pane-list {{ overflow: visible; }}
@media screen and (min-width: {WIDE}px) {{
  .st-key-queries-panes {{ flex-wrap: nowrap; }}
  .st-key-queries-panes > :has(> [class*="st-key-queries-pane-"]),
  [class*="st-key-queries-pane-"] {{ height: max({_SHORTEST}, 100vh - {_ABOVE}) !important; }}
  .st-key-queries-panes > :has(> .st-key-queries-pane-list) {{ flex: 0 0 52%; }}
  .st-key-queries-panes > :has(> [class*="st-key-queries-pane-query-"]) {{ flex: 1 1 0; min-width: 0; }}
  [class*="st-key-queries-pane-query-"] {{ flex-wrap: nowrap; overflow-y: auto; padding-right: 0.5rem; }}
}}
</style>"""  # noqa: E501

# Only where the query is out of sight, and not once a person scrolls. What stands above of it may
# get its height a moment later.
_SHOW = """<script>(() => {{ // {name}
  let scrolled = false;
  addEventListener("wheel", () => {{ scrolled = true; }}, {{ once: true, passive: true }});
  const show = () => {{
    const pane = document.querySelector(".st-key-queries-pane-query-{name}");
    const top = pane?.getBoundingClientRect().top ?? 0;
    if (!scrolled && (top < 0 || top > innerHeight * 0.6)) pane?.scrollIntoView();
  }};
  for (const wait of [0, 400, 1000]) setTimeout(show, wait);
}})();</script>"""


def draw(query_id: str, height: int) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Where the list and the query go. height: of the list, in pixels, in a narrow window.

    The place of each query is a new one, so that it begins at its top.
    """
    st.html(_STYLE)
    panes = st.container(key=_PANES, horizontal=True)
    rows = panes.container(key=_LIST, height=height, border=False)
    return rows, panes.container(key=f"{_QUERY}.{_name(query_id)}")


def show(query_id: str) -> None:
    """Bring the heading of the query into view where a click elsewhere, a link or a key opened it.
    Belongs at the end of its place."""
    if st.session_state.get(view.LANDING) == query_id:
        # Nothing of the data is in it.
        st.html(_SHOW.format(name=_name(query_id)), unsafe_allow_javascript=True)


def _name(query_id: str) -> str:
    return digest([query_id.encode("utf-8", "surrogatepass")])[:16]
