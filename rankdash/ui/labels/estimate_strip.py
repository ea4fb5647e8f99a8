"""What the labels given so far say of a comparison: the difference, and whether it is settled."""

from __future__ import annotations

import math

import streamlit as st

from rankdash.analysis.labelling.confidence_sequence import FEWEST_DRAWS, FEWEST_QUERIES
from rankdash.analysis.labelling.status import LabelStatus
from rankdash.i18n import duration, ngettext, number, paragraph
from rankdash.i18n import gettext as _
from rankdash.study import latency
from rankdash.study.study import Study
from rankdash.ui.labels import estimate_decision
from rankdash.ui.sidebar import view
from rankdash.ui.state import label_plan, stored
from rankdash.ui.state.label_plan import Labelling
from rankdash.ui.widgets.text import name_safe
from rankdash.words.estimates import (
    effort_sentence,
    estimate_sentences,
    like_these_sentence,
)

_ICONS = {
    "too_early": ":material/hourglass_empty:",
    "open": ":material/pending:",
    "settled": ":material/check_circle:",
    "complete": ":material/check_circle:",
}


def draw(labelling: Labelling) -> None:
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


def above_means(study: Study, page: str) -> bool:
    """What is above the means of a page while labels are being given, or while there are none.

    page: the name of its file.

    Returns whether there are means to show: labels came with the data, or all that can move the
    difference are there. Of labels that were sampled there is the estimate only.
    """
    labelling = label_plan.current(study.stored_id)
    uploaded = stored.dataset(stored.stored(study.stored_id)).labelled_queries
    if labelling is None and uploaded:
        return True
    open_still = labelling is None or not labelling.complete
    sampled = label_plan.sampled(study.stored_id)
    with st.container(border=True):
        if labelling is None:
            st.subheader(_("No labels yet"), anchor=False)
            st.write(
                _(
                    "Without labels nothing tells which ranking is better. A few hundred usually "
                    "settle it: rankdash picks the documents to label, and says when there are "
                    "enough."
                )
            )
            st.page_link(view.page("label"), label=_("Label documents"), icon=":material/label:")
        else:
            draw(labelling)
            estimate_decision.draw(study, labelling, page)
    if uploaded and open_still and sampled is None:
        st.caption(_("The means below count documents without a label as not relevant."))
    if sampled is not None:
        why = _(
            "The result is by {metric}, a sum over documents, which a sample of the labels can "
            "estimate.",
            metric=sampled.metric,
        )
        missing = _(
            "The labels were sampled, so means, counts of queries and rank shifts computed "
            "from them would be wrong and are not shown."
        )
        st.caption(paragraph([why, missing]))
    if not uploaded and labelling is None:
        st.markdown(_("What can be said without labels:"))
        links = [("rank_shifts", _("how far the systems agree, and which documents moved"))]
        if latency.timed(study):
            links.append(("latency", _("how long each system takes")))
        for name, words in links:
            st.page_link(view.page(name), label=words, icon=":material/arrow_forward:")
    return sampled is None and (bool(uploaded) or not open_still)
