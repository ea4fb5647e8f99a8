"""Jobs: what they were asked with, how far they are, and their batches until the end."""

import math

import pytest

from rankdash.errors import StoreError, UnavailableError
from rankdash.store.jobs.job_batches import read_parts, write_part
from rankdash.store.jobs.queue import Owner, Progress, Queue
from rankdash.store.tables import read_table, write_table
from tests.store.builders import submit


@pytest.fixture
def dataset_id(workspace, make_dataset):
    return workspace.save_dataset(make_dataset())


@pytest.fixture
def queue(workspace):
    return Queue(workspace)


@pytest.fixture
def job(workspace, dataset_id):
    return submit(workspace, dataset_id)


@pytest.fixture
def me():
    return Owner()


def test_progress_is_shown_and_a_retry_keeps_the_first_start_and_the_latest_cold_start(
    queue, job, me, monkeypatch
):
    assert queue.row(job).stage == "waiting"
    claimed = queue.claim(me)
    assert (claimed.settings, claimed.stage) == ({"k1": 1.2}, "loading")
    queue.progress(job, me, Progress("scoring", 1, 2, 9, 10, 90, 5.0, 16.0, 300.0))
    row = queue.row(job)
    assert (row.stage, row.done, row.failed, row.total) == ("scoring", 1, 2, 9)
    assert (row.pairs_done, row.pairs_total, row.rate_pairs_s, row.seconds_left) == (10, 90, 5, 16)
    queue.progress(job, me, Progress("scoring", 2, 0, 9, 20, 90, 5.0, 14.0, None))
    first = queue.row(job)
    assert (first.done, first.load_ms) == (2, 300.0)
    queue.interrupt(me.token, UnavailableError("Gone."))
    stopped = queue.row(job)
    assert (stopped.state, stopped.message) == ("interrupted", "Gone.")
    assert stopped.rate_pairs_s is stopped.seconds_left is None and stopped.finished is not None
    queue.resume(job)
    waiting = queue.row(job)
    assert (waiting.state, waiting.stage, waiting.finished) == ("queued", "waiting", None)
    monkeypatch.setattr("rankdash.store.jobs.leases.now", lambda: "2999-01-01")
    assert queue.claim(Owner()).started == "2999-01-01" > first.started


def test_times_are_in_order_and_what_was_cancelled_while_it_waited_has_ended(
    queue, workspace, dataset_id, job, me
):
    queue.claim(me)
    waits = submit(workspace, dataset_id)
    for each in (job, waits):
        queue.cancel(each)
    assert queue.row(waits).finished is not None and queue.row(job).finished is None
    queue.finish(job, me, "done")
    row = queue.row(job)
    assert row.created <= row.started <= row.finished
    assert [row.id for row in queue.rows()] == [job, waits]


def test_unknown_jobs_and_data_sets_are_named(queue, workspace):
    with pytest.raises(StoreError, match="no job 'nope'"):
        queue.row("nope")
    with pytest.raises(StoreError, match="no data set 'nope'"):
        submit(workspace, "nope")


def test_a_job_keeps_all_that_it_was_asked_with(queue, dataset_id):
    asked = {
        "dataset_id": dataset_id, "name": "n", "reranker": "bm25", "settings": {"k1": 1.2},
        "depth": 5, "sample": 9, "seed": 7, "timing": {"repeats": 3}, "without_text": "empty",
        "grid": "g",
    }  # fmt: skip
    row = queue.row(queue.submit(**asked, job_id="own"))
    assert {name: getattr(row, name) for name in asked} == asked
    assert row.id == "own"
    bare = queue.row(queue.submit(**asked | {"sample": None, "timing": None, "grid": None}))
    assert (bare.sample, bare.timing, bare.grid) == (None, {}, None)


