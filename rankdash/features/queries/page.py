"""The list of queries, and the open query: its ranked lists side by side."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base import i18n
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, paragraph, percent, signed
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import CONTROL, shortened
from rankdash.core.study.study import Study
from rankdash.core.words.latency import milliseconds
from rankdash.core.words.queries import judged_title, outcome_words, state_words
from rankdash.core.words.verdicts import documents
from rankdash.features.queries import (
    page_filters,
    page_list,
    page_occlusion,
    page_reading,
    page_why,
)
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.filters import Filters
from rankdash.features.queries.page_list import Rows
from rankdash.features.queries.study import Listing
from rankdash.kit.widgets import address, pickers, sharing_link, view
from rankdash.kit.widgets.redraw import fold

_LONGEST_TITLE = 300
# A smaller potential gain counts as none; a share of it would be noise.
_NO_ROOM = 1e-9


@st.fragment
def draw_queries(study: Study) -> None:
    """Draw the system, the filters, the list and the open query."""
    study = view.again(study)
    st.html(page_list.STYLE)
    page_reading.send_script()
    with st.container(horizontal=True, key="queries.above"):
        challenger = view.in_focus(study)
        listing = queries_study.listing(study, challenger)
        page_filters.tally(study, listing)
    titles = page_list.titles(study.name(study.baseline), study.name(challenger))
    others = {system: study.name(system) for system in queries_study.others(study, challenger)}
    tags = page_why.tags(page_why.marks(study))
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", key="queries.toolbar"
    ):
        chosen = page_filters.draw(listing, tags, judged_title(study.cutoff), titles, others)
        place = st.container(
            horizontal=True, vertical_alignment="center", gap="xsmall", key="queries.steps"
        )
    _draw_list(study, challenger, *chosen, page_filters.tags_in(tags), place)


@st.fragment
def _draw_list(
    study: Study,
    challenger: str,
    filters: Filters,
    order: str,
    tags: set[str],
    place: DeltaGenerator,
) -> None:
    """Draw the list and the open query. Opening the next query does not redraw the filters.

    tags: the tags that the filters offer. place: the container of the buttons Previous and Next.
    """
    study = view.again(study)
    marks = page_why.marks(study)
    if page_filters.tags_in(page_why.tags(marks)) != tags:
        st.rerun()
    rows, opened = page_list.opened(
        lambda also: page_list.rows(study, challenger, filters, order, marks, also),
        (challenger, filters, order),
    )
    if opened is not None:
        listing = queries_study.listing(study, challenger)
        with place:
            page_list.steps(rows, opened)
            page_list.files(study, challenger, rows, marks, opened)
        left, right = page_list.panes()
        page_list.show_window(rows, opened)
        with left:
            _draw_window(rows, listing, marks, order)
        with right:
            draw(study, challenger, listing.row(opened))
            page_list.follow(rows, opened)
    address.publish()
    sharing_link.follow()
    pickers.mark_sent()


@st.fragment
def _draw_window(rows: Rows, listing: Listing, marks: pd.DataFrame, order: str) -> None:
    """Draw the list. Scrolling redraws nothing else."""
    page_list.draw(rows, listing, marks, order)


def draw(study: Study, challenger: str, row: pd.Series) -> None:
    """Draw the open query. row: its row of the list."""
    query_id, query = str(row["query_id"]), row["text"] if isinstance(row["text"], str) else ""
    ladder = queries_study.ladder_of(study, challenger, query_id)
    missed = queries_study.missed(study, challenger, query_id, ladder)
    chips = page_why.chips(study, challenger, query_id, missed)
    head = {
        "title": CONTROL.sub("", shortened(query or query_id, _LONGEST_TITLE)),
        "values": _values(study, challenger, row),
        "chips": [*chips, *_state(study, challenger, row), *_trust(study, row)],
    }
    page_reading.draw(study, challenger, query_id, ladder, missed, head)

    def details() -> None:
        fold(
            _("Tags and note"),
            "queries.notes",
            ":material/sell:",
            lambda: page_why.draw_notes(study, query_id),
        )
        if bounds := _bounds(study, challenger, row):
            st.caption(bounds)
        page_why.draw(study, challenger, query_id)
        if len(ladder):
            page_why.draw_ladder(study, ladder)
            fold(
                _("Why this score?"),
                "queries.occlusion",
                ":material/ink_highlighter:",
                lambda: page_occlusion.draw_occlusion(study, challenger, ladder, query_id, query),
            )

    fold(_p("heading", "Details"), "queries.details", ":material/query_stats:", details)


def _values(study: Study, challenger: str, row: pd.Series) -> dict[str, Any] | None:
    """Return the values of both systems, and their places on an axis from 0 to the highest value;
    None if they cannot be compared."""
    if math.isnan(row["delta"]) or row.get("reason") == "nothing_judged":
        return None
    highest = queries_study.listing(study, challenger).highest or 1.0
    values = (row["before"], row["after"], row.get("ceiling", math.nan))
    before, after, best = (min(max(value / highest, 0.0), 1.0) for value in values)
    outcome = row["outcome"]
    change = f"{signed(row['delta'])} {outcome_words()[outcome]}"
    title = f"{study.measure.title} {number(row['before'])} → {number(row['after'])}"
    return {
        "text": f"{title} · {change}",
        "hint": " · ".join(_headroom(study, challenger, row)),
        "before": before,
        "after": after,
        "best": None if math.isnan(best) else best,
        "better": {"helped": 1, "hurt": -1}.get(outcome, 0),
    }


def _headroom(study: Study, challenger: str, row: pd.Series) -> list[str]:
    """Return the best possible value, and the share of the potential gain that was realised."""
    split = study.headroom(challenger)
    ceiling = row.get("ceiling", math.nan)
    if split is None or math.isnan(ceiling):
        return []
    if ceiling <= _NO_ROOM:
        return [_("these documents score 0 in any order")]
    parts = [_("best possible {ceiling}", ceiling=number(ceiling))]
    if split.own:
        parts = [_("{fact} ({of})", fact=parts[0], of=documents(split.own))]
    room = ceiling - row["before"]
    if room < -_NO_ROOM:
        parts.append(_("the baseline is better than any order of these documents"))
    elif room <= _NO_ROOM:
        parts.append(_("the baseline is already the best possible"))
    elif row["delta"] >= 0:
        parts.append(
            _("{share} of the potential gain realised", share=percent(row["delta"] / room))
        )
    else:
        parts.append(_("potential gain {room}, none realised", room=number(room)))
    return parts


def _state(study: Study, challenger: str, row: pd.Series) -> list[tuple[str, str]]:
    """Return (state, reason) if the query's values cannot be compared; else nothing."""
    metric = study.measure.title
    if row.get("reason") == "nothing_judged":
        return [(state_words()["all_unjudged"], _("unlabelled, so the value is meaningless"))]
    if not math.isnan(row["delta"]):
        return []
    why = _failure(study, challenger, str(row["query_id"]))
    words = outcome_words().get(row["outcome"], row["outcome"])
    return [(words, paragraph([_("{metric}: no comparison", metric=metric), why]))]


