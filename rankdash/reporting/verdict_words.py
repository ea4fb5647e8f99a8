"""Verdicts in words: a chip for each kind, and the sentence with its advice."""

from __future__ import annotations

from rankdash.analysis.verdict import Verdict
from rankdash.i18n import gettext as _
from rankdash.reporting.why_words import paragraph


def chip(kind: str) -> str:
    """A kind of verdict in a word or two; "baseline" is what the others are compared with."""
    words = {
        "baseline": _("baseline"),
        "better": _("better"),
        "small": _("better, but small"),
        "unproven": _("not proven"),
        "worse": _("worse"),
        "identical": _("the same"),
    }
    return words.get(kind, _("no verdict"))


def sentence(verdict: Verdict) -> str:
    """What may be said of a challenger, and what to do about it."""
    parts = (verdict.template, verdict.advice)
    return paragraph([_(template, **verdict.params) for template in parts if template])
