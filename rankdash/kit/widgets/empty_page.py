"""A page that has nothing to show yet: what is missing, what it will show, and one button."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.kit.widgets.server import read_only

_ICONS = {"data": ":material/database:", "run": ":material/play_circle:"}


def draw(page: str, title: str, why: str, label: str, target: str = "") -> bool:
    """Whether the button was clicked. Nothing can be added to a workspace that is read-only, so
    there is no button then.

    page: the name of its file. target: the page that the button opens, for its icon.
    """
    with st.container(border=True):
        st.subheader(title, anchor=False)
        st.write(why)
        preview(page)
        if target and read_only():
            st.caption(_("This workspace is read-only: nothing can be added to it here."))
            return False
        return st.button(label, type="primary", icon=_ICONS.get(target), key="empty_page.next")


def preview(page: str) -> None:
    """What a page shows once it has something to show."""
    lines = [f"- :gray[{icon}] {text}" for icon, text in _parts().get(page, ())]
    if lines:
        st.markdown("\n".join([_("This page will show:"), "", *lines]))


def _parts() -> dict[str, tuple[tuple[str, str], ...]]:
    """Page → icon and words of each of its parts."""
    return {
        "data": (
            (
                ":material/fact_check:",
                _("the check report: counts, labels, rows that were refused"),
            ),
            (":material/database:", _("all data sets, to open, rename, export or delete")),
        ),
        "run": (
            (":material/model_training:", _("the rerankers and their settings")),
            (":material/schedule:", _("an estimate of time and cost before a run starts")),
            (":material/list:", _("the progress, and all runs")),
        ),
        "label": (
            (":material/label:", _("one document at a time, to be labelled with a key")),
            (":material/balance:", _("which ranking is better, and whether that is settled")),
        ),
        "judge": (
            (":material/smart_toy:", _("a language model that grades documents, and its cost")),
            (":material/handshake:", _("how far it agrees with people, and which way it errs")),
            (":material/balance:", _("the verdict by the judge, by people, and by both together")),
        ),
        "overview": (
            (":material/gavel:", _("the verdict: which system is better, and how sure that is")),
            (":material/leaderboard:", _("all systems side by side: quality, latency and cost")),
            (":material/bar_chart:", _("the queries that improved and those that got worse")),
        ),
        "queries": (
            (":material/list:", _("every query with its score before and after reranking")),
            (":material/filter_alt:", _("filters by kind of query, reason and change")),
            (":material/manage_search:", _("for one query: which documents moved, and why")),
        ),
        "rank_shifts": (
            (":material/grid_on:", _("from which ranks to which ranks documents moved")),
            (":material/handshake:", _("how far the systems agree")),
            (":material/fast_forward:", _("for which queries reranking can be skipped")),
        ),
        "latency": (
            (":material/timer:", _("the latency of a query: p50, p95 and p99")),
            (":material/speed:", _("throughput at several concurrent queries")),
            (":material/trending_up:", _("what latency grows with: documents and tokens")),
        ),
        "cost": (
            (":material/payments:", _("what 1,000 searches cost with each system")),
            (":material/balance:", _("net value and break-even")),
            (":material/tune:", _("which assumption changes the result most")),
        ),
        "report": (
            (":material/description:", _("the report: one HTML file that opens without a network")),
            (":material/download:", _("the numbers as CSV, JSON, Markdown, LaTeX and TREC runs")),
        ),
        "history": (
            (":material/show_chart:", _("the metric of every run over time")),
            (":material/push_pin:", _("notes on runs, and the pinned baseline")),
            (":material/compare_arrows:", _("two runs compared: settings and queries")),
        ),
    }
