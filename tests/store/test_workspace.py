import math
import shutil
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankdash.core.base.errors import StoreError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import FEWEST_TIMED
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.workspace import Workspace, tables
from rankdash.core.workspace import workspace as workspace_workspace
from rankdash.core.workspace.database import run_values
from tests.approved import masked
from tests.results import results, several
from tests.store.builders import folders_of

ARRAYS = ("query_ids", "doc_ids", "offsets", "docs", "scores", "tied", "given")


def same_ranking(left, right):
    found = [(getattr(left, name), getattr(right, name)) for name in ARRAYS]
    return left.ties == right.ties and all(
        one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        for one, other in found
    )


# Data sets and runs.


def test_a_dataset_comes_back_as_it_was(workspace, make_dataset):
    bare = Dataset(
        "bare",
        pd.DataFrame({"query_id": ["1"], "text": [None]}),
        pd.DataFrame({"doc_id": ["2"], "title": [""], "text": [None]}),
        pd.DataFrame({"query_id": ["1"], "doc_id": ["2"], "label": [1]}),
        Ranking.from_columns([], [], []),
    )
    for dataset in (make_dataset(), make_dataset(salt="trec", ties="trec"), bare):
        workspace.save_dataset(dataset)
        loaded = Workspace.open(workspace.root).dataset(dataset.id)
        assert loaded == dataset
        assert (loaded.name, loaded.first_stage) == (dataset.name, dataset.first_stage)
        for name in ("queries", "documents", "qrels"):
            pd.testing.assert_frame_equal(getattr(loaded, name), getattr(dataset, name))
        assert same_ranking(loaded.candidates, dataset.candidates)
        for name in ("query_id", "doc_id"):
            assert loaded.labels[name].codes.tolist() == dataset.labels[name].codes.tolist()
            assert loaded.labels[name].texts.equals(dataset.labels[name].texts)


def test_a_run_comes_back_as_it_was(workspace, stored, make_run):
    run = make_run(stored)
    loaded = Workspace.open(workspace.root).run(run.id)
    assert same_ranking(loaded.ranking, run.ranking)
    pd.testing.assert_frame_equal(loaded.queries, run.queries)
    pd.testing.assert_frame_equal(loaded.calls, run.calls)
    for name in ("id", "name", "dataset_id", "reranker", "settings", "machine", "depth", "load_ms",
                 "created"):  # fmt: skip
        assert getattr(loaded, name) == getattr(run, name)
    assert loaded.excluded == {"二": "failed"}
    assert loaded.reading.read.tolist() == [5, 7, -1, 5]
    assert loaded.reading.full.tolist() == [5, 9, -1, 8]
    assert math.isnan(loaded.measured.load_end)
    known = {"load_end": 0.0, "first_call_ms": 0.0}
    assert replace(loaded.measured, **known) == replace(run.measured, **known)


ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
exact = st.sampled_from([0.0, -1.5, 1e308, 5e-324, 3.0])


@st.composite
def rankings(draw):
    pairs = draw(st.dictionaries(st.tuples(ids, ids), exact, max_size=20))
    queries, docs = ([pair[part] for pair in pairs] for part in (0, 1))
    ties = draw(st.sampled_from(["stable", "trec"]))
    return Ranking.from_columns(queries, docs, list(pairs.values()), ties=ties)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ranking=rankings())
def test_any_ranking_comes_back_and_its_ties_can_be_settled_again(tmp_path, ranking):
    tables.write_ranking(tmp_path, "any", ranking)
    loaded = tables.read_ranking(tmp_path, "any")
    assert same_ranking(loaded, ranking)
    for ties in ("trec", "stable"):
        assert same_ranking(loaded.with_ties(ties), ranking.with_ties(ties))


def test_token_counts_that_do_not_fit_the_ranking_are_damage(workspace, stored):
    (file,) = workspace.root.glob("runs/*/reading.parquet")
    counts = tables.read_table(file)
    for wrong in (counts.slice(1), pa.concat_tables([counts, counts.slice(1)])):
        tables.write_table(file, wrong)
        with pytest.raises(StoreError, match="damaged"):
            workspace.run("run-1")
    # A run of an older version has none.
    file.unlink()
    assert workspace.run("run-1").reading is None


