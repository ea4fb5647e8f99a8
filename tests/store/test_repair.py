"""A database that is lost, damaged or older than its folders: nothing is deleted, all of it can be
looked at, and a repair brings back what there is."""

import json
import re
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from rankdash.dataset import Dataset
from rankdash.errors import StoreError
from rankdash.sharing import read_scenarios
from rankdash.store import Workspace, backups, checksums, database, records, repair
from rankdash.store.folders import DATABASE, RECORD
from rankdash.store.jobs.explanations import Asked, Explanations
from rankdash.store.jobs.job_batches import read_parts
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.jobs.leases import Owner
from rankdash.store.jobs.queue import Queue
from rankdash.store.notes.notes import Notes
from tests.approved import masked, table
from tests.store.builders import (
    HEAD,
    OLD,
    ask,
    content_of,
    everything,
    folders_of,
    grade,
    make_old,
    submit,
    submit_judge,
)  # fmt: skip


@pytest.fixture
def old(tmp_path):
    """A workspace of the version before folders had records."""
    with zipfile.ZipFile(OLD) as packed:
        packed.extractall(tmp_path / "old")
    return tmp_path / "old"


@pytest.fixture(scope="module")
def in_use(tmp_path_factory):
    """The same in use, a day after its last copy: its folder, and all that it holds."""
    root = tmp_path_factory.mktemp("kept") / "old"
    with zipfile.ZipFile(OLD) as packed:
        packed.extractall(root)
    with pytest.MonkeyPatch.context() as patch:
        for day in ("2020-01-01", "2020-01-02"):
            for module in (backups, database):
                patch.setattr(module, "today", lambda day=day: day)
            workspace = Workspace.open(root)
        before = everything(workspace)
    with workspace.database.reading() as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return root, before


@pytest.fixture
def kept(in_use, tmp_path, on):
    """A copy of it, and all that it holds; no one has touched it for a while."""
    whole, before = in_use
    on("2020-01-02")
    root = shutil.copytree(whole, tmp_path / "kept")
    make_old(*folders_of(root))
    return root, before


@pytest.fixture
def root(kept):
    return kept[0]


@pytest.fixture
def opened(root):
    return Workspace.open(root)


def shop(workspace):
    return next(row.id for row in workspace.datasets() if row.name == "Shop")


def lose(root):
    (root / DATABASE).unlink()


def lose_copies(root):
    shutil.rmtree(root / "backups")


def write(content):
    return lambda root: (root / DATABASE).write_bytes(content)


def tear(root):
    content = (root / DATABASE).read_bytes()
    write(content[:8192] + b"\xff" * 11_808 + content[20_000:])(root)


def lose_folders(root):
    for path in root.iterdir():
        if path.name != "backups":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def change_since_the_copy(root):
    home = Workspace.open(root)
    ids = {row.name: row.id for row in home.runs()}
    home.delete_run(ids["run 3"])
    home.rename_run(ids["run 1"], "by hand")


def harm_records(root):
    """One cannot be used, and one is of a data set that is not there."""
    broken, orphaned, _whole = sorted((root / "runs").iterdir())
    (broken / RECORD).write_text("{}")
    told = json.loads((orphaned / RECORD).read_text())
    told["row"]["dataset_id"] = "gone"
    (orphaned / RECORD).write_text(json.dumps(told))


def change_record(root):
    (file, *_) = sorted(root.glob(f"runs/*/{RECORD}"))
    file.write_text(file.read_text().replace('"queries_done": ', '"queries_done": 1'))


def lose_records(root):
    for record in root.rglob(RECORD):
        record.unlink()


HARM = {
    "a lost database": [lose],
    "an empty database": [write(b"")],
    "a database that is none": [write(b"\xff" * 50_000)],
    "a torn database": [tear],
    "without a copy, what only the database had is lost": [lose, lose_copies],
    "copies without anything else": [lose_folders],
    "copies and an empty database": [lose_folders, write(b"")],
    "copies and a database of something else": [
        lose_folders, lambda root: ask(root / DATABASE, "CREATE TABLE another (id TEXT)"),
    ],
    "what was deleted or renamed since the copy is so": [change_since_the_copy, lose],
    "records that cannot be used": [lose, lose_copies, harm_records],
    "a record that changed": [lose, lose_copies, change_record],
    "without records nothing is listed": [lose, lose_copies, lose_records],
}  # fmt: skip


