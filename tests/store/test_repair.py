"""A database that is lost, damaged or older than its folders: nothing is deleted, all data can be
read, and a repair restores the existing data."""

import json
import re
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from rankdash.core.base.errors import StoreError
from rankdash.core.data.dataset import Dataset
from rankdash.core.workspace import Workspace, checksums, database, folders, repair
from rankdash.core.workspace.folders import DATABASE, RECORD
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations, Owner
from rankdash.core.workspace.jobs.queue import Queue, read_parts
from rankdash.core.workspace.notes import Notes, RunNotes
from tests.approved import masked, table
from tests.results import shown
from tests.store import builders


@pytest.fixture(scope="module")
def in_use(tmp_path_factory):
    """A workspace of the version before folders had records, in use, a day after its last backup:
    its folder, and all its data."""
    root = tmp_path_factory.mktemp("kept") / "old"
    with zipfile.ZipFile(builders.OLD) as packed:
        packed.extractall(root)
    with pytest.MonkeyPatch.context() as patch:
        for day in ("2020-01-01", "2020-01-02"):
            for module in (checksums, database):
                patch.setattr(module, "today", lambda day=day: day)
            workspace = Workspace.open(root)
        before = builders.everything(workspace)
    with workspace.database.reading() as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return root, before


@pytest.fixture
def kept(in_use, tmp_path, on):
    """A copy of the folder, older than any running save, and all its data."""
    whole, before = in_use
    on("2020-01-02")
    root = shutil.copytree(whole, tmp_path / "kept")
    builders.make_old(*builders.folders_of(root))
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
    """Make one record unusable, and one for a data set that does not exist."""
    broken, orphaned, _whole = sorted((root / "runs").iterdir())
    (broken / RECORD).write_text("{}")
    told = json.loads((orphaned / RECORD).read_text())
    told["row"]["dataset_id"] = "gone"
    (orphaned / RECORD).write_text(json.dumps(told))


def change_record(root):
    (file, *_) = sorted(root.glob(f"runs/*/{RECORD}"))
    file.write_text(file.read_text().replace('"queries_done": ', '"queries_done": 1'))


def age_records(root):
    """Remove the checksum and the name of a first stage, as in records of an older version."""
    for file in root.rglob(RECORD):
        told = json.loads(file.read_text())
        told["row"].pop("candidates_name", "")
        file.write_text(json.dumps({**told, "checksum": None}))


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
        lose_folders, lambda root: builders.ask(root / DATABASE, "CREATE TABLE another (id TEXT)"),
    ],
    "what was deleted or renamed since the copy is so": [change_since_the_copy, lose],
    "records that cannot be used": [lose, lose_copies, harm_records],
    "a record that changed": [lose, lose_copies, change_record],
    "records of an older version": [lose, lose_copies, age_records],
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
        builders.make_old(*builders.folders_of(root))
        for step in steps:
            step(root)
        files = builders.content_of(root)
        shown = Workspace(root, read_only=True)
        workspace = Workspace.open(root)
        found = builders.everything(workspace)
        assert builders.everything(shown) == found and not shown.may_repair
        with pytest.raises(StoreError, match="workspace repair"):
            workspace.set_setting("a", "b")
        with pytest.raises(StoreError):
            shown.repair()
        assert builders.content_of(root) == files, harm
        done = workspace.repair()
        assert (done.trash and (done.trash / DATABASE).read_bytes()) == files.get(Path(DATABASE))
        assert builders.content_of(root).keys() >= files.keys() - {Path(DATABASE)}
        builders.make_old(*builders.folders_of(root))
        again = Workspace.open(root)
        assert (again.trouble, again.repair()) == (None, None)
        assert builders.everything(again) == found, harm
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
        # The reserve for deletes, and the empty lock file, for which another process may be
        # waiting.
        beside = {file.name: file.stat().st_size > 0 for file in root.glob(f"{DATABASE}-*")}
        assert beside == {f"{DATABASE}-repair": False, f"{DATABASE}-reserve": True}
    approved("store/repairs", masked(table(said), folder=f"{re.escape(str(tmp_path))}/\\w+"))


