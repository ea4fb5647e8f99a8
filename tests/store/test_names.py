"""Names are read again after a write to the database, and only then."""

import os

import pandas as pd

from rankdash.core.workspace import Workspace
from rankdash.core.workspace import workspace as module
from rankdash.core.workspace.database import files_of
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.notes import Pins
from rankdash.core.workspace.workspace import NamesWatch

LONG_AGO, FAR_OFF = 10**18, 4 * 10**18


def set_time(workspace, nanoseconds):
    """Set the time of the last write to its files."""
    for file in files_of(workspace.database.file):
        if file.exists():
            os.utime(file, ns=(nanoseconds, nanoseconds))


def test_names_are_of_each_data_set(workspace, stored, make_dataset):
    other = workspace.save_dataset(make_dataset("Other", salt="!"))
    graded = pd.DataFrame({"query_id": ["7"], "doc_id": ["1"], "grade": [1.0], "error": [""]})
    judge = StoredJudges(workspace).add(stored.id, "careful", "", 1, graded)
    Pins(workspace).pin("run-1")
    rows = [("datasets", stored.id, "small"), ("judges", judge, "careful")]
    rows += [("pins", "run-1", ""), ("runs", "run-1", "a run")]
    assert module.names_of(workspace) == {
        stored.id: tuple((stored.id, *row) for row in rows),
        other: ((other, "datasets", other, "Other"),),
    }


def test_a_change_by_another_is_seen_and_nothing_is_read_without_one(
    workspace, stored, monkeypatch
):
    reads, read, watch = [], module.names_of, NamesWatch()
    monkeypatch.setattr(module, "names_of", lambda given: reads.append(given) or read(given))
    for change in (
        lambda other: other.rename_dataset(stored.id, "Post"),
        lambda other: other.rename_run("run-1", "sharper"),
        lambda other: other.delete_dataset(stored.id),
    ):
        set_time(workspace, LONG_AGO)
        before = watch.names(workspace)
        reads.clear()
        assert watch.names(workspace) is before and not reads
        change(Workspace.open(workspace.root))
        assert watch.names(workspace) == read(workspace) != before


def test_what_was_written_this_moment_is_looked_at_again(workspace, stored):
    watch = NamesWatch()
    # Later than any reading, so that the write is always recent.
    set_time(workspace, FAR_OFF)
    watch.names(workspace)
    workspace.rename_dataset(stored.id, "Shed")
    # The same time again, as on a disk with a coarse clock.
    set_time(workspace, FAR_OFF)
    assert watch.names(workspace)[stored.id][0][-1] == "Shed"
