"""Jobs: their requests, their progress, and their batches until the end."""

import math
from dataclasses import replace

import pytest

from rankdash.core.base.errors import StoreError, UnavailableError
from rankdash.core.workspace.jobs.queue import Owner, Progress, Queue, read_parts, write_part
from rankdash.core.workspace.tables import read_table, write_table
from tests.approved import table
from tests.results import shown
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


def test_what_a_job_tells_of_itself_is_as_approved(queue, dataset_id, monkeypatch, approved):
    """A time is named after its step. A retry has the first cold start until it reports a new
    one."""
    asked = {
        "dataset_id": dataset_id, "name": "n", "reranker": "bm25", "settings": {"k1": 1.2},
        "depth": 5, "sample": 9, "seed": 7, "timing": {"repeats": 3}, "without_text": "empty",
        "grid": "g", "actors": {"number": 2}, "fused": "f",
    }  # fmt: skip
    little, me = asked | dict.fromkeys(("sample", "timing", "grid", "actors", "fused")), Owner()
    far = Progress("scoring", 1, 2, 9, 10, 90, 5.0, 16.0, 300.0, 12, 3)
    steps = {
        "asked with all": lambda: queue.submit(**asked, job_id="own"),
        "claimed": lambda: queue.claim(me),
        "under way": lambda: queue.progress("own", me, far),
        "further": lambda: queue.progress("own", me, replace(far, done=2, load_ms=None)),
        "interrupted": lambda: queue.interrupt(me.token, UnavailableError("Gone.")),
        "resumed": lambda: queue.resume("own"),
        "claimed again": lambda: queue.claim(me),
        "asked with little": lambda: queue.submit(**little, job_id="other"),
        "cancelled while it waits": lambda: queue.cancel("other"),
        "cancelled while it runs": lambda: queue.cancel("own"),
        "done": lambda: queue.finish("own", me, "done"),
    }
    said = []
    for step, act in steps.items():
        for module in ("leases", "queue"):
            monkeypatch.setattr(
                f"rankdash.core.workspace.jobs.{module}.now", lambda step=step: step
            )
        act()
        said.append((step, "\n".join(map(shown, queue.rows()))))
    approved("store/jobs", table(said))


def test_unknown_jobs_and_data_sets_are_named(queue, workspace):
    with pytest.raises(StoreError, match="no job 'nope'"):
        queue.row("nope")
    with pytest.raises(StoreError, match="no data set 'nope'"):
        submit(workspace, "nope")


def test_a_retry_asks_for_what_the_job_asked(queue, workspace, dataset_id):
    asked = {
        "dataset_id": dataset_id, "reranker": "bm25", "settings": {"k1": 1.2}, "depth": 5,
        "sample": 9, "seed": 7, "timing": {"repeats": 3}, "without_text": "empty",
    }  # fmt: skip
    queue.submit(**asked, name="n", job_id="own")
    write_part(workspace, "own", [part("7", 1.0)])
    queue.retry("own", "again", "retried")
    row = queue.row("retried")
    assert {name: getattr(row, name) for name in asked} == asked and row.name == "again"


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
    # Another worker cannot end the job.
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
    # The file is not deleted: the disk may have been unavailable for a moment.
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


def test_what_a_job_had_goes_with_it_its_data_set_and_if_it_is_done_its_run(
    queue, workspace, dataset_id, make_dataset, make_run, job
):
    other, waiting, me = *(submit(workspace, dataset_id) for _ in "12"), Owner()
    for each in (job, other):
        write_part(workspace, each, [part("007", 1.0)])
    queue.delete(other)
    assert [row.id for row in queue.rows()] == [job, waiting]
    queue.claim(me)
    for each in (job, waiting):
        workspace.save_run(make_run(make_dataset(), run_id=each))
    queue.finish(job, me, "done")
    workspace.delete_run(job)
    workspace.delete_run(waiting)
    assert [row.id for row in queue.rows()] == [waiting], "it is not done"
    write_part(workspace, waiting, [part("007", 1.0)])
    workspace.delete_dataset(dataset_id)
    assert queue.rows() == []
    assert list((workspace.root / "jobs").iterdir()) == []
