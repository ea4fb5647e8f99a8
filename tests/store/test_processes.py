"""Several real processes use one workspace at the same time, such as two browsers and a command
line; a process that dies during a save or a delete leaves no listed entry, no files, and never a
workspace that looks damaged."""

import pytest

from rankdash.core.workspace import Workspace, folders
from rankdash.core.workspace.folders import RECORD, UNFINISHED
from rankdash.core.workspace.jobs.queue import write_part
from tests.store.builders import HEAD, folders_of, make_old, submit

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


def test_a_delete_cut_short_is_finished_by_the_next_start(
    workspace, stored, make_dataset, monkeypatch
):
    other = workspace.save_dataset(make_dataset("other", salt="!"))
    with monkeypatch.context() as dying:
        dying.setattr(folders.shutil, "rmtree", lambda *args, **more: None)
        workspace.delete_dataset(stored.id)
    assert len(folders_of(workspace.root, "datasets", "runs")) == 3
    make_old(*folders_of(workspace.root))
    again = Workspace.open(workspace.root)
    assert (again.trouble, again.runs()) == (None, [])
    assert [folder.name[:16] for folder in folders_of(again.root, "datasets", "runs")] == [other]
    # Deleted data stays in the trash for a month.
    assert len([*again.root.glob("trash/*/datasets/*"), *again.root.glob("trash/*/runs/*")]) == 2


@pytest.mark.parametrize("when", ["a save before its record", "a delete before its row went"])
def test_what_has_its_row_is_listed_and_gets_its_record(workspace, make_dataset, monkeypatch, when):
    dataset, withdraw = make_dataset(), folders.withdraw_record

    def withdraw_and_die(folder):
        withdraw(folder)
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        if when == "a save before its record":
            dying.setattr(folders, "write_record", lambda *args: None)
        workspace.save_dataset(dataset)
        dying.setattr(folders, "withdraw_record", withdraw_and_die)
        if when == "a delete before its row went":
            with pytest.raises(KeyboardInterrupt):
                workspace.delete_dataset(dataset.id)
    (folder,) = folders_of(workspace.root, "datasets")
    assert not (folder / RECORD).exists()
    make_old(folder)
    again = Workspace.open(workspace.root)
    assert again.trouble is None
    assert again.dataset(dataset.id) == dataset
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
