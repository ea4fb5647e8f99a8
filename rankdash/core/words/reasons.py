"""The reasons of `analysis.reasons.reasons` in words: short for a list, long for a tooltip."""

from __future__ import annotations

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import percent
from rankdash.core.study.reasons.reasons import CUT, NEAR


def reason_words() -> dict[str, str]:
    """Code → a word or two."""
    return {
        "failed": _("no result"),
        "no_relevant_label": _("no relevant label"),
        "missing": _("not ranked"),
        "nothing_judged": _("nothing judged"),
        "no_relevant_candidate": _("no relevant document retrieved"),
        "below_cutoff": _("relevant below the cutoff"),
        "already_ideal": _("already ideal"),
        "truncated": _("text cut"),
        "buried": _("relevant dropped out"),
        "distractor_lifted": _("irrelevant promoted"),
        "unjudged_lifted": _("unjudged promoted"),
        "rescued": _("relevant moved up"),
        "near_tie": _("near-tie"),
        "idle": _("no effect"),
        "mixed": _("mixed"),
    }


def reason_meanings() -> dict[str, str]:
    """Code → what it says of a query, in a sentence."""
    return {
        "failed": _("One side has no result for the query."),
        "no_relevant_label": _("Its labels name no relevant document at all."),
        "missing": _(
            "A ranking lacks the query, which scores 0 there or is excluded, according to the "
            "metric conventions."
        ),
        "nothing_judged": _(
            "No document that either side shows has a label, so a value of 0 says nothing."
        ),
        "no_relevant_candidate": _(
            "Neither list holds a relevant document: the retriever missed it."
        ),
        "below_cutoff": _(
            "The value stayed the same while a relevant document stands below the cutoff, where it "
            "does not count."
        ),
        "already_ideal": _("The baseline's order could not be better, and it stayed as good."),
        "truncated": _(
            "A relevant document fell, and the model read at most {share} of its text: the "
            "relevant part may be in the rest.",
            share=percent(CUT),
        ),
        "buried": _("A relevant document dropped out of the top ranks."),
        "distractor_lifted": _("Documents labelled as worse were promoted above a relevant one."),
        "unjudged_lifted": _(
            "Documents without a label were promoted above a relevant one. They count as not "
            "relevant, which may be wrong."
        ),
        "rescued": _("Relevant documents moved up."),
        "near_tie": _(
            "Decided by scores that differ by at most {share} of their range: it could as well "
            "have gone the other way.",
            share=percent(NEAR),
        ),
        "idle": _("Nothing that counts moved."),
        "mixed": _("Some relevant documents rose and others fell."),
    }
