"""The real worker process on a real workspace, cancelled, killed and resumed."""

import math
import signal
import threading
from collections import Counter

import numpy as np
import pytest

from rankdash.errors import UnavailableError
from rankdash.rerankers import Scored
from rankdash.rerankers.fusion import Fusion
from rankdash.runs import claimed, jobs, runner, worker
from rankdash.runs.combining import CombinedRun, fuse, part_ids
from rankdash.runs.jobs import JobRequest, Timing
from rankdash.runs.pace import Pace
from rankdash.runs.results import QueryResult, to_row
from rankdash.runs.worker import Attempt
from rankdash.store.jobs.job_batches import read_parts, write_part
from rankdash.store.jobs.leases import Owner
from rankdash.store.jobs.queue import Progress, Queue

QUERIES = 60


@pytest.fixture
def dataset(workspace, make_dataset):
    dataset = make_dataset(queries=QUERIES)
    workspace.save_dataset(dataset)
    return dataset


@pytest.fixture
def submit(workspace, dataset):
    def add(**fields):
        return jobs.submit(workspace, JobRequest(dataset.id, "bm25", **fields))

    return add


@pytest.fixture
def row(workspace):
    def find(job_id):
        return next(row for row in jobs.list(workspace) if row.id == job_id)

    return find


@pytest.fixture
def scored(tmp_path):
    """query id → how often it was put to the reranker."""
    return lambda: Counter((tmp_path / "scored.log").read_text().split())


def without_timings(run):
    return run.queries[["query_id", "state", "reason", "pairs", "tokens", "truncated"]]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["alone", "blocks"])
def test_a_killed_job_goes_on_where_it_was_and_ends_like_an_unbroken_one(
    workspace, submit, row, scored, start_slow_worker, wait_until, hold, kind
):
    job_id = submit(name="broken")
    held = hold(30)
    worker = start_slow_worker(50, kind=kind)
    wait_until(lambda: row(job_id).done >= 15)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    held.unlink()
    stopped = row(job_id)
    assert stopped.state == "interrupted"
    assert workspace.runs() == []
    kept = set(read_parts(workspace, job_id).query("state == 'done'")["query_id"])
    before = scored()
    assert len(kept) >= 15

    jobs.resume(workspace, job_id)
    start_slow_worker(kind=kind)
    wait_until(lambda: row(job_id).state == "done")
    after = scored()
    assert all(after[query] == before[query] for query in kept)
    # Beside two warm-ups and the failed query, only the batch of 0.2 s that was lost comes again.
    assert sum(after.values()) - QUERIES - 3 <= 5

    workspace.score_cache.clear()
    whole_id = submit(name="unbroken")
    wait_until(lambda: row(whole_id).state == "done")
    broken, whole = workspace.run(job_id), workspace.run(whole_id)
    assert broken.ranking.frame().equals(whole.ranking.frame())
    assert without_timings(broken).equals(without_timings(whole))
    assert broken.left_out == {"q5": "failed"}
    # For a retry of the failed query.
    assert (workspace.root / "jobs" / job_id).exists()


def test_progress_is_shown_while_it_runs(submit, row, start_slow_worker, wait_until, hold):
    job_id = submit(depth=3)
    held = hold(40)
    start_slow_worker()
    shown = wait_until(lambda: row(job_id).rate_pairs_s and row(job_id))
    held.unlink()
    assert (shown.state, shown.stage) == ("running", "scoring")
    assert (shown.total, shown.pairs_total) == (QUERIES, 3 * QUERIES)
    assert 0 < shown.pairs_done <= shown.pairs_total
    # 20 ms for a query of 3 pairs, at best
    assert 0 < shown.rate_pairs_s <= 155
    assert shown.seconds_left == pytest.approx(
        (shown.pairs_total - shown.pairs_done) / shown.rate_pairs_s
    )
    ended = wait_until(lambda: row(job_id).state == "done" and row(job_id))
    assert (ended.done, ended.failed) == (QUERIES - 1, 1)
    assert ended.pairs_done == ended.pairs_total


