"""One query: its ranked lists side by side."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base import i18n
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, paragraph, percent, signed
from rankdash.core.base.text import CONTROL, shortened
from rankdash.core.data.ranking import digest
from rankdash.core.study.study import Study
from rankdash.core.words.latency import milliseconds
from rankdash.core.words.queries import judged_title, outcome_words, state_words
from rankdash.core.words.verdicts import documents
from rankdash.features.queries import page_occlusion, page_reading, page_why
from rankdash.features.queries import study as queries_study
from rankdash.kit.widgets import view
from rankdash.kit.widgets.narrow import WIDE
from rankdash.kit.widgets.redraw import fold

_LONGEST_TITLE = 300
# Room smaller than this is none; a share of it would be noise.
_NO_ROOM = 1e-9


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
    page_reading.draw(study, challenger, query_id, ladder, head)

    def details() -> None:
        if bounds := _bounds(study, challenger, row):
            st.caption(bounds)
        page_why.draw(study, challenger, query_id)
        if len(ladder):
            unlisted = {each.doc_id for each in missed} - {*ladder.doc_ids}
            page_why.draw_ladder(study, ladder, len(unlisted))
            fold(
                _("Why this score?"),
                "queries.occlusion",
                ":material/ink_highlighter:",
                lambda: page_occlusion.draw_occlusion(study, challenger, ladder, query_id, query),
            )
        fold(
            _("Tags and note"),
            "queries.notes",
            ":material/sell:",
            lambda: page_why.draw_notes(study, query_id),
        )

    fold(_("Details"), "queries.details", ":material/query_stats:", details)


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
    """The ceiling, and which share of the way to it was won."""
    split = study.headroom(challenger)
    ceiling = row.get("ceiling", math.nan)
    if split is None or math.isnan(ceiling):
        return []
    if ceiling <= _NO_ROOM:
        return [_("no order of these documents scores above 0")]
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
    """Return why the query has no values that can be compared; nothing if it has."""
    metric = study.measure.title
    if row.get("reason") == "nothing_judged":
        return [(state_words()["all_unjudged"], _("nothing judged, so the value says nothing"))]
    if not math.isnan(row["delta"]):
        return []
    why = _failure(study, challenger, str(row["query_id"]))
    words = outcome_words().get(row["outcome"], row["outcome"])
    return [(words, paragraph([_("{metric}: no comparison", metric=metric), why]))]


def _trust(study: Study, row: pd.Series) -> list[tuple[str, str]]:
    """Return the share of labelled documents, the latency and the id of the query."""
    known = [percent(row["judged_before"]), percent(row["judged_after"])]
    share = _("Share of the documents shown that have a label: baseline → system")
    facts = [(f"{judged_title(study.cutoff)} {known[0]} → {known[1]}", share)]
    if not math.isnan(row["latency_ms"]):
        facts.append((milliseconds(row["latency_ms"]), _("Latency of this query")))
    if isinstance(row["text"], str) and row["text"]:
        facts.append((_("query {id}", id=shortened(str(row["query_id"]), 60)), ""))
    return facts


def _bounds(study: Study, challenger: str, row: pd.Series) -> str:
    """What the documents without a label leave open."""
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
        "with all labels complete, the change could be anywhere from {low} to {high}",
        low=signed(low),
        high=signed(high),
    )


def _failure(study: Study, challenger: str, query_id: str) -> str:
    """Why a run has no result for the query, as it reported it."""
    for system in (challenger, study.baseline):
        run = study.run(system)
        if run is None:
            continue
        rows = run.queries
        reasons = rows.loc[(rows["query_id"] == query_id) & (rows["state"] != "done"), "reason"]
        if len(reasons):
            return shortened(i18n.reason_text(str(reasons.iloc[0])), 300)
    return ""


# The list of queries and the open one: side by side where there is room, else below each other.
#
# Streamlit knows containers of a fixed height and columns that stack on a phone, but neither of
# them as a matter of the width and height of the window: that takes the few rules here, of
# containers that are named by their keys.

# What stands above of them, so that both end where a window ends.
_ABOVE = "22rem"
_SHORTEST = "28rem"
_PANES, _LIST, _QUERY = "queries.panes", "queries.pane.list", "queries.pane.query"

_STYLE_PANES = f"""<style>
.st-key-queries-panes > :has(> [class*="st-key-queries-pane-"]) {{ flex: 1 1 100%; }}
[class*="st-key-queries-pane-query-"] {{ scroll-margin-top: 4rem; }}
/* The tools of a table stand above of it. */
.st-key-queries-panes .st-key-queries-pane-list {{ overflow: visible; }}
@media screen and (min-width: {WIDE}px) {{
  .st-key-queries-panes {{ flex-wrap: nowrap; }}
  .st-key-queries-panes > :has(> [class*="st-key-queries-pane-"]),
  [class*="st-key-queries-pane-"] {{ height: max({_SHORTEST}, 100vh - {_ABOVE}) !important; }}
  .st-key-queries-panes > :has(> .st-key-queries-pane-list) {{ flex: 0 0 300px; }}
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


def draw_panes(query_id: str, height: int) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Where the list and the query go. height: of the list, in pixels, in a narrow window.

    The place of each query is a new one, so that it begins at its top.
    """
    st.html(_STYLE_PANES)
    panes = st.container(key=_PANES, horizontal=True)
    rows = panes.container(key=_LIST, height=height, border=False)
    return rows, panes.container(key=f"{_QUERY}.{_name(query_id)}")


def show_panes(query_id: str) -> None:
    """Bring the heading of the query into view where a click elsewhere, a link or a key opened it.
    Belongs at the end of its place."""
    if st.session_state.get(view.LANDING) == query_id:
        # Nothing of the data is in it.
        st.html(_SHOW.format(name=_name(query_id)), unsafe_allow_javascript=True)


def _name(query_id: str) -> str:
    return digest([query_id.encode("utf-8", "surrogatepass")])[:16]