@pytest.mark.parametrize("part", ["candidates", "candidates-queries", "candidates-documents"])
def test_a_ranking_whose_tables_do_not_fit_is_damaged(workspace, stored, part):
    (file,) = workspace.root.glob(f"datasets/*/{part}.parquet")
    table = tables.read_table(file)
    tables.write_table(file, table.slice(0, len(table) - 1))
    with pytest.raises(StoreError, match=r"damaged: its rows do not match"):
        workspace.dataset(stored.id)


def test_counts_that_were_written_as_broken_numbers_are_read():
    found = tables.measured_of({"measured": pa.array(['{"pairs": 3.0, "computed_tokens": 4}'])})
    assert (found.pairs, found.computed_tokens) == (3, 4.0)


# Contents of lists.


def test_what_lists_tell_without_loading_it_is_as_approved(
    workspace, make_dataset, make_run, approved
):
    """Also for a run from a file, without measurements. Pairs per second have a separate
    measurement, independent of the latencies: 4 pairs in 100 ms."""
    dataset = make_dataset()
    workspace.save_dataset(dataset, source="sample", report_json='{"findings": []}')
    run = make_run(dataset)
    untimed = run.queries.assign(latency_ms=np.nan, index_ms=np.nan)
    bare = Run("p", "file", dataset.id, run.ranking, "precomputed", untimed, created="")
    for each in (run, bare):
        workspace.save_run(each)
    loaded = workspace.run("p")
    assert (loaded.depth, loaded.measured, loaded.calls, loaded.reading) == (None,) * 4
    for ranking in workspace.root.glob("*/*/ranking.parquet"):
        ranking.unlink()
    cases = {"data set": workspace.datasets()[0], "report": workspace.check_report(dataset.id)}
    cases |= {f"run {row.name}": row for row in workspace.runs(dataset.id)}
    cases |= several("recorded of {}", workspace.recorded, ["run-1", "p"])
    cases["runs of another"] = workspace.runs("another")
    # Latencies of done queries only; unknown ones are not included.
    for timed in (FEWEST_TIMED, FEWEST_TIMED - 1):
        states = ["done"] * timed + ["failed", "skipped", "skipped"]
        latencies = [*[10.0, 20.0, 30.0, 40.0, 50.0][-timed:], 9000.0, np.nan, 9000.0]
        queries = pd.DataFrame({"state": states, "latency_ms": latencies})
        cases[f"{timed} latencies"] = run_values(replace(run, queries=queries))
    cases["infinite ones"] = run_values(replace(run, queries=queries.assign(latency_ms=np.inf)))
    moment = r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"
    approved("store/lists", masked(results(cases), moment=moment, token=r"(?<=-)[0-9a-f]{8}\b"))


def test_lists_are_the_oldest_first_whatever_was_stored_first(workspace, make_dataset, make_run):
    for salt in ("later", "first"):
        workspace.save_dataset(make_dataset(salt, salt=salt))
    dataset = make_dataset("first", salt="first")
    for run_id, day in (("b", 3), ("c", 3), ("a", 2)):
        workspace.save_run(replace(make_run(dataset, run_id), created=f"2026-01-0{day}"))
    with workspace.database.writing() as db:
        db.execute("UPDATE datasets SET created = '2026-01-01' WHERE name = 'first'")
    assert [row.name for row in workspace.datasets()] == ["first", "later"]
    for runs in (workspace.runs(), workspace.runs(dataset.id)):
        assert [row.id for row in runs] == ["a", "b", "c"]


# Save again, rename, delete.


def test_what_is_saved_again_is_stored_once_and_a_run_replaces_the_old_one(
    workspace, stored, make_dataset, make_run
):
    assert workspace.save_dataset(make_dataset("second")) == stored.id
    workspace.save_run(make_run(stored, name="again"))
    rows = [*workspace.datasets(), *workspace.runs()]
    assert [row.name for row in rows] == ["small", "again"]
    assert len(folders_of(workspace.root)) == 2


