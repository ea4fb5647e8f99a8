"""The frame around every page, which runs first at each rerun, and then runs the requested page."""

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from rankdash.app import sidebar
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.shipped import ASSETS
from rankdash.core.workspace.workspace import names_of
from rankdash.features.data import page_damaged
from rankdash.kit.widgets import (
    address,
    language,
    narrow,
    pickers,
    redraw,
    sharing_link,
    uploader,
    view,
)
from rankdash.kit.widgets.stored import workspace

# Before the pages: the browser would fetch a page's own icon from a font service; this file is
# served locally.
st.set_page_config(page_title="rankdash", page_icon=ASSETS / "logo.svg", layout="wide")
pickers.restore()
sidebar.choose_language()


def page_of(name: str, title: str, icon: str) -> st.Page:
    # The page that opens first is at "/", whatever its name.
    is_first = name == "overview"
    path = "start" if is_first else name
    return st.Page(view.page(name), title=title, icon=icon, url_path=path, default=is_first)


# In the order of work.
menu = {
    _p("heading", "Prepare"): [
        page_of("data", _p("page", "Data"), ":material/database:"),
        page_of("run", _p("page", "Run"), ":material/play_circle:"),
        page_of("label", _p("page", "Label"), ":material/label:"),
        page_of("judge", _p("page", "Judge"), ":material/smart_toy:"),
    ],
    _p("heading", "Evaluate"): [
        page_of("overview", _p("page", "Overview"), ":material/monitoring:"),
        page_of("queries", _p("page", "Queries"), ":material/manage_search:"),
        page_of("rank_shifts", _("Rank shifts"), ":material/swap_vert:"),
        page_of("latency", _p("page", "Latency"), ":material/timer:"),
    ],
    _p("heading", "Decide"): [
        page_of("cost", _("Cost & ROI"), ":material/payments:"),
        page_of("policy", _p("page", "Policy"), ":material/rule_settings:"),
        page_of("report", _p("page", "Report"), ":material/description:"),
        page_of("history", _p("page", "History"), ":material/history:"),
    ],
}
pages = [page for group in menu.values() for page in group]


def named_overview() -> None:
    """Open the first page for a visitor who types its name."""
    view.go("overview")


page = st.navigation(
    [*pages, st.Page(named_overview, title=_p("page", "Overview"), url_path="overview")],
    position="hidden",
)
st.set_page_config(page_title=f"{page.title} · rankdash")
st.logo(ASSETS / "logo_wide.svg", icon_image=ASSETS / "logo.svg")
narrow.style()
uploader.begin_page()
place = st.sidebar.container(gap="xxsmall")
without_numbers = ("run", "data", "label")
analysis = page.url_path not in without_numbers
with workspace().database.held_open():
    before = names_of(workspace())
    if redraw.renamed(before):
        language.other_words()
    gone = sidebar.draw_sidebar(analysis=analysis)
    redraw.shows(address.one("data"), before)
    links = sidebar.draw_menu(place, menu)
    page_damaged.draw_repair()
    if gone is None:
        # The page that opens first has no name in its address.
        view.settle_focus(page.url_path or "overview")
    link = sharing_link.begin()
    try:
        # A click on a page of a deleted data set must not act on another one.
        if gone is None or not page_damaged.deleted_dataset(gone):
            damaged = page_damaged.dataset()
            if not damaged:
                page_damaged.runs()
            if analysis and not damaged:
                page_damaged.deleted_runs()
            # On Data, a damaged data set can be added again or deleted.
            if not damaged or page.url_path == "data":
                page.run()
    except StopException:
        # An empty state: nothing more will be drawn, so the page is complete.
        pickers.mark_sent()
        uploader.end_page()
        raise
    sharing_link.finish(link)
    # Again, with the choices of the page.
    sidebar.update_menu(links, pages)
    pickers.mark_sent()
    uploader.end_page()
