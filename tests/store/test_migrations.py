import json
import sqlite3
from contextlib import closing

import pytest

from rankdash.errors import StoreError
from rankdash.store import Workspace, backups, migrations
from rankdash.store.jobs.queue import Queue
from rankdash.store.notes.notes import Note, Notes
from rankdash.store.notes.run_notes import RunNote, RunNotes

OPEN = """
import sys
from pathlib import Path
from rankdash.store import Workspace
Workspace.open(Path(sys.argv[1])).set_setting(sys.argv[2], "here")
"""


def version(root):
    with closing(sqlite3.connect(root / "rankdash.sqlite")) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def test_a_workspace_of_an_older_version_keeps_its_content(
    tmp_path, monkeypatch, make_dataset, make_run
):
    dataset = make_dataset()
    with monkeypatch.context() as older:
        older.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        workspace = Workspace.open(tmp_path)
        workspace.save_dataset(dataset)
        workspace.save_run(make_run(dataset))
    assert version(tmp_path) == 1
    before = backups.listed(tmp_path)
    workspace = Workspace.open(tmp_path)
    assert version(tmp_path) == len(migrations.MIGRATIONS)
    (copy,) = set(backups.listed(tmp_path)) - set(before)
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == 1
    assert workspace.dataset(dataset.id) == dataset
    assert [row.id for row in workspace.runs()] == ["run-1"]
    assert Queue(workspace).rows() == []


def test_a_note_of_an_older_version_has_no_author(tmp_path, monkeypatch, make_dataset, make_run):
    with monkeypatch.context() as older:
        step = migrations.MIGRATIONS.index(migrations.who_wrote_a_note)
        older.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:step])
        workspace = Workspace.open(tmp_path)
        dataset_id = workspace.save_dataset(dataset := make_dataset())
        run_id = workspace.save_run(make_run(dataset))
    with closing(sqlite3.connect(tmp_path / "rankdash.sqlite")) as db:
        db.execute("INSERT INTO notes VALUES (?, '7', '[]', 'odd', '2026-01-02')", (dataset_id,))
        db.execute("INSERT INTO run_notes VALUES (?, ?, 'why', '2026-01-02')", (run_id, dataset_id))
        db.commit()
    workspace = Workspace.open(tmp_path)
    assert Notes(workspace).all(dataset_id) == [Note("7", (), "odd", "2026-01-02", "")]
    assert RunNotes(workspace).of(run_id) == RunNote(run_id, "why", "2026-01-02", "")


def test_every_kind_of_server_of_ones_own_needed_no_key():
    given = [{"dialect": each} for each in ("tei", "vllm", "infinity", "nim", "cohere")]
    with closing(sqlite3.connect(":memory:")) as db:
        for table in ("runs", "jobs"):
            db.execute(f"CREATE TABLE {table} (id INTEGER, reranker TEXT, settings TEXT)")
            db.executemany(
                f"INSERT INTO {table} VALUES (?, 'endpoint', ?)",
                [(place, json.dumps(each)) for place, each in enumerate(given)],
            )
        migrations.services_that_were_asked_without_a_key(db)
        for table in ("runs", "jobs"):
            kept = [json.loads(row[0]) for row in db.execute(f"SELECT settings FROM {table}")]
            assert kept == [*(each | {"key_variable": "none"} for each in given[:-1]), given[-1]]


def test_a_workspace_of_a_newer_version_is_left_alone(workspace):
    with closing(sqlite3.connect(workspace.root / "rankdash.sqlite")) as db:
        newer = len(migrations.MIGRATIONS) + 1
        db.execute(f"PRAGMA user_version = {newer}")
    with pytest.raises(StoreError, match=r"newer version.*Update rankdash"):
        Workspace.open(workspace.root)
    assert version(workspace.root) == newer


def test_a_step_that_fails_leaves_the_version_before(tmp_path, monkeypatch):
    def breaks(db):
        db.execute("CREATE TABLE half (id TEXT)")
        db.execute("CREATE TABLE half (id TEXT)")

    Workspace.open(tmp_path)
    before = version(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, breaks])
        with pytest.raises(StoreError, match=r"rankdash\.sqlite"):
            Workspace.open(tmp_path)
    assert version(tmp_path) == before
    with closing(sqlite3.connect(tmp_path / "rankdash.sqlite")) as db:
        assert not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'half'").fetchall()


def test_several_processes_may_make_the_same_workspace_at_once(tmp_path, python):
    processes = [python(OPEN, tmp_path / "new", number) for number in range(4)]
    for process in processes:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    workspace = Workspace.open(tmp_path / "new")
    assert [workspace.setting(str(number)) for number in range(4)] == ["here"] * 4
