"""A process that dies in the middle of a save or a delete leaves nothing listed and no litter."""

import os
import time

from rankdash.store import Workspace
from rankdash.store.folders import SWEEP_AFTER_SECONDS
from rankdash.store.queue import Queue

DIE_BEFORE_FILES_GO = """
import os, sys
from pathlib import Path
from rankdash.store import Workspace, folders
workspace = Workspace.open(Path(sys.argv[1]))
folders.shutil.rmtree = lambda *args, **kwargs: os.kill(os.getpid(), 9)
workspace.delete_dataset(workspace.datasets()[0].id)
"""

DIE_BEFORE_THE_ROW = """
import os, sys
from pathlib import Path
from rankdash.store import Workspace, tables as module
source, target = Workspace.open(Path(sys.argv[1])), Workspace.open(Path(sys.argv[2]))
dataset = source.dataset(source.datasets()[0].id)
module.write_ranking = lambda *args: os.kill(os.getpid(), 9)
target.save_dataset(dataset)
"""


def folders_of(workspace, kind="datasets"):
    return sorted((workspace.root / kind).iterdir())


def make_old(folder):
    then = time.time() - SWEEP_AFTER_SECONDS - 1
    os.utime(folder, (then, then))


def test_a_delete_cut_short_is_finished_by_the_next_start(
    workspace, make_dataset, make_run, python
):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    assert python(DIE_BEFORE_FILES_GO, workspace.root).wait() == -9
    assert workspace.datasets() == []
    assert workspace.runs() == []
    left = folders_of(workspace) + folders_of(workspace, "runs")
    assert len(left) == 2
    for folder in left:
        make_old(folder)
    Workspace.open(workspace.root)
    assert folders_of(workspace) + folders_of(workspace, "runs") == []


def test_a_save_cut_short_is_never_listed_and_is_swept(workspace, make_dataset, tmp_path, python):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    target = Workspace.open(tmp_path / "target")
    assert python(DIE_BEFORE_THE_ROW, workspace.root, target.root).wait() == -9
    assert target.datasets() == []
    (litter,) = folders_of(target)
    # It could be a save in progress, so it stays for now.
    Workspace.open(target.root)
    assert folders_of(target) == [litter]
    make_old(litter)
    Workspace.open(target.root)
    assert folders_of(target) == []
    target.save_dataset(dataset)
    assert target.dataset(dataset.id) == dataset


def test_the_sweep_spares_what_is_listed(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    job_id = Queue(workspace).submit(
        dataset_id=dataset.id,
        name="job",
        reranker="bm25",
        settings={},
        depth=None,
        sample=None,
        seed=0,
    )
    for name in (job_id, "job-of-no-row"):
        (workspace.root / "jobs" / name).mkdir()
    for kind in ("datasets", "runs", "jobs"):
        for folder in folders_of(workspace, kind):
            make_old(folder)
    again = Workspace.open(workspace.root)
    assert again.dataset(dataset.id) == dataset
    assert again.run("run-1").id == "run-1"
    assert [folder.name for folder in folders_of(again, "jobs")] == [job_id]