def test_a_workspace_of_an_older_version_opens_with_everything_and_gets_records(tmp_path, approved):
    old = tmp_path / "old"
    with zipfile.ZipFile(builders.OLD) as packed:
        packed.extractall(old)
    names = "SELECT folder, name FROM datasets UNION SELECT folder, name FROM runs"
    before = dict(builders.ask(old / DATABASE, names))
    builders.make_old(*builders.folders_of(old))
    workspace = Workspace.open(old)
    assert workspace.trouble is None
    found = builders.everything(workspace)
    for note in RunNotes(workspace).all(shop(workspace)):
        found["explanation"] = [
            Explanations(workspace).find(ExplanationRequest(note, "q1", "d1", "term"))
        ]
    for job in Queue(workspace).rows():
        found[job.id] = [job, read_parts(workspace, job.id)]
    text = table((key, "\n".join(map(shown, each))) for key, each in found.items())
    approved("store/older", masked(text, moment=r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"))
    assert not (old / "trash").exists()
    for folder, name in before.items():
        assert json.loads((old / folder / RECORD).read_text())["row"]["name"] == name
    # Rows have checksums after the migration.
    builders.change(old, b"why it was made", b"why it was mode")
    assert "rows that have changed" in Workspace.open(old).trouble.message


def test_an_empty_file_of_a_database_is_a_new_workspace(tmp_path):
    (tmp_path / DATABASE).touch()
    (tmp_path / "beside.txt").touch()
    assert Workspace.open(tmp_path).trouble is None


def test_an_older_copy_put_back_loses_no_newer_run_and_no_newer_note(
    root, opened, make_dataset, make_run
):
    older = (root / DATABASE).read_bytes()
    data = make_dataset("new")
    tables = (data.queries, data.documents, data.qrels, data.candidates)
    dataset = Dataset("new", *tables, candidates_name="dense")
    opened.save_dataset(dataset)
    opened.save_run(make_run(dataset))
    Notes(opened).store(dataset.id, "7", ["new"], "written later")
    checksums.make_backup(opened.database.file)
    before = builders.everything(opened)
    (root / DATABASE).write_bytes(older)
    builders.make_old(*builders.folders_of(root, "datasets", "runs"))
    again = Workspace.open(root)
    assert "older than its folders" in again.trouble.message
    assert again.trouble.params["n"] == 2
    assert builders.everything(again) == before
    again.repair()
    assert builders.everything(Workspace.open(root)) == before


def test_a_run_deleted_in_another_process_meanwhile_is_no_older_copy(root, opened, monkeypatch):
    listing = folders.recorded

    def delete_after(place):
        found = listing(place)
        opened.delete_run(opened.runs()[0].id)
        return found

    monkeypatch.setattr(folders, "recorded", delete_after)
    assert Workspace.open(root).trouble is None


@pytest.mark.thorough
def test_several_processes_that_repair_at_once_agree(kept, all_pass):
    root, before = kept
    write(b"")(root)
    all_pass(f"{builders.HEAD}workspace.repair()", root, times=3)
    assert builders.everything(Workspace.open(root)) == before
    assert len(list(root.glob(f"trash/*/{DATABASE}"))) == 1


def test_no_file_is_left_of_the_stand_in(root):
    lose(root)
    workspace = Workspace.open(root)
    place = workspace.database.file.parent
    assert place.is_dir() and root not in place.parents
    del workspace
    assert not place.exists()


# Sources of a new database.


def copied(made):
    """Change the database after its backup; `made` is the number of backups that it records."""

    def arrange(home):
        notes = Notes(home)
        home.set_setting(checksums.BACKUPS_MADE, "2")
        notes.store(shop(home), "q1", [], "copy")
        checksums.make_backup(home.root / DATABASE)
        notes.store(shop(home), "q1", [], "database")
        builders.ask(
            home.root / DATABASE, "DELETE FROM settings WHERE key = ?", checksums.BACKUPS_MADE
        )
        if made:
            home.set_setting(checksums.BACKUPS_MADE, made)

    return arrange, "SELECT note FROM notes WHERE query_id = 'q1'"


def of_several_days(home):
    for day in ("20300101", "20300102", "20300103"):
        before = set(checksums.backups(home.root))
        checksums.make_backup(home.root / DATABASE)
        (made,) = set(checksums.backups(home.root)) - before
        copy = made.rename(made.with_name(f"rankdash-{day}{made.name[17:]}"))
        with closing(sqlite3.connect(copy)) as db, db:
            checksums.teach(db)
            db.execute("INSERT INTO settings (key, value) VALUES ('day', ?)", (day,))
    copy.write_bytes(b"no database")
    lose(home.root)


def with_a_column(home):
    builders.ask(home.root / DATABASE, "ALTER TABLE notes ADD COLUMN colour TEXT DEFAULT 'red'")
    lose_copies(home.root)


def without_a_dataset(home):
    builders.submit_judge(home, shop(home), "one", pairs=[("q1", "d1")])
    (folder,) = home.root.glob(f"datasets/{shop(home)}-*")
    shutil.rmtree(folder)
    lose_copies(home.root)


def without_runs(home):
    """Remove the rows of runs, as if on an unreadable page, without their dependent rows."""
    file = home.root / DATABASE
    for folder in builders.folders_of(home.root, "runs"):
        shutil.rmtree(folder)
    lose_copies(home.root)
    for name in builders.ask(file, "SELECT name FROM sqlite_master WHERE type='trigger'"):
        builders.ask(file, f"DROP TRIGGER {name}")
    builders.ask(file, "DELETE FROM runs")


def with_work(home):
    dataset_id, run, judges, owner = shop(home), home.runs()[0], StoredJudges(home), Owner()
    said = json.dumps({"template": "{said}", "remedy": "", "params": {"said": "Bearer abc123def"}})
    for job_id, state in ((run.id, "running"), ("aaaa", "queued"), ("bbbb", "failed")):
        builders.submit(home, dataset_id, state, job_id=job_id)
        with home.database.writing() as db:
            db.execute(
                "UPDATE jobs SET state = ?, problem = ?, cancel = 1, worker = 'w', "
                "stage = 'scoring' WHERE id = ?",
                (state, said, job_id),
            )
    for doc_id in ("d8", "d9"):
        Explanations(home).ask(ExplanationRequest(run.id, "q1", doc_id, "term"))
    Explanations(home).claim(owner)
    for name in ("one", "two"):
        builders.submit_judge(home, dataset_id, name, pairs=[("q1", "d1"), ("q1", "d2")])
    judges.claim(owner)
    judges.store("one", owner, [builders.grade(("q1", "d2"))], {"calls": 1})
    lose_copies(home.root)


# The change of the workspace, and the queries to the new database.
ANEW = {
    "of two that count the same the database counts": copied("2"),
    "a copy that counts more comes first": copied("1"),
    "so does a database that counts more": copied("3"),
    "a count that cannot be read is damage": copied("many"),
    "one that is not there is of the first days": copied(None),
    "the newest sound copy": (of_several_days, "SELECT value FROM settings WHERE key = 'day'"),
    "a column that this version does not know loses no row": (with_a_column,),
    "what belongs to no data set goes too": (without_a_dataset,),
    "and what belongs to no run": (without_runs,),
    "work is settled, and what it said of keys is hidden": (
        with_work,
        "SELECT name, state, stage, cancel, worker, problem, finished NOTNULL FROM jobs "
        "ORDER BY name",
        "SELECT doc_id, state, worker, finished NOTNULL FROM explanations ORDER BY doc_id",
        "SELECT name, state FROM judges ORDER BY name",
        "SELECT judge_id, doc_id, grade FROM judged_pairs ORDER BY judge_id, doc_id",
    ),
}


def sizes(file):
    names = builders.ask(file, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return {name: builders.ask(file, f"SELECT count(*) FROM {name}")[0] for name in names}


def test_a_database_is_made_anew_of_what_there_is(in_use, tmp_path, on, approved):
    on("2020-01-02")
    said = {}
    for case, (arrange, *questions) in ANEW.items():
        root = shutil.copytree(in_use[0], tmp_path / str(len(said)))
        builders.make_old(*builders.folders_of(root))
        arrange(Workspace.open(root))
        made, file = root.with_suffix(".sqlite"), root / DATABASE
        before = sizes(file) if file.exists() else {}
        lines = [f"copy of {repair.rebuild(root, made).copy_of or 'no day'}"]
        rows = [f"{name} {before.get(name, '?')} → {n}" for name, n in sizes(made).items()]
        said[case] = "\n".join(
            [*lines, ", ".join(rows), *(str(builders.ask(made, q)) for q in questions)]
        )
    approved("store/anew", table(said))


def test_what_is_not_yet_in_the_file_of_the_database_is_read_from_its_log(root, opened, tmp_path):
    with opened.database.reading() as held:
        held.execute("SELECT 1 FROM settings").fetchall()
        opened.set_setting("late", "kept")
        assert (root / f"{DATABASE}-wal").stat().st_size > 0
        repair.rebuild(root, tmp_path / "anew.sqlite")
    found = builders.ask(tmp_path / "anew.sqlite", "SELECT value FROM settings WHERE key = 'late'")
    assert found == ["kept"]
