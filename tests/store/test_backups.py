"""Copies of the database: before a migration, once a day in use, seven of them."""

import pytest

from rankdash.core.workspace import Workspace, checksums, database
from rankdash.core.workspace.folders import DATABASE
from tests.store.builders import ask


@pytest.fixture
def filled(workspace, make_dataset):
    workspace.save_dataset(make_dataset())
    return workspace


def fill_days(workspace, on, days, first=1):
    for number in range(days):
        on(f"2999-01-{first + number:02}")
        workspace.set_setting("n", str(number))


def test_an_empty_workspace_is_not_copied(workspace):
    Workspace.open(workspace.root).set_setting("a", "b")
    assert checksums.backups(workspace.root) == []


def test_one_copy_a_day_with_all_that_was_written_before(filled, on):
    on("2998-01-01")
    filled.set_setting("first", "yes")
    first = [
        copy
        for copy in checksums.backups(filled.root)
        if checksums.backup_day(copy) == "2998-01-01"
    ]
    assert len(first) == 1
    Workspace.open(filled.root).set_setting("later", "yes")
    assert checksums.backups(filled.root)[-1:] == first
    assert ask(first[0], "SELECT count(*) FROM datasets") == [1]
    assert set((filled.root / "backups").iterdir()) == set(checksums.backups(filled.root))
    # A single file, for any journal mode of the database.
    assert ask(first[0], "PRAGMA journal_mode") == ["delete"]


def test_a_copy_is_known_by_its_whole_name_which_holds_its_day(tmp_path):
    name = "rankdash-20260131T101112000000Z-0123abcd.sqlite"
    (tmp_path / "backups").mkdir()
    for each in (name, f"{name}.old", f".{name}", f"{name}-wal"):
        (tmp_path / "backups" / each).touch()
    (copy,) = checksums.backups(tmp_path)
    assert (copy.name, checksums.backup_day(copy)) == (name, "2026-01-31")


def test_what_is_done_once_a_day_is_tried_again_until_there_was_something_to_do(tmp_path, on):
    asked, answers = [], iter([False, True, True])

    def each_day():
        asked.append(database.today())
        return next(answers)

    db = database.Database(tmp_path / "file.sqlite", each_day=each_day)
    for day in ("2999-01-01", "2999-01-01", "2999-01-01", "2999-01-02", "2999-01-02"):
        on(day)
        db.begin_day()
    assert asked == ["2999-01-01", "2999-01-01", "2999-01-02"]


def test_a_workspace_that_stays_open_is_copied_on_each_day_and_seven_are_kept(filled, on):
    filled.set_setting("n", "0")
    theirs = filled.root / "backups" / "mine.sqlite"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_bytes(b"mine")
    fill_days(filled, on, 9)
    kept = checksums.backups(filled.root)
    assert len(kept) == checksums.BACKUPS_KEPT == 7
    # A copy has the data of the start of its day, and the number of copies before it.
    assert ask(kept[-1], "SELECT value FROM settings WHERE key = 'n'") == ["7"]
    made = f"SELECT value FROM settings WHERE key = '{checksums.BACKUPS_MADE}'"
    counts = [int(value) for copy in kept for value in ask(copy, made)]
    assert counts == list(range(counts[0], counts[0] + 7))
    # A user's file in the folder of copies stays.
    assert theirs.read_bytes() == b"mine"


def test_a_damaged_database_replaces_no_copy(filled, monkeypatch):
    before = len(checksums.backups(filled.root))
    for sound in (True, False):
        monkeypatch.setattr(checksums, "is_sound", lambda _db, sound=sound: sound)
        checksums.make_backup(filled.database.file)
        assert len(checksums.backups(filled.root)) == before + 1
    assert not list((filled.root / "backups").glob(".*"))


def test_a_copy_that_fails_stops_nothing(filled, monkeypatch, on, caplog):
    def full(file):
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr(checksums, "make_backup", full)
    on("2999-01-01")
    filled.set_setting("a", "b")
    assert filled.setting("a") == "b"
    assert "Not enough disk space" in caplog.text


def test_what_another_process_copied_meanwhile_is_not_copied_again(filled, monkeypatch, on):
    before = checksums.backups(filled.root)
    answers = iter([True, False])
    monkeypatch.setattr(checksums, "backup_is_due", lambda root: next(answers))
    on("2999-01-01")
    filled.set_setting("a", "b")
    assert checksums.backups(filled.root) == before


def test_a_clock_that_is_set_back_loses_no_copy_and_a_repair_uses_the_last_one(filled, on):
    fill_days(filled, on, checksums.BACKUPS_KEPT + 1, first=11)
    on("2999-01-09")
    before = set(checksums.backups(filled.root))
    filled.set_setting("after", "one more copy")
    after = set(checksums.backups(filled.root))
    (made,) = after - before
    assert made == min(after) and len(after) == checksums.BACKUPS_KEPT
    (filled.root / DATABASE).unlink()
    assert Workspace.open(filled.root).repair().copy_of == "2999-01-09"
    assert Workspace.open(filled.root).setting("n") == str(checksums.BACKUPS_KEPT)
