"""Only folders made by rankdash are ever moved or deleted."""

import json
import math
import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import Workspace, folders, tables
from rankdash.core.workspace.folders import RECORD, UNFINISHED
from tests.store.builders import content_of, make_old

PART = f"{7:020d}-0123abcd.parquet"


def put(file, content=b"of a person"):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    make_old(file.parent)
    return file


@pytest.mark.parametrize(
    "name",
    [
        *("datasets/msmarco/a.tsv", "runs/bert-20240101/model.bin", "jobs/nightly/log"),
        *("train.py", "trash/holiday/a.jpg", "backups/mine.sqlite", "jobs/notes.txt", "datasets"),
    ],
)
def test_a_folder_of_something_else_is_refused_and_stays_as_it_is(tmp_path, name):
    put(tmp_path / name)
    before = content_of(tmp_path)
    for _ in range(2):
        with pytest.raises(
            StoreError, match=r"contains files but no workspace.*empty or new folder"
        ):
            Workspace.open(tmp_path)
    assert content_of(tmp_path) == before


def test_of_what_is_in_the_way_three_are_named(tmp_path):
    for name, named in {"a": "a", "b": "a, b", "c": "a, b, c", "d": "a, b, c, …"}.items():
        put(tmp_path / name)
        with pytest.raises(StoreError) as caught:
            Workspace.open(tmp_path)
        assert caught.value.params["names"] == named


def test_a_folder_with_what_systems_leave_and_rankdash_makes_is_a_new_workspace(tmp_path):
    for name in (
        *(".DS_Store", "Desktop.ini", "Thumbs.db", ".directory", ".gitkeep", ".gitignore"),
        *("lost+found/x", "cache/models/x", "scores.sqlite-wal", "rankdash.sqlite-repair"),
    ):
        put(tmp_path / name)
    for name in ("datasets", "runs", "jobs/0123abcd", "backups", "trash/20260131T101112Z-0123abcd"):
        (tmp_path / name).mkdir(parents=True)
    assert Workspace.open(tmp_path).datasets() == []


def test_folders_of_a_person_in_a_workspace_are_never_swept(workspace, make_dataset):
    workspace.save_dataset(make_dataset())
    theirs = [
        put(workspace.root / name)
        for name in (
            *("datasets/msmarco/queries.parquet", "datasets/beir-0123abcd/queries.parquet"),
            *("runs/bert-20240101/model.bin", "jobs/nightly/log.txt"),
            *("jobs/0123456789abcdef/results.parquet", "trash/old/thing", "trash/20200101/thing"),
        )
    ]
    empty = workspace.root / "runs" / "empty-20240101"
    empty.mkdir()
    make_old(empty)
    again = Workspace.open(workspace.root)
    assert again.trouble is None
    assert all(file.exists() for file in theirs)
    assert empty.is_dir()


def test_nothing_is_swept_by_a_database_that_holds_no_row(workspace):
    litter = folders.new_folder(workspace.root, "runs", "left")
    make_old(litter)
    Workspace.open(workspace.root)
    assert (litter / UNFINISHED).is_file()


def test_a_save_has_a_quarter_of_an_hour_to_be_finished(workspace, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 10_000.0)
    made = {}
    for name, touched in (("at it", 9_100), ("left", 9_099), ("listed", 0), ("older", 0)):
        made[name] = folders.new_folder(workspace.root, "runs", name)
        if name == "listed":
            (made[name] / RECORD).touch()
        if name == "older":
            # A version before there were records.
            (made[name] / UNFINISHED).rename(made[name] / "ranking-queries.parquet")
        os.utime(made[name], (touched, touched))
    assert folders.abandoned(workspace.root) == [folders.relative(workspace.root, made["left"])]


def test_a_folder_is_known_by_what_is_before_its_token_and_a_link_is_none(workspace):
    folder = folders.new_folder(workspace.root, "runs", "run-of-two")
    assert folders.id_of(folder) == "run-of-two"
    (link := folder.with_name("link-0123abcd")).symlink_to(folder)
    assert list(folders.stored(workspace.root, "runs")) == [folder]
    folders.remove(workspace.root, [folders.relative(workspace.root, link)])
    assert folder.is_dir()


def test_a_folder_is_marked_before_its_row_goes_with_a_record_or_without(tmp_path):
    for name in ("recorded", "older"):
        (tmp_path / name).mkdir()
    (tmp_path / "recorded" / RECORD).write_text("row")
    for name in ("recorded", "older", "gone"):
        folders.withdraw_record(tmp_path / name)
    assert content_of(tmp_path) == {
        Path("recorded", UNFINISHED): b"row", Path("older", UNFINISHED): b""
    }  # fmt: skip
    assert not (tmp_path / "gone").exists()


def test_a_folder_of_a_job_counts_where_it_holds_results_and_nothing_else(workspace):
    job = workspace.root / "jobs" / "0123abcd"
    job.mkdir(parents=True)
    assert list(folders.jobs(workspace.root)) == []
    results = put(job / PART)
    assert list(folders.jobs(workspace.root)) == [job]
    theirs = put(workspace.root / "jobs" / "nightly" / "log.txt")
    folders.remove(workspace.root, ["jobs/nightly", "jobs/0123abcd", "jobs/gone"])
    assert theirs.exists() and not results.parent.exists()