@pytest.mark.thorough
def test_deleting_the_data_set_of_a_live_job_ends_it_and_the_worker_goes_on(
    workspace, make_dataset, submit, row, start_slow_worker, wait_until, hold
):
    job_id = submit()
    held = hold(30)
    worker = start_slow_worker()
    dataset_id = wait_until(lambda: row(job_id).done >= 5 and row(job_id)).dataset_id
    workspace.delete_dataset(dataset_id)
    assert jobs.list(workspace) == ()
    held.unlink()
    other = make_dataset(queries=3)
    workspace.save_dataset(other)
    next_id = jobs.submit(workspace, JobRequest(other.id, "bm25"))
    wait_until(lambda: row(next_id).state == "done")
    assert [run.id for run in workspace.runs()] == [next_id]
    assert worker.poll() is None


@pytest.mark.thorough
def test_two_workers_share_the_queue(submit, row, scored, start_slow_worker, wait_until):
    ids = [submit(sample=6, seed=seed) for seed in range(6)]
    start_slow_worker(5)
    start_slow_worker(5)
    wait_until(lambda: all(row(job_id).state == "done" for job_id in ids))
    # Six queries and a warm-up for each job: nothing was done twice.
    assert sum(scored().values()) == 6 * 7


def test_sigterm_leaves_a_job_that_can_be_resumed(submit, row, start_slow_worker, wait_until, hold):
    job_id = submit()
    held = hold(30)
    worker = start_slow_worker()
    wait_until(lambda: row(job_id).done >= 5)
    worker.terminate()
    held.unlink()
    assert worker.wait(300) == 0
    assert row(job_id).state == "interrupted"


def test_a_workspace_that_cannot_be_opened_ends_the_worker_in_words(start_slow_worker, tmp_path):
    (tmp_path / "file").write_text("")
    assert start_slow_worker(home=tmp_path / "file").wait(300) == 1
    said = (tmp_path / "worker.stderr").read_text()
    assert "RANKDASH_HOME" in said
    assert "Traceback" not in said


# In this process.


class Made:
    """Its runtime changes its scores; "auto" is that of the machine. seen: the queries asked."""

    name, machine, seen = "bm25", "first", []

    def __init__(self, settings):
        self.settings = {"runtime": "auto", **settings}

    def prepare(self, corpus):
        wanted = self.settings["runtime"]
        self.runtime = self.machine if wanted == "auto" else wanted
        if self.settings["k1"] == 9.0:
            raise UnavailableError("No model {name!r} here.", remedy="Give a folder.", name="nine")

    def fingerprint(self):
        return self.runtime

    def details(self):
        return {"runtime": self.runtime, "device": "cpu"}

    def score(self, requests):
        Made.seen += [request.query_id for request in requests]
        return [self.answer(request) for request in requests]

    def answer(self, request):
        sign = 1.0 if self.runtime == "first" else -1.0
        return Scored(sign * np.arange(len(request.doc_ids)))


@pytest.fixture
def small_batches(monkeypatch):
    """A query each."""
    monkeypatch.setattr(runner, "BATCH_SECONDS", 0.0)


@pytest.fixture
def work(workspace, monkeypatch):
    """Do the next job here, by `made`; then its row."""
    monkeypatch.setattr(Made, "seen", [])

    def worked(made=Made, stopping=None, **how):
        monkeypatch.setattr(worker, "create", lambda name, settings: made(settings))
        queue, owner = Queue(workspace), Owner()
        job = queue.claim(owner)
        Attempt(workspace, owner, job, stopping or threading.Event(), **how).run()
        return queue.row(job.id)

    return worked


def test_one_job_makes_a_run_and_its_fusion_with_the_first_stage(workspace, dataset, submit, work):
    submit(name="mini", fused="mini + first stage", sample=20)
    run_id, fused_id = work().runs
    assert sorted(each.id for each in workspace.runs()) == sorted([run_id, fused_id])
    run, fused = workspace.run(run_id), workspace.run(fused_id)
    assert (run.name, fused.name) == ("mini", "mini + first stage")
    parts = [CombinedRun("", dataset.candidates), CombinedRun("mini", run.ranking, run)]
    expected = fuse(dataset, parts, Fusion(), "")
    assert fused.ranking.frame().equals(expected.ranking.frame())
    assert fused.left_out == expected.left_out
    assert part_ids(fused) == (run_id,)


