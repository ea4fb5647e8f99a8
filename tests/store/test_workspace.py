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

from rankdash.dataset import Dataset
from rankdash.errors import StoreError
from rankdash.ranking.measured import FEWEST_TIMED
from rankdash.ranking.ranking import Ranking, Run
from rankdash.store import Workspace
from rankdash.store import workspace as store
from rankdash.store.rows import run_values
from rankdash.store.tables import (
    measured_of,
    read_ranking,
    read_table,
    write_ranking,
    write_table,
)

ARRAYS = ("query_ids", "doc_ids", "offsets", "docs", "scores", "tied", "given")


def same_ranking(left, right):
    return left.ties == right.ties and all(
        np.array_equal(
            getattr(left, name),
            getattr(right, name),
            equal_nan=getattr(left, name).dtype.kind == "f",
        )
        and getattr(left, name).dtype == getattr(right, name).dtype
        for name in ARRAYS
    )


@pytest.mark.parametrize("ties", ["stable", "trec"])
def test_a_dataset_comes_back_as_it_was(workspace, make_dataset, ties):
    dataset = make_dataset(ties=ties)
    workspace.save_dataset(dataset)
    loaded = Workspace.open(workspace.root).dataset(dataset.id)
    assert loaded.id == dataset.id
    assert loaded.name == dataset.name
    assert loaded.first_stage == "bm25"
    pd.testing.assert_frame_equal(loaded.queries, dataset.queries)
    pd.testing.assert_frame_equal(loaded.documents, dataset.documents)
    pd.testing.assert_frame_equal(loaded.qrels, dataset.qrels)
    assert same_ranking(loaded.candidates, dataset.candidates)
    for name in ("query_id", "doc_id"):
        assert loaded.labels[name].codes.tolist() == dataset.labels[name].codes.tolist()
        assert loaded.labels[name].texts.equals(dataset.labels[name].texts)


def test_ids_with_zeros_and_missing_text_stay_what_they_are(workspace, make_dataset):
    workspace.save_dataset(make_dataset())
    loaded = workspace.dataset(make_dataset().id)
    assert list(loaded.queries["query_id"]) == ["007", "7", "二"]
    assert list(loaded.documents["doc_id"]) == ["1", "01", "1.0", "NA"]
    assert list(loaded.queries["text"].isna()) == [False, True, False]
    assert list(loaded.documents["text"].isna()) == [False, True, False, False]
    assert list(loaded.queries["type"].isna()) == [False, True, False]


def test_a_dataset_without_any_text_comes_back(workspace):
    dataset = Dataset(
        "bare",
        pd.DataFrame({"query_id": ["1"], "text": [None]}),
        pd.DataFrame({"doc_id": ["2"], "title": [""], "text": [None]}),
        pd.DataFrame({"query_id": ["1"], "doc_id": ["2"], "label": [1]}),
        Ranking.from_columns([], [], []),
    )
    workspace.save_dataset(dataset)
    assert workspace.dataset(dataset.id) == dataset


