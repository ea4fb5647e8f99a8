"""A full disk: what is there can be seen, exported elsewhere and deleted; what is written is
refused with the room that is free, and nothing is lost. And a disk that is mounted for reading."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from rankdash.errors import StoreError
from rankdash.store import Workspace, folders
from tests.store.conftest import ROOT

# No file of the process can grow, as on a full disk, until the reserve is given back.
ON_A_FULL_DISK = """
import io, resource, sys
from pathlib import Path
from rankdash import sharing
from rankdash.errors import StoreError
from rankdash.store import Workspace, failures, folders

def may_write(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

release = folders.release_reserve
def give_back(root):
    release(root)
    may_write(resource.RLIM_INFINITY)

def tell(what, do):
    may_write(0)
    try:
        print(what, do())
    except StoreError as error:
        print(what, "refused:", error.message)
    may_write(resource.RLIM_INFINITY)

folders.release_reserve = give_back
failures._free = lambda file: 0
root = Path(sys.argv[1])
opened = Workspace.open(root)
data, run = opened.datasets()[0], opened.runs()[0]
dataset = opened.dataset(data.id)
again = lambda: Workspace.open(root)
for name, make in (("open already:", lambda: opened), ("opened then:", again)):
    tell(name, lambda: (make().read_only, make().trouble, make().dataset(data.id) == dataset))
    tell("renamed", lambda: make().rename_run(run.id, "other"))
    tell("saved", lambda: make().save_run(make().run(run.id)))
def exported():
    target = io.BytesIO()
    sharing.export(Workspace.open(root), target, "1", [data.id], lambda *_: None)
    return len(target.getvalue()) > 1000
tell("exported", exported)
sys.stdout.flush()
tell("deleted", lambda: Workspace.open(root).delete_run(run.id))
print("left", opened.datasets()[0].name, opened.runs())
"""
NO_ROOM = "refused: There is no room left on the disk to write"


@pytest.fixture
def stored(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    # What no other process has open, SQLite keeps no files beside.
    return Workspace.open(workspace.root)


def test_what_a_full_disk_holds_is_seen_exported_and_deleted(stored, python):
    folders.keep_reserve(stored.root)
    process = python(ON_A_FULL_DISK, stored.root)
    said, errors = process.communicate()
    assert not errors
    lines = said.splitlines()
    for name, (seen, renamed, saved) in zip(
        ("open already:", "opened then:"), (lines[:3], lines[3:6]), strict=True
    ):
        assert seen == f"{name} (False, None, True)"
        assert renamed.startswith(f"renamed {NO_ROOM} {stored.root}")
        assert saved.startswith(f"saved {NO_ROOM} {stored.root}")
        assert saved.endswith(": 0.0 MB are free.")
    assert lines[6:] == ["exported True", "deleted None", "left small []"]
    assert not [*stored.root.rglob(".*.parquet.*")]


def test_the_reserve_is_kept_where_there_is_room_for_it(workspace, monkeypatch):
    (file,) = workspace.root.glob("*-reserve")
    size = file.stat().st_size
    assert size == 2_000_000
    folders.release_reserve(workspace.root)
    little = SimpleNamespace(free=10 * size)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _folder: little)
        Workspace.open(workspace.root)
        assert not file.exists()
    Workspace.open(workspace.root)
    assert file.exists()


LEFT_WITH_A_LOG = """
import os, sqlite3, sys
from pathlib import Path
from rankdash.store import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
hold = sqlite3.connect(workspace.database.file)
hold.execute("SELECT * FROM datasets").fetchone()
workspace.rename_run("run-1", "in the log")
os.kill(os.getpid(), 9)
"""

AS_MOUNTED_FOR_READING = """
import os, sys
from pathlib import Path
from rankdash.store import Workspace, folders
if os.getuid() == 0:
    os.setuid(65534)
folders.on_read_only_disk = lambda root: True
workspace = Workspace.open(Path(sys.argv[1]))
print(workspace.read_only, workspace.trouble, workspace.runs()[0].name)
"""


@pytest.mark.parametrize("beside", ["log and index", "log alone"])
def test_a_log_that_was_left_on_a_disk_for_reading_is_read(stored, python, tmp_path, beside):
    assert python(LEFT_WITH_A_LOG, stored.root).wait() == -9
    log, index = (stored.root / f"{folders.DATABASE}{end}" for end in ("-wal", "-shm"))
    assert log.stat().st_size
    if beside == "log alone":
        index.unlink()
    for place in (tmp_path, *tmp_path.parents):
        if place == Path(tempfile.gettempdir()):
            break
        place.chmod(0o755)
    for each in (*stored.root.rglob("*"), stored.root):
        each.chmod(0o555 if each.is_dir() else 0o444)
    try:
        said, errors = python(AS_MOUNTED_FOR_READING, stored.root).communicate()
    finally:
        stored.root.chmod(0o755)
        for each in stored.root.rglob("*"):
            each.chmod(0o755)
    assert not errors, errors
    assert said == "True None in the log\n"


def test_a_disk_that_is_mounted_for_reading_is_told_by_the_system(stored, monkeypatch):
    assert not Workspace.open(stored.root).read_only
    status = os.statvfs(stored.root)

    class Mounted:
        f_flag = status.f_flag | os.ST_RDONLY

    monkeypatch.setattr(os, "statvfs", lambda _root: Mounted())
    opened = Workspace.open(stored.root)
    assert opened.read_only
    assert [row.name for row in opened.runs()] == ["a run"]
    with pytest.raises(StoreError, match="reading only"):
        opened.rename_run("run-1", "x")


def test_a_file_that_is_asked_for_is_whole_or_as_it_was(stored, tmp_path):
    target = tmp_path / "all.zip"
    target.write_bytes(b"as it was")
    code = (
        "import resource, sys\n"
        "from rankdash.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "sys.exit(main(['workspace', 'export', sys.argv[1]]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, target],
        env={**os.environ, "RANKDASH_HOME": str(stored.root), "RANKDASH_READ_ONLY": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {target}: There is no room left on the disk to write it")
    assert "0.1 MB are needed" in done.stderr
    assert target.read_bytes() == b"as it was"
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["all.zip"]
