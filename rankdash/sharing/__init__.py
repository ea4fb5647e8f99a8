"""A workspace as one file, for a colleague: what goes with it, and how two workspaces become one.

What is here already stays. Scenarios, prices and targets that exist here under the same name are
kept, and what the file says otherwise is reported.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import convert

from rankdash.analysis.labelling.draws import LabelSettings
from rankdash.analysis.labels.check import CheckReport
from rankdash.analysis.reasons.occlusion import Explanation
from rankdash.errors import DataError
from rankdash.findings import Finding
from rankdash.infile import from_json, guarded
from rankdash.rerankers.judging.judge import SETTINGS
from rankdash.rerankers.settings import completed
from rankdash.store import Workspace
from rankdash.store.workspace_file.archive import FORMAT, Progress, pack
from rankdash.store.workspace_file.import_workspace import Judges, take_in
from rankdash.store.workspace_file.merge_rows import TakenIn
from rankdash.store.workspace_file.workspace_zip import Unpacker
from rankdash.value.assumptions import Assumptions
from rankdash.value.price_list import parse_prices, to_json
from rankdash.value.targets import Targets

SUFFIX = ".rankdash.zip"
SCENARIOS, PRICES, TARGETS = "scenarios", "prices", "targets"
"""Keys of the settings that are shared."""

MOST_SCENARIOS = 50
LONGEST_SCENARIO_NAME = 60

# A width of a milliard would be a text of a milliard letters.
_FORMAT = re.compile(r"[,]?(\.\d{1,2})?[dfg%]?")


def export(
    workspace: Workspace,
    target: BinaryIO,
    version: str,
    dataset_ids: Collection[str] | None = None,
    progress: Progress = lambda _done, _total: None,
) -> list[Finding]:
    """Write data sets (None: all) with their runs, notes, corrections and explanations, and the
    scenarios, prices and targets; what is damaged and excluded. version: of rankdash; progress: as
    for `rankdash.store.workspace_file.archive`."""
    return pack(workspace, target, dataset_ids, (SCENARIOS, PRICES, TARGETS), version, progress)


def bring_in(
    workspace: Workspace,
    source: Path | BinaryIO,
    file: str,
    progress: Progress = lambda _done, _total: None,
) -> TakenIn:
    """Add what the file holds and the workspace does not; errors as `take_in` raises."""
    judges = Judges(
        report=check_report,
        explanation=Explanation.from_json,
        plan=partial(convert, type=LabelSettings),
        settings=_judge_settings,
        settle=_settle,
        shared=(SCENARIOS, PRICES, TARGETS),
    )
    return take_in(workspace, source, file, judges, progress)


def is_workspace_file(source: BinaryIO) -> bool:
    """Whether a file is one that `export` wrote, as far as its list tells."""
    try:
        with Unpacker(source, "") as parts:
            return parts.head.format == FORMAT
    except DataError:
        return False


def datasets_in(file: Path) -> list[str]:
    """The ids of the data sets of a workspace file, as its list tells."""
    with Unpacker(file, file.name) as parts:
        return [str(each) for each in parts.head.datasets]


def read_scenarios(text: str) -> dict[str, Assumptions]:
    """Name → scenario, as `write_scenarios` wrote them, also before an assumption was renamed.

    Raises DataError for anything else.
    """
    with guarded("", "The saved scenarios cannot be read.", "Save them again."):
        read: Any = from_json(text)
        return {str(name): Assumptions.from_dict(each) for name, each in read.items()}


def write_scenarios(scenarios: Mapping[str, Assumptions]) -> str:
    return json.dumps({name: each.as_dict() for name, each in scenarios.items()})


def check_report(text: str) -> CheckReport:
    """Read the JSON of a check report. Raises what `Judges` may raise for anything else: a report
    that only looks like one would break the page of its data set each time it is opened."""
    report = CheckReport.from_json(text)
    if not report.rankings:
        raise ValueError("a check report without a ranking")
    for finding in report.findings:
        for template in (finding.template, finding.remedy):
            # No template that reaches for more than its parameters, or that they do not fit.
            for _text, name, form, _conversion in string.Formatter().parse(template):
                if name is not None and not (name.isidentifier() and _FORMAT.fullmatch(form or "")):
                    raise ValueError("a finding whose words cannot be put together")
            template.format(**finding.params)
    return report


def _judge_settings(theirs: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    settings = completed(SETTINGS, theirs)
    return settings, sorted(settings.keys() ^ theirs.keys())


def _settle(
    theirs: Mapping[str, str], ours: Mapping[str, str]
) -> tuple[dict[str, str], list[Finding]]:
    changed: dict[str, str] = {}
    findings: list[Finding] = []
    for key, settle in _SETTLED.items():
        if key in theirs:
            becomes, differing = settle(theirs[key], ours.get(key) or "")
            findings += differing
            if becomes and becomes != ours.get(key):
                changed[key] = becomes
    return changed, findings


def _scenarios(theirs: str, ours: str) -> tuple[str, list[Finding]]:
    given = read_scenarios(theirs)
    if any(not name or len(name) > LONGEST_SCENARIO_NAME for name in given):
        raise DataError("The name of a scenario is empty or too long.")
    try:
        here = read_scenarios(ours) if ours else {}
    except DataError:
        unread = "The scenarios saved here cannot be read, so none was added."
        return "", [_stays("archive.scenarios", unread)]
    findings = [
        _stays("archive.scenario", "The scenario {name} differs. The one here stays.", name=name)
        for name, each in given.items()
        if name in here and here[name] != each
    ]
    new = {name: each for name, each in given.items() if name not in here}
    room = max(0, MOST_SCENARIOS - len(here))
    for name in list(new)[room:]:
        findings.append(
            _stays(
                "archive.scenario",
                "The scenario {name} cannot be saved: the limit is {most}.",
                name=name,
                most=MOST_SCENARIOS,
            )
        )
        del new[name]
    return (write_scenarios(here | new) if new else ""), findings


def _prices(theirs: str, ours: str) -> tuple[str, list[Finding]]:
    given = to_json(parse_prices(theirs.encode(), "prices"))
    if ours and ours != given:
        return "", [_stays("archive.prices", "The prices differ. Those here stay.")]
    return given, []


def _targets(theirs: str, ours: str) -> tuple[str, list[Finding]]:
    given = Targets.from_json(theirs).to_json()
    if ours and ours != given:
        return "", [_stays("archive.targets", "The targets differ. Those here stay.")]
    return given, []


def _stays(code: str, template: str, **params: object) -> Finding:
    return Finding("warning", code, template, params)


_SETTLED: dict[str, Callable[[str, str], tuple[str, list[Finding]]]] = {
    SCENARIOS: _scenarios,
    PRICES: _prices,
    TARGETS: _targets,
}
