"""Whether texts of a workspace file that the pages take apart are what rankdash would have written.

A report that only looks like one would break the page of its data set each time it is opened.
Everything here raises ValueError, KeyError, TypeError or LookupError for what is not.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from rankdash.analysis.labels.check import CheckReport
from rankdash.analysis.reasons.occlusion import LEVELS, Explanation
from rankdash.findings import Finding, Severity
from rankdash.store.workspace_file.import_checks import unsound

# By the annotation of a field; whole numbers count as numbers.
_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "int | None": (int, type(None)),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "str": (str,),
    "Severity": (str,),
    "Mapping[str, object]": (dict,),
    "tuple[str, ...]": (tuple,),
}
# A width of a milliard would be a text of a milliard letters.
_FORMAT = re.compile(r"[,]?(\.\d{1,2})?[dfg%]?")


def check_report(text: str) -> None:
    """The JSON of a check report."""
    report = CheckReport.from_json(text)
    if not report.rankings:
        raise unsound("a check report without a ranking")
    spreads = (report.candidates_per_query, report.query_chars, report.document_chars)
    for part in (*spreads, *report.label_histogram, *report.rankings, *report.findings):
        if part is not None:
            _of_its_kinds(part)
    _of_its_kinds(report)
    for finding in report.findings:
        _can_be_said(finding)


def explanation(text: str) -> None:
    """The JSON of an explanation."""
    found = Explanation.from_json(text)
    _of_its_kinds(found)
    for stage in found.stages:
        places = [place for part in stage.parts for place in part.places]
        numbers = [each for place in places for each in place]
        if (
            stage.level not in LEVELS
            or len(stage.effects) != len(stage.parts)
            or not all(type(each) is int and each >= 0 for each in numbers)
            or not all(isinstance(each, (int, float)) for each in stage.effects)
        ):
            raise unsound("an explanation that explains nothing")


def _of_its_kinds(value: Any) -> None:
    for each in fields(value):
        kinds = _KINDS.get(str(each.type))
        found = getattr(value, each.name)
        if kinds is not None and (not isinstance(found, kinds) or isinstance(found, bool)):
            raise TypeError(each.name)


def _can_be_said(finding: Finding) -> None:
    if finding.severity not in get_args(Severity):
        raise unsound("a finding that is neither error, warning nor note")
    if not all(isinstance(each, str) for each in finding.examples):
        raise TypeError("examples")
    for template in (finding.template, finding.remedy):
        _fills(template, finding.params)


def _fills(template: str, params: Mapping[str, object]) -> None:
    """Refuse a template that reaches for more than its parameters, or that they do not fit."""
    for _text, name, form, _conversion in string.Formatter().parse(template):
        if name is not None and not (name.isidentifier() and _FORMAT.fullmatch(form or "")):
            raise unsound("a finding whose words cannot be put together")
    template.format(**params)