def test_nothing_is_deleted_all_can_be_looked_at_and_a_repair_brings_it_back(
    in_use, tmp_path, on, approved
):
    whole, before = in_use
    on("2020-01-02")
    said = []
    for harm, steps in HARM.items():
        root = shutil.copytree(whole, tmp_path / str(len(said)))
        make_old(*folders_of(root))
        for step in steps:
            step(root)
        files = content_of(root)
        shown = Workspace(root, read_only=True)
        workspace = Workspace.open(root)
        found = everything(workspace)
        assert everything(shown) == found and not shown.may_repair
        with pytest.raises(StoreError, match="workspace repair"):
            workspace.set_setting("a", "b")
        with pytest.raises(StoreError):
            shown.repair()
        assert content_of(root) == files, harm
        done = workspace.repair()
        assert (done.trash and (done.trash / DATABASE).read_bytes()) == files.get(Path(DATABASE))
        assert content_of(root).keys() >= files.keys() - {Path(DATABASE)}
        make_old(*folders_of(root))
        again = Workspace.open(root)
        assert (again.trouble, again.repair()) == (None, None)
        assert everything(again) == found, harm
        rows = [*again.datasets(), *again.runs()]
        same = all(str(row) in map(str, before[row.id]) for row in rows)
        there = f"there is {[row.name for row in rows]}, {'' if same else 'not '}as it was"
        told = {name: value for name, value in vars(done).items() if name != "trash"}
        lines = [
            str(workspace.trouble),
            "; ".join(f"{name} {value}" for name, value in told.items()),
        ]
        lines.append("all of it" if found == before else there)
        said.append((harm, "\n".join(lines)))
        # The room that is kept for a delete, and the empty file of the lock, for which another
        # process may be waiting.
        beside = {file.name: file.stat().st_size > 0 for file in root.glob(f"{DATABASE}-*")}
        assert beside == {f"{DATABASE}-repair": False, f"{DATABASE}-reserve": True}
    approved("store/repairs", masked(table(said), folder=f"{re.escape(str(tmp_path))}/\\w+"))


def test_a_workspace_of_an_older_version_opens_with_everything_and_gets_records(old):
    before = dict(
        ask(old / DATABASE, "SELECT folder, name FROM datasets UNION SELECT folder, name FROM runs")
    )
    make_old(*folders_of(old))
    workspace = Workspace.open(old)
    assert workspace.trouble is None
    assert sorted(row.name for row in workspace.datasets()) == ["Guide", "Shop"]
    assert sorted(row.name for row in workspace.runs()) == ["renamed", "run 1", "run 3"]
    found = everything(workspace)
    names = {row.name: row.id for row in workspace.datasets()}
    shop, guide = names["Shop"], names["Guide"]
    assert found[shop][6][0].tags == ("odd", "退货")
    (label,) = found[shop][7]
    assert (label.pair, label.label, label.who) == (("q1", "d0"), 1.0, "Ann")
    assert found[guide][7][0].label is None
    assert [note.text for note in found[shop][9].values()] == ["why it was made"]
    assert workspace.run(found[shop][10]).name == "renamed"
    assert set(read_scenarios(found["scenarios"][0])) == {"careful", "bold"}
    run_of_note = next(iter(found[shop][9]))
    assert Explanations(workspace).find(Asked(run_of_note, "q1", "d1", "term")).state == "done"
    (job,) = Queue(workspace).rows()
    assert (job.name, job.state) == ("half done", "interrupted")
    assert len(read_parts(workspace, job.id)) == 1
    assert not (old / "trash").exists()
    for folder, name in before.items():
        assert json.loads((old / folder / RECORD).read_text())["row"]["name"] == name


def test_a_record_of_an_older_version_has_no_name_of_a_first_stage(workspace, make_dataset):
    data = make_dataset()
    tables = (data.queries, data.documents, data.qrels, data.candidates)
    for older in (False, True):
        named = Dataset("named", *tables, candidates_name="dense")
        workspace.save_dataset(named)
        (record,) = workspace.root.glob(f"datasets/*/{RECORD}")
        if older:
            told = json.loads(record.read_text())
            del told["row"]["candidates_name"], told["checksum"]
            record.write_text(json.dumps(told))
        lose(workspace.root)
        Workspace.open(workspace.root).repair()
        found = Workspace.open(workspace.root).dataset(data.id)
        assert found.candidates_name == ("" if older else "dense")


