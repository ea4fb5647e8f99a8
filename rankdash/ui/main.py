"""The frame around every page: runs first at each rerun, then the page that was asked for."""

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from rankdash.i18n import gettext as _
from rankdash.shipped import ASSETS
from rankdash.ui.sidebar import repair_view, sharing_link, sidebar, view
from rankdash.ui.state import pickers

# A named icon would be fetched from a font service; this file is served from here.
st.set_page_config(page_title="rankdash", page_icon=ASSETS / "logo.svg", layout="wide")
st.logo(ASSETS / "logo_wide.svg", icon_image=ASSETS / "logo.svg")
pickers.restore()
sidebar.choose_language()
pages = [
    st.Page(
        view.page(name),
        title=title,
        icon=icon,
        # The first page stands at "/", whatever its name.
        url_path="start" if first else name,
        default=first,
    )
    for name, title, icon, first in (
        ("overview", _("Overview"), ":material/monitoring:", True),
        ("queries", _("Queries"), ":material/manage_search:", False),
        ("rank_shifts", _("Rank shifts"), ":material/swap_vert:", False),
        ("latency", _("Latency"), ":material/timer:", False),
        ("cost", _("Cost & ROI"), ":material/payments:", False),
        ("report", _("Report"), ":material/description:", False),
        ("history", _("History"), ":material/history:", False),
        ("run", _("Run"), ":material/play_circle:", False),
        ("data", _("Data"), ":material/database:", False),
    )
]


def named_overview() -> None:
    """Who types the name of the first page gets there too."""
    view.go("overview")


page = st.navigation(
    [*pages, st.Page(named_overview, title=_("Overview"), url_path="overview")], position="hidden"
)
place = st.sidebar.container(gap="xxsmall")
without_numbers = ("run", "data")
sidebar.draw_sidebar(analysis=page.url_path not in without_numbers)
links = sidebar.draw_menu([place] * len(pages), pages)
repair_view.draw()
link = sharing_link.begin()
try:
    page.run()
except StopException:
    # An empty state: nothing more is to come, and what was drawn is all there is.
    pickers.shown()
    raise
sharing_link.finish(link)
# Once more, with what the page has chosen.
sidebar.draw_menu(links, pages)
pickers.shown()
