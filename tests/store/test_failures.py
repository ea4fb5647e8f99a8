"""Errors about an unusable workspace name the file and the remedy. On a full disk all data can be
seen, exported elsewhere and deleted; writes are refused, and nothing is lost."""

import errno
import io
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rankdash.app.command import main
from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import Workspace, database, folders
from rankdash.core.workspace.failures import first_sentence, in_words, is_damage
from rankdash.core.workspace.folders import DATABASE
from rankdash.core.workspace.workspace_file import archive
from tests.approved import masked, table
from tests.full_disk import room_for
from tests.store import builders

NO_ROOM = r"^Not enough disk space to write {}.*: 0\.0 MB are free"
AS_NOBODY = """
import os, sys
from pathlib import Path
from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import Workspace
opened = sys.argv[2] == "write"
try:
    if opened:
        workspace = Workspace.open(Path(sys.argv[1]))
    if os.getuid() == 0:
        os.setuid(65534)
    if not opened:
        workspace = Workspace.open(Path(sys.argv[1]))
    workspace.set_setting("a", "b")
except StoreError as error:
    print(error)
"""


SYSTEM = (
    *("ENOSPC", "EDQUOT", "EFBIG", "EACCES", "EPERM", "EROFS", "ENOENT", "EEXIST", "ENOTDIR"),
    "EIO",
)
SQLITE = (
    *("FULL", "READONLY", "READONLY_DIRECTORY", "PERM", "CANTOPEN", "IOERR", "IOERR_READ", "BUSY"),
    *("BUSY_SNAPSHOT", "LOCKED", "CORRUPT", "CORRUPT_INDEX", "NOTADB", "ERROR"),
)


def test_what_the_disk_and_sqlite_say_is_said_in_words(tmp_path, approved):
    def words(error, file):
        with pytest.raises(StoreError) as caught, in_words(file):
            raise error
        return str(caught.value)

    said = {}
    for name in SYSTEM:
        number = getattr(errno, name)
        of_part = words(OSError(number, "so it is", "part"), Path("whole"))
        said[name] = words(OSError(number, "so it is"), Path("whole"))
        # If the error names a file, the message names it too.
        assert of_part == said[name].replace("whole", "part")
    for name in SQLITE:
        error = sqlite3.OperationalError("so it is")
        error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{name}")
        said[f"SQLite: {name}"] = f"{words(error, tmp_path)} Damage: {is_damage(error)}"
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    said["SQLite: CANTOPEN, and the file is gone"] = words(error, tmp_path / "gone")
    text = masked(table(said), free=r"[\d.,]+(?= MB)", folder=re.escape(str(tmp_path)))
    approved("store/failures", text)


def test_of_what_a_library_says_the_first_line_is_told():
    said = {" one\ntwo": "one.", "one.\ntwo": "one.", " \n": "unreadable."}
    assert {each: first_sentence(each) for each in said} == said


def test_what_must_last_is_on_the_disk_when_it_is_written(workspace):
    kept, file = {}, workspace.database.file
    for durable in (True, False):
        with workspace.database.writing(durable=durable) as db:
            kept[durable] = db.execute("PRAGMA synchronous").fetchone()[0]
            # The lock is taken at the start, so that earlier reads stay valid.
            assert db.in_transaction
            other = sqlite3.connect(file, timeout=0, isolation_level=None)
            with closing(other), pytest.raises(sqlite3.OperationalError):
                other.execute("BEGIN IMMEDIATE")
    full, normal = 2, 1
    assert kept == {True: full, False: normal}


def test_a_database_with_a_torn_page(workspace, stored):
    file = workspace.root / DATABASE
    builders.ask(file, "PRAGMA wal_checkpoint(TRUNCATE)")
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(StoreError, match=r"rankdash\.sqlite is damaged: .*Leave it where it is"):
        workspace.datasets()


def test_a_workspace_deleted_while_in_use_is_not_made_anew(workspace):
    (workspace.root / DATABASE).unlink()
    with pytest.raises(StoreError, match=r"rankdash\.sqlite is missing"):
        workspace.datasets()
    assert not (workspace.root / DATABASE).exists()


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "home").write_text("a file")
    for path in (tmp_path / "home", tmp_path / "home" / "below"):
        with pytest.raises(StoreError, match=r"RANKDASH_HOME"):
            Workspace.open(path)


