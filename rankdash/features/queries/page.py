"""One query: its ranked lists side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base import i18n
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, percent, plain, signed
from rankdash.core.base.text import middle
from rankdash.core.data.ranking import digest
from rankdash.core.study.study import Study
from rankdash.core.words.latency import milliseconds
from rankdash.core.words.queries import grade, judged_title, outcome_words, state_words
from rankdash.core.words.verdicts import documents
from rankdash.features.queries import page_occlusion, page_why
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.ladder import Ladder
from rankdash.features.queries.study import Listed, Missed, Text
from rankdash.features.queries.words import place
from rankdash.kit.widgets import address, pickers, view
from rankdash.kit.widgets.narrow import WIDE
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.text import (
    QueryTerms,
    html_safe,
    markdown_safe,
    marked_html,
    shortened,
    snippet,
    spans,
    terms,
)
from rankdash.kit.widgets.view import short_name

# Room smaller than this is none; a share of it would be noise.
_NO_ROOM = 1e-9


def draw(study: Study, challenger: str, row: pd.Series) -> None:
    """row: the query's row of the list."""
    query_id = str(row["query_id"])
    st.subheader(markdown_safe(_text(row), 300), anchor=False)
    _strip(study, challenger, row)
    fold(
        _("Tags, note and labels"),
        "queries.notes",
        ":material/sell:",
        lambda: page_why.draw_notes(study, query_id),
    )
    ladder = queries_study.ladder_of(study, challenger, query_id)
    missed = queries_study.missed(study, challenger, query_id, ladder)
    page_why.draw(study, challenger, query_id, missed)
    draw_missed(study, missed, query_id, _text(row))
    if not len(ladder):
        st.info(_("Neither ranking has a document for this query."), icon=":material/info:")
        return
    page_why.draw_ladder(study, ladder, len({each.doc_id for each in missed} - {*ladder.doc_ids}))
    draw_cards(study, challenger, ladder, query_id, _text(row))
    query = row["text"] if isinstance(row["text"], str) else ""
    fold(
        _("Why this score?"),
        "queries.occlusion",
        ":material/ink_highlighter:",
        lambda: page_occlusion.draw_occlusion(study, challenger, ladder, query_id, query),
    )


def _text(row: pd.Series) -> str:
    """The text of the query; its id where there is none."""
    return row["text"] if isinstance(row["text"], str) and row["text"] else str(row["query_id"])


def _strip(study: Study, challenger: str, row: pd.Series) -> None:
    """row: the query's row of the list."""
    title = study.measure.title
    if math.isnan(row["delta"]):
        words = outcome_words().get(row["outcome"], row["outcome"])
        text = _failure(study, challenger, str(row["query_id"]))
        parts = [f"**{_('{metric}: no comparison', metric=title)}**", words, text]
    else:
        values = f"**{title} {number(row['before'])} → {number(row['after'])}**"
        parts = [values, _("nothing judged, so the value says nothing")]
        if row.get("reason") != "nothing_judged":
            change = f"{signed(row['delta'])} {outcome_words()[row['outcome']]}"
            parts = [values, change, *_headroom(study, challenger, row)]
    st.markdown(" · ".join(part for part in parts if part))
    st.caption(" · ".join(_trust(study, challenger, row)))


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


def _trust(study: Study, challenger: str, row: pd.Series) -> list[str]:
    """What says how far to trust the values."""
    known = [percent(row["judged_before"]), percent(row["judged_after"])]
    parts = [f"{judged_title(study.cutoff)} {known[0]} → {known[1]}"]
    if row["state"] == "all_unjudged":
        parts.append(state_words()["all_unjudged"])
    bounds = _bounds(study, challenger, row)
    if bounds:
        parts.append(bounds)
    if not math.isnan(row["latency_ms"]):
        parts.append(milliseconds(row["latency_ms"]))
    parts.append(_("query {id}", id=markdown_safe(str(row["query_id"]), 60)))
    return parts


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
    """Why a run has no result for the query, as it said; safe for Markdown."""
    for system in (challenger, study.baseline):
        run = study.run(system)
        if run is None:
            continue
        rows = run.queries
        reasons = rows.loc[(rows["query_id"] == query_id) & (rows["state"] != "done"), "reason"]
        if len(reasons):
            return markdown_safe(i18n.reason_text(str(reasons.iloc[0])), 300)
    return ""


# The documents of one query as cards: rank, move, grade, score, the words that match.

_AT_ONCE, _MOST_BELOW, _MISSED_AT_ONCE = 20, 10, 2
_SNIPPET = 320
# A document as long as a book is not sent whole with every card.
_LONGEST_TEXT = 20_000
_COUNT = "queries.cards"
# Of a system, in columns of text.
_NAME_WIDTH = 30

