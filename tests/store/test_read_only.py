"""A workspace that is open for reading only: all data can be read, and no byte changes."""

import io
import os

import pytest

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import Workspace, migrations
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations, Owner
from rankdash.core.workspace.jobs.queue import Queue, write_part
from rankdash.core.workspace.notes import (
    Corrections,
    LabelNotes,
    LabelPlans,
    Notes,
    Pins,
    RunNotes,
)
from rankdash.core.workspace.workspace_file import archive, import_workspace
from tests.store.builders import content_of, everything, submit, submit_judge

QUESTION = ExplanationRequest("run-1", "7", "1", "term")


def packed(workspace):
    archive.export(workspace, target := io.BytesIO(), "1.2.3")
    return target


WRITES = {
    "data set": lambda w, d: w.save_dataset(d.relabelled(d.qrels.iloc[:1].assign(label=9.0))),
    "rename": lambda w, d: w.rename_dataset(d.id, "x"),
    "delete": lambda w, d: w.delete_dataset(d.id),
    "run": lambda w, d: w.save_run(w.run("run-1")),
    "rename run": lambda w, d: w.rename_run("run-1", "x"),
    "delete run": lambda w, d: w.delete_run("run-1"),
    "setting": lambda w, d: w.set_setting("prices", "x"),
    "note": lambda w, d: Notes(w).store(d.id, "7", ["x"], ""),
    "run note": lambda w, d: RunNotes(w).store("run-1", "x"),
    "pin": lambda w, d: Pins(w).pin("run-1"),
    "correction": lambda w, d: Corrections(w).correct(d.id, ("7", "1"), 1.0, ""),
    "label note": lambda w, d: LabelNotes(w).store(d.id, ("7", "1"), "Ann", "x"),
    "plan": lambda w, d: LabelPlans(w).begin(d.id, {}, ""),
    "job": lambda w, d: submit(w, d.id),
    "judge": lambda w, d: submit_judge(w, d.id, "x", pairs=[("7", "1")]),
    "part": lambda w, d: write_part(w, "job", []),
    "explanation": lambda w, d: Explanations(w).ask(QUESTION),
    "kept scores": lambda w, d: w.score_cache,
    "import": lambda w, d: import_workspace.bring_in(w, packed(w), "file"),
}


@pytest.fixture
def shown(workspace, stored):
    return Workspace(workspace.root, read_only=True)


def trace(root):
    return content_of(root), {str(each): each.stat().st_mtime_ns for each in root.rglob("*")}


def test_all_can_be_read_every_write_is_refused_in_words_and_no_trace_is_left(
    workspace, stored, shown
):
    found, before = everything(workspace), trace(shown.root)
    assert everything(Workspace(shown.root, read_only=True)) == found
    for write in WRITES.values():
        with pytest.raises(StoreError, match=r"reading only.*RANKDASH_READ_ONLY"):
            write(shown, stored)
    assert trace(shown.root) == before


def test_what_another_program_has_just_written_is_seen(shown):
    writer = Workspace(shown.root)
    with writer.database.writing() as db:
        db.execute("INSERT INTO settings (key, value) VALUES ('a', 'b')")
    with writer.database.reading() as held:
        held.execute("SELECT 1 FROM settings").fetchall()
        writer.set_setting("late", "seen")
        assert shown.setting("late") == "seen"
    assert shown.setting("a") == "b"


def test_work_that_died_is_shown_as_it_is_and_not_written_off(workspace, stored):
    job, dead = submit(workspace, stored.id), Owner(pid=2**22 + 1)
    Explanations(workspace).ask(QUESTION)
    for work in (Queue(workspace), Explanations(workspace)):
        work.claim(dead)
    shown = Workspace(workspace.root, read_only=True)
    assert [(row.id, row.state) for row in Queue(shown).rows()] == [(job, "running")]
    assert Explanations(shown).find(QUESTION).state == "running"


def test_a_folder_without_a_workspace_and_an_older_one_are_refused(
    tmp_path, workspace, monkeypatch
):
    with pytest.raises(StoreError, match="missing"):
        Workspace(tmp_path / "nothing", read_only=True)
    assert not (tmp_path / "nothing").exists()
    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, lambda db: None])
    with pytest.raises(StoreError, match="older version"):
        Workspace(workspace.root, read_only=True)


def test_the_environment_says_so(workspace, monkeypatch):
    for value in ("1", "yes", " True ", "0", "", "no", "false", " OFF "):
        monkeypatch.setenv("RANKDASH_READ_ONLY", value)
        assert Workspace.open(workspace.root).read_only is (value in ("1", "yes", " True ")), value


def test_a_disk_that_is_mounted_for_reading_is_told_by_the_system(workspace, stored, monkeypatch):
    assert not Workspace.open(workspace.root).read_only
    status = os.statvfs(workspace.root)

    class Mounted:
        f_flag = status.f_flag | os.ST_RDONLY

    monkeypatch.setattr(os, "statvfs", lambda _root: Mounted())
    opened = Workspace.open(workspace.root)
    assert opened.read_only
    assert [row.name for row in opened.runs()] == ["a run"]
    with pytest.raises(StoreError, match="reading only"):
        opened.rename_run("run-1", "x")
