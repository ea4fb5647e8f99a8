"""A row of the database that changed on the disk is named and set apart: never another number."""

import json
import random
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from rankdash.errors import StoreError
from rankdash.store import Workspace, backups, checksums, database
from rankdash.store.folders import DATABASE, RECORD
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.label_notes import LabelNotes
from rankdash.store.notes.notes import Notes
from rankdash.store.notes.run_notes import RunNotes

OLD = Path(__file__).with_name("old") / "workspace.zip"


@pytest.fixture
def stored(workspace, make_dataset, make_run):
    """The id of a data set with a label, a grade, notes and a price."""
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    corrections = Corrections(workspace)
    for doc, label in (("d1", 2.0), ("d2", 1.0)):
        corrections.correct(dataset.id, ("q7", doc), label, "annette")
    Notes(workspace).keep(dataset.id, "q7", ["odd"], "a note on a query")
    RunNotes(workspace).keep("run-1", "a note on a run")
    LabelNotes(workspace).keep(dataset.id, ("q7", "d1"), "annette", "a remark on a pair")
    grades = pd.DataFrame({"query_id": ["q7"], "doc_id": ["d3"], "grade": [2.0], "error": [""]})
    StoredJudges(workspace).add(dataset.id, "a judge", "tiny", 3, grades)
    workspace.set_setting("prices", '{"per_1000_searches": 4.5}')
    return dataset.id


def read(workspace, what):
    (data,) = workspace.datasets()
    judges = StoredJudges(workspace)
    return {
        "label": lambda: [each.label for each in Corrections(workspace).all(data.id)],
        "label, in the log": lambda: [each.label for each in Corrections(workspace).log(data.id)],
        "grade": lambda: judges.grades(judges.rows(data.id)[0].id)["grade"].tolist(),
        "note": lambda: Notes(workspace).of(data.id, "q7").text,
        "note, in the list": lambda: [each.text for each in Notes(workspace).all(data.id)],
        "note on a run": lambda: RunNotes(workspace).of("run-1").text,
        "remark": lambda: LabelNotes(workspace).of(data.id, ("q7", "d1"), "annette"),
        "price": lambda: workspace.setting("prices"),
        "latency of a run": lambda: workspace.runs()[0].p50_ms,
    }[what]()


# What is in the file of the database, and what one changed bit makes of it.
CHANGES = {
    "label": (b"q7d1\x02annette", b"q7d1\x03annette"),
    "label, in the log": (b"q7d1\x02annette", b"q7d1\x00annette"),
    "grade": (b"q7d3\x02", b"q7d3\x06"),
    "note": (b"a note on a query", b"a note on i query"),
    "note, in the list": (b"a note on a query", b"a note on a quer\xf9"),
    "note on a run": (b"a note on a run", b"a note on a rul"),
    "remark": (b"a remark on a pair", b"a remark of a pair"),
    "price": (b'": 4.5}', b'": 5.5}'),
}