def test_a_run_comes_back_as_it_was(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    run = make_run(dataset)
    workspace.save_run(run)
    loaded = Workspace.open(workspace.root).run(run.id)
    assert same_ranking(loaded.ranking, run.ranking)
    pd.testing.assert_frame_equal(loaded.queries, run.queries)
    for name in ("id", "name", "dataset_id", "reranker", "settings", "machine", "depth", "load_ms"):
        assert getattr(loaded, name) == getattr(run, name)
    assert loaded.created == run.created
    assert loaded.left_out == {"二": "failed"}
    assert loaded.reading.read.tolist() == [5, 7, -1, 5]
    assert loaded.reading.full.tolist() == [5, 9, -1, 8]
    assert math.isnan(loaded.measured.load_end)
    assert replace(loaded.measured, load_end=0.0, first_call_ms=0.0) == replace(
        run.measured, load_end=0.0, first_call_ms=0.0
    )
    pd.testing.assert_frame_equal(loaded.calls, run.calls)


def test_token_counts_that_do_not_fit_the_ranking_are_damage(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    run = make_run(dataset)
    workspace.save_run(run)
    (file,) = workspace.root.glob("runs/*/reading.parquet")
    counts = read_table(file)
    for wrong in (counts.slice(1), pa.concat_tables([counts, counts.slice(1)])):
        write_table(file, wrong)
        with pytest.raises(StoreError, match="damaged"):
            workspace.run(run.id)
    # A run of an older version has none.
    file.unlink()
    assert workspace.run(run.id).reading is None


ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


@st.composite
def rankings(draw):
    pairs = draw(st.lists(st.tuples(ids, ids), unique=True, max_size=20))
    scores = draw(
        st.lists(
            st.sampled_from([0.0, -1.5, 1e308, 5e-324, 3.0]),
            min_size=len(pairs),
            max_size=len(pairs),
        )
    )
    return Ranking.from_columns(
        [query for query, _ in pairs],
        [doc for _, doc in pairs],
        scores,
        ties=draw(st.sampled_from(["stable", "trec"])),
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ranking=rankings())
def test_any_ranking_comes_back_and_its_ties_can_be_settled_again(tmp_path, ranking):
    write_ranking(tmp_path, "any", ranking)
    loaded = read_ranking(tmp_path, "any")
    assert same_ranking(loaded, ranking)
    assert same_ranking(loaded.settled("trec"), ranking.settled("trec"))
    assert same_ranking(loaded.settled("stable"), ranking.settled("stable"))


def test_lists_tell_what_there_is_without_loading_it(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset, source="sample", report_json='{"findings": []}')
    row = workspace.datasets()[0]
    assert (row.id, row.name, row.source) == (dataset.id, "small", "sample")
    assert (row.queries, row.documents, row.labels) == (3, 4, 3)
    assert workspace.check_report(dataset.id) == '{"findings": []}'
    workspace.save_run(make_run(dataset))
    run = workspace.runs(dataset.id)[0]
    assert (run.queries_done, run.queries_failed, run.queries_skipped) == (2, 1, 0)
    assert run.settings == {"k1": 1.2, "language": "auto", "cased": False, "n": 3}
    assert run.p50_ms == pytest.approx(20.0)
    assert np.isnan(run.p95_ms), "two latencies have no p95"
    # Measured by itself, and not from the latencies: 4 pairs in 100 ms.
    assert run.pairs_per_second == pytest.approx(40.0)
    assert workspace.runs("another") == []


def test_what_a_precomputed_run_does_not_know_stays_unknown(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    run = make_run(dataset)
    queries = run.queries.assign(latency_ms=np.nan, index_ms=np.nan)
    workspace.save_run(
        Run("p", "file", dataset.id, run.ranking, "precomputed", queries, created="")
    )
    loaded = workspace.run("p")
    assert math.isnan(loaded.load_ms)
    assert (loaded.depth, loaded.measured, loaded.calls, loaded.reading) == (None,) * 4
    row = workspace.runs()[0]
    assert np.isnan([row.load_ms, row.p50_ms, row.p95_ms]).all()
    assert row.pairs_per_second is None
    assert row.depth is None
    assert row.created != ""


def test_the_same_content_is_stored_once_and_keeps_its_first_name(workspace, make_dataset):
    first = workspace.save_dataset(make_dataset("first"))
    assert workspace.save_dataset(make_dataset("second")) == first
    assert [row.name for row in workspace.datasets()] == ["first"]
    assert len(list((workspace.root / "datasets").iterdir())) == 1


def test_a_run_saved_again_replaces_the_old_one_and_its_files(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    workspace.save_run(make_run(dataset, name="again"))
    assert [row.name for row in workspace.runs()] == ["again"]
    assert len(list((workspace.root / "runs").iterdir())) == 1


def test_renaming(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    workspace.rename_dataset(dataset.id, "new name")
    workspace.rename_run("run-1", "new run")
    assert workspace.datasets()[0].name == "new name"
    assert workspace.dataset(dataset.id).name == "new name"
    assert workspace.run("run-1").name == "new run"


def test_deleting_a_dataset_takes_its_runs_and_files(workspace, make_dataset, make_run):
    kept, gone = make_dataset("kept"), make_dataset("gone", salt="!")
    for number, dataset in enumerate((kept, gone)):
        workspace.save_dataset(dataset)
        workspace.save_run(make_run(dataset, run_id=f"run-{number}"))
    workspace.delete_dataset(gone.id)
    assert [row.id for row in workspace.datasets()] == [kept.id]
    assert [row.id for row in workspace.runs()] == ["run-0"]
    assert len(list((workspace.root / "datasets").iterdir())) == 1
    assert len(list((workspace.root / "runs").iterdir())) == 1
    with pytest.raises(StoreError, match="no data set"):
        workspace.dataset(gone.id)


def test_deleting_a_run_leaves_its_dataset(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    workspace.delete_run("run-1")
    assert workspace.runs() == []
    assert list((workspace.root / "runs").iterdir()) == []
    assert workspace.dataset(dataset.id) == dataset


def test_what_is_not_there_is_named(workspace, make_dataset, make_run):
    for ask in (
        lambda: workspace.dataset("nope"),
        lambda: workspace.run("nope"),
        lambda: workspace.delete_dataset("nope"),
        lambda: workspace.delete_run("nope"),
        lambda: workspace.rename_dataset("nope", "x"),
        lambda: workspace.check_report("nope"),
    ):
        with pytest.raises(StoreError, match="'nope'"):
            ask()
    with pytest.raises(StoreError, match="no data set"):
        workspace.save_run(make_run(make_dataset()))
    assert not (workspace.root / "runs").exists() or not list((workspace.root / "runs").iterdir())


def test_settings_are_kept(workspace):
    assert workspace.setting("sample opened") is None
    workspace.set_setting("sample opened", "no")
    workspace.set_setting("sample opened", "yes")
    assert Workspace.open(workspace.root).setting("sample opened") == "yes"


def test_the_home_is_taken_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKDASH_HOME", str(tmp_path / "elsewhere"))
    assert Workspace.open().root == tmp_path / "elsewhere"
    monkeypatch.delenv("RANKDASH_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path in Workspace.open().root.parents


def test_lists_are_the_oldest_first_whatever_was_stored_first(workspace, make_dataset, make_run):
    for salt in ("later", "first"):
        workspace.save_dataset(make_dataset(salt, salt=salt))
    dataset = make_dataset("first", salt="first")
    for run_id, day in (("b", 3), ("c", 3), ("a", 2)):
        workspace.save_run(replace(make_run(dataset, run_id), created=f"2026-01-0{day}"))
    with workspace.database.writing() as db:
        db.execute("UPDATE datasets SET created = '2026-01-01' WHERE name = 'first'")
    assert [row.name for row in workspace.datasets()] == ["first", "later"]
    assert [row.id for row in workspace.runs()] == ["a", "b", "c"]
    assert [row.id for row in workspace.runs(dataset.id)] == ["a", "b", "c"]


@pytest.mark.parametrize(("timed", "p95"), [(FEWEST_TIMED, 46.0), (FEWEST_TIMED - 1, None)])
def test_the_latencies_of_a_row_are_those_of_what_is_done(make_dataset, make_run, timed, p95):
    latencies = [10.0, 20.0, 30.0, 40.0, 50.0][-timed:]
    states = ["done"] * timed + ["failed", "skipped", "skipped"]
    queries = pd.DataFrame(
        {"state": states, "latency_ms": [*latencies, 9000.0, np.nan, 9000.0]},
    )
    row = run_values(replace(make_run(make_dataset()), queries=queries))
    assert row["p50_ms"] == np.median(latencies)
    assert row["p95_ms"] == (p95 and pytest.approx(np.quantile(latencies, 0.95)))
    assert (row["queries_done"], row["queries_failed"], row["queries_skipped"]) == (timed, 1, 2)
    # Of one that is not known nothing is said.
    unknown = run_values(
        replace(make_run(make_dataset()), queries=queries.assign(latency_ms=np.inf))
    )
    assert (unknown["p50_ms"], unknown["p95_ms"]) == (None, None)


def test_what_a_list_says_of_a_run_comes_without_its_tables(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    workspace.save_run(replace(make_run(dataset, "bare"), machine={}, measured=None))
    (ranking,) = workspace.root.glob("runs/run-1-*/ranking.parquet")
    ranking.unlink()
    machine, measured = workspace.recorded("run-1")
    assert (machine, measured.pairs, measured.throughput[0].in_flight) == (
        {"cpu": "any", "logical_cpus": 2}, 4, 2,
    )  # fmt: skip
    assert workspace.recorded("bare") == ({}, None)


def test_counts_that_were_written_as_broken_numbers_are_read():
    found = measured_of({"measured": pa.array(['{"pairs": 3.0, "computed_tokens": 4}'])})
    assert (found.pairs, found.computed_tokens) == (3, 4.0)


@pytest.mark.parametrize(
    ("part", "cut"), [("candidates", 1), ("candidates-queries", 1), ("candidates-documents", 1)]
)
def test_a_ranking_whose_tables_do_not_fit_is_damaged(workspace, make_dataset, part, cut):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    (file,) = workspace.root.glob(f"datasets/*/{part}.parquet")
    table = read_table(file)
    write_table(file, table.slice(0, len(table) - cut))
    with pytest.raises(StoreError, match=r"damaged: its rows do not fit"):
        workspace.dataset(dataset.id)


def test_of_two_that_store_the_same_at_once_one_folder_stays(workspace, make_dataset, monkeypatch):
    writing = store.write_dataset

    def and_another(folder, dataset):
        monkeypatch.setattr(store, "write_dataset", writing)
        Workspace.open(workspace.root).save_dataset(dataset, source="the other")
        writing(folder, dataset)

    monkeypatch.setattr(store, "write_dataset", and_another)
    dataset = make_dataset()
    assert workspace.save_dataset(dataset) == dataset.id
    assert [row.source for row in workspace.datasets()] == ["the other"]
    assert len(list((workspace.root / "datasets").iterdir())) == 1
    assert workspace.dataset(dataset.id) == dataset


def test_a_home_may_be_told_from_that_of_the_user_or_from_here(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RANKDASH_HOME", "~/of mine")
    assert Workspace.open().root == tmp_path / "of mine"
    monkeypatch.chdir(tmp_path)
    assert Workspace.open(Path("here")).root == tmp_path / "here"


@pytest.mark.parametrize("kind", ["datasets", "runs"])
def test_what_lost_its_folder_can_be_deleted(workspace, make_dataset, make_run, kind):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    for folder in (workspace.root / kind).iterdir():
        shutil.rmtree(folder)
    if kind == "runs":
        workspace.delete_run("run-1")
    else:
        workspace.delete_dataset(dataset.id)
    assert (len(workspace.datasets()), workspace.runs()) == (1 if kind == "runs" else 0, [])
    assert list((workspace.root / kind).iterdir()) == []


def test_what_is_read_in_a_block_needs_one_connection_and_sees_what_others_write(
    workspace, make_dataset, monkeypatch
):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **more: opened.append(1) or connect(*given, **more)
    )
    with workspace.database.held_open():
        names = [workspace.name("datasets", dataset.id) for _ in range(5)]
        assert (names, len(opened)) == (["small"] * 5, 1)
        Workspace(workspace.root).rename_dataset(dataset.id, "elsewhere")
        assert workspace.name("datasets", dataset.id) == "elsewhere"
        workspace.rename_dataset(dataset.id, "here")
        assert workspace.name("datasets", dataset.id) == "here"
        with workspace.database.reading() as outer, workspace.database.reading() as inner:
            assert outer is not inner
            workspace.rename_dataset(dataset.id, "meanwhile")
            asked = "SELECT name FROM datasets"
            assert {each.execute(asked).fetchone()["name"] for each in (outer, inner)} == {
                "meanwhile"
            }
        with pytest.raises(StoreError, match="no data set"):
            workspace.name("datasets", "gone")
        held = workspace.database
        before = len(opened)
        threads = [
            threading.Thread(target=lambda: workspace.name("datasets", dataset.id))
            for _ in range(2)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(opened) == before + 2, "a block is of its thread"
    before = len(opened)
    with held.reading() as one:
        one.execute("SELECT 1")
    assert len(opened) == before + 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        one.execute("SELECT 1")
