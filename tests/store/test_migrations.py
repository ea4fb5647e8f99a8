import json
import sqlite3
from contextlib import closing

import pytest

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import Workspace, checksums, migrations
from rankdash.core.workspace.folders import DATABASE
from rankdash.core.workspace.jobs.queue import Queue
from tests.store.builders import HEAD, ask, version


@pytest.fixture
def of_version(tmp_path, monkeypatch, make_dataset, make_run):
    """Fill a workspace as the version with `steps` steps does; return its folder."""

    def make(steps):
        with monkeypatch.context() as older:
            older.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:steps])
            workspace = Workspace.open(tmp_path / "older")
            workspace.save_dataset(dataset := make_dataset())
            workspace.save_run(make_run(dataset))
        return workspace.root

    return make


def test_a_workspace_of_an_older_version_keeps_its_content(of_version, make_dataset):
    root = of_version(1)
    assert version(root) == 1
    before = checksums.backups(root)
    workspace = Workspace.open(root)
    assert version(root) == len(migrations.MIGRATIONS)
    (copy,) = set(checksums.backups(root)) - set(before)
    assert ask(copy, "PRAGMA user_version") == [1]
    assert workspace.dataset(make_dataset().id) == make_dataset()
    assert [row.id for row in workspace.runs()] == ["run-1"]
    assert Queue(workspace).rows() == []


def test_servers_of_ones_own_that_were_asked_without_a_key_still_are():
    given = [{"dialect": each} for each in ("tei", "vllm", "infinity", "nim")]
    own = [{"dialect": "cohere"}, {"dialect": "cohere", "key_variable": ""}]
    own += [{"dialect": "vllm", "key_variable": "RACK_API_KEY"}]
    with closing(sqlite3.connect(":memory:")) as db:
        for table in ("runs", "jobs"):
            db.execute(f"CREATE TABLE {table} (id INTEGER, reranker TEXT, settings TEXT)")
            db.executemany(
                f"INSERT INTO {table} VALUES (?, 'endpoint', ?)",
                [(place, json.dumps(each)) for place, each in enumerate([*given, *own])],
            )
        migrations.services_that_were_asked_without_a_key(db)
        for table in ("runs", "jobs"):
            kept = [json.loads(row[0]) for row in db.execute(f"SELECT settings FROM {table}")]
            assert kept == [*(each | {"key_variable": "none"} for each in given), *own]


def test_a_workspace_of_a_newer_version_is_left_alone(workspace):
    newer = len(migrations.MIGRATIONS) + 1
    ask(workspace.root / DATABASE, f"PRAGMA user_version = {newer}")
    with pytest.raises(StoreError, match=r"newer version.*Update rankdash"):
        Workspace.open(workspace.root)
    assert version(workspace.root) == newer


def test_a_step_that_fails_leaves_the_version_before(workspace, monkeypatch):
    def breaks(db):
        db.execute("CREATE TABLE half (id TEXT)")
        db.execute("CREATE TABLE half (id TEXT)")

    before = version(workspace.root)
    with monkeypatch.context() as broken:
        broken.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, breaks])
        with pytest.raises(StoreError, match=r"rankdash\.sqlite"):
            Workspace.open(workspace.root)
    assert version(workspace.root) == before
    assert ask(workspace.root / DATABASE, "SELECT 1 FROM sqlite_master WHERE name = 'half'") == []


@pytest.mark.thorough
def test_several_processes_may_make_the_same_workspace_at_once(tmp_path, all_pass):
    all_pass(f"{HEAD}workspace.set_setting(sys.argv[2], 'here')", tmp_path / "new")
    workspace = Workspace.open(tmp_path / "new")
    assert [workspace.setting(str(number)) for number in range(4)] == ["here"] * 4