# Colours are mixed from that of the text, so that a card fits light and dark.
_STYLE = """<style>
.rd-card { border: 1px solid color-mix(in srgb, currentColor 22%, transparent); border-radius: 8px;
  padding: 0.55rem 0.8rem; margin-bottom: 0.55rem; font-size: 0.92rem; }
.rd-card.rd-relevant { border-left: 5px solid currentColor; }
.rd-top { display: flex; flex-wrap: wrap; gap: 0.3rem 0.6rem; align-items: baseline; }
.rd-rank { font-weight: 700; font-size: 1.05rem; min-width: 1.6rem; }
.rd-chip { border: 1px solid color-mix(in srgb, currentColor 35%, transparent);
  border-radius: 999px; padding: 0 0.5rem; font-size: 0.8rem; white-space: nowrap; }
.rd-chip.rd-dashed { border-style: dashed; }
.rd-chip.rd-strong { font-weight: 700; border-width: 2px; }
.rd-quiet { opacity: 0.75; font-size: 0.82rem; }
.rd-title { font-weight: 600; overflow-wrap: anywhere; }
.rd-card mark { background: color-mix(in srgb, #E69F00 30%, transparent); color: inherit;
  text-decoration: underline; text-decoration-thickness: 2px; text-underline-offset: 2px; }
.rd-card p { margin: 0.3rem 0; overflow-wrap: anywhere; }
.rd-card details p { white-space: pre-wrap; }
.rd-below { font-weight: 600; margin: 0.8rem 0 0.4rem; }
.rd-card summary { cursor: pointer; font-size: 0.82rem; opacity: 0.85; }
</style>"""


def draw_cards(study: Study, challenger: str, ladder: Ladder, query_id: str, query: str) -> None:
    """query: its text, whose words are marked."""
    # A system without a result for the query has no list.
    usual = challenger if challenger in ladder.systems else ladder.systems[0]
    system = pickers.pick_one(
        "cards",
        list(ladder.systems),
        st.segmented_control,
        default=usual,
        label=_("Documents in the order of"),
        format_func=lambda each: short_name(study, each),
        required=True,
    )
    if system is None:
        return
    if system == usual:
        address.choose("cards", None)
    ranks = ladder.column(system)
    order = np.argsort(ranks)[: int((~np.isnan(ranks)).sum())]
    if not len(order):
        st.caption(_("This ranking has no document for the query."))
        return
    most = max(min(ladder.k, _AT_ONCE), _more(query_id, system))
    below = [row for row in order[most:] if ladder.relevant[row]][:_MOST_BELOW]
    docs = list(ladder.doc_ids[[*order[:most], *below]])
    texts = queries_study.texts(study, docs)
    cards = _Cards(study, system, ladder, terms(query), study.dataset.top_grade)
    listed = queries_study.listed(study, system, query_id, docs)
    html = [
        cards.html(int(row), texts[shown.doc_id], shown)
        for row, shown in zip([*order[:most], *below], listed, strict=True)
    ]
    if below:
        heading = html_safe(_("Relevant, further down"))
        html.insert(len(html) - len(below), f"<div class='rd-below'>{heading}</div>")
    st.html(_STYLE + "".join(html))
    if most < len(order):
        st.button(
            _("Show {n} more", n=number(min(_AT_ONCE, len(order) - most), 0)),
            icon=":material/expand_more:",
            key="queries.cards.more",
            on_click=_show_more,
            args=(query_id, system, most + _AT_ONCE),
        )


def draw_missed(study: Study, missed: Sequence[Missed], query_id: str, query: str) -> None:
    """Draw the relevant documents that the challenger lacks, and their ranks in other systems.
    missed: the highest label first. query: its text, whose words are marked."""
    if not missed:
        return
    st.markdown(f"**{_('Relevant documents that were not retrieved')}**")
    shown = missed[:_MOST_BELOW]
    texts = queries_study.texts(study, [each.doc_id for each in shown])
    labels, query_terms = queries_study.label_of(study, query_id), terms(query)
    cards = [
        _card(
            _grade(labels[each.doc_id], study.dataset.top_grade, relevant=True),
            texts[each.doc_id],
            query_terms,
            [
                place(each, lambda system: middle(study.name(system), _NAME_WIDTH)),
                _("document {id}", id=shortened(each.doc_id, 60)),
            ],
            relevant=True,
        )
        for each in shown
    ]
    st.html(_STYLE + "".join(cards[:_MISSED_AT_ONCE]))
    rest = cards[_MISSED_AT_ONCE:]
    if rest:
        with st.expander(_("{n} more", n=number(len(rest), 0))):
            st.html(_STYLE + "".join(rest))


