"""What everything is called is read anew where a database was written to, and only there."""

import os

import pandas as pd
import pytest

from rankdash.store import Workspace, names
from rankdash.store.database import files_of
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.names import Watch
from rankdash.store.notes.pins import Pins
from tests.stored import keep_lists, keep_rows

LONG_AGO, FAR_OFF = 10**18, 4 * 10**18
ROWS = "query_id,query,doc_id,document,label\nq1,a question,d1,an answer,1\n"


@pytest.fixture
def filled(tmp_path):
    """A workspace, and the ids of its data set and run."""
    workspace = Workspace.open(tmp_path / "home")
    dataset_id = keep_rows(workspace, ROWS, "Shop")
    run = keep_lists(workspace, dataset_id, [("q1", ["d1"], [1.0])], "second")
    return workspace, dataset_id, run.id


def set_time(workspace, nanoseconds):
    """Of when its files were written last."""
    for file in files_of(workspace.database.file):
        if file.exists():
            os.utime(file, ns=(nanoseconds, nanoseconds))


def test_names_are_of_each_data_set(filled):
    workspace, dataset_id, run_id = filled
    other = keep_rows(workspace, ROWS.replace("an answer", "another"), "Other")
    graded = pd.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "grade": [1.0], "error": [""]})
    judge = StoredJudges(workspace).add(dataset_id, "careful", "", 1, graded)
    Pins(workspace).pin(run_id)
    assert names.names(workspace) == {
        dataset_id: (
            (dataset_id, "datasets", dataset_id, "Shop"),
            (dataset_id, "judges", judge, "careful"),
            (dataset_id, "pins", run_id, ""),
            (dataset_id, "runs", run_id, "second"),
        ),
        other: ((other, "datasets", other, "Other"),),
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda workspace, dataset_id, _run: workspace.rename_dataset(dataset_id, "Post"),
        lambda workspace, _dataset, run_id: workspace.rename_run(run_id, "sharper"),
        lambda workspace, dataset_id, _run: workspace.delete_dataset(dataset_id),
    ],
)
def test_a_change_by_another_is_seen_and_nothing_is_read_without_one(filled, monkeypatch, change):
    workspace, dataset_id, run_id = filled
    reads = []
    read = names.names
    monkeypatch.setattr(names, "names", lambda given: reads.append(given) or read(given))
    watch = Watch()
    set_time(workspace, LONG_AGO)
    before = watch.names(workspace)
    assert watch.names(workspace) is before
    assert len(reads) == 1
    change(Workspace.open(workspace.root), dataset_id, run_id)
    assert watch.names(workspace) == read(workspace) != before


def test_what_was_written_this_moment_is_looked_at_again(filled):
    workspace, dataset_id, _run = filled
    watch = Watch()
    # Later than any look, so that no look is long after it.
    set_time(workspace, FAR_OFF)
    watch.names(workspace)
    workspace.rename_dataset(dataset_id, "Shed")
    # As on a disk whose clock has not moved on since.
    set_time(workspace, FAR_OFF)
    assert watch.names(workspace)[dataset_id][0][-1] == "Shed"