def test_an_empty_file_of_a_database_is_a_new_workspace(tmp_path):
    (tmp_path / DATABASE).touch()
    (tmp_path / "beside.txt").touch()
    assert Workspace.open(tmp_path).trouble is None


def test_an_older_copy_put_back_loses_no_newer_run_and_no_newer_note(
    root, opened, make_dataset, make_run
):
    older = (root / DATABASE).read_bytes()
    dataset = make_dataset("new")
    opened.save_dataset(dataset)
    opened.save_run(make_run(dataset))
    Notes(opened).keep(dataset.id, "7", ["new"], "written later")
    backups.make(opened.database.file)
    before = everything(opened)
    (root / DATABASE).write_bytes(older)
    make_old(*folders_of(root, "datasets", "runs"))
    again = Workspace.open(root)
    assert "older than its folders" in again.trouble.message
    assert again.trouble.params["n"] == 2
    assert everything(again) == before
    again.repair()
    assert everything(Workspace.open(root)) == before


@pytest.mark.parametrize("kind", ["datasets", "runs"])
def test_from_folders_are_told_only_rows_that_nothing_else_had(root, opened, tmp_path, kind):
    lose_copies(root)
    assert repair.rebuild(root, tmp_path / "whole.sqlite").from_folders == 0
    ask(root / DATABASE, f"DELETE FROM {kind} WHERE id = (SELECT max(id) FROM {kind})")
    made = repair.rebuild(root, tmp_path / "anew.sqlite")
    assert (made.from_folders, made.rows["datasets"], made.rows["runs"]) == (1, 2, 3)


def test_a_run_deleted_in_another_process_meanwhile_is_no_older_copy(root, opened, monkeypatch):
    listing = records.kept

    def delete_after(place):
        found = listing(place)
        opened.delete_run(opened.runs()[0].id)
        return found

    monkeypatch.setattr(records, "kept", delete_after)
    assert Workspace.open(root).trouble is None


@pytest.mark.thorough
def test_several_processes_that_repair_at_once_agree(kept, all_pass):
    root, before = kept
    write(b"")(root)
    all_pass(f"{HEAD}workspace.repair()", root, times=3)
    assert everything(Workspace.open(root)) == before
    assert len(list(root.glob(f"trash/*/{DATABASE}"))) == 1


def test_no_file_is_left_of_the_stand_in(root):
    lose(root)
    workspace = Workspace.open(root)
    place = workspace.database.file.parent
    assert place.is_dir() and root not in place.parents
    del workspace
    assert not place.exists()


# What a database is made anew from.


@pytest.fixture
def anew(root, tmp_path):
    """What is found in the database that a repair would make."""

    def find(question, *given, file=tmp_path / "anew.sqlite"):
        if not file.exists():
            repair.rebuild(root, file)
        return ask(file, question, *given)

    return find


@pytest.mark.parametrize(
    ("made", "newer"),
    [
        # Of two that count the same, the database itself: it went on after the copy.
        ("2", "database"),
        ("1", "copy"),
        ("3", "database"),
        # A count that cannot be read is damage; one that is not there is of the first days.
        ("many", "database"),
        (None, "copy"),
    ],
)
def test_the_rows_of_what_was_copied_more_often_come_first(root, opened, anew, made, newer):
    notes = Notes(opened)
    opened.set_setting(backups.MADE, "2")
    notes.keep(shop(opened), "q1", [], "copy")
    backups.make(root / DATABASE)
    notes.keep(shop(opened), "q1", [], "database")
    with opened.database.writing() as db:
        db.execute("DELETE FROM settings WHERE key = ?", (backups.MADE,))
    if made is not None:
        opened.set_setting(backups.MADE, made)
    assert anew("SELECT note FROM notes WHERE query_id = 'q1'") == [newer]


def test_the_newest_sound_copy_is_used_and_its_day_is_told(root, opened, tmp_path):
    for day in ("20300101", "20300102", "20300103"):
        before = set(backups.listed(root))
        backups.make(root / DATABASE)
        (made,) = set(backups.listed(root)) - before
        copy = made.rename(made.with_name(f"rankdash-{day}{made.name[17:]}"))
        with closing(sqlite3.connect(copy)) as db, db:
            checksums.teach(db)
            db.execute("INSERT INTO settings (key, value) VALUES ('day', ?)", (day,))
    copy.write_bytes(b"no database")
    lose(root)
    assert repair.rebuild(root, tmp_path / "anew.sqlite").copy_of == "2030-01-02"
    asked = "SELECT value FROM settings WHERE key = 'day'"
    assert ask(tmp_path / "anew.sqlite", asked) == ["20300102"]