def test_a_second_job_of_the_same_pairs_asks_the_model_nothing(workspace, submit, work):
    ids = [submit(sample=5, seed=3), submit(sample=5, seed=3)]
    ids.append(submit(sample=5, seed=3, timing=Timing(latency="always", sample=2, repeats=2)))
    work()
    asked = len(Made.seen)
    work()
    assert len(Made.seen) == asked
    work()
    first, second, timed = map(workspace.run, ids)
    assert second.ranking.frame().equals(first.ranking.frame())
    assert second.measured.cached_pairs == first.measured.scored_pairs == 5 * 5
    assert math.isnan(workspace.runs()[1].p50_ms)
    assert timed.queries["latency_ms"].notna().sum() == 2 == timed.measured.repeats
    assert timed.ranking.frame().equals(first.ranking.frame())


def test_a_score_cache_that_cannot_be_used_stops_no_job(workspace, submit, work):
    (workspace.root / "scores.sqlite").mkdir()
    job_id = submit(sample=5)
    assert work().state == "done"
    assert workspace.run(job_id).measured.cached_pairs == 0


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("after", [1, 0])
def test_a_job_goes_on_where_it_stopped_by_the_runtime_that_it_began_with(
    workspace, submit, work, monkeypatch, after
):
    job_id, stopping = submit(sample=8), threading.Event()
    if after == 0:
        stopping.set()
    assert work(stopping=stopping, between=stopping.set).state == "interrupted"
    kept = read_parts(workspace, job_id)["query_id"].tolist()
    assert len(kept) == after
    workspace.score_cache.clear()
    jobs.resume(workspace, job_id)
    monkeypatch.setattr(Made, "machine", "second")
    assert work().state == "done"
    run = workspace.run(job_id)
    # Nothing was kept of a job that was stopped at once.
    assert run.machine["runtime"] == ("first" if after else "second")
    best = {scores[0] for _, scores in map(run.ranking.documents_of, run.ranking.query_ids)}
    assert best == {4.0 if after else 0.0}
    assert run.settings["runtime"] == "auto"
    # The first query warms up: both times where it was left open, else the next one does.
    asked = Counter(Made.seen)
    assert asked.total() == 8 + 1 + after
    assert all(asked[query] == 2 for query in kept)