# The trash.


def test_what_is_swept_lies_in_the_trash_for_thirty_days(workspace, make_dataset):
    workspace.save_dataset(make_dataset())
    litter = folders.new_folder(workspace.root, "runs", "left")
    (litter / "ranking.parquet").write_bytes(b"half")
    make_old(litter)
    Workspace.open(workspace.root)
    (swept,) = workspace.root.glob(f"trash/*/runs/{litter.name}/ranking.parquet")
    entry, odd = swept.parents[2], "20269999T999999Z-0123abcd"
    (entry.parent / odd).mkdir()
    for days in (29, 31):
        then = datetime.now(UTC) - timedelta(days=days)
        entry = entry.rename(entry.with_name(f"{then:%Y%m%dT%H%M%SZ}-0123abcd"))
        # The day in the name counts, not the time of a file.
        os.utime(entry, (0, 0) if days == 29 else None)
        Workspace.open(workspace.root)
        left = [odd] if days == 31 else sorted([odd, entry.name])
        assert sorted(place.name for place in entry.parent.iterdir()) == left


def test_a_sweep_spares_what_has_a_row_and_two_at_once_lose_nothing(workspace):
    kept, left = (folders.new_folder(workspace.root, "runs", name) for name in ("kept", "left"))
    names = [folders.relative(workspace.root, folder) for folder in (kept, left)]
    for _again in range(2):
        folders.sweep(workspace.root, names, {names[0]})
    assert kept.is_dir() and not left.exists()
    assert len(list(workspace.root.glob(f"trash/*/{names[1]}"))) == 1


def test_a_row_that_names_something_else_deletes_nothing(workspace, make_dataset):
    dataset_id = workspace.save_dataset(make_dataset())
    theirs = put(workspace.root / "thesis" / "chapter-0123abcd" / "text.tex")
    with workspace.database.writing() as db:
        db.execute("UPDATE datasets SET folder = 'thesis/chapter-0123abcd'")
    workspace.delete_dataset(dataset_id)
    assert theirs.exists()


# Records.


@pytest.fixture
def recorded(workspace, make_dataset, make_run):
    """The folder of a stored run without measurements."""
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    run = make_run(dataset)
    workspace.save_run(replace(run, depth=None, load_ms=math.nan, measured=None))
    (folder,) = (workspace.root / "runs").iterdir()
    return folder


def test_a_record_counts_if_it_is_whole_and_of_its_folder(workspace, recorded):
    assert not (recorded / UNFINISHED).exists()
    told = json.loads((recorded / RECORD).read_text())
    ids = [data.id for data in workspace.datasets()]
    for changes, row in (
        *(({}, {}), ({"format": "something else"}, {}), ({"kind": "datasets"}, {})),
        *(({}, {"id": "run-2"}), ({}, {"name": 7}), ({}, {"dataset_id": "another"})),
        *(({}, {"queries_done": "2"}), ({}, {"queries_done": None}), ({}, {"depth": "10"})),
        *(({}, {"created": None}), ({}, {"settings": "{"}), ({}, {"machine": "{"})),
    ):
        # A record without a checksum is from an earlier version.
        made = told | changes | {"row": told["row"] | row, "checksum": None}
        (recorded / RECORD).write_text(json.dumps(made))
        found = folders.recorded_rows(workspace.root, {"datasets": [], "runs": [recorded]}, ids)
        read = [("runs", "run-1", folders.relative(workspace.root, recorded))]
        assert [(kind, each["id"], each["folder"]) for kind, each in found] == (
            [] if changes or row else read
        ), (changes, row)


@pytest.mark.parametrize("what", ["record", "table"])
def test_what_is_written_is_on_the_disk_before_it_has_its_name_and_leaves_nothing_where_it_fails(
    workspace, recorded, monkeypatch, what
):
    with workspace.database.reading() as db:
        row = db.execute("SELECT * FROM runs").fetchone()
    target = recorded / (RECORD if what == "record" else "reading.parquet")
    target.unlink()
    before, seen = set(recorded.iterdir()), []

    def write():
        if what == "record":
            folders.write_record(recorded, "runs", row)
        else:
            tables.write_table(target, pa.table({"read": [1]}))

    def full(number):
        seen.append((target.exists(), os.fstat(number).st_size > 0))
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises((OSError, StoreError)):
            write()
    assert seen == [(False, True)]
    assert set(recorded.iterdir()) == before
    write()
    assert set(recorded.iterdir()) == {*before, target}


def test_journals_of_fetches_are_deleted_after_thirty_days_and_other_files_are_not(tmp_path):
    journal = folders.fetch_journal(tmp_path, "0123456789abcdef")
    for file in (journal, journal.with_name("notes.jsonl")):
        file.write_text("{}\n")
    month = time.time() - 31 * 24 * 3600
    for file in journal.parent.iterdir():
        os.utime(file, (month, month))
    assert folders.fetch_journal(tmp_path, "f" * 16) == journal.with_name("f" * 16 + ".jsonl")
    assert [file.name for file in journal.parent.iterdir()] == ["notes.jsonl"]
    with pytest.raises(StoreError, match="no workspace"):
        Workspace.open(tmp_path)
    journal.with_name("notes.jsonl").rename(journal)
    assert Workspace.open(tmp_path).datasets() == []
