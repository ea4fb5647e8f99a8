"""A workspace that cannot be used says which file, and what to do."""

import errno
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from rankdash.errors import StoreError
from rankdash.store import Workspace, database
from rankdash.store.failures import first_sentence, in_words, is_damage

AS_NOBODY = """
import os, sys
from pathlib import Path
from rankdash.errors import StoreError
from rankdash.store import Workspace
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

WITH_LITTLE_ROOM = """
import resource, sys
from pathlib import Path
from rankdash.errors import StoreError
from rankdash.store import Workspace
source, target = Workspace.open(Path(sys.argv[1])), Workspace.open(Path(sys.argv[2]))
dataset = source.dataset(source.datasets()[0].id)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
try:
    target.save_dataset(dataset)
except StoreError as error:
    print(error)
"""


def refusal(file: Path, why: str) -> str:
    return (
        f"The workspace file {file} cannot be written: {why}. Allow writing there, or set "
        "RANKDASH_HOME to an empty or new folder of yours.\n"
    )


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("no room left", (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)),
        ("cannot be written", (errno.EACCES, errno.EPERM, errno.EROFS)),
        ("is missing", (errno.ENOENT,)),
        ("needs a folder", (errno.EEXIST, errno.ENOTDIR)),
        ("is damaged", (errno.EIO,)),
    ],
)
def test_what_the_disk_says_names_the_file_that_it_is_about(said, numbers):
    for number in numbers:
        for named, file in ((("part",), "part"), ((), "whole")):
            with pytest.raises(StoreError, match=said) as caught, in_words(Path("whole")):
                raise OSError(number, "so it is", *named)
            assert caught.value.params["file"] == file


@pytest.mark.parametrize(
    ("said", "codes"),
    [
        ("no room left", ("FULL",)),
        ("cannot be written", ("READONLY", "READONLY_DIRECTORY", "PERM", "CANTOPEN")),
        ("on this disk", ("IOERR", "IOERR_READ")),
        ("in use by another program", ("BUSY", "BUSY_SNAPSHOT", "LOCKED")),
        ("is damaged", ("CORRUPT", "CORRUPT_INDEX", "NOTADB", "ERROR")),
    ],
)
def test_what_sqlite_says_is_told_by_the_family_of_its_code(tmp_path, said, codes):
    for code in codes:
        error = sqlite3.OperationalError("so it is")
        error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")
        with pytest.raises(StoreError, match=said), in_words(tmp_path):
            raise error
        assert is_damage(error) is code.startswith(("CORRUPT", "NOTADB", "ERROR"))
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    with pytest.raises(StoreError, match="is missing"), in_words(tmp_path / "gone"):
        raise error


def test_of_what_a_library_says_the_first_line_is_told():
    said = {" one\ntwo": "one.", "one.\ntwo": "one.", " \n": "unreadable."}
    assert {each: first_sentence(each) for each in said} == said


def test_what_must_last_is_on_the_disk_when_it_is_written(workspace):
    kept = {}
    for durable in (True, False):
        with workspace.database.writing(durable=durable) as db:
            kept[durable] = db.execute("PRAGMA synchronous").fetchone()[0]
            # Held from the start: what was read here stays true.
            assert db.in_transaction
            with (
                pytest.raises(sqlite3.OperationalError),
                closing(
                    sqlite3.connect(workspace.database.file, timeout=0, isolation_level=None)
                ) as other,
            ):
                other.execute("BEGIN IMMEDIATE")
    full, normal = 2, 1
    assert kept == {True: full, False: normal}


@pytest.fixture
def stored(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    return dataset


def parquet_files(workspace):
    return sorted(workspace.root.rglob("*.parquet"))


def test_a_database_with_a_torn_page(workspace, stored):
    file = workspace.root / "rankdash.sqlite"
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(StoreError, match=r"rankdash\.sqlite is damaged: .*Leave it where it is"):
        workspace.datasets()


@pytest.mark.parametrize("harm", ["empty", "cut", "flipped"])
def test_a_damaged_table_is_named(workspace, stored, harm):
    for file in parquet_files(workspace):
        content = bytearray(file.read_bytes())
        if harm == "empty":
            content.clear()
        elif harm == "cut":
            del content[len(content) // 2 :]
        else:
            # The first data page comes right behind the magic bytes and its own header.
            content[4:60] = bytes(byte ^ 0x55 for byte in content[4:60])
        file.write_bytes(content)
    for load in (lambda: workspace.dataset(stored.id), lambda: workspace.run("run-1")):
        with pytest.raises(StoreError, match=r"\.parquet is damaged: .*delete the data set or run"):
            load()


def test_a_missing_table_is_named(workspace, stored):
    for file in parquet_files(workspace):
        file.unlink()
    for load in (lambda: workspace.dataset(stored.id), lambda: workspace.run("run-1")):
        with pytest.raises(StoreError, match=r"\.parquet is missing"):
            load()


def test_tables_of_two_data_sets_mixed_up_are_noticed(workspace, stored, make_dataset):
    other = make_dataset(salt="?")
    workspace.save_dataset(other)
    folders = {
        folder.name.split("-")[0]: folder for folder in (workspace.root / "datasets").iterdir()
    }
    (folders[other.id] / "queries.parquet").replace(folders[stored.id] / "queries.parquet")
    with pytest.raises(StoreError, match="not what was saved"):
        workspace.dataset(stored.id)


def test_a_workspace_deleted_while_in_use_is_not_made_anew(workspace):
    (workspace.root / "rankdash.sqlite").unlink()
    with pytest.raises(StoreError, match=r"rankdash\.sqlite is missing"):
        workspace.datasets()
    assert not (workspace.root / "rankdash.sqlite").exists()


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "home").write_text("a file")
    for path in (tmp_path / "home", tmp_path / "home" / "below"):
        with pytest.raises(StoreError, match=r"RANKDASH_HOME"):
            Workspace.open(path)


@pytest.fixture
def open_folder():
    """A folder that every user may look into; those of pytest are private."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for place in (folder, *folder.iterdir()):
        place.chmod(0o755)
    shutil.rmtree(folder)


