"""A process that dies in the middle of a save or a delete leaves nothing listed and no litter, and
never a workspace that looks damaged."""

import os
import time

from rankdash.store import Workspace
from rankdash.store.folders import RECORD, SWEEP_AFTER_SECONDS, UNFINISHED
from rankdash.store.jobs.job_batches import write_part
from rankdash.store.jobs.queue import Queue

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

DIE_BEFORE_THE_RECORD = """
import os, sys
from pathlib import Path
from rankdash.store import Workspace, records
source, target = Workspace.open(Path(sys.argv[1])), Workspace.open(Path(sys.argv[2]))
dataset = source.dataset(source.datasets()[0].id)
records.keep = lambda *args: os.kill(os.getpid(), 9)
target.save_dataset(dataset)
"""

DIE_BEFORE_THE_ROW_GOES = """
import os, sys
from pathlib import Path
from rankdash.store import Workspace, records
workspace = Workspace.open(Path(sys.argv[1]))
withdraw = records.withdraw
def withdraw_and_die(folder):
    withdraw(folder)
    os.kill(os.getpid(), 9)
records.withdraw = withdraw_and_die
workspace.delete_dataset(workspace.datasets()[0].id)
"""


def folders_of(workspace, kind="datasets"):
    return sorted((workspace.root / kind).iterdir())


def make_old(folder):
    then = time.time() - SWEEP_AFTER_SECONDS - 1
    os.utime(folder, (then, then))


def test_a_delete_cut_short_is_finished_by_the_next_start(
    workspace, make_dataset, make_run, python
):
    dataset, other = make_dataset(), make_dataset("other", salt="!")
    workspace.save_dataset(dataset)
    workspace.save_dataset(other)
    workspace.save_run(make_run(dataset))
    assert python(DIE_BEFORE_FILES_GO, workspace.root).wait() == -9
    assert [row.id for row in workspace.datasets()] == [other.id]
    assert workspace.runs() == []
    for folder in folders_of(workspace) + folders_of(workspace, "runs"):
        make_old(folder)
    again = Workspace.open(workspace.root)
    assert again.trouble is None
    assert [folder.name[:16] for folder in folders_of(again)] == [other.id]
    assert folders_of(again, "runs") == []
    # Not at once: it lies in the trash for a month.
    assert len([*again.root.glob("trash/*/datasets/*"), *again.root.glob("trash/*/runs/*")]) == 2


def test_a_save_cut_short_is_never_listed_and_is_swept(workspace, make_dataset, tmp_path, python):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    target = Workspace.open(tmp_path / "target")
    other = target.save_dataset(make_dataset("other", salt="!"))
    (kept,) = folders_of(target)
    assert python(DIE_BEFORE_THE_ROW, workspace.root, target.root).wait() == -9
    assert [row.id for row in target.datasets()] == [other]
    (litter,) = set(folders_of(target)) - {kept}
    # It could be a save in progress, so it stays for now.
    assert Workspace.open(target.root).trouble is None
    assert set(folders_of(target)) == {kept, litter}
    make_old(litter)
    Workspace.open(target.root)
    assert folders_of(target) == [kept]
    target.save_dataset(dataset)
    assert target.dataset(dataset.id) == dataset


def test_a_save_cut_short_after_its_row_is_listed_and_gets_its_record(
    workspace, make_dataset, tmp_path, python
):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    target = Workspace.open(tmp_path / "target")
    assert python(DIE_BEFORE_THE_RECORD, workspace.root, target.root).wait() == -9
    (folder,) = folders_of(target)
    make_old(folder)
    again = Workspace.open(target.root)
    assert again.dataset(dataset.id) == dataset
    assert (folder / RECORD).is_file()
    assert not (folder / UNFINISHED).exists()


def test_a_delete_cut_short_before_its_row_went_deleted_nothing(
    workspace, make_dataset, make_run, python
):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    assert python(DIE_BEFORE_THE_ROW_GOES, workspace.root).wait() == -9
    (folder,) = folders_of(workspace)
    make_old(folder)
    again = Workspace.open(workspace.root)
    assert again.trouble is None
    assert again.dataset(dataset.id) == dataset
    assert (folder / RECORD).is_file()


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
        write_part(workspace, name, [])
    for kind in ("datasets", "runs", "jobs"):
        for folder in folders_of(workspace, kind):
            make_old(folder)
    again = Workspace.open(workspace.root)
    assert again.dataset(dataset.id) == dataset
    assert again.run("run-1").id == "run-1"
    assert [folder.name for folder in folders_of(again, "jobs")] == [job_id]