def test_a_workspace_held_too_long_by_another_program(workspace, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(workspace.root / DATABASE, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"in use by another program.*Try again"):
            workspace.set_setting("a", "b")
        db.execute("ROLLBACK")
    workspace.set_setting("a", "b")


def test_no_call_leaves_the_database_open(workspace, stored):
    open_files = Path("/proc/self/fd")
    if not open_files.is_dir():
        pytest.skip("open files cannot be listed here")
    workspace.datasets()
    with pytest.raises(StoreError):
        workspace.run("nope")
    held = [file.readlink() for file in open_files.iterdir() if file.is_symlink()]
    assert not [file for file in held if workspace.root in file.parents]


# Missing permissions to write.


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("home", "how", "closed", "mode", "file", "why"),
    [
        ("home", "open", ".", 0o555, "home", "Permission denied"),
        (".", "write", ".", 0o555, DATABASE, "attempt to write a readonly database"),
        # A private folder of another user.
        ("private/home", "write", "private", 0, f"private/home/{DATABASE}",
         "unable to open database file"),
    ],
)  # fmt: skip
def test_what_may_not_be_written_is_named(open_folder, python, home, how, closed, mode, file, why):
    home, closed = open_folder / home, open_folder / closed
    if how == "write":
        Workspace.open(home)
        for each in home.glob("rankdash*"):
            each.chmod(0o444)
    closed.chmod(mode)
    said, failed = python(AS_NOBODY, home, how).communicate(timeout=300)
    closed.chmod(0o755)
    assert said == (
        f"The workspace file {open_folder / file} cannot be written: {why}. Allow writing there, "
        "or set RANKDASH_HOME to an empty or new folder of yours.\n"
    ), failed


# A full disk.


@pytest.mark.parametrize(("room", "said"), [(50_000, "Free some space"), (3_000, "has room")])
def test_a_full_disk_leaves_nothing_behind(tmp_path, make_dataset, room, said):
    """Disks with too little room for the tables, and with too little for the database."""
    target = Workspace.open(tmp_path / "target")
    large = make_dataset(salt=os.urandom(100_000).hex() if room == 50_000 else "")
    with room_for(room), pytest.raises(StoreError, match=said) as refused:
        target.save_dataset(large)
    assert (DATABASE in str(refused.value)) is (room == 3_000)
    assert target.datasets() == []
    assert list((target.root / "datasets").iterdir()) == []


@pytest.fixture
def no_bytes_free(monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage._replace(free=0))


@pytest.mark.parametrize("how", ["open already", "opened then"])
def test_what_a_full_disk_holds_is_seen_exported_and_deleted(
    workspace, stored, monkeypatch, no_bytes_free, how
):
    opened = Workspace.open(workspace.root)
    folders.keep_reserve(opened.root)
    run, release = opened.run("run-1"), folders.release_reserve

    def again() -> Workspace:
        return opened if how == "open already" else Workspace.open(opened.root)

    with room_for(0):
        found = again()
        assert (found.read_only, found.trouble) == (False, None)
        assert found.dataset(stored.id) == stored
        for write in (lambda: again().rename_run("run-1", "x"), lambda: again().save_run(run)):
            with pytest.raises(StoreError, match=NO_ROOM.format(opened.root)):
                write()
        target = io.BytesIO()
        archive.export(again(), target, "1", [stored.id], lambda *_: None)
    assert len(target.getvalue()) > 1000
    assert not [*opened.root.rglob(".*.parquet.*")]

    with room_for(0) as full:

        def give_back(root):
            release(root)
            full()

        monkeypatch.setattr(folders, "release_reserve", give_back)
        again().delete_run("run-1")
    assert ([row.name for row in opened.datasets()], opened.runs()) == (["small"], [])


def test_the_reserve_is_kept_where_there_is_room_for_it(workspace, monkeypatch):
    (file,) = workspace.root.glob("*-reserve")
    size = file.stat().st_size
    assert size == 2_000_000
    folders.release_reserve(workspace.root)
    with monkeypatch.context() as patch:
        usage = shutil.disk_usage("/")._replace(free=10 * size)
        patch.setattr(shutil, "disk_usage", lambda _folder: usage)
        Workspace.open(workspace.root)
        assert not file.exists()
    Workspace.open(workspace.root)
    assert file.exists()


def test_a_file_that_is_asked_for_is_whole_or_as_it_was(
    workspace, stored, tmp_path, monkeypatch, capsys
):
    target = tmp_path / "all.zip"
    target.write_bytes(b"as it was")
    monkeypatch.setenv("RANKDASH_HOME", str(workspace.root))
    monkeypatch.setenv("RANKDASH_READ_ONLY", "1")
    with room_for(5000):
        assert main(["workspace", "export", str(target)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {target}: Not enough disk space to write the file")
    assert "0.1 MB are needed" in said
    assert target.read_bytes() == b"as it was"
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["all.zip"]
    assert len(builders.parquet_files(workspace.root)) == 6 + 7
