import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from rankdash.errors import StoreError, UnavailableError
from rankdash.store.jobs import leases
from rankdash.store.jobs.job_batches import read_parts, write_part
from rankdash.store.jobs.leases import lost
from rankdash.store.jobs.queue import STALE_SECONDS, Owner, Progress, Queue
from rankdash.store.tables import read_table, write_table

CLAIM_ALL = """
import sys, time
from pathlib import Path
from rankdash.store import Workspace
from rankdash.store.jobs.queue import Owner, Queue
queue, me = Queue(Workspace.open(Path(sys.argv[1]))), Owner()
meeting = Path(sys.argv[2])
(meeting / me.token).touch()
while len(list(meeting.iterdir())) < 2:
    time.sleep(0.005)
while (job := queue.claim(me)) is not None:
    print(job.id)
"""


@pytest.fixture
def queue(workspace, make_dataset):
    workspace.save_dataset(make_dataset())
    return Queue(workspace)


@pytest.fixture
def submit(queue, make_dataset):
    def add(name="job"):
        return queue.submit(
            dataset_id=make_dataset().id,
            name=name,
            reranker="bm25",
            settings={"k1": 1.2},
            depth=5,
            sample=None,
            seed=7,
        )

    return add


@contextmanager
def clock_moved(monkeypatch, seconds):
    with monkeypatch.context() as later:
        real = time.time
        later.setattr(time, "time", lambda: real() + seconds)
        yield


def test_a_job_waits_runs_and_ends(queue, submit):
    job_id, me = submit(), Owner()
    assert (queue.row(job_id).state, queue.row(job_id).stage) == ("queued", "waiting")
    claimed = queue.claim(me)
    assert (claimed.id, claimed.state, claimed.stage) == (job_id, "running", "loading")
    assert claimed.settings == {"k1": 1.2}
    queue.progress(job_id, me, Progress("scoring", 1, 2, 9, 10, 90, 5.0, 16.0, 300.0))
    row = queue.row(job_id)
    assert (row.stage, row.done, row.failed, row.total) == ("scoring", 1, 2, 9)
    assert (row.pairs_done, row.pairs_total, row.rate_pairs_s, row.seconds_left) == (10, 90, 5, 16)
    assert row.load_ms == 300.0
    queue.finish(job_id, me, "done")
    row = queue.row(job_id)
    assert (row.state, row.error, row.message) == ("done", None, "")
    assert row.created <= row.started <= row.finished


def test_the_longest_wait_comes_first(queue, submit):
    ids = [submit(), submit(), submit()]
    queue.cancel(ids[0])
    queue.resume(ids[0])
    assert [row.id for row in queue.rows()] == ids, "as they were submitted"
    assert [queue.claim(Owner()).id for _ in ids] == [ids[1], ids[2], ids[0]]
    assert queue.claim(Owner()) is None


def test_two_processes_never_claim_the_same_job(queue, submit, workspace, python, tmp_path):
    ids = [submit() for _ in range(40)]
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    processes = [python(CLAIM_ALL, workspace.root, meeting) for _ in range(2)]
    claimed = []
    for process in processes:
        said, failed = process.communicate(timeout=300)
        assert process.returncode == 0, failed
        claimed += said.split()
    assert sorted(claimed) == sorted(ids)


def test_what_waits_is_cancelled_at_once_and_what_runs_is_asked_to_stop(queue, submit):
    runs, waits, me = submit(), submit(), Owner()
    queue.claim(me)
    assert queue.beat(runs, me)
    queue.cancel(runs)
    queue.cancel(waits)
    assert queue.row(waits).state == "cancelled"
    assert (queue.row(runs).state, queue.row(runs).cancelling) == ("running", True)
    assert not queue.beat(runs, me)
    queue.finish(runs, me, "cancelled")
    assert (queue.row(runs).state, queue.row(runs).cancelling) == ("cancelled", False)
    assert queue.claim(me) is None


@pytest.mark.parametrize("state", ["failed", "cancelled", "interrupted"])
def test_what_stopped_can_be_queued_again(queue, submit, state):
    job_id, me = submit(), Owner()
    queue.claim(me)
    queue.cancel(job_id)
    queue.finish(job_id, me, state, UnavailableError("No model."))
    queue.resume(job_id)
    assert (queue.row(job_id).state, queue.row(job_id).message) == ("queued", "")
    assert queue.beat(queue.claim(me).id, me), "nobody asked it to stop since"


