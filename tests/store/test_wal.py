"""The log that a killed process leaves: a flipped bit in it is named before SQLite drops what is
behind it, and what a kill leaves by itself is not."""

import random
import signal
import time

import pytest

from rankdash.store import Workspace, trash
from rankdash.store.folders import DATABASE

BEGIN = """
import os, sys
from pathlib import Path
from rankdash.store import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
"""

# A connection that stays open keeps the log: the last one to be closed deletes it.
WRITE_AND_DIE = f"""{BEGIN}
with workspace.database.reading():
    for number in range(20):
        workspace.set_setting("newest", str(number))
    os.kill(os.getpid(), 9)
"""

# More than the cache holds, so that frames reach the log before a commit that does not come.
DIE_BEFORE_THE_COMMIT = """
    with workspace.database.writing() as db:
        db.execute("PRAGMA cache_size = 5")
        for number in range(50):
            db.execute("INSERT INTO settings (key, value) VALUES (?, ?)", (str(number), "x" * 4000))
        os.kill(os.getpid(), 9)
"""

DIE_WITHOUT_COMMIT = f"""{BEGIN}
with workspace.database.reading():
    workspace.set_setting("newest", "19")
{DIE_BEFORE_THE_COMMIT}"""

# One more change to a log that begins anew, with older frames behind it.
DIE_AFTER_RESTART = f"""{BEGIN}
with workspace.database.reading() as db:
    for number in range(20):
        workspace.set_setting("newest", str(number))
    assert db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0
    workspace.set_setting("newest", "19")
    os.kill(os.getpid(), 9)
"""

DIE_BEFORE_THE_FIRST_COMMIT = DIE_AFTER_RESTART.replace(
    '    workspace.set_setting("newest", "19")\n', DIE_BEFORE_THE_COMMIT
)

# Commits of all sizes, rollbacks and checkpoints, until it is killed.
WRITE_UNTIL_KILLED = f"""{BEGIN}
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
def killed(workspace, make_dataset, python):
    """Run code that is killed, in a workspace; returns its log."""
    workspace.save_dataset(make_dataset())
    log = workspace.root / f"{DATABASE}-wal"

    def run(code):
        assert python(code, workspace.root).wait() == -signal.SIGKILL
        assert log.stat().st_size > 0
        return log

    return run


def flip(log, at, bit):
    content = log.read_bytes()
    log.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])


@pytest.mark.parametrize("at", ["magic", "salt", "first frame", "middle", "newest change"])
def test_a_flipped_bit_in_a_left_over_log_is_named_and_nothing_is_deleted(workspace, killed, at):
    log = killed(WRITE_AND_DIE)
    frame, size = 24 + 4096, log.stat().st_size
    places = {"magic": 3, "salt": 17, "first frame": 32, "middle": 32 + frame * 9 + 11}
    flip(log, places.get(at, size - 2000), 3)
    content = log.read_bytes()
    again = Workspace.open(workspace.root)
    assert again.read_only
    assert f"{DATABASE}-wal" in str(again.trouble)
    assert "rankdash workspace repair" in again.trouble.remedy
    assert [row.name for row in again.datasets()] == ["small"]
    assert log.read_bytes() == content
    again.repair()
    assert Workspace.open(workspace.root).trouble is None
    (kept,) = (workspace.root / trash.FOLDER).rglob(log.name)
    assert kept.read_bytes() == content


def test_a_log_that_was_truncated_is_named(workspace, killed):
    log = killed(WRITE_AND_DIE)
    log.write_bytes(log.read_bytes()[:-1])
    assert f"{DATABASE}-wal" in str(Workspace(workspace.root, read_only=True).trouble)


@pytest.mark.parametrize(
    "code",
    [WRITE_AND_DIE, DIE_WITHOUT_COMMIT, DIE_BEFORE_THE_FIRST_COMMIT, DIE_AFTER_RESTART],
)
def test_what_a_kill_leaves_is_no_damage(workspace, killed, code):
    killed(code)
    again = Workspace.open(workspace.root)
    assert again.trouble is None
    assert again.setting("newest") == "19"


@pytest.mark.parametrize("code", [DIE_WITHOUT_COMMIT, DIE_AFTER_RESTART])
def test_a_flipped_bit_behind_the_newest_change_is_no_damage(workspace, killed, code):
    log = killed(code)
    flip(log, log.stat().st_size - 2000, 3)
    again = Workspace.open(workspace.root)
    assert again.trouble is None
    assert again.setting("newest") == "19"


def test_a_log_without_its_index_is_read_as_sqlite_reads_it(workspace, killed):
    killed(WRITE_AND_DIE)
    (workspace.root / f"{DATABASE}-shm").unlink()
    assert Workspace.open(workspace.root).setting("newest") == "19"


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
