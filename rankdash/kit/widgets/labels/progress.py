"""How far a labelling plan is: its estimate, and the labels of each query."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import (
    duration,
    ngettext,
    number,
    paragraph,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.sampling.draws import FEWEST_DRAWS, FEWEST_QUERIES
from rankdash.core.sampling.status import LabelStatus
from rankdash.core.study.study import Study
from rankdash.core.words.labelling import effort_sentence, estimate_sentences, like_these_sentence
from rankdash.kit.widgets.label_plan import Labelling
from rankdash.kit.widgets.text import name_safe

_ICONS = {
    "too_early": ":material/hourglass_empty:",
    "open": ":material/pending:",
    "settled": ":material/check_circle:",
    "complete": ":material/check_circle:",
}


def draw_estimate_strip(labelling: Labelling) -> None:
    """A line for each challenger, how many labels more it takes, and how far the labelling is."""
    found = labelling.named()
    for each in found.estimates:
        sentences = estimate_sentences(each)
        if each.settled and math.isfinite(each.like_these_low):
            sentences.append(like_these_sentence(each))
        st.markdown(f"{_ICONS[each.state]} {paragraph(sentences)}")
    notes, first = [], found.estimates[0]
    if not found.settled and not labelling.complete:
        notes.append(effort_sentence(found))
    if labelling.judge is not None and found.saved:
        notes.append(_saved(labelling.judge[0], found.saved))
    if first.waiting:
        notes.append(_waiting(labelling, first.waiting))
    if notes:
        st.caption(paragraph(notes))
    share, text = _progress(labelling, found)
    if math.isfinite(found.seconds):
        pace = _("{time} per label.", time=duration(found.seconds))
        text = paragraph([text, pace] if text else [pace])
    st.progress(share, text=text)


def _progress(labelling: Labelling, found: LabelStatus) -> tuple[float, str]:
    """How near a conclusive result is, and in words."""
    first = found.estimates[0]
    if labelling.complete:
        return 1.0, _("All documents that can change the result have a label.")
    if found.settled:
        # The sentence of the estimate says so.
        return 1.0, ""
    if found.needed is None:
        fewest = FEWEST_DRAWS
        if found.mode == "query":
            fewest = math.ceil(first.pairs / first.queries * FEWEST_QUERIES)
        goal = min(fewest, first.pairs - first.known)
        text = _(
            "The first interval comes after about {n} labels.", n=number(goal + first.known, 0)
        )
        return min(first.labels / max(goal, 1), 0.99), text
    text = ngettext(
        "About {n} more label until the result is conclusive.",
        "About {n} more labels until the result is conclusive.",
        found.needed,
    )
    return first.labels / (first.labels + max(found.needed, 1)), text


def _saved(judge: str, saved: int) -> str:
    return ngettext(
        "The judge {name} has saved about {n} label so far; the result rests on people's labels.",
        "The judge {name} has saved about {n} labels so far; the result rests on people's labels.",
        saved,
        name=name_safe(judge),
    )


def _waiting(labelling: Labelling, waiting: int) -> str:
    if labelling.settings.mode == "query":
        return ngettext(
            "{n} label counts once all documents of its query are labelled.",
            "{n} labels count once all documents of their query are labelled.",
            waiting,
        )
    return ngettext(
        "{n} label waits for a document that was drawn before it and is still open.",
        "{n} labels wait for documents that were drawn before them and are still open.",
        waiting,
    )


def table(study: Study, labelling: Labelling) -> pd.DataFrame:
    """Return a row for each query with a label, most labels first: query (its text, else its id),
    labelled, documents that can change the result, and the highest label."""
    plan, answered = labelling.plan, labelling.answered
    pool = plan.pool
    labels = np.where(answered.raters > 0, answered.labels, plan.known)
    rows = pd.DataFrame(
        {
            "query_id": pool.query_ids[pool.query],
            "labelled": ~np.isnan(labels),
            "documents": plan.weighs,
            "highest": labels,
        }
    )
    found = rows.groupby("query_id", sort=False).agg(
        {"labelled": "sum", "documents": "sum", "highest": "max"}
    )
    found = found[found["labelled"] > 0].sort_values("labelled", ascending=False, kind="stable")
    names = study.dataset.query_names
    texts = [names.get(str(query), str(query)) for query in found.index]
    return found.reset_index().assign(query=texts)


def draw_labelled_queries(study: Study, labelling: Labelling) -> None:
    """The labelled queries as a table."""
    rows = table(study, labelling)
    if rows.empty:
        return
    st.subheader(_("Labelled queries"), anchor=False)
    shown = {
        "query": _("query"),
        "labelled": _("labelled documents"),
        "documents": _("documents that can change the result"),
        "highest": _("highest label"),
    }
    st.dataframe(rows[list(shown)].rename(columns=shown), hide_index=True, width="stretch")
