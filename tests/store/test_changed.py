"""A table or a row that changed on the disk is reported and set apart. Bits in any file are flipped
in tests/fuzz."""

import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import Workspace, checksums, tables
from rankdash.core.workspace.folders import DATABASE
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.notes import Corrections, LabelNotes, Notes, RunNotes
from tests.store import builders

DAMAGED = r"\.parquet is damaged: .*delete its data set or run"


# Tables.


def test_every_stored_file_carries_its_hash(workspace, stored):
    files = builders.parquet_files(workspace.root)
    assert len(files) == 6 + 7
    for file in files:
        assert file.read_bytes().count(b"rankdash.sha256") == 1
        # Behind the first mark, which Parquet itself does not check.
        builders.flip(file, 0, 0)
        with pytest.raises(StoreError, match="has changed since it was written"):
            tables.refuse_changed(file)


@pytest.mark.parametrize("harm", ["changed", "flipped", "cut", "empty", "missing"])
def test_what_is_damaged_is_named_before_it_is_read_and_when_until_it_is_put_back(
    workspace, stored, harm
):
    again = Workspace(workspace.root, read_only=True)
    reads = {"datasets": (stored.id, again.dataset), "runs": ("run-1", again.run)}
    for kind, (key, read) in reads.items():
        (folder,) = builders.folders_of(workspace.root, kind)
        file = folder / f"{tables.PARTS[kind][0]}.parquet"
        content = file.read_bytes()
        # The first data page follows the magic bytes and its header.
        page = bytes(byte ^ 0x55 for byte in content[4:60])
        harmed = {
            "changed": content[:9] + b"?" + content[10:], "empty": b"",
            "flipped": content[:4] + page + content[60:], "cut": content[: len(content) // 2],
        }  # fmt: skip
        file.unlink() if harm == "missing" else file.write_bytes(harmed[harm])
        assert str(file) in str(again.damage(kind, key))
        with pytest.raises(StoreError, match=r"is missing" if harm == "missing" else DAMAGED):
            read(key)
        file.write_bytes(content)
        assert again.damage(kind, key) is None
    assert again.dataset(stored.id) == stored


def test_the_content_of_a_table_that_says_whose_it_is_is_not_hashed_again(
    workspace, stored, monkeypatch
):
    monkeypatch.setattr("rankdash.core.data.dataset.content_id", lambda *parts: "hashed again")
    assert workspace.dataset(stored.id).id == stored.id


@pytest.mark.parametrize(
    "says", ["of another", "nothing", "of this, without a hash", "of another data set"]
)
def test_a_whole_table_with_other_content_is_damage(workspace, stored, make_dataset, says):
    (folder,) = builders.folders_of(workspace.root, "datasets")
    file, other = folder / "qrels.parquet", stored.qrels.assign(label=0.0)
    if says == "of this, without a hash":
        table = pa.Table.from_pandas(other, preserve_index=False)
        builders.without_hash(file, table.replace_schema_metadata({"rankdash.of": stored.id}))
    elif says == "of another data set":
        theirs = workspace.save_dataset(make_dataset(salt="?"))
        (place,) = workspace.root.glob(f"datasets/{theirs}-*/queries.parquet")
        place.replace(folder / "queries.parquet")
    else:
        tables.write_frame(file, other, "abc" if says == "of another" else "")
    with pytest.raises(StoreError, match="its content has changed since it was saved"):
        workspace.dataset(stored.id)


def test_files_that_are_added_again_take_the_place_of_damaged_ones(workspace, stored):
    workspace.rename_dataset(stored.id, "mine")
    (folder,) = builders.folders_of(workspace.root, "datasets")
    (folder / "qrels.parquet").write_bytes(b"")
    assert workspace.save_dataset(stored) == stored.id
    assert workspace.dataset(stored.id).name == "mine"
    assert [row.id for row in workspace.runs(stored.id)] == ["run-1"]
    # Nothing is deleted.
    assert [file.stat().st_size for file in workspace.root.glob("trash/*/*/*/qrels.parquet")] == [0]
    assert Workspace(workspace.root).trouble is None


@pytest.fixture
def without_hashes(workspace, make_dataset, make_run, monkeypatch):
    """A data set and a run, stored as by a version without hashes."""
    dataset = make_dataset()
    with monkeypatch.context() as older:
        older.setattr(tables, "write_table", builders.without_hash)
        workspace.save_dataset(dataset)
        workspace.save_run(make_run(dataset))
    return {"datasets": dataset.id, "runs": "run-1"}


def test_tables_of_a_version_that_wrote_no_hash_get_theirs(workspace, without_hashes):
    before, files = builders.everything(workspace), builders.parquet_files(workspace.root)
    schemas = {file: (file.read_bytes(), pq.read_schema(file)) for file in files}
    shown = Workspace(workspace.root, read_only=True)
    assert [shown.damage(*each) for each in without_hashes.items()] == [None, None]
    assert all(file.read_bytes() == content for file, (content, _schema) in schemas.items())

    assert [workspace.damage(*each) for each in without_hashes.items()] == [None, None]
    assert builders.everything(workspace) == before
    for file, (_content, schema) in schemas.items():
        assert tables.refuse_changed(file)
        assert pq.read_schema(file).equals(schema, check_metadata=True)
    assert builders.parquet_files(workspace.root) == files


def test_a_table_without_a_hash_gets_none_if_it_is_damaged_or_the_disk_is_full(
    workspace, without_hashes, monkeypatch
):
    def full(file, _table):
        raise StoreError("full")

    with monkeypatch.context() as patch:
        patch.setattr(tables, "write_table", full)
        assert [workspace.damage(*each) for each in without_hashes.items()] == [None, None]
    assert not any(tables.refuse_changed(file) for file in builders.parquet_files(workspace.root))
    (file,) = workspace.root.glob("datasets/*/qrels.parquet")
    # Within a page, which has a separate checksum.
    builders.flip(file, 60, 0)
    changed = file.read_bytes()
    again = Workspace(workspace.root)
    assert str(file) in str(again.damage("datasets", without_hashes["datasets"]))
    assert file.read_bytes() == changed


# Rows.


@pytest.fixture(scope="module")
def written(tmp_path_factory, make_dataset, make_run):
    """The folder of a workspace with a label, a grade, notes and a price."""
    workspace, dataset = Workspace.open(tmp_path_factory.mktemp("rows") / "home"), make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    for doc, label in (("d1", 2.0), ("d2", 1.0)):
        Corrections(workspace).correct(dataset.id, ("q7", doc), label, "annette")
    Notes(workspace).store(dataset.id, "q7", ["odd"], "a note on a query")
    RunNotes(workspace).store("run-1", "a note on a run")
    LabelNotes(workspace).store(dataset.id, ("q7", "d1"), "annette", "a remark on a pair")
    grades = pd.DataFrame({"query_id": ["q7"], "doc_id": ["d3"], "grade": [2.0], "error": [""]})
    StoredJudges(workspace).add(dataset.id, "a judge", "tiny", 3, grades)
    workspace.set_setting("prices", '{"per_1000_searches": 4.5}')
    return workspace.root


@pytest.fixture
def rows(written, tmp_path):
    return Workspace.open(shutil.copytree(written, tmp_path / "rows"))


# Reads of a workspace and its data set, and the results after a changed bit.
ROWS = {
    "label": (
        lambda w, d: [each.label for each in Corrections(w).all(d)],
        *(b"q7d1\x02annette", b"q7d1\x03annette"),
    ),
    "label, in the log": (
        lambda w, d: [each.label for each in Corrections(w).log(d)],
        *(b"q7d1\x02annette", b"q7d1\x00annette"),
    ),
    "grade": (
        lambda w, d: StoredJudges(w).grades(StoredJudges(w).rows(d)[0].id)["grade"].tolist(),
        *(b"q7d3\x02", b"q7d3\x06"),
    ),
    "note": (
        lambda w, d: Notes(w).of(d, "q7").text, b"a note on a query", b"a note on i query"
    ),
    "note, in the list": (
        lambda w, d: [each.text for each in Notes(w).all(d)],
        *(b"a note on a query", b"a note on a quer\xf9"),
    ),
    "note on a run": (
        lambda w, _: RunNotes(w).of("run-1").text, b"a note on a run", b"a note on a rul"
    ),
    "remark": (
        lambda w, d: LabelNotes(w).of(d, ("q7", "d1"), "annette"),
        *(b"a remark on a pair", b"a remark of a pair"),
    ),
    "price": (lambda w, _: w.setting("prices"), b'": 4.5}', b'": 5.5}'),
}  # fmt: skip


def read(workspace, what):
    (data,) = workspace.datasets()
    return ROWS[what][0](workspace, data.id)


@pytest.mark.parametrize("what", ROWS)
def test_a_row_that_changed_is_an_error_while_open_and_set_apart_when_opened(rows, what):
    written = read(rows, what)
    assert written
    builders.change(rows.root, *ROWS[what][1:])
    with pytest.raises(StoreError, match=r"rankdash\.sqlite is damaged: .*start rankdash again"):
        read(rows, what)
    opened = Workspace.open(rows.root)
    assert opened.read_only
    assert "rows that have changed since they were written: 1" in opened.trouble.message
    for again in (opened, Workspace.open(rows.root)):
        left = read(again, what)
        assert left != written
        # Only the changed one of several values is missing.
        assert not left or (isinstance(left, list) and set(left) < set(written))
    assert opened.repair().changed == 1
    repaired = Workspace.open(rows.root)
    assert repaired.trouble is None
    assert read(repaired, what) == left
    assert [row.id for row in repaired.runs()] == ["run-1"]


def test_a_changed_row_comes_back_from_a_copy_as_it_was_written(rows, on):
    on("2099-01-01")
    (data,) = rows.datasets()
    Notes(rows).store(data.id, "q8", ["odd"], "makes a copy of before")
    written = read(rows, "label")
    builders.change(rows.root, *ROWS["label"][1:])
    # Changed rows are not backed up.
    before = checksums.backups(rows.root)
    checksums.make_backup(rows.root / DATABASE)
    assert checksums.backups(rows.root) == before
    opened = Workspace.open(rows.root)
    assert read(opened, "label") == written
    opened.repair()
    assert read(Workspace.open(rows.root), "label") == written
    assert len(Notes(Workspace.open(rows.root)).all(data.id)) == 2


def test_a_changed_row_cannot_be_changed_into_one_that_looks_as_written(rows):
    (judge,) = StoredJudges(rows).rows()
    builders.change(rows.root, b"a judge", b"a fudge")
    for use in (lambda: StoredJudges(rows).rename(judge.id, "another"), StoredJudges(rows).rows):
        with pytest.raises(StoreError, match="a row has changed since it was written"):
            use()


def test_an_entry_of_an_index_that_changed_is_named(rows):
    """An index without the entry of a label hides the label."""
    file = rows.root / DATABASE
    asked = "SELECT rootpage FROM sqlite_master WHERE name = 'corrections_by_pair'"
    (page,), (size,) = builders.ask(file, asked), builders.ask(file, "PRAGMA page_size")
    (data,) = rows.datasets()
    Corrections(rows).correct(data.id, ("q9", "d9"), 1.0, "annette")
    builders.change(rows.root, b"\x00", b"\x00")
    place = file.read_bytes().index(b"q9d9", (page - 1) * size)
    assert place < page * size
    builders.flip(file, place + 1, 0)
    assert "database pages are inconsistent" in Workspace.open(rows.root).trouble.message


def test_every_table_is_checked_in_all_its_columns(workspace):
    file = workspace.root / DATABASE
    names = set(builders.ask(file, "SELECT name FROM sqlite_master WHERE type = 'table'"))
    # Which annotator sees which pair, for some minutes.
    names -= {"sqlite_sequence", "label_cards"}
    assert len(names) == 14
    for table in names:
        *columns, last = [row[1] for row in builders.ask(file, f"PRAGMA table_info({table})")]
        assert last == checksums.COLUMN
        of_it = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?"
        call = f"row_checksum({', '.join(columns)})"
        assert len([each for each in builders.ask(file, of_it, table) if call in each]) == 2