def test_of_two_that_store_the_same_at_once_one_folder_stays(workspace, make_dataset, monkeypatch):
    writing = workspace_workspace.write_dataset

    def and_another(folder, dataset):
        monkeypatch.setattr(workspace_workspace, "write_dataset", writing)
        Workspace.open(workspace.root).save_dataset(dataset, source="the other")
        writing(folder, dataset)

    monkeypatch.setattr(workspace_workspace, "write_dataset", and_another)
    dataset = make_dataset()
    assert workspace.save_dataset(dataset) == dataset.id
    assert [row.source for row in workspace.datasets()] == ["the other"]
    assert len(folders_of(workspace.root, "datasets")) == 1
    assert workspace.dataset(dataset.id) == dataset


def test_deleting_a_dataset_takes_its_runs_and_files(workspace, stored, make_dataset, make_run):
    gone = make_dataset("gone", salt="!")
    workspace.save_dataset(gone)
    workspace.save_run(make_run(gone, "run-2"))
    workspace.delete_dataset(gone.id)
    assert [row.id for row in workspace.datasets()] == [stored.id]
    assert [row.id for row in workspace.runs()] == ["run-1"]
    assert len(folders_of(workspace.root)) == 2
    with pytest.raises(StoreError, match="no data set"):
        workspace.dataset(gone.id)
    # After a run is deleted, its data set remains.
    workspace.delete_run("run-1")
    assert (workspace.runs(), len(folders_of(workspace.root))) == ([], 1)
    assert workspace.dataset(stored.id) == stored


@pytest.mark.parametrize("kind", ["datasets", "runs"])
def test_what_lost_its_folder_can_be_deleted(workspace, stored, kind):
    for folder in folders_of(workspace.root, kind):
        shutil.rmtree(folder)
    workspace.delete_run("run-1") if kind == "runs" else workspace.delete_dataset(stored.id)
    assert (len(workspace.datasets()), workspace.runs()) == (kind == "runs", [])
    assert folders_of(workspace.root, kind) == []


def test_what_is_not_there_is_named(workspace, make_dataset, make_run):
    for ask in (
        *(workspace.dataset, workspace.run, workspace.delete_dataset, workspace.delete_run),
        *(workspace.check_report, lambda key: workspace.rename_dataset(key, "x")),
    ):
        with pytest.raises(StoreError, match="'nope'"):
            ask("nope")
    with pytest.raises(StoreError, match="no data set"):
        workspace.save_run(make_run(make_dataset()))
    assert folders_of(workspace.root, "runs") == []


# The workspace itself.


def test_the_home_is_taken_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    for home, root in ((str(tmp_path / "elsewhere"), "elsewhere"), ("~/of mine", "of mine")):
        monkeypatch.setenv("RANKDASH_HOME", home)
        assert Workspace.open().root == tmp_path / root
    assert Workspace.open(Path("here")).root == tmp_path / "here"
    monkeypatch.delenv("RANKDASH_HOME")
    assert tmp_path in Workspace.open().root.parents


def test_what_is_read_in_a_block_needs_one_connection_and_sees_what_others_write(
    workspace, stored, monkeypatch
):
    opened, connect = [], sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **more: opened.append(1) or connect(*given, **more)
    )

    def name():
        return workspace.name("datasets", stored.id)

    with workspace.database.held_open():
        assert ([name() for _ in range(5)], len(opened)) == (["small"] * 5, 1)
        Workspace(workspace.root).rename_dataset(stored.id, "elsewhere")
        assert name() == "elsewhere"
        workspace.rename_dataset(stored.id, "here")
        assert name() == "here"
        with workspace.database.reading() as outer, workspace.database.reading() as inner:
            assert outer is not inner
            workspace.rename_dataset(stored.id, "meanwhile")
            for each in (outer, inner):
                assert each.execute("SELECT name FROM datasets").fetchone()["name"] == "meanwhile"
        with pytest.raises(StoreError, match="no data set"):
            workspace.name("datasets", "gone")
        before, threads = len(opened), [threading.Thread(target=name) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(opened) == before + 2, "a block is of its thread"
    before = len(opened)
    with workspace.database.reading() as one:
        one.execute("SELECT 1")
    assert len(opened) == before + 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        one.execute("SELECT 1")
