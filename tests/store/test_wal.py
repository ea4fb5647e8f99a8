"""The log that a killed process leaves: a flipped bit in it is reported before SQLite drops the
frames after it; an ordinary log after a kill is not reported."""

import random
import shutil
import time
from contextlib import suppress

import pytest

from rankdash.core.workspace import Workspace, folders
from rankdash.core.workspace.folders import DATABASE
from tests.store.builders import HEAD, flip

# Commits of all sizes, rollbacks and checkpoints, until the process is killed.
WRITE_UNTIL_KILLED = f"""{HEAD}
import random
chance = random.Random(sys.argv[2])
with workspace.database.reading() as kept:
    print("begins", flush=True)
    while True:
        try:
            with workspace.database.writing(durable=chance.random() < 0.3) as db:
                db.execute("PRAGMA cache_size = 5")
                for _ in range(chance.choice([1, 1, 1, 30])):
                    values = (f"k{{chance.randrange(40)}}", "x" * chance.randrange(4000))
                    db.execute("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", values)
                if chance.random() < 0.2:
                    raise KeyError
        except KeyError:
            pass
        if chance.random() < 0.05:
            kept.execute(f"PRAGMA wal_checkpoint({{chance.choice(['PASSIVE', 'RESTART'])}})")
"""


@pytest.fixture
def copied(workspace, make_dataset, tmp_path):
    """Copy a workspace in use, as after a killed process; return its log. restarted: the log begins
    again, followed by older frames. open_: a change is in the log but not committed."""
    workspace.save_dataset(make_dataset())

    def copy(restarted=False, open_=False):
        with workspace.database.reading() as held, suppress(KeyError):
            held.execute("SELECT 1 FROM settings").fetchall()
            for number in range(20):
                workspace.set_setting("newest", str(number))
            if restarted:
                assert held.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0
            if not open_:
                workspace.set_setting("newest", "19")
                return copied_log()
            with workspace.database.writing() as db:
                db.execute("PRAGMA cache_size = 5")
                insert = "INSERT INTO settings (key, value) VALUES (?, ?)"
                db.executemany(insert, [(str(number), "x" * 4000) for number in range(50)])
                log = copied_log()
                raise KeyError
        return log

    def copied_log():
        return shutil.copytree(workspace.root, tmp_path / "copy") / f"{DATABASE}-wal"

    return copy


@pytest.fixture
def left_over(copied):
    return copied()


@pytest.mark.parametrize(
    ("restarted", "open_", "harm"),
    [
        *((False, False, harm) for harm in ("none", "no index", "half a change more")),
        *((True, False, harm) for harm in ("none", "a flipped bit")),
        *((False, True, "a flipped bit"), (True, True, "none")),
    ],
)
def test_what_is_behind_the_newest_change_is_no_damage(copied, restarted, open_, harm):
    log = copied(restarted, open_)
    assert log.stat().st_size
    if harm == "no index":
        log.with_name(f"{DATABASE}-shm").unlink()
    elif harm == "half a change more":
        log.write_bytes(log.read_bytes() + b"x" * 100)
    elif harm == "a flipped bit":
        flip(log, log.stat().st_size - 2000, 3)
    again = Workspace.open(log.parent)
    assert (again.trouble, again.setting("newest")) == (None, "19")


@pytest.mark.parametrize("at", ["magic", "salt", "first frame", "middle", "newest change", "end"])
def test_what_changed_in_a_left_over_log_is_named_and_nothing_is_deleted(left_over, at):
    frame, size = 24 + 4096, left_over.stat().st_size
    places = {"magic": 3, "salt": 17, "first frame": 32, "middle": 32 + frame * 9 + 11}
    if at == "end":
        left_over.write_bytes(left_over.read_bytes()[:-1])
    else:
        flip(left_over, places.get(at, size - 2000), 3)
    content, root = left_over.read_bytes(), left_over.parent
    assert f"{DATABASE}-wal" in str(Workspace(root, read_only=True).trouble)
    again = Workspace.open(root)
    assert again.read_only
    assert f"{DATABASE}-wal" in str(again.trouble)
    assert "rankdash workspace repair" in again.trouble.remedy
    assert [row.name for row in again.datasets()] == ["small"]
    assert left_over.read_bytes() == content
    again.repair()
    assert Workspace.open(root).trouble is None
    (kept,) = (root / folders.TRASH).rglob(left_over.name)
    assert kept.read_bytes() == content


AS_MOUNTED_FOR_READING = """
import os, sys
from pathlib import Path
from rankdash.core.workspace import Workspace, folders
if os.getuid() == 0:
    os.setuid(65534)
folders.on_read_only_disk = lambda root: True
workspace = Workspace.open(Path(sys.argv[1]))
print(workspace.read_only, workspace.trouble, workspace.setting("newest"))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("index", [True, False])
def test_a_log_that_was_left_on_a_disk_for_reading_is_read(left_over, python, open_folder, index):
    root = shutil.copytree(left_over.parent, open_folder / "home")
    if not index:
        (root / f"{DATABASE}-shm").unlink()
    for place in (*root.rglob("*"), root):
        place.chmod(0o555 if place.is_dir() else 0o444)
    said, errors = python(AS_MOUNTED_FOR_READING, root).communicate()
    for place in (root, *root.rglob("*")):
        place.chmod(0o755)
    assert said == "True None 19\n", errors


@pytest.mark.thorough
def test_a_database_that_is_written_to_is_never_damaged_and_neither_is_one_whose_writer_is_killed(
    workspace, make_dataset, python
):
    workspace.save_dataset(make_dataset())
    chance = random.Random(5)
    for seed in range(3):
        writers = [python(WRITE_UNTIL_KILLED, workspace.root, f"{seed}{n}") for n in range(2)]
        for writer in writers:
            assert writer.stdout.readline() == "begins\n"
        for writer in writers:
            for _look in range(3):
                assert Workspace(workspace.root, read_only=True).trouble is None
            time.sleep(chance.random() / 10)
            writer.kill()
            writer.wait()
        assert Workspace.open(workspace.root).trouble is None