@pytest.mark.usefixtures("small_batches")
def test_a_cancelled_job_keeps_what_it_has_and_can_go_on(workspace, submit, work, monkeypatch):
    job_id, told, beat = submit(sample=8), threading.Semaphore(0), Queue.beat

    def beats(self, *given):
        alive = beat(self, *given)
        if not alive:
            told.release()
        return alive

    def cancel():
        jobs.cancel(workspace, job_id)
        # At the second beat that is told, what the first one was told is known.
        assert all(told.acquire(timeout=300) for _ in range(2))

    monkeypatch.setattr(claimed, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(Queue, "beat", beats)
    row = work(between=cancel)
    assert (row.state, row.done) == ("cancelled", 1)
    assert workspace.runs() == []
    (kept,) = read_parts(workspace, job_id)["query_id"]
    jobs.resume(workspace, job_id)
    before = Counter(Made.seen)
    assert work().state == "done"
    assert Counter(Made.seen)[kept] == before[kept], "it is not scored again"
    assert [run.id for run in workspace.runs()] == [job_id]


@pytest.mark.usefixtures("small_batches")
def test_loading_a_model_is_in_no_pace(submit, work, monkeypatch):
    clock, told = [0.0], []

    class Slow(Made):
        def prepare(self, corpus):
            super().prepare(corpus)
            clock[0] += 30

        def score(self, requests):
            clock[0] += 1
            return super().score(requests)

    monkeypatch.setattr(worker.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(Queue, "progress", lambda self, job, owner, progress: told.append(progress))
    submit(sample=8, timing=Timing(repeats=1))
    work(Slow)
    scored = [each for each in told if each.rate_pairs_s]
    assert scored[0].pairs_done == 5
    for each in scored:
        assert each.rate_pairs_s == pytest.approx(5.0)
        assert each.seconds_left == pytest.approx((each.pairs_total - each.pairs_done) / 5)


def test_a_job_that_measures_its_throughput_says_so(submit, work, monkeypatch):
    told = []
    monkeypatch.setattr(Queue, "progress", lambda self, job, owner, progress: told.append(progress))
    monkeypatch.setattr(runner, "measure", lambda *of: ())
    submit(timing=Timing(concurrency=(1,), seconds=600))
    work()
    shown = told[-1]
    assert (shown.stage, shown.done, shown.pairs_done) == ("timing", QUERIES, shown.pairs_total)
    assert (shown.rate_pairs_s, shown.seconds_left) == (None, None)


@pytest.mark.parametrize(
    ("works", "k1", "said"),
    [
        ("q1", 1.5, None),
        ("none", 1.5, f"none of {QUERIES}. The first failed because: why q0."),
        ("q1", 9.0, "No model 'nine' here. Give a folder."),
    ],
)
def test_a_job_that_cannot_be_done_says_why_and_the_next_one_runs(
    workspace, submit, work, works, k1, said
):
    class Failing(Made):
        def answer(self, request):
            if request.query_id == works:
                return super().answer(request)
            return Scored.failed(len(request.doc_ids), f"why {request.query_id}.")

    job_id, next_id = submit(settings={"k1": k1}), submit(sample=2)
    row = work(Failing)
    assert (row.id, row.state) == (job_id, "failed" if said else "done")
    assert said is None or said in row.message
    assert work().state == "done"
    assert {run.id for run in workspace.runs()} == ({next_id} if said else {job_id, next_id})


@pytest.mark.parametrize("load_ms", [321.5, math.nan])
def test_a_job_that_was_all_scored_before_keeps_the_time_that_it_took_to_load(
    workspace, make_dataset, load_ms
):
    dataset, queue, me = make_dataset(queries=2), Queue(workspace), Owner()
    workspace.save_dataset(dataset)
    job_id = jobs.submit(workspace, JobRequest(dataset.id, "bm25"))
    queue.claim(me)
    if not math.isnan(load_ms):
        queue.progress(job_id, me, Progress("scoring", load_ms=load_ms))
    found = [QueryResult(query, "done", scores=np.arange(5.0)) for query in ("q0", "q1")]
    write_part(workspace, job_id, [to_row(each) for each in found])
    Attempt(workspace, me, queue.row(job_id), threading.Event()).run()
    assert queue.row(job_id).state == "done"
    assert workspace.run(job_id).load_ms == pytest.approx(load_ms, nan_ok=True)


def test_the_pace_is_that_of_the_latest_batches():
    """Without cached scores, the first call, and time that went to something else."""
    pace = Pace()
    for at, pairs in ((10.0, 0), (10.02, 1400)):
        assert (pace.rate, pace.seconds_left(100)) == (None, None)
        pace.mark(at, pairs)
    assert pace.rate is None
    pace.mark(12.0, 1500)
    assert pace.rate == pytest.approx(50.0)
    assert pace.seconds_left(200) == pytest.approx(4.0)
    pace = Pace()
    pace.mark(0.0, 0)
    pace.mark(1.0, 10)
    pace.skip(5.0)
    pace.mark(7.0, 20)
    assert pace.rate == 10.0
    for second in range(1, 40):
        pace.mark(7.0 + second, 20 + 30 * second)
    assert pace.rate == pytest.approx(30.0)
    # So little apart that it could be there at once, and a little more.
    for apart, rate in ((0.025, None), (0.05, 200.0)):
        pace = Pace()
        pace.mark(0.0, 0)
        pace.mark(apart, 10)
        assert pace.rate == pytest.approx(rate)
    standing = Pace()
    standing.mark(10.0, 0)
    standing.mark(11.0, 0)
    assert (standing.rate, standing.seconds_left(100)) == (None, None), "nothing came"
    standing.mark(12.0, 100)
    assert (standing.rate, standing.seconds_left(100)) == (50.0, 2.0)