def _more(query_id: str, system: str) -> int:
    """How many cards of this list were asked for."""
    expanded: tuple[str, str, int] = st.session_state.get(_COUNT, ("", "", 0))
    return expanded[2] if expanded[:2] == (query_id, system) else 0


def _show_more(query_id: str, system: str, count: int) -> None:
    st.session_state[_COUNT] = (query_id, system, count)


@dataclass(frozen=True)
class _Cards:
    """What the cards of one list have in common. best: the highest grade."""

    study: Study
    system: str
    ladder: Ladder
    wanted: QueryTerms
    best: float

    def html(self, row: int, text: Text, shown: Listed) -> str:
        """One card. row: the document's row of the ladder."""
        relevant = bool(self.ladder.relevant[row])
        rank = f"<span class='rd-rank'>{self.ladder.column(self.system)[row]:.0f}</span>"
        chip = _grade(float(self.ladder.label[row]), self.best, relevant=relevant)
        top = f"{rank}{self._places(row)}{chip}"
        return _card(top, text, self.wanted, self._facts(shown), relevant=relevant)

    def _places(self, row: int) -> str:
        """The move against the baseline, and the rank in each other system."""
        current = float(self.ladder.column(self.system)[row])
        parts = []
        for system in self.ladder.systems:
            if system == self.system:
                continue
            rank = float(self.ladder.column(system)[row])
            whole = self.study.name(system)
            name = html_safe(middle(whole, _NAME_WIDTH))
            place = _("not listed") if np.isnan(rank) else number(rank, 0)
            strong = " rd-strong" if system == self.ladder.systems[0] else ""
            parts.append(
                f"<span class='rd-chip{strong}' title='{html_safe(whole)}'>"
                f"{_arrow(current, rank)} {name} {place}</span>"
            )
        return "".join(parts)

    def _facts(self, shown: Listed) -> list[str]:
        parts = [_("document {id}", id=shortened(shown.doc_id, 60))]
        if shown.score is not None:
            name = middle(self.study.name(self.system), _NAME_WIDTH)
            parts.append(_("score of {system} {score}", system=name, score=plain(shown.score, 4)))
        if shown.read is not None and shown.full is not None:
            parts.append(
                _(
                    "the model saw {read} of {full} tokens",
                    read=number(shown.read, 0),
                    full=number(shown.full, 0),
                )
            )
        elif shown.read is not None:
            parts.append(_("the model read {read} tokens", read=number(shown.read, 0)))
        return parts


def _card(
    top: str, text: Text, query_terms: QueryTerms, facts: Sequence[str], *, relevant: bool
) -> str:
    """top: HTML of its first line."""
    kind = " rd-relevant" if relevant else ""
    marked = marked_html(text.title, spans(text.title, query_terms))
    title = f"<div class='rd-title'>{marked}</div>" if text.title else ""
    quiet = " · ".join(html_safe(part) for part in facts)
    return (
        f"<div class='rd-card{kind}'><div class='rd-top'>{top}</div>"
        f"{title}{_body(text, query_terms)}<div class='rd-quiet'>{quiet}</div></div>"
    )


def _grade(label: float, best: float, *, relevant: bool) -> str:
    unjudged = " rd-dashed" if np.isnan(label) else ""
    strong = " rd-strong" if relevant else ""
    sign = "● " if relevant else ""
    return f"<span class='rd-chip{unjudged}{strong}'>{sign}{html_safe(grade(label, best))}</span>"


def _body(text: Text, query_terms: QueryTerms) -> str:
    """The part that matches best, and the whole behind it where that is more."""
    if text.body is None:
        return f"<p class='rd-quiet'>{html_safe(_('The data has no text for it.'))}</p>"
    body = text.body[:_LONGEST_TEXT]
    marked = spans(body, query_terms)
    start, end = snippet(body, marked, _SNIPPET)
    before, after = ("… " if start else ""), (" …" if end < len(text.body) else "")
    part = f"<p>{before}{marked_html(body, marked, start, end)}{after}</p>"
    if not before and not after:
        return part
    rest = "" if len(body) == len(text.body) else " …"
    summary = html_safe(
        _("Whole text, {n} characters", n=number(len(text.body), 0))
        if not rest
        else _(
            "The first {n} of {all} characters",
            n=number(len(body), 0),
            all=number(len(text.body), 0),
        )
    )
    whole = marked_html(body, marked)
    return f"{part}<details><summary>{summary}</summary><p>{whole}{rest}</p></details>"


def _arrow(current: float, other: float) -> str:
    """How the document's rank here compares with its rank there: ▲7 is seven ranks higher."""
    if np.isnan(other):
        return "▲"
    rise = other - current
    return "=" if rise == 0 else f"{'▲' if rise > 0 else '▼'}{abs(rise):.0f}"


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
