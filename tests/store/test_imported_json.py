"""Any JSON in a workspace file is either refused with a message, or stored so that it can be read
again, with complete settings."""

import itertools
import json
import math
from typing import Any

import pytest
from msgspec import convert

from rankdash.core.base.errors import FormatError
from rankdash.core.readers.checks import check
from rankdash.core.rerankers.remote.chat import JUDGE_SETTINGS
from rankdash.core.sampling.label_plan import LabelSettings
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.notes import LabelPlans, Notes
from rankdash.core.workspace.workspace_file.import_checks import (
    CorrectionRow,
    DatasetPart,
    JudgedPairRow,
    JudgePart,
    NoteRow,
    PlanRow,
    RunNoteRow,
    RunPart,
    fitted,
)
from tests.broken import Words, broken
from tests.marked import bring_in, exported, fewest, json_in, written

COMPLETE = {spec.name for spec in JUDGE_SETTINGS}
HERE = "what is replaced"


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return exported(written(Workspace(tmp_path_factory.mktemp("written") / "home"), Words()))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to objects and lists in JSON, including JSON in texts; of lists only the
    first item. A text that is JSON is a step None."""
    if isinstance(value, str):
        inner = json_in(value)
        return [] if inner is None else places(inner, (*path, None))
    if not isinstance(value, dict | list):
        return []
    steps = value.items() if isinstance(value, dict) else list(enumerate(value))[:1]
    return [path, *(each for step, one in steps for each in places(one, (*path, step)))]


def replaced(value: Any, path: tuple[Any, ...], text: str) -> str:
    """Return JSON with another JSON at a path."""
    if not path:
        return text
    step, *rest = path
    if step is None:
        return json.dumps(replaced(json.loads(value), tuple(rest), text))
    made = value.copy()
    made[step] = HERE
    return json.dumps(made).replace(json.dumps(HERE), replaced(value[step], tuple(rest), text))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = json.loads(value) if step is None else value[step]
    return value


@pytest.mark.parametrize("step", [15, pytest.param(1, marks=pytest.mark.thorough)])
def test_what_is_imported_can_be_read(parts, tmp_path, step):
    """Every fifteenth case, or all of them."""
    workspace, refused, accepted, cases = Workspace(tmp_path / "home"), 0, 0, itertools.count()
    for name in sorted(each for each in parts if each.endswith(".json") and "/" in each):
        few = fewest(parts, name)
        read = json.loads(few[name])
        for path, (wrong, bad) in (
            (place, each) for place in places(read) for each in broken(json.dumps(at(read, place)))
        ):
            if next(cases) % step:
                continue
            case = f"{name} {path} {wrong}"
            try:
                found = bring_in(workspace, few | {name: replaced(read, path, bad).encode()})
            except FormatError as error:
                assert "Nothing was imported" in str(error), case
                refused += 1
                continue
            accepted += 1
            # An omitted plan is reported by name.
            assert wrong not in ("not JSON", "deep") or found.findings, case
            for dataset_id in found.datasets:
                assert readable(workspace, dataset_id), case
                workspace.delete_dataset(dataset_id)
    assert refused > accepted > 0


def readable(workspace: Workspace, dataset_id: str) -> bool:
    judges = StoredJudges(workspace)
    check.check_report(workspace.check_report(dataset_id))
    plan = LabelPlans(workspace).newest(dataset_id)
    assert plan is None or convert(dict(plan.settings), LabelSettings)
    for run in workspace.runs(dataset_id):
        workspace.run(run.id)
    for judge in judges.rows(dataset_id):
        assert judge.settings.keys() in (COMPLETE, set())
        judges.grades(judge.id)
    return (
        not workspace.damaged_runs(dataset_id)
        and not judges.unreadable(dataset_id)
        and not any(note.unread for note in Notes(workspace).all(dataset_id))
    )


@pytest.mark.parametrize(
    ("kind", "at_most", "too_much"),
    [
        (NoteRow, {"tags": ["x" * 40] * 20}, {"tags": ["x"] * 21}),
        (NoteRow, {"note": "x" * 4000}, {"note": "x" * 4001}),
        (NoteRow, {"tags": [], "note": "x"}, {"tags": [], "note": ""}),
        (NoteRow, {"tags": ["x"]}, {"tags": [""]}),
        (NoteRow, {"tags": ["x" * 40]}, {"tags": ["x" * 41]}),
        (NoteRow, {"who": "x" * 80}, {"who": "x" * 81}),
        (NoteRow, {"query_id": "x" * 1000}, {"query_id": "x" * 1001}),
        (NoteRow, {"query_id": "a b"}, {"query_id": "a\0b"}),
        (NoteRow, {"changed": "2026-01-02"}, {"changed": "2026-13-02"}),
        (CorrectionRow, {"withdrawn": 1}, {"withdrawn": 2}),
        (CorrectionRow, {"label": -2.5}, {"label": math.inf}),
        (CorrectionRow, {"label": 1.0}, {"label": "high"}),
        (RunNoteRow, {"note": "x" * 4000}, {"note": "x" * 4001}),
        (RunNoteRow, {"note": "x"}, {"note": ""}),
        (DatasetPart, {"name": "x"}, {"name": 3}),
        (DatasetPart, {"notes": []}, {"corrections": {"a": 1}}),
        (DatasetPart, {"plan": None}, {"corrections": []}),
        (PlanRow, {"id": "0p_-"}, {"id": "../p"}),
        (JudgePart, {"id": "J"}, {"id": "../x"}),
        (JudgePart, {"state": "cancelled"}, {"state": "running"}),
        (JudgedPairRow, {"pairs": []}, {"grade": 4.0}),
        (JudgedPairRow, {"pairs": []}, {"grade": None}),
        (JudgedPairRow, {"pairs": []}, {"grade": 1.0, "error": "e"}),
        (RunPart, {"name": "x"}, {"name": ""}),
        (RunPart, {"name": "退"}, {"name": "\ud800"}),
        (RunPart, {"created": "2026-01-02"}, {"created": "yesterday"}),
        (RunPart, {"reranker": "x" * 200}, {"reranker": "x" * 201}),
        (RunPart, {"depth": None}, {"depth": -1}),
        (RunPart, {"depth": 3}, {"depth": "deep"}),
        (RunPart, {"load_ms": 1.5}, {"load_ms": math.inf}),
        (RunPart, {"settings": {"a": "x" * 999_991}}, {"settings": {"a": "x" * 999_993}}),
        (RunPart, {"settings": {"a": 1}}, {"settings": []}),
        (RunPart, {"machine": {"a": "x" * 999_991}}, {"machine": {"a": "x" * 999_993}}),
    ],
)
def test_a_row_of_a_file_is_one_that_the_store_may_write(parts, kind, at_most, too_much):
    data, run = (
        json.loads(next(parts[name] for name in parts if name.startswith(each)))
        for each in ("datasets", "runs")
    )
    judge = data["judges"][0]
    given = {
        NoteRow: data["notes"][0], CorrectionRow: data["corrections"][0], RunNoteRow: run["note"],
        DatasetPart: data, PlanRow: data["plan"], JudgePart: judge, RunPart: run,
        JudgedPairRow: judge["pairs"][0],
    }[kind]  # fmt: skip
    if kind is JudgedPairRow:
        # A judge checks that grades are on its scale.
        kind, too_much = JudgePart, {"pairs": [given | too_much]}
        given = judge
    found = fitted(given | at_most, kind)
    assert all(getattr(found, name) == value for name, value in at_most.items())
    with pytest.raises(ValueError, match=r"."):
        fitted(given | too_much, kind)