def change(root, before, after):
    """Change the bytes of the database, whose log has to be in it."""
    with closing(sqlite3.connect(root / DATABASE)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    content = (root / DATABASE).read_bytes()
    assert before in content
    (root / DATABASE).write_bytes(content.replace(before, after))


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_while_the_workspace_is_open_is_an_error_and_no_value(workspace, stored, what):
    assert read(workspace, what)
    change(workspace.root, *CHANGES[what])
    with pytest.raises(StoreError, match=r"rankdash\.sqlite is damaged: .*start rankdash again"):
        read(workspace, what)


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_named_when_the_workspace_is_opened_and_set_apart(workspace, stored, what):
    written = read(workspace, what)
    change(workspace.root, *CHANGES[what])
    opened = Workspace.open(workspace.root)
    assert opened.read_only
    assert "rows that have changed since they were written: 1" in opened.trouble.message
    for again in (opened, Workspace.open(workspace.root)):
        left = read(again, what)
        assert left != written
        # Of several values the others are there.
        assert not left or (isinstance(left, list) and set(left) < set(written))
    assert opened.repair().changed == 1
    repaired = Workspace.open(workspace.root)
    assert repaired.trouble is None
    assert read(repaired, what) == left
    assert [row.id for row in repaired.runs()] == ["run-1"]


def test_a_changed_row_comes_back_from_a_copy_as_it_was_written(workspace, stored, monkeypatch):
    monkeypatch.setattr(backups, "today", lambda: "2099-01-01")
    monkeypatch.setattr(database, "today", lambda: "2099-01-01")
    Notes(workspace).keep(stored, "q8", ["odd"], "makes a copy of before")
    written = read(workspace, "label")
    change(workspace.root, *CHANGES["label"])
    opened = Workspace.open(workspace.root)
    assert read(opened, "label") == written
    opened.repair()
    assert read(Workspace.open(workspace.root), "label") == written
    assert len(Notes(Workspace.open(workspace.root)).all(stored)) == 2


def test_a_copy_is_made_of_no_database_with_changed_rows(workspace, stored):
    change(workspace.root, *CHANGES["label"])
    before = backups.listed(workspace.root)
    backups.make(workspace.root / DATABASE)
    assert backups.listed(workspace.root) == before


def test_a_changed_row_cannot_be_changed_into_one_that_looks_as_written(workspace, stored):
    (judge,) = StoredJudges(workspace).rows(stored)
    change(workspace.root, b"a judge", b"a fudge")
    with pytest.raises(StoreError, match="a row has changed since it was written"):
        StoredJudges(workspace).rename(judge.id, "another name")
    with pytest.raises(StoreError, match="a row has changed since it was written"):
        StoredJudges(workspace).rows(stored)


def test_an_entry_of_an_index_that_changed_is_named(workspace, stored):
    """An index that does not list a label hides it."""
    with closing(sqlite3.connect(workspace.root / DATABASE)) as db:
        (page,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'corrections_by_pair'"
        ).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    Corrections(workspace).correct(stored, ("q9", "d9"), 1.0, "annette")
    change(workspace.root, b"\x00", b"\x00")
    content = bytearray((workspace.root / DATABASE).read_bytes())
    place = content.index(b"q9d9", (page - 1) * size)
    assert place < page * size
    content[place + 1] ^= 1
    (workspace.root / DATABASE).write_bytes(content)
    assert "its pages do not fit together" in Workspace.open(workspace.root).trouble.message


def test_a_record_that_changed_brings_back_no_row(workspace, stored):
    (folder,) = (workspace.root / "runs").iterdir()
    content = (folder / RECORD).read_text()
    assert '"queries_done": 2' in content
    (folder / RECORD).write_text(content.replace('"queries_done": 2', '"queries_done": 3'))
    for file in workspace.root.glob(f"{DATABASE}*"):
        file.unlink()
    for copy in backups.listed(workspace.root):
        copy.unlink()
    opened = Workspace.open(workspace.root)
    assert opened.runs() == [] and opened.found.unlisted == [workspace.named(folder)]


def test_every_table_is_checked_in_all_its_columns(workspace):
    with closing(sqlite3.connect(workspace.root / DATABASE)) as db:
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        # Who looks at which pair for some minutes.
        tables -= {"sqlite_sequence", "label_cards"}
        assert len(tables) == 14
        for table in tables:
            *columns, last = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            assert last == checksums.COLUMN
            triggers = [
                row[0]
                for row in db.execute(
                    "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?",
                    (table,),
                )
            ]
            covering = [each for each in triggers if f"row_checksum({', '.join(columns)})" in each]
            assert len(covering) == 2


def test_a_workspace_of_an_older_version_gets_checksums_and_loses_nothing(tmp_path):
    with zipfile.ZipFile(OLD) as packed:
        packed.extractall(tmp_path)
    before = Workspace.open(tmp_path)
    assert before.trouble is None
    data = next(row.id for row in before.datasets() if Corrections(before).all(row.id))
    label = Corrections(before).all(data)[0]
    text = f"{label.query_id}{label.doc_id}".encode()
    change(tmp_path, text, text[:-1] + bytes([text[-1] ^ 1]))
    assert "rows that have changed" in Workspace.open(tmp_path).trouble.message


def test_of_150_flipped_bits_of_the_database_none_changes_a_value(workspace, stored, tmp_path):
    def state(opened):
        found = [str(opened.datasets()), str(opened.runs()), opened.check_report(stored)]
        plans = ("label", "label, in the log", "note", "note on a run", "remark", "price", "grade")
        return [*found, *(read(opened, each) for each in plans)]

    before = state(workspace)
    change(workspace.root, b"\x00", b"\x00")
    content = (workspace.root / DATABASE).read_bytes()
    used = [at for at, byte in enumerate(content) if byte]
    chance, named = random.Random(5), 0
    for _flip in range(150):
        at, bit = chance.choice(used), 1 << chance.randrange(8)
        for file in workspace.root.glob(f"{DATABASE}-*"):
            if file.suffix != ".sqlite-reserve":
                file.unlink()
        flipped = content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
        (workspace.root / DATABASE).write_bytes(flipped)
        try:
            opened = Workspace(workspace.root, read_only=True)
            if opened.trouble is None:
                assert state(opened) == before, (at, bit)
            else:
                named += 1
        except StoreError:
            named += 1
    assert named > 75
    assert json.dumps(before)
