"""Several real processes use one workspace at once, as two browsers and a command line do; and one
that dies in the middle of a save or a delete leaves nothing listed and no litter, and never a
workspace that looks damaged."""

import pytest

from rankdash.store import Workspace
from rankdash.store.folders import RECORD, UNFINISHED
from rankdash.store.jobs.job_batches import write_part
from tests.store.builders import HEAD, KILLED, folders_of, make_old, submit

# A second argument: the folder that is written to.
COPY = f"""{HEAD}
from rankdash.store import folders, records, tables
dataset = workspace.dataset(workspace.datasets()[0].id)
target = Workspace.open(Path(sys.argv[2])) if len(sys.argv) > 2 else workspace
die = lambda *args, **more: os.kill(os.getpid(), 9)
"""
DIE_BEFORE_FILES_GO = f"{COPY}folders.shutil.rmtree = die\nworkspace.delete_dataset(dataset.id)"
DIE_BEFORE_THE_ROW = f"{COPY}tables.write_ranking = die\ntarget.save_dataset(dataset)"
DIE_BEFORE_THE_RECORD = f"{COPY}records.keep = die\ntarget.save_dataset(dataset)"
DIE_BEFORE_THE_ROW_GOES = f"""{COPY}
withdraw = records.withdraw
records.withdraw = lambda folder: (withdraw(folder), die())
workspace.delete_dataset(dataset.id)
"""
SAVE_THE_SAME = f"{COPY}target.save_dataset(dataset)\nassert target.dataset(dataset.id) == dataset"
WRITE_OR_READ = f"""{HEAD}
from dataclasses import replace
me = sys.argv[2]
dataset, run = workspace.dataset(workspace.datasets()[0].id), workspace.run("run-1")
for number in range(10):
    if me == "0":
        assert workspace.dataset(dataset.id).id == dataset.id
        assert len(workspace.run("run-1").ranking) == 4
        assert all(row.queries_done == 2 for row in workspace.runs(dataset.id))
        continue
    workspace.save_run(replace(run, id=f"{{me}}-{{number}}", name=f"{{me}}-{{number}}"))
    workspace.set_setting(me, str(number))
    workspace.rename_dataset(dataset.id, f"{{me}}-{{number}}")
    if number % 2:
        workspace.delete_run(f"{{me}}-{{number}}")
"""


@pytest.mark.thorough
def test_readers_and_writers_do_not_disturb_each_other(workspace, stored, all_pass):
    all_pass(WRITE_OR_READ, workspace.root, times=3)
    assert len(workspace.runs()) == len(folders_of(workspace.root, "runs")) == 1 + 2 * 5
    assert (workspace.setting("1"), workspace.setting("2")) == ("9", "9")
    for row in workspace.runs():
        assert len(workspace.run(row.id).ranking) == 4


@pytest.mark.thorough
def test_two_processes_that_save_the_same_data_set_store_it_once(
    workspace, stored, tmp_path, all_pass
):
    target = Workspace.open(tmp_path / "target")
    all_pass(SAVE_THE_SAME, workspace.root, target.root, times=3)
    assert len(target.datasets()) == len(folders_of(target.root, "datasets")) == 1


@pytest.mark.thorough
def test_a_delete_cut_short_is_finished_by_the_next_start(workspace, stored, make_dataset, python):
    other = workspace.save_dataset(make_dataset("other", salt="!"))
    assert python(DIE_BEFORE_FILES_GO, workspace.root).wait() == KILLED
    assert [row.id for row in workspace.datasets()] == [other]
    assert workspace.runs() == []
    make_old(*folders_of(workspace.root))
    again = Workspace.open(workspace.root)
    assert again.trouble is None
    assert [folder.name[:16] for folder in folders_of(again.root, "datasets", "runs")] == [other]
    # Not at once: it lies in the trash for a month.
    assert len([*again.root.glob("trash/*/datasets/*"), *again.root.glob("trash/*/runs/*")]) == 2


@pytest.mark.thorough
def test_a_save_cut_short_is_never_listed_and_is_swept(
    workspace, stored, make_dataset, tmp_path, python
):
    target = Workspace.open(tmp_path / "target")
    other = target.save_dataset(make_dataset("other", salt="!"))
    (kept,) = folders_of(target.root, "datasets")
    assert python(DIE_BEFORE_THE_ROW, workspace.root, target.root).wait() == KILLED
    assert [row.id for row in target.datasets()] == [other]
    (litter,) = {*folders_of(target.root, "datasets")} - {kept}
    # It could be a save in progress, so it stays for now.
    assert Workspace.open(target.root).trouble is None
    assert {*folders_of(target.root, "datasets")} == {kept, litter}
    make_old(litter)
    Workspace.open(target.root)
    assert folders_of(target.root, "datasets") == [kept]
    target.save_dataset(stored)
    assert target.dataset(stored.id) == stored


@pytest.mark.thorough
@pytest.mark.parametrize("code", [DIE_BEFORE_THE_RECORD, DIE_BEFORE_THE_ROW_GOES])
def test_what_has_its_row_is_listed_and_gets_its_record(workspace, stored, tmp_path, python, code):
    """A save that was cut short after its row, and a delete before its row went."""
    target = Workspace.open(tmp_path / "target") if code == DIE_BEFORE_THE_RECORD else workspace
    assert python(code, workspace.root, target.root).wait() == KILLED
    (folder,) = folders_of(target.root, "datasets")
    make_old(folder)
    again = Workspace.open(target.root)
    assert again.trouble is None
    assert again.dataset(stored.id) == stored
    assert (folder / RECORD).is_file() and not (folder / UNFINISHED).exists()


def test_the_sweep_spares_what_is_listed(workspace, stored):
    job_id = submit(workspace, stored.id)
    for name in (job_id, "job-of-no-row"):
        write_part(workspace, name, [])
    make_old(*folders_of(workspace.root))
    again = Workspace.open(workspace.root)
    assert again.dataset(stored.id) == stored
    assert again.run("run-1").id == "run-1"
    assert [folder.name for folder in folders_of(again.root, "jobs")] == [job_id]
