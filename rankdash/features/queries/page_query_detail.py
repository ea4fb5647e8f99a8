"""One query, from top to bottom: its numbers, why it changed, where its documents went."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from rankdash.core.base import failures
from rankdash.core.base.i18n import brief, number, percent, signed
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.study import Study
from rankdash.core.words.headroom import documents
from rankdash.core.words.queries import judged_title, outcome_words, state_words
from rankdash.features.queries import (
    page_query_cards,
    page_query_ladder,
    page_query_notes,
    page_query_occlusion,
    page_query_why,
    queries,
)
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.text import markdown_safe

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
        lambda: page_query_notes.draw(study, query_id),
    )
    found = queries.ladder_of(study, challenger, query_id)
    missed = queries.missed(study, challenger, query_id, found)
    page_query_why.draw(study, challenger, query_id, missed)
    page_query_cards.draw_missed(study, missed, query_id, _text(row))
    if not len(found):
        st.info(_("Neither ranking has a document for this query."), icon=":material/info:")
        return
    page_query_ladder.draw(study, found, len({each.doc_id for each in missed} - {*found.doc_ids}))
    page_query_cards.draw(study, challenger, found, query_id, _text(row))
    query = row["text"] if isinstance(row["text"], str) else ""
    fold(
        _("Why this score?"),
        "queries.occlusion",
        ":material/ink_highlighter:",
        lambda: page_query_occlusion.draw(study, challenger, found, query_id, query),
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
        parts.append(_("{ms} ms", ms=brief(row["latency_ms"])))
    parts.append(_("query {id}", id=markdown_safe(str(row["query_id"]), 60)))
    return parts


def _bounds(study: Study, challenger: str, row: pd.Series) -> str:
    """What the documents without a label leave open."""
    whole = row["judged_before"] == 1 and row["judged_after"] == 1
    if whole or math.isnan(row["delta"]):
        return ""
    found = queries.bounds(study, challenger).get(str(row["query_id"]))
    if found is None:
        return ""
    low, high = found
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
        found = rows.loc[(rows["query_id"] == query_id) & (rows["state"] != "done"), "reason"]
        if len(found):
            return markdown_safe(failures.in_words(str(found.iloc[0])), 300)
    return ""
