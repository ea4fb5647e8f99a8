"""A workspace as one file, for a colleague: what goes with it, and how two workspaces become one.

What is here already stays. Scenarios, prices and targets that exist here under the same name are
kept, and what the file says otherwise is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import convert

from rankdash.core.base.errors import DataError, Finding
from rankdash.core.base.rules import completed
from rankdash.core.data.explanation import Explanation
from rankdash.core.readers.checks.check import check_report
from rankdash.core.rerankers.remote.chat import JUDGE_SETTINGS
from rankdash.core.sampling.draws import LabelSettings
from rankdash.core.value.assumptions import (
    LONGEST_SCENARIO_NAME,
    MOST_SCENARIOS,
    PRICES,
    SCENARIOS,
    TARGETS,
    read_scenarios,
    write_scenarios,
)
from rankdash.core.value.price_list import parse_prices, to_json
from rankdash.core.value.targets import Targets
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file.archive import FORMAT, Progress, Unpacker, pack
from rankdash.core.workspace.workspace_file.import_workspace import Judges, TakenIn, take_in

SUFFIX = ".rankdash.zip"


def export(
    workspace: Workspace,
    target: BinaryIO,
    version: str,
    dataset_ids: Collection[str] | None = None,
    progress: Progress = lambda _done, _total: None,
) -> list[Finding]:
    """Write data sets (None: all) with their runs, notes, corrections and explanations, and the
    scenarios, prices and targets; what is damaged and excluded. version: of rankdash; progress: as
    for `rankdash.core.workspace.workspace_file.archive`."""
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


def _judge_settings(theirs: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    settings = completed(JUDGE_SETTINGS, theirs)
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