def test_what_is_not_yet_in_the_file_of_the_database_is_read_from_its_log(root, opened, anew):
    with opened.database.reading() as held:
        held.execute("SELECT 1 FROM settings").fetchall()
        opened.set_setting("late", "kept")
        assert (root / f"{DATABASE}-wal").stat().st_size > 0
        assert anew("SELECT value FROM settings WHERE key = 'late'") == ["kept"]


def test_a_column_that_this_version_does_not_know_loses_no_row(root, opened, anew):
    ask(root / DATABASE, "ALTER TABLE notes ADD COLUMN colour TEXT DEFAULT 'red'")
    before = ask(root / DATABASE, "SELECT count(*) FROM notes")
    lose_copies(root)
    assert anew("SELECT count(*) FROM notes") == before > [0]


BELONGS = {
    "datasets": (
        *("runs", "jobs", "notes", "corrections", "run_notes", "pins", "explanations", "judges"),
        "judged_pairs",
    ),
    "runs": ("explanations", "run_notes", "pins"),
}


@pytest.mark.parametrize("kind", BELONGS)
def test_what_belongs_to_nothing_that_is_there_goes_too(root, opened, anew, kind):
    dataset_id = shop(opened)
    submit_judge(opened, dataset_id, "one", pairs=[("q1", "d1")])
    for folder in (root / kind).iterdir():
        if kind == "runs" or folder.name.startswith(dataset_id):
            shutil.rmtree(folder)
    lose_copies(root)
    of = "1" if kind == "runs" else f"dataset_id = '{dataset_id}'"
    alone = ("explanations", "judged_pairs")
    held = [
        f"SELECT rowid FROM {each} WHERE {'1' if each in alone else of}" for each in BELONGS[kind]
    ]
    assert all(ask(root / DATABASE, question) for question in held), "something of each"
    if kind == "runs":
        # As where their rows lay on a page that cannot be read: nothing took the others along.
        for name in ask(root / DATABASE, "SELECT name FROM sqlite_master WHERE type='trigger'"):
            ask(root / DATABASE, f"DROP TRIGGER {name}")
        ask(root / DATABASE, "DELETE FROM runs")
    assert [anew(question) for question in held] == [[]] * len(held)


def test_work_of_a_copy_is_settled_and_what_it_said_of_keys_is_hidden(root, opened, anew):
    dataset_id, run, judges, owner = shop(opened), opened.runs()[0], StoredJudges(opened), Owner()
    said = json.dumps({"template": "{said}", "remedy": "", "params": {"said": "Bearer abc123def"}})
    for job_id, state in ((run.id, "running"), ("aaaa", "queued"), ("bbbb", "failed")):
        submit(opened, dataset_id, state, job_id=job_id)
        with opened.database.writing() as db:
            db.execute(
                "UPDATE jobs SET state = ?, problem = ?, cancel = 1, worker = 'w', "
                "stage = 'scoring' WHERE id = ?",
                (state, said, job_id),
            )
    asked = [Asked(run.id, "q1", doc, "term") for doc in ("d8", "d9")]
    for each in asked:
        Explanations(opened).ask(each)
    Explanations(opened).claim(owner)
    for name in ("one", "two"):
        submit_judge(opened, dataset_id, name, pairs=[("q1", "d1"), ("q1", "d2")])
    judges.claim(owner)
    judges.keep("one", owner, [grade(("q1", "d2"))], {"calls": 1})
    lose_copies(root)
    columns = "state, stage, cancel, worker, problem, finished NOTNULL"
    jobs = {name: rest for name, *rest in anew(f"SELECT name, {columns} FROM jobs")}
    assert jobs["running"] == ["done", "waiting", 0, None, None, 1]
    assert (jobs["queued"][0], jobs["queued"][3]) == ("interrupted", None)
    assert jobs["failed"][0] == "failed"
    assert json.loads(jobs["failed"][4])["params"] == {"said": "Bearer •••"}
    left = "SELECT state, worker, finished NOTNULL FROM explanations WHERE id IN (?, ?)"
    assert anew(left, *(each.id for each in asked)) == [("interrupted", None, 1)] * 2
    assert anew("SELECT state FROM judges") == ["interrupted"] * 2
    graded = "SELECT grade FROM judged_pairs WHERE judge_id = 'one' ORDER BY rowid"
    assert anew(graded) == [None, 2.0]