def test_what_is_done_is_not_run_again(queue, submit):
    job_id, me = submit(), Owner()
    queue.claim(me)
    queue.finish(job_id, me, "done")
    queue.resume(job_id)
    queue.cancel(job_id)
    assert queue.row(job_id).state == "done"
    assert queue.claim(me) is None


def test_a_job_whose_worker_is_dead_shows_as_interrupted(queue, submit, python):
    job_id = submit()
    dead = python("")
    dead.wait()
    queue.claim(replace(Owner(), pid=dead.pid))
    assert [row.state for row in queue.rows()] == ["interrupted"]
    assert queue.row(job_id).finished is not None


def test_a_live_worker_is_not_written_off(queue, submit):
    submit()
    queue.claim(Owner())
    assert [row.state for row in queue.rows()] == ["running"]


@pytest.mark.parametrize("host", [None, "another-machine"])
def test_a_silent_worker_is_written_off(queue, submit, monkeypatch, host):
    job_id, me = submit(), Owner()
    me = me if host is None else replace(me, host=host, pid=2**22 + 1)
    queue.claim(me)
    assert [row.state for row in queue.rows()] == ["running"]
    with clock_moved(monkeypatch, STALE_SECONDS + 1):
        assert [row.state for row in queue.rows()] == ["interrupted"]
    # It was only suspended: it goes on where it was.
    assert queue.beat(job_id, me)
    assert [row.state for row in queue.rows()] == ["running"]


def test_a_worker_is_silent_after_ten_seconds(monkeypatch):
    monkeypatch.setattr(leases, "time", SimpleNamespace(time=lambda: 100.0))
    # A beat of a day ahead is one of before the clock was set back.
    for heartbeat, silent in ((90.0, False), (89.9, True), (100.5, False), (86_500.0, True)):
        assert lost({"host": "elsewhere", "pid": 1, "heartbeat": heartbeat}) is silent


def test_a_worker_that_was_written_off_and_replaced_changes_nothing_any_more(
    queue, submit, monkeypatch
):
    job_id, slept, took_over = submit(), Owner(), Owner()
    queue.claim(slept)
    with clock_moved(monkeypatch, STALE_SECONDS + 1):
        queue.rows()
    queue.resume(job_id)
    assert not queue.beat(job_id, slept)
    queue.claim(took_over)
    queue.progress(job_id, slept, Progress("scoring", done=99))
    queue.finish(job_id, slept, "failed")
    assert not queue.beat(job_id, slept)
    assert (queue.row(job_id).state, queue.row(job_id).done) == ("running", 0)
    assert queue.beat(job_id, took_over)


def test_a_cancel_that_the_worker_did_not_live_to_see_still_counts(queue, submit):
    job_id, me = submit(), Owner()
    queue.claim(me)
    queue.cancel(job_id)
    queue.interrupt(me.token)
    assert queue.row(job_id).state == "cancelled"
    # It was for the run that ended: what is resumed goes on.
    queue.resume(job_id)
    assert queue.beat(queue.claim(me).id, me)


def test_an_error_keeps_its_template_for_translation(queue, submit):
    job_id, me = submit(), Owner()
    queue.claim(me)
    queue.finish(
        job_id,
        me,
        "failed",
        UnavailableError("No model {model!r}.", remedy="Give a folder, not {model!r}.", model="x"),
    )
    error = queue.row(job_id).error
    assert (error.template, error.remedy) == (
        "No model {model!r}.",
        "Give a folder, not {model!r}.",
    )
    assert error.params == {"model": "x"}
    assert queue.row(job_id).message == "No model 'x'. Give a folder, not 'x'."


def test_when_no_worker_can_be_had_what_waits_fails(queue, submit):
    runs, waits = submit(), submit()
    queue.claim(Owner())
    queue.fail_waiting(UnavailableError("No worker."))
    assert queue.row(runs).state == "running"
    assert (queue.row(waits).state, queue.row(waits).message) == ("failed", "No worker.")


def test_unknown_jobs_and_data_sets_are_named(queue):
    with pytest.raises(StoreError, match="no job 'nope'"):
        queue.row("nope")
    with pytest.raises(StoreError, match="no data set 'nope'"):
        queue.submit(
            dataset_id="nope",
            name="",
            reranker="bm25",
            settings={},
            depth=None,
            sample=None,
            seed=0,
        )


def part(query, score):
    return {
        "query_id": query,
        "state": "done",
        "reason": "",
        "scores": [score, float("nan")],
        "latency_ms": 1.0,
        "index_ms": float("nan"),
        "read": [5, 6],
        "full": [5, 9],
        "cached": 0,
        "calls": "[]",
        "repeated_ms": [4.5, 5.5],
    }


