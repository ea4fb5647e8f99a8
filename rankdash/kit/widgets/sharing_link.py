"""A link to the current view, and a warning about unavailable things that a link requests."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import STATISTICS_SETTINGS
from rankdash.core.metrics import CONVENTION_SETTINGS
from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.kit.widgets import address, view
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import markdown_safe

# The visible link; none while the page is being drawn, or if it is folded.
_DRAWN = "sharing.drawn"
_LONGEST = 80
_MOST_NAMED = 5


@dataclass(frozen=True)
class Places:
    """The places of the link, if it is unfolded, and of the warning."""

    link: DeltaGenerator | None
    lost: DeltaGenerator


def begin() -> Places:
    """Draw the link at the foot of the sidebar, and the warning for the sidebar's choices. Call it
    before the page, which may end early."""
    with (
        st.sidebar,
        st.expander(
            _("Link to this view"), icon=":material/link:", key="sharing.link", on_change="rerun"
        ) as opened,
    ):
        place = None
        if opened.open:
            place = st.empty()
            st.caption(
                _(
                    "This link opens the current view, including the scenario of Cost & ROI. It "
                    "works only for this workspace: for a colleague elsewhere, export the "
                    "workspace on the page Data."
                )
            )
    places = Places(place, st.empty())
    finish(places)
    # The page may still change the link.
    st.session_state.pop(_DRAWN, None)
    return places


def follow() -> None:
    """Update the visible link at the end of a fragment that changes the address."""
    drawn = st.session_state.get(_DRAWN)
    if drawn is not None and drawn != link():
        st.rerun()


def finish(places: Places) -> None:
    """Update the link and the warning after the page, which may change the address."""
    address.publish()
    if places.link is not None:
        st.session_state[_DRAWN] = link()
        places.link.code(st.session_state[_DRAWN], language=None, wrap_lines=True)
    if address.lost():
        with places.lost.container():
            _warn_unavailable()
    else:
        places.lost.empty()


def link() -> str:
    """Return the whole address of the current choices."""
    current = urlsplit(st.context.url or "")
    query = urlencode(address.whole(), doseq=True)
    # Most programs do not recognise a host directly followed by a question mark as a link.
    return current._replace(path=current.path or "/", query=query, fragment="").geturl()


def _warn_unavailable() -> None:
    lost = address.lost()
    if "data" in lost:
        st.warning(_lost_data(), icon=":material/link_off:")
        view.link("data", _("Go to Data"), ":material/database:")
    named = {
        name: value
        for name, value in lost.items()
        if name != "data" and not ("data" in lost and name in address.OF_A_DATA_SET)
    }
    if named:
        st.warning(_lost_others(named), icon=":material/link_off:")


def _lost_data() -> str:
    chosen = address.one("data")
    names = {row.id: row.name for row in workspace().datasets()}
    if chosen not in names:
        return _(
            "The link refers to a data set, but this workspace is empty. Import the workspace "
            "file of the data set on the page Data."
        )
    return _(
        "The link refers to a data set that is not in this workspace; {name} is shown instead. "
        "Import the workspace file of the data set on the page Data.",
        name=markdown_safe(names[chosen], 60),
    )


def _lost_others(named: dict[str, str]) -> str:
    parts = [
        f"{title(name)} “{markdown_safe(value, _LONGEST)}”"
        for name, value in list(named.items())[:_MOST_NAMED]
    ]
    if len(named) > _MOST_NAMED:
        parts.append("…")
    return _(
        "Some values in this link are not available here; defaults are shown for: {what}.",
        what=" · ".join(parts),
    )


def title(name: str) -> str:
    """Return the title of a field of the address."""
    words = {
        "data": _("Data set"),
        "base": _p("field", "Baseline"),
        "system": _("Systems to compare"),
        "vs": _("Systems to compare"),
        "metric": _p("field", "Metric"),
        "k": _("Cutoff k"),
        "q": _p("field", "query"),
        "sort": _p("field", "Order"),
        "outcome": _p("field", "Outcome"),
        "reason": _p("field", "Reason"),
        "fault": _p("field", "Fault"),
        "segment": _("Kind of query"),
        "state": _p("field", "State"),
        "tag": _p("field", "Tag"),
        "text": _("Text or id"),
        "before": _("Metric value of the baseline"),
        "after": _("Metric value of the challenger"),
        "values": _("Metric value of the challenger"),
        "delta": _p("field", "Change"),
        "share": _("Minimum {metric} in both systems", metric=_p("field", "Judged")),
        "docs": _p("field", "Documents"),
        "follow": _("Follow one document"),
        "left": _("System on the left"),
        "right": _("System on the right"),
        "doc": _("Document, by rank"),
        "leave": _("Removed one at a time"),
        "documents": _("Documents counted"),
        "target": _("Target: 95% of queries within"),
        "against": _("X axis"),
        "rules": _("Rules of thumb from tutorials"),
        "reader": _p("field", "System"),
        "labels": _("Labels used"),
        "judge": _p("field", "Judge"),
        "judge_shown": _p("field", "Judge"),
        "runs": _p("field", "Runs"),
        "line": _("Compared runs"),
        "price": _p("field", "Prices"),
        "also": _p("field", "Prices"),
        "currency": _p("field", "Currency"),
        "into": _p("field", "Currency"),
        "rate": _("Exchange rate"),
        "thousand": _("Price of 1,000 searches"),
        "machines": _("Machines billed per hour"),
        "example": _("Example values"),
        "quality_before": _p("field", "Metric"),
        "quality_after": _p("field", "Metric"),
        "per": _("Amounts per"),
        "part": _p("field", "Show"),
        "section": _p("field", "Show"),
        "policy_depth": _("Documents that the policy reranks"),
        "policy_skip": _("Skip these queries in the policy"),
        "deadline": _("Deadline, ms"),
        "floor_alpha": _("Accepted share of answerable queries that lose all relevant documents"),
        "fused": _("Systems to fuse"),
        "weights": _("Use these weights in the policy"),
        "across": _("X axis"),
        "upward": _("Y axis"),
        "trade": _p("field", "Trade-off"),
        "latency": _p("field", "Latency"),
        "margin": _("Margin of the first stage"),
        "loss": _("Acceptable loss, as a share of the mean"),
        "cell": _("Documents from one band of ranks to another"),
        "row": _p("field", "System"),
        "profile": _p("field", "Profile"),
        "lang": _p("field", "Language"),
        **{
            each.name: _p("setting", each.title)
            for each in (*ASSUMPTIONS, *CONVENTION_SETTINGS, *STATISTICS_SETTINGS)
        },
    }
    return words.get(name, markdown_safe(name, 40))
