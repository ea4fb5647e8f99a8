"""Verdicts in words: a chip for each kind, and the sentence with its advice."""

from __future__ import annotations

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.analysis.statistics.verdict import Verdict
from rankdash.i18n import gettext as _
from rankdash.i18n import paragraph


def p_title(settings: StatisticsSettings) -> str:
    """What the p of a comparison is called: corrected only where it allows for the others."""
    return _("p") if settings.correction == "none" else _("corrected p")


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