def test_batches_are_kept_until_the_job_is_done_and_the_latest_counts(queue, submit, workspace):
    job_id, me = submit(), Owner()
    queue.claim(me)
    assert len(read_parts(workspace, job_id)) == 0
    write_part(workspace, job_id, [part("007", 1.0), part("7", 2.0)])
    write_part(workspace, job_id, [part("7", 3.0)])
    rows = read_parts(workspace, job_id)
    assert list(rows["query_id"]) == ["007", "7"]
    assert [scores[0] for scores in rows["scores"]] == [1.0, 3.0]
    assert [list(counts) for counts in rows["full"]] == [[5, 9], [5, 9]]
    queue.finish(job_id, me, "interrupted")
    assert len(read_parts(workspace, job_id)) == 2
    queue.resume(job_id)
    queue.claim(me)
    queue.finish(job_id, me, "done")
    assert not (workspace.root / "jobs" / job_id).exists()


def test_a_batch_that_cannot_be_read_is_scored_again(queue, submit, workspace):
    job_id = submit()
    write_part(workspace, job_id, [part("007", 1.0)])
    (file,) = (workspace.root / "jobs" / job_id).iterdir()
    write_part(workspace, job_id, [part("7", 1.0)])
    file.write_bytes(b"")
    assert list(read_parts(workspace, job_id)["query_id"]) == ["7"]
    # It may have been a disk that was away for a moment.
    assert file.exists()


def test_deleting_a_job_or_its_data_set_forgets_what_it_had(queue, submit, workspace, make_dataset):
    one, other, me = submit(), submit(), Owner()
    queue.claim(me)
    for job_id in (one, other):
        write_part(workspace, job_id, [part("007", 1.0)])
    queue.delete(other)
    assert [row.id for row in queue.rows()] == [one]
    workspace.delete_dataset(make_dataset().id)
    assert queue.rows() == []
    assert not queue.beat(one, me)
    assert list((workspace.root / "jobs").iterdir()) == []


def test_deleting_a_run_forgets_the_job_that_made_it(
    queue, submit, workspace, make_dataset, make_run
):
    job_id, me = submit(), Owner()
    queue.claim(me)
    workspace.save_run(make_run(make_dataset(), run_id=job_id))
    queue.finish(job_id, me, "done")
    waiting = submit()
    workspace.save_run(make_run(make_dataset(), run_id=waiting))
    workspace.delete_run(job_id)
    workspace.delete_run(waiting)
    assert [row.id for row in queue.rows()] == [waiting], "it is not done"


def test_batches_of_an_older_version_are_read_with_what_they_have(queue, submit, workspace):
    job_id = submit()
    write_part(workspace, job_id, [part("7", 1.0)])
    (file,) = (workspace.root / "jobs" / job_id).iterdir()
    older = read_table(file).drop_columns(["read", "full", "cached", "calls", "repeated_ms"])
    write_table(file.with_name("0.parquet"), older.append_column("tokens", [[11.0]]))
    write_part(workspace, job_id, [part("8", 2.0)])
    file.unlink()
    rows = read_parts(workspace, job_id)
    assert list(rows["query_id"]) == ["7", "8"]
    assert rows["read"][0] is None
    assert list(rows["read"][1]) == [5, 6]


def test_a_job_that_is_tried_again_keeps_its_first_start_and_its_latest_cold_start(queue, submit):
    job_id, me = submit(), Owner()
    queue.claim(me)
    queue.progress(job_id, me, Progress("scoring", 1, 0, 9, 10, 90, 5.0, 16.0, 300.0))
    queue.progress(job_id, me, Progress("scoring", 2, 0, 9, 20, 90, 5.0, 14.0, None))
    first = queue.row(job_id)
    assert (first.done, first.load_ms) == (2, 300.0)
    queue.interrupt(me.token, UnavailableError("Gone."))
    stopped = queue.row(job_id)
    assert (stopped.state, stopped.rate_pairs_s, stopped.seconds_left) == (
        "interrupted",
        None,
        None,
    )
    assert stopped.finished is not None
    queue.resume(job_id)
    waiting = queue.row(job_id)
    assert (waiting.state, waiting.stage, waiting.finished) == ("queued", "waiting", None)
    time.sleep(0.002)
    assert queue.claim(Owner()).started > first.started


def test_what_another_worker_says_ends_nothing_and_a_failure_keeps_the_batches(
    queue, submit, workspace
):
    job_id, me = submit(), Owner()
    queue.claim(me)
    folder = workspace.root / "jobs" / job_id
    folder.mkdir(parents=True)
    assert not queue.finish(job_id, Owner(), "done")
    assert folder.is_dir() and queue.row(job_id).state == "running"
    assert queue.finish(job_id, me, "failed", UnavailableError("Gone."))
    assert folder.is_dir()
    queue.resume(job_id)
    queue.claim(me)
    assert queue.finish(job_id, me, "done")
    assert not folder.exists()