def test_a_folder_that_may_not_be_written(open_folder, python):
    open_folder.chmod(0o555)
    said, failed = python(AS_NOBODY, open_folder / "home", "open").communicate(timeout=300)
    assert said == refusal(open_folder / "home", "Permission denied"), failed


def test_a_workspace_that_may_not_be_written(open_folder, python):
    Workspace.open(open_folder)
    for file in open_folder.glob("rankdash*"):
        file.chmod(0o444)
    open_folder.chmod(0o555)
    said, failed = python(AS_NOBODY, open_folder, "write").communicate(timeout=300)
    why = "attempt to write a readonly database"
    assert said == refusal(open_folder / "rankdash.sqlite", why), failed


def test_a_workspace_in_a_private_folder_of_another_user(open_folder, python):
    home = open_folder / "private" / "home"
    Workspace.open(home)
    home.parent.chmod(0o000)
    said, failed = python(AS_NOBODY, home, "write").communicate(timeout=300)
    home.parent.chmod(0o755)
    why = "unable to open database file"
    assert said == refusal(home / "rankdash.sqlite", why), failed


def test_a_full_disk_leaves_nothing_behind(workspace, make_dataset, tmp_path, python):
    workspace.save_dataset(make_dataset(salt=os.urandom(100_000).hex()))
    target = Workspace.open(tmp_path / "target")
    said, failed = python(WITH_LITTLE_ROOM, workspace.root, target.root, 50_000).communicate(
        timeout=300
    )
    assert "no room left" in said, failed
    assert "Free some space" in said
    assert target.datasets() == []
    assert list((target.root / "datasets").iterdir()) == []


def test_no_room_for_the_database(workspace, stored, tmp_path, python):
    target = Workspace.open(tmp_path / "target")
    said, failed = python(WITH_LITTLE_ROOM, workspace.root, target.root, 3000).communicate(
        timeout=300
    )
    assert "rankdash.sqlite" in said, failed
    assert "has room" in said
    assert target.datasets() == []


def test_a_workspace_held_too_long_by_another_program(workspace, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(workspace.root / "rankdash.sqlite", isolation_level=None)) as db:
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
