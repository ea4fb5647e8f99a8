"""A stored file that changed is named and set apart: never another number, never a raw error."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdash.errors import StoreError
from rankdash.store import Workspace, tables

FLIPS = 300


@pytest.fixture
def stored(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset, report_json="{}")
    workspace.save_run(make_run(dataset))
    return dataset


def files_of(workspace):
    return sorted(workspace.root.rglob("*.parquet"))


def state_of(workspace, dataset_id):
    """All that is read of the stored tables, comparable with ==."""
    data, run = workspace.dataset(dataset_id), workspace.run("run-1")
    machine, measured = workspace.recorded("run-1")
    return [
        *(getattr(data, name).to_json() for name in tables.DATASET_PARTS),
        *(run.queries.to_json(), run.calls.to_json(), repr(run.measured), repr(measured)),
        *(repr((machine, run.settings)), run.reading.read.tolist(), run.reading.full.tolist()),
        *(
            repr((r.query_ids.tolist(), r.documents.to_pylist(), r.docs.tolist(), r.ties))
            + repr((r.offsets.tolist(), r.scores.tolist(), r.tied.tolist(), np.array(r.given)))
            for r in (data.candidates, run.ranking)
        ),
    ]


def without_hash(file, table, of=""):
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)


@pytest.mark.parametrize("hashed", [True, False])
def test_of_300_flipped_bits_none_changes_a_number_or_is_a_raw_error(
    workspace, make_dataset, make_run, monkeypatch, hashed
):
    if not hashed:
        monkeypatch.setattr(tables, "write_table", without_hash)
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    before, files = state_of(workspace, dataset.id), files_of(workspace)
    chance, named = random.Random(21), 0
    for _flip in range(FLIPS):
        file = chance.choice(files)
        content = file.read_bytes()
        at = chance.randrange(len(content))
        changed = bytes([content[at] ^ 1 << chance.randrange(8)])
        file.write_bytes(content[:at] + changed + content[at + 1 :])
        try:
            assert state_of(workspace, dataset.id) == before
        except StoreError as error:
            named += 1
            assert str(file) in str(error) or str(file.parent) in str(error)
        file.write_bytes(content)
    assert state_of(workspace, dataset.id) == before
    # Where a file carries its hash, only a flip in the name of the hash can pass.
    assert named >= (FLIPS - 20 if hashed else FLIPS // 3)


def test_every_stored_file_carries_its_hash(workspace, stored):
    files = files_of(workspace)
    assert len(files) == 6 + 7
    for file in files:
        content = bytearray(file.read_bytes())
        assert content.count(b"rankdash.sha256") == 1
        # Where Parquet itself would not look: behind the first mark.
        content[0] ^= 1
        file.write_bytes(content)
        with pytest.raises(StoreError, match="has changed since it was written"):
            tables.refuse_changed(file)


def test_the_content_of_a_table_that_says_whose_it_is_is_not_hashed_again(
    workspace, stored, monkeypatch
):
    monkeypatch.setattr("rankdash.dataset.content_id", lambda *parts: "hashed again")
    assert workspace.dataset(stored.id).id == stored.id


@pytest.mark.parametrize("says", ["of another", "nothing", "of this, without a hash"])
def test_a_whole_table_with_other_content_is_damage(workspace, stored, says):
    (folder,) = (workspace.root / "datasets").iterdir()
    file = folder / "qrels.parquet"
    other = stored.qrels.assign(label=0.0)
    if says == "of this, without a hash":
        table = pa.Table.from_pandas(other, preserve_index=False)
        without_hash(file, table.replace_schema_metadata({"rankdash.of": stored.id}))
    else:
        tables.write_frame(file, other, "abc" if says == "of another" else "")
    with pytest.raises(StoreError, match="its content is not what was saved"):
        workspace.dataset(stored.id)


@pytest.mark.parametrize("harm", ["changed", "cut", "missing"])
def test_what_is_damaged_is_told_before_it_is_read_until_it_is_put_back(workspace, stored, harm):
    again = Workspace(workspace.root, read_only=True)
    kinds = (("datasets", stored.id), ("runs", "run-1"))
    for kind, key in kinds:
        (folder,) = (workspace.root / kind).iterdir()
        file = folder / tables.PARTS[kind][0]
        file = file.with_name(f"{file.name}.parquet")
        content = file.read_bytes()
        if harm == "missing":
            file.unlink()
        else:
            file.write_bytes(content[:-20] if harm == "cut" else content[:9] + b"?" + content[10:])
        assert str(file) in str(again.damage(kind, key))
        file.write_bytes(content)
        assert again.damage(kind, key) is None
    assert again.dataset(stored.id) == stored


def test_files_that_are_added_again_take_the_place_of_damaged_ones(workspace, stored):
    workspace.rename_dataset(stored.id, "mine")
    (folder,) = (workspace.root / "datasets").iterdir()
    (folder / "qrels.parquet").write_bytes(b"")
    assert workspace.save_dataset(stored) == stored.id
    assert workspace.dataset(stored.id).name == "mine"
    assert [row.id for row in workspace.runs(stored.id)] == ["run-1"]
    # Nothing is deleted.
    assert [file.stat().st_size for file in workspace.root.glob("trash/*/*/*/qrels.parquet")] == [0]
    assert Workspace(workspace.root).trouble is None


@pytest.fixture
def without_hashes(workspace, make_dataset, make_run, monkeypatch):
    """A data set and a run as a version stored them that wrote no hash."""
    dataset = make_dataset()
    with monkeypatch.context() as older:
        older.setattr(tables, "write_table", without_hash)
        workspace.save_dataset(dataset)
        workspace.save_run(make_run(dataset))
    return {"datasets": dataset.id, "runs": "run-1"}


def test_tables_of_a_version_that_wrote_no_hash_get_theirs(workspace, without_hashes):
    before = state_of(workspace, without_hashes["datasets"])
    files = {file: (file.read_bytes(), pq.read_schema(file)) for file in files_of(workspace)}
    shown = Workspace(workspace.root, read_only=True)
    assert [shown.damage(*each) for each in without_hashes.items()] == [None, None]
    assert all(file.read_bytes() == content for file, (content, _schema) in files.items())

    assert [workspace.damage(*each) for each in without_hashes.items()] == [None, None]
    assert state_of(workspace, without_hashes["datasets"]) == before
    for file, (_content, schema) in files.items():
        assert tables.refuse_changed(file)
        assert pq.read_schema(file).equals(schema, check_metadata=True)
    assert files_of(workspace) == sorted(files)


def test_a_damaged_table_without_a_hash_is_told_and_gets_none(workspace, without_hashes):
    file = next(file for file in files_of(workspace) if file.name == "qrels.parquet")
    content = file.read_bytes()
    # Within a page, which has a checksum of its own.
    file.write_bytes(content[:60] + bytes([content[60] ^ 1]) + content[61:])
    changed = file.read_bytes()
    assert str(file) in str(workspace.damage("datasets", without_hashes["datasets"]))
    assert file.read_bytes() == changed


def test_where_there_is_no_room_a_table_stays_without_a_hash(
    workspace, without_hashes, monkeypatch
):
    def full(file, _table):
        raise StoreError("full")

    monkeypatch.setattr(tables, "write_table", full)
    assert [workspace.damage(*each) for each in without_hashes.items()] == [None, None]
    assert not any(tables.refuse_changed(file) for file in files_of(workspace))
