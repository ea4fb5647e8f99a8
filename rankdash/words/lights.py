"""The traffic lights of a check report: what must be plausible for a verdict to mean anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rankdash.analysis.labels.check import CheckReport
from rankdash.findings import Finding
from rankdash.i18n import finding_text, number
from rankdash.i18n import gettext as _

State = Literal["good", "look", "wrong", "unknown"]

# Light → the codes of its warnings; "refused" stands for many rows that were excluded.
_CODES: Mapping[str, tuple[str, ...]] = {
    "labels": ("no_labels", "unused_labels", "none_relevant"),
    "ids": (
        "counted_queries",
        "labels_by_accident",
        "pairs_match_nothing",
        "ids_match_nothing",
        "documents_spelled_otherwise",
        "labelled_not_ranked",
    ),
    "direction": ("label_direction",),
    "rows": (
        "few_documents",
        "texts_differ",
        "candidates_without_text",
        "queries_without_text",
    ),
    "rankings": ("none_in_top", "rank_gaps", "rank_against_score", "queries_without_candidates"),
}
_NEED_LABELS = ("ids", "direction", "rankings")


@dataclass(frozen=True)
class Light:
    """One traffic light. what: the first thing that is wrong; remedy: what to do about it."""

    title: str
    state: State
    what: str = ""
    remedy: str = ""


def lights(report: CheckReport) -> tuple[Light, ...]:
    """Return the lights in the reader's language, in the order of the page."""
    titles = {
        "labels": _("Labels present"),
        "ids": _("Ids fit"),
        "direction": _("Direction of grades"),
        "rows": _("Rows and texts"),
        "rankings": _("Rankings"),
    }
    return tuple(_light(report, name, title) for name, title in titles.items())


def _light(report: CheckReport, name: str, title: str) -> Light:
    found = {each.code: each for each in reversed(report.warnings)}
    wrong = {each.code for each in report.implausible}
    many = report.refused_rows
    if name == "rows" and many is not None:
        what = _(
            "{count} of {rows} rows are excluded.",
            count=number(many[0], 0),
            rows=number(many[1], 0),
        )
        return Light(title, "wrong", what, _("See the reasons in the table below."))
    codes = sorted(_CODES[name], key=lambda code: code not in wrong)
    finding = next((found[code] for code in codes if code in found), None)
    if finding is not None:
        state: State = "wrong" if finding.code in wrong else "look"
        return Light(title, state, finding_text(finding), _remedy(finding))
    if name in _NEED_LABELS and not report.labels:
        return Light(title, "unknown")
    return Light(title, "good")


def _remedy(finding: Finding) -> str:
    return _(finding.remedy, **finding.params) if finding.remedy else ""