def test_a_cancel_ends_what_waits_and_not_yet_what_runs(queue, submit):
    runs, waits, me = submit(), submit(), Owner()
    queue.claim(me)
    for job_id in (runs, waits):
        queue.cancel(job_id)
    assert queue.row(waits).finished is not None and queue.row(runs).finished is None
    assert not queue.row(waits).cancelling
    queue.cancel(waits)
    queue.resume(waits)
    assert not queue.row(waits).cancelling
    assert [row.id for row in queue.rows()] == [runs, waits]


@pytest.mark.parametrize(
    ("host", "said", "silent"),
    [
        (None, None, False),
        (None, ProcessLookupError, True),
        (None, PermissionError, False),  # It is alive, and another user's.
        ("elsewhere", ProcessLookupError, False),
    ],
)
def test_a_process_of_this_machine_is_asked_whether_it_lives(monkeypatch, host, said, silent):
    asked = []

    def kill(pid, signal):
        asked.append((pid, signal))
        if said is not None:
            raise said

    monkeypatch.setattr(leases.os, "kill", kill)
    row = {"host": host or Owner().host, "pid": 77, "heartbeat": time.time()}
    assert lost(row) is silent
    # Signal 0 asks and does nothing.
    assert asked == ([(77, 0)] if host is None else [])


def test_a_job_keeps_all_that_it_was_asked_with(queue, make_dataset):
    asked = {
        "dataset_id": make_dataset().id, "name": "n", "reranker": "bm25", "settings": {"k1": 1.2},
        "depth": 5, "sample": 9, "seed": 7, "timing": {"repeats": 3}, "without_text": "empty",
        "grid": "g",
    }  # fmt: skip
    row = queue.row(queue.submit(**asked, job_id="own"))
    assert {name: getattr(row, name) for name in asked} == asked
    assert row.id == "own"
    bare = queue.row(queue.submit(**{**asked, "sample": None} | {"timing": None, "grid": None}))
    assert (bare.sample, bare.timing, bare.grid) == (None, {}, None)


def test_the_jobs_of_a_data_set_are_listed_by_when_they_were_added(
    queue, submit, workspace, make_dataset
):
    other = make_dataset(salt="other")
    workspace.save_dataset(other)
    ids = [submit() for _ in range(3)]
    with workspace.database.writing() as db:
        db.execute("UPDATE jobs SET created = '2020-01-01' WHERE id = ?", (ids[2],))
        db.execute("UPDATE jobs SET dataset_id = ? WHERE id = ?", (other.id, ids[1]))
    assert [row.id for row in queue.rows()] == [ids[2], ids[0], ids[1]]
    assert [row.id for row in queue.rows(make_dataset().id)] == [ids[2], ids[0]]


def test_work_that_was_written_off_keeps_its_reason_and_a_cancelled_one_is_not_revived(
    queue, submit
):
    stopped, cancelled, me = submit(), submit(), Owner()
    queue.claim(me)
    queue.claim(me)
    queue.cancel(cancelled)
    queue.interrupt(me.token, UnavailableError("The disk is gone."))
    queue.interrupt(me.token)
    assert queue.row(stopped).message == "The disk is gone."
    assert not queue.beat(cancelled, me)
    assert queue.row(cancelled).state == "cancelled"
    assert queue.beat(stopped, me)
    assert (queue.row(stopped).message, queue.row(stopped).finished) == ("", None)


def test_an_error_about_a_file_can_be_kept():
    error = UnavailableError("No {file}.", remedy="Make it.", file=Path("a") / "b")
    kept = leases.problem_from_json(leases.problem_to_json(error))
    assert (str(kept), kept.params) == (f"No {Path('a') / 'b'}. Make it.", {"file": "a/b"})
    assert leases.problem_from_json(leases.problem_to_json(None)) is None


def test_a_job_that_was_cancelled_and_then_lost_its_worker_is_no_longer_cancelling(queue, submit):
    stopped, other = submit(), submit()
    me = Owner()
    for each in (stopped, other):
        assert queue.claim(me).id == each
    queue.cancel(stopped)
    queue.interrupt(me.token)
    found = {row.id: (row.state, row.cancelling) for row in queue.rows()}
    assert found == {stopped: ("cancelled", False), other: ("interrupted", False)}
