"""A workspace that is open for reading only: all of it can be seen, and no byte of it changes."""

import hashlib
import os

import pytest

from rankdash.errors import StoreError
from rankdash.store import Workspace, migrations
from rankdash.store.jobs.explanations import Asked, Explanations
from rankdash.store.jobs.job_batches import write_part
from rankdash.store.jobs.leases import Owner
from rankdash.store.jobs.queue import Queue
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.notes import Notes
from rankdash.store.notes.pins import Pins
from rankdash.store.notes.run_notes import RunNotes

WRITES = {
    "data set": lambda w, d, r: w.save_dataset(d.relabelled(d.qrels.iloc[:1].assign(label=9.0))),
    "rename": lambda w, d, r: w.rename_dataset(d.id, "x"),
    "delete": lambda w, d, r: w.delete_dataset(d.id),
    "run": lambda w, d, r: w.save_run(r),
    "rename run": lambda w, d, r: w.rename_run(r.id, "x"),
    "delete run": lambda w, d, r: w.delete_run(r.id),
    "setting": lambda w, d, r: w.set_setting("prices", "x"),
    "note": lambda w, d, r: Notes(w).keep(d.id, "7", ["x"], ""),
    "run note": lambda w, d, r: RunNotes(w).keep(r.id, "x"),
    "pin": lambda w, d, r: Pins(w).pin(r.id),
    "correction": lambda w, d, r: Corrections(w).correct(d.id, ("7", "1"), 1.0, ""),
    "job": lambda w, d, r: Queue(w).submit(dataset_id=d.id, name="x", reranker="bm25", settings={},
                                           depth=None, sample=None, seed=0),
    "part": lambda w, d, r: write_part(w, "job", []),
    "explanation": lambda w, d, r: Explanations(w).ask(Asked(r.id, "7", "1", "term")),
    "kept scores": lambda w, d, r: w.score_cache,
}  # fmt: skip


@pytest.fixture
def shown(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset, report_json="{}")
    run = make_run(dataset)
    workspace.save_run(run)
    return Workspace(workspace.root, read_only=True), dataset, run


def bytes_of(root):
    return {
        str(file): (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


@pytest.mark.parametrize("write", WRITES)
def test_every_write_is_refused_in_words_and_changes_nothing(shown, write):
    workspace, dataset, run = shown
    before = bytes_of(workspace.root)
    with pytest.raises(StoreError, match=r"reading only.*RANKDASH_READ_ONLY"):
        WRITES[write](workspace, dataset, run)
    assert bytes_of(workspace.root) == before


def test_everything_can_be_read_without_a_trace(shown):
    workspace, dataset, run = shown
    before = bytes_of(workspace.root)
    again = Workspace(workspace.root, read_only=True)
    assert again.dataset(dataset.id) == dataset
    assert again.run(run.id).name == run.name
    assert [row.id for row in again.runs()] == [run.id]
    assert (again.setting("x"), Notes(again).all(dataset.id)) == (None, [])
    assert Corrections(again).layer(dataset.id).count == 0
    assert bytes_of(workspace.root) == before


def test_what_another_program_has_just_written_is_seen(shown):
    workspace, _dataset, _run = shown
    writer = Workspace(workspace.root)
    with writer.database.writing() as db:
        db.execute("INSERT INTO settings (key, value) VALUES ('a', 'b')")
    with writer.database.reading() as held:
        held.execute("SELECT 1 FROM settings").fetchall()
        writer.set_setting("late", "seen")
        assert workspace.setting("late") == "seen"
    assert workspace.setting("a") == "b"


def test_work_that_died_is_shown_as_it_is_and_not_written_off(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    run = make_run(dataset)
    workspace.save_run(run)
    job = Queue(workspace).submit(
        dataset_id=dataset.id, name="x", reranker="bm25", settings={}, depth=None, sample=None,
        seed=0,
    )  # fmt: skip
    dead = Owner(pid=2**22 + 1)
    Queue(workspace).claim(dead)
    Explanations(workspace).ask(Asked(run.id, "7", "1", "term"))
    Explanations(workspace).claim(dead)
    shown = Workspace(workspace.root, read_only=True)
    assert [(row.id, row.state) for row in Queue(shown).rows()] == [(job, "running")]
    assert Explanations(shown).find(Asked(run.id, "7", "1", "term")).state == "running"


def test_a_folder_without_a_workspace_and_an_older_one_are_refused(
    tmp_path, workspace, monkeypatch
):
    with pytest.raises(StoreError, match="missing"):
        Workspace(tmp_path / "nothing", read_only=True)
    assert not (tmp_path / "nothing").exists()
    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, lambda db: None])
    with pytest.raises(StoreError, match="older version"):
        Workspace(workspace.root, read_only=True)


@pytest.mark.parametrize(
    ("value", "read_only"),
    [
        *((each, True) for each in ("1", "yes", " True ")),
        *((each, False) for each in ("0", "", "no", "false", " OFF ")),
    ],
)
def test_the_environment_says_so(workspace, monkeypatch, value, read_only):
    monkeypatch.setenv("RANKDASH_READ_ONLY", value)
    assert Workspace.open(workspace.root).read_only is read_only


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_can_be_shown(shown):
    workspace, dataset, _run = shown
    for place in [workspace.root, *workspace.root.rglob("*")]:
        place.chmod(0o555 if place.is_dir() else 0o444)
    try:
        assert Workspace(workspace.root, read_only=True).dataset(dataset.id) == dataset
    finally:
        for place in [workspace.root, *workspace.root.rglob("*")]:
            place.chmod(0o755 if place.is_dir() else 0o644)