def _trust(study: Study, row: pd.Series) -> list[tuple[str, str]]:
    """Return facts to judge the result by: share of labelled documents, latency, and the query's
    id."""
    shares = [percent(row["judged_before"]), percent(row["judged_after"])]
    share = _("Share of displayed documents with a label: baseline → system")
    facts = [(f"{judged_title(study.cutoff)} {shares[0]} → {shares[1]}", share)]
    if not math.isnan(row["latency_ms"]):
        facts.append((milliseconds(row["latency_ms"]), _("Latency of this query")))
    if isinstance(row["text"], str) and row["text"]:
        facts.append((_("query {id}", id=shortened(str(row["query_id"]), 60)), ""))
    return facts


def _bounds(study: Study, challenger: str, row: pd.Series) -> str:
    """Return the range of the change under any labels for the unlabelled documents, or ""."""
    whole = row["judged_before"] == 1 and row["judged_after"] == 1
    if whole or math.isnan(row["delta"]):
        return ""
    interval = queries_study.bounds(study, challenger).get(str(row["query_id"]))
    if interval is None:
        return ""
    low, high = interval
    if high - low <= _NO_ROOM:
        return ""
    return _(
        "With complete labels, the change would lie between {low} and {high}.",
        low=signed(low),
        high=signed(high),
    )


def _failure(study: Study, challenger: str, query_id: str) -> str:
    """Return the recorded reason why a run has no result for the query, or ""."""
    for system in (challenger, study.baseline):
        run = study.run(system)
        if run is None:
            continue
        rows = run.queries
        reasons = rows.loc[(rows["query_id"] == query_id) & (rows["state"] != "done"), "reason"]
        if len(reasons):
            return shortened(i18n.reason_text(str(reasons.iloc[0])), 300)
    return ""
