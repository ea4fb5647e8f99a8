"""The traffic lights of a check report: conditions for a meaningful verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rankdash.core.base.errors import Finding
from rankdash.core.base.i18n import finding_text, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.readers.checks.check import CheckReport
from rankdash.core.readers.checks.grading import NO_LABELS

State = Literal["good", "look", "wrong", "unknown", "none"]

# Light → the codes of its warnings; every other warning is about rows and texts.
_CODES: Mapping[str, tuple[str, ...]] = {
    "labels": (
        "unused_labels",
        "none_relevant",
        "mostly_unjudged",
        "all_relevant",
        "no_relevant",
        "conflicting_labels",
        "duplicate_labels",
        "labels_drawn",
        "word_labels",
        "annotators",
    ),
    "ids": (
        "counted_queries",
        "labels_shifted",
        "labels_by_accident",
        "pairs_match_nothing",
        "ids_match_nothing",
        "documents_spelled_otherwise",
        "labelled_not_ranked",
    ),
    "direction": ("label_direction",),
    "rankings": (
        "none_in_top",
        "rank_gaps",
        "rank_against_score",
        "queries_without_candidates",
        "ties",
        "first_stage",
        "made_first_stage",
        "order_of_the_file",
    ),
}
_NEED_LABELS = ("ids", "direction", "rankings")


@dataclass(frozen=True)
class Light:
    """A traffic light. finding: the warning that `what` and `remedy` describe, if any."""

    title: str
    state: State
    what: str = ""
    remedy: str = ""
    finding: Finding | None = None


def lights(report: CheckReport, sampled_from: int = 0) -> tuple[Light, ...]:
    """Return the lights in the reader's language, in the order of the page.

    sampled_from: how many documents the labels are a sample of; 0 if they are not a sample.
    """
    titles = {
        "labels": _("Labels present"),
        "ids": _("IDs match"),
        "direction": _("Direction of grades"),
        "rows": _("Rows and texts"),
        "rankings": _p("heading", "Rankings"),
    }
    all_lights = tuple(_light(report, name, title) for name, title in titles.items())
    if not sampled_from:
        return all_lights
    return (replace(all_lights[0], what=label_count(report.labels, sampled_from)), *all_lights[1:])


def label_count(labels: int, sampled_from: int) -> str:
    """Return the number of labels, and of how many documents they are a sample."""
    if not sampled_from:
        return ngettext("{n} label", "{n} labels", labels)
    return ngettext(
        "{n} label, a sample of the {all} documents that can change the result",
        "{n} labels, a sample of the {all} documents that can change the result",
        labels,
        all=number(sampled_from, 0),
    )


def _light(report: CheckReport, name: str, title: str) -> Light:
    others = {code for codes in _CODES.values() for code in codes}
    by_code = {
        each.code: each
        for each in reversed(report.warnings)
        if (each.code in _CODES[name] if name in _CODES else each.code not in others)
    }
    wrong = {each.code for each in report.implausible}
    many = report.refused_rows
    if name == "rows" and many is not None:
        what = _(
            "{count} of {rows} rows are excluded.",
            count=number(many[0], 0),
            rows=number(many[1], 0),
        )
        return Light(title, "wrong", what, _("See the reasons in the table below."))
    if name == "rows" and report.blocks_reranking is not None:
        by_code.setdefault(report.blocks_reranking.code, report.blocks_reranking)
    codes = sorted(by_code, key=lambda code: code not in wrong)
    if codes:
        finding = by_code[codes[0]]
        state: State = "wrong" if finding.code in wrong else "look"
        return Light(title, state, finding_text(finding), _remedy(finding), finding)
    if name == "labels" and not report.labels:
        return Light(title, "none", finding_text(NO_LABELS), _remedy(NO_LABELS), NO_LABELS)
    if name in _NEED_LABELS and not report.labels:
        return Light(title, "unknown")
    return Light(title, "good")


def _remedy(finding: Finding) -> str:
    return _(finding.remedy, **finding.params) if finding.remedy else ""
