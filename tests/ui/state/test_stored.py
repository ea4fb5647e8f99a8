"""Reads of the workspace by pages: a revision of the labels, runs in their order, reports."""

import math
from dataclasses import replace

import pytest

from rankdash.core.data.dataset import Dataset
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace.notes import Corrections
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.cache import cache


@pytest.mark.parametrize(("given", "base"), [("shop", "shop"), ("shop+3", "shop")])
def test_a_revision_of_the_labels_is_of_its_data_set(given, base):
    assert stored.stored(given) == base
    assert stored.with_corrections(given, 4) == "shop+4"


def test_corrected_labels_are_in_a_revision_and_the_uploaded_ones_beside_it(workspace, request):
    dataset_id = request.getfixturevalue("stored")
    layer = Corrections(workspace)
    layer.correct(dataset_id, ("q1", "d1"), 0.0, "")
    layer.correct(dataset_id, ("q2", "d2"), None, "")
    revision = layer.layer(dataset_id).revision
    corrected = stored.with_corrections(dataset_id, revision)

    def labels(found: Dataset, query_id: str) -> dict[str, float]:
        own = found.qrels[found.qrels["query_id"] == query_id]
        return dict(zip(own["doc_id"], own["label"], strict=True))

    found = stored.dataset(corrected)
    assert labels(found, "q1")["d1"] == 0.0
    # A withdrawn label is missing, not 0.
    assert math.isnan(labels(found, "q2").get("d2", math.nan))
    assert labels(found, "q3")["d3"] == 1.0
    assert stored.uploaded_labels(corrected, "q1")["d1"] == 1.0
    assert stored.uploaded_labels(corrected, "gone") == {}
    assert labels(stored.dataset(dataset_id), "q1")["d1"] == 1.0
    assert next(iter(stored.systems(dataset_id))) == FIRST_STAGE


def test_runs_are_in_the_order_in_which_they_were_made(workspace, request):
    dataset_id = request.getfixturevalue("stored")
    run = workspace.run(workspace.runs(dataset_id)[0].id)
    workspace.delete_run(run.id)
    for name, day in {"a": "03", "b": "01", "c": "02", "d": "01"}.items():
        workspace.save_run(replace(run, id=name, name=name, created=f"2026-11-{day}T10:00:00"))
    (file,) = workspace.root.glob("runs/d-*/queries.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    stored.workspace.cache_clear()
    assert list(stored.rows(f"{dataset_id}+3")) == ["b", "c", "a"]
    assert list(stored.systems(dataset_id)) == [FIRST_STAGE, "b", "c", "a"]
    [(damaged, (name, _error))] = stored.damaged(f"{dataset_id}+3").items()
    assert (damaged, name) == ("d", "d")


@pytest.mark.parametrize(("text", "found"), [("", None), ("{}", None), ("[", "unread_report")])
def test_a_data_set_of_an_earlier_version_has_no_report(workspace, request, text, found):
    dataset_id = request.getfixturevalue("stored")
    with workspace.database.writing() as db:
        db.execute("UPDATE datasets SET report = ?", (text,))
    report = stored.check_report(dataset_id)
    assert report is found or found in [each.code for each in report.findings]


def test_a_run_is_read_once_for_a_study_and_by_itself_whatever_it_is_called(workspace, request):
    dataset_id = request.getfixturevalue("stored")
    system = list(stored.systems(dataset_id).values())[-1]
    study = Study(
        dataset=stored.dataset(dataset_id),
        systems=stored.systems(dataset_id),
        baseline=FIRST_STAGE,
        challengers=(system.id,),
        dataset_id=dataset_id,
        cache=cache,
    )
    assert study.run(system.id).ranking is stored.run(system.id).ranking
    workspace.rename_run(system.id, "best of all")
    assert stored.run(system.id).name == "best of all"
    assert stored.run(system.id).ranking is study.run(system.id).ranking
