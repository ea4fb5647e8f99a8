"""Whatever JSON stands in a workspace file, it is refused in words, or what is stored of it can be
read again, with complete settings."""

import itertools
import json
from typing import Any

import pytest
from msgspec import convert

from rankdash import sharing
from rankdash.analysis.labelling.draws import LabelSettings
from rankdash.errors import FormatError
from rankdash.rerankers.judging.judge import SETTINGS
from rankdash.store import Workspace
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.notes.label_plans import LabelPlans
from rankdash.store.notes.notes import Notes
from tests.broken import Words, broken
from tests.marked import bring_in, exported, fewest, json_in, written

COMPLETE = {spec.name for spec in SETTINGS}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return exported(written(Workspace(tmp_path_factory.mktemp("written") / "home"), Words()))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to objects and lists in JSON, that in texts included, of lists the first item. A
    text that is JSON is a step None."""
    if isinstance(value, str):
        inner = json_in(value)
        return [] if inner is None else places(inner, (*path, None))
    if not isinstance(value, dict | list):
        return []
    steps = value.items() if isinstance(value, dict) else list(enumerate(value))[:1]
    return [path, *(each for step, one in steps for each in places(one, (*path, step)))]


def replaced(value: Any, path: tuple[Any, ...], text: str) -> str:
    """JSON with another JSON at a path."""
    if not path:
        return text
    step, *rest = path
    if step is None:
        return json.dumps(replaced(json.loads(value), tuple(rest), text))
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    made = [
        (key, replaced(one, tuple(rest), text) if key == step else json.dumps(one))
        for key, one in items
    ]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {one}" for key, one in made) + "}"
    return "[" + ", ".join(one for _key, one in made) + "]"


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = json.loads(value) if step is None else value[step]
    return value


@pytest.mark.parametrize("step", [15, pytest.param(1, marks=pytest.mark.thorough)])
def test_what_is_imported_can_be_read(parts, tmp_path, step):
    """Each fifteenth case, and all of them."""
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
            # A plan is left out by name.
            assert wrong not in ("not JSON", "deep") or found.findings, case
            for dataset_id in found.datasets:
                assert readable(workspace, dataset_id), case
                workspace.delete_dataset(dataset_id)
    assert refused > accepted > 0


def readable(workspace: Workspace, dataset_id: str) -> bool:
    judges = StoredJudges(workspace)
    sharing.check_report(workspace.check_report(dataset_id))
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