def test_the_jobs_of_a_data_set_are_listed_by_when_they_were_added(
    queue, workspace, dataset_id, make_dataset
):
    other = workspace.save_dataset(make_dataset(salt="other"))
    ids = [submit(workspace, dataset_id) for _ in range(3)]
    with workspace.database.writing() as db:
        db.execute("UPDATE jobs SET created = '2020-01-01' WHERE id = ?", (ids[2],))
        db.execute("UPDATE jobs SET dataset_id = ? WHERE id = ?", (other, ids[1]))
    assert [row.id for row in queue.rows()] == [ids[2], ids[0], ids[1]]
    assert [row.id for row in queue.rows(dataset_id)] == [ids[2], ids[0]]


# Batches.


def part(query, score):
    return {
        "query_id": query, "state": "done", "reason": "", "scores": [score, math.nan],
        "latency_ms": 1.0, "index_ms": math.nan, "read": [5, 6], "full": [5, 9], "cached": 0,
        "calls": "[]", "repeated_ms": [4.5, 5.5],
    }  # fmt: skip


def test_batches_are_kept_until_the_job_is_done_and_the_latest_counts(queue, job, workspace, me):
    queue.claim(me)
    assert len(read_parts(workspace, job)) == 0
    write_part(workspace, job, [part("007", 1.0), part("7", 2.0)])
    write_part(workspace, job, [part("7", 3.0)])
    rows = read_parts(workspace, job)
    assert list(rows["query_id"]) == ["007", "7"]
    assert [scores[0] for scores in rows["scores"]] == [1.0, 3.0]
    assert [list(counts) for counts in rows["full"]] == [[5, 9], [5, 9]]
    folder = workspace.root / "jobs" / job
    # What another worker says ends nothing.
    assert not queue.finish(job, Owner(), "done")
    assert queue.row(job).state == "running"
    for state in ("interrupted", "failed"):
        assert queue.finish(job, me, state)
        assert len(read_parts(workspace, job)) == 2
        queue.resume(job)
        queue.claim(me)
    assert queue.finish(job, me, "done")
    assert not folder.exists()


def test_a_batch_that_cannot_be_read_is_scored_again(job, workspace):
    write_part(workspace, job, [part("007", 1.0)])
    (file,) = (workspace.root / "jobs" / job).iterdir()
    write_part(workspace, job, [part("7", 1.0)])
    file.write_bytes(b"")
    assert list(read_parts(workspace, job)["query_id"]) == ["7"]
    # It may have been a disk that was away for a moment.
    assert file.exists()


def test_batches_of_an_older_version_are_read_with_what_they_have(job, workspace):
    write_part(workspace, job, [part("7", 1.0)])
    (file,) = (workspace.root / "jobs" / job).iterdir()
    older = read_table(file).drop_columns(["read", "full", "cached", "calls", "repeated_ms"])
    write_table(file.with_name("0.parquet"), older.append_column("tokens", [[11.0]]))
    write_part(workspace, job, [part("8", 2.0)])
    file.unlink()
    rows = read_parts(workspace, job)
    assert list(rows["query_id"]) == ["7", "8"]
    assert rows["read"][0] is None
    assert list(rows["read"][1]) == [5, 6]


def test_deleting_a_job_or_its_data_set_forgets_what_it_had(queue, workspace, dataset_id, job):
    other = submit(workspace, dataset_id)
    for each in (job, other):
        write_part(workspace, each, [part("007", 1.0)])
    queue.delete(other)
    assert [row.id for row in queue.rows()] == [job]
    workspace.delete_dataset(dataset_id)
    assert queue.rows() == []
    assert list((workspace.root / "jobs").iterdir()) == []


def test_deleting_a_run_forgets_the_job_that_made_it(
    queue, workspace, dataset_id, make_dataset, make_run, job, me
):
    queue.claim(me)
    workspace.save_run(make_run(make_dataset(), run_id=job))
    queue.finish(job, me, "done")
    waiting = submit(workspace, dataset_id)
    workspace.save_run(make_run(make_dataset(), run_id=waiting))
    workspace.delete_run(job)
    workspace.delete_run(waiting)
    assert [row.id for row in queue.rows()] == [waiting], "it is not done"
