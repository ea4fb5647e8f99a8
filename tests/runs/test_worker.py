"""The work on a job, in this process: stopped, cancelled and resumed."""

import math
import signal
import threading
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from rankdash.app.worker import services
from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.runs import jobs, runner, worker
from rankdash.core.runs.combining import CombinedRun, fuse, part_ids
from rankdash.core.runs.jobs import Handover, Timing
from rankdash.core.runs.plan import sample_queries
from rankdash.core.runs.results import QueryResult, to_row
from rankdash.core.runs.worker import Attempt, Pace, Services
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations, Owner
from rankdash.core.workspace.jobs.queue import Progress, Queue, read_parts, write_part
from rankdash.features.queries import occlusion
from tests.runs.stub import Stub, failed, scored


class Made(Stub):
    """A reranker with scores of a different sign per runtime; "auto" is the machine's runtime."""

    name, machine = "bm25", "first"

    def prepare(self, corpus):
        super().prepare(corpus)
        wanted = self.settings["runtime"]
        self.runtime = self.machine if wanted == "auto" else wanted

    def fingerprint(self):
        return self.runtime

    def details(self):
        return {"runtime": self.runtime, "device": "cpu"}

    def score(self, requests):
        sign = 1.0 if self.runtime == "first" else -1.0
        return [replace(each, scores=sign * each.scores) for each in super().score(requests)]


@pytest.fixture
def small_batches(monkeypatch):
    """Use batches of one query."""
    monkeypatch.setattr(runner, "BATCH_SECONDS", 0.0)


@pytest.fixture
def asked(monkeypatch):
    """A function that returns the queries scored by models of the worker."""
    models = []

    def use(kind):
        def create(name, settings):
            models.append(kind(**{"runtime": "auto", **settings}))
            return models[-1]

        monkeypatch.setattr(worker, "create", create)

    use(Made)

    def asked():
        return [query for model in models for call in model.calls for query in call]

    asked.use = use
    return asked


@pytest.fixture
def work(workspace, asked):
    """Do the next job in this process; return its row."""

    def worked(kind=Made, stopping=None, **how):
        asked.use(kind)
        queue, owner = Queue(workspace), Owner()
        job = queue.claim(owner)
        Attempt(workspace, owner, job, stopping or threading.Event(), **how).run()
        return next((row for row in queue.rows() if row.id == job.id), None)

    return worked


def test_one_job_makes_a_run_and_its_fusion_with_the_first_stage(workspace, dataset, submit, work):
    about = {"sample": 4, "seed": 3, "depth": 3, "without_text": "empty"}
    submit(name="mini", fused="mini + first stage", **about)
    run_id, fused_id = work().runs
    assert sorted(each.id for each in workspace.runs()) == sorted([run_id, fused_id])
    run, fused = workspace.run(run_id), workspace.run(fused_id)
    assert (run.name, fused.name) == ("mini", "mini + first stage")
    assert (run.depth, run.measured.without_text) == (3, "empty")
    assert {*run.ranking.query_ids} == {*sample_queries(dataset, 4, seed=3)}
    parts = [CombinedRun("", dataset.candidates), CombinedRun("mini", run.ranking, run)]
    expected = fuse(dataset, parts, Fusion(), "")
    assert fused.ranking.frame().equals(expected.ranking.frame())
    assert fused.excluded == expected.excluded
    assert part_ids(fused) == (run_id,)


def test_a_second_job_of_the_same_pairs_asks_the_model_nothing(workspace, submit, work, asked):
    ids = [submit(sample=5, seed=3), submit(sample=5, seed=3)]
    ids.append(submit(sample=5, seed=3, timing=Timing(latency="always", sample=2, repeats=2)))
    work()
    before = len(asked())
    work()
    assert len(asked()) == before
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
    workspace, submit, work, asked, monkeypatch, after
):
    job_id, stopping = submit(), threading.Event()
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
    # A job that was stopped immediately has stored nothing.
    assert run.machine["runtime"] == ("first" if after else "second")
    scores = np.concatenate([run.ranking.documents_of(query)[1] for query in run.ranking.query_ids])
    assert (scores > 0).all() if after else (scores < 0).all()
    assert run.settings["runtime"] == "auto"
    # The first query warms up: twice if it was open, else the next one does.
    counts = Counter(asked())
    assert counts.total() == 6 + 1 + after
    assert all(counts[query] == 2 for query in kept)


@pytest.mark.usefixtures("small_batches")
def test_a_cancelled_job_keeps_what_it_has_and_can_go_on(
    workspace, submit, work, asked, until_told
):
    job_id = submit()
    row = work(between=until_told(Queue, lambda: jobs.cancel(workspace, job_id)))
    assert (row.state, row.done) == ("cancelled", 1)
    assert workspace.runs() == []
    (kept,) = read_parts(workspace, job_id)["query_id"]
    jobs.resume(workspace, job_id)
    before = Counter(asked())
    row = work()
    assert (row.state, row.done, row.pairs_done) == ("done", 6, row.pairs_total)
    assert Counter(asked())[kept] == before[kept], "it is not scored again"
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
    submit(depth=3, timing=Timing(repeats=1))
    work(Slow)
    shown = [each for each in told if each.rate_pairs_s]
    assert {(each.stage, each.total, each.pairs_total) for each in shown} == {("scoring", 6, 18)}
    assert [each.pairs_done for each in shown] == [3 * each.done for each in shown]
    assert (shown[0].done, shown[-1].done) == (1, 6)
    for each in shown:
        assert each.rate_pairs_s == pytest.approx(3.0)
        assert each.seconds_left == pytest.approx((each.pairs_total - each.pairs_done) / 3)


def test_a_job_that_measures_its_throughput_says_so(submit, work, monkeypatch):
    told = []
    monkeypatch.setattr(Queue, "progress", lambda self, job, owner, progress: told.append(progress))
    monkeypatch.setattr(runner, "measure", lambda *of: ())
    submit(timing=Timing(concurrency=(1,), seconds=600))
    work()
    shown = told[-1]
    assert (shown.stage, shown.done, shown.pairs_done) == ("timing", 6, shown.pairs_total)
    assert (shown.rate_pairs_s, shown.seconds_left) == (None, None)


def why(request):
    return failed(f"why {request.query_id}.")(request)


class Gone(Made):
    def prepare(self, corpus):
        raise UnavailableError("No model {name!r} here.", remedy="Give a folder.", name="nine")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (partial(Made, {"q1": scored}, why), None),
        (partial(Made, None, why), "None of the 6 queries could be scored. First failure: why q0."),
        (Gone, "No model 'nine' here. Give a folder."),
    ],
)
def test_a_job_that_cannot_be_done_says_why_and_the_next_one_runs(
    workspace, submit, work, kind, said
):
    job_id, next_id = submit(), submit(sample=2)
    row = work(kind)
    assert (row.id, row.state) == (job_id, "failed" if said else "done")
    assert said is None or said in row.message
    assert work().state == "done"
    assert {run.id for run in workspace.runs()} == ({next_id} if said else {job_id, next_id})


@pytest.mark.parametrize("load_ms", [321.5, math.nan])
def test_a_job_that_was_all_scored_before_keeps_the_time_that_it_took_to_load(
    workspace, submit, dataset, load_ms
):
    queue, me, job_id = Queue(workspace), Owner(), submit(sample=2)
    queue.claim(me)
    if not math.isnan(load_ms):
        queue.progress(job_id, me, Progress("scoring", load_ms=load_ms))
    found = [QueryResult(q, "done", scores=np.arange(5.0)) for q in dataset.queries["query_id"]]
    write_part(workspace, job_id, [to_row(each) for each in found])
    Attempt(workspace, me, queue.row(job_id), threading.Event()).run()
    assert queue.row(job_id).state == "done"
    assert workspace.run(job_id).load_ms == pytest.approx(load_ms, nan_ok=True)


@pytest.mark.usefixtures("small_batches")
def test_an_explanation_does_not_wait_for_the_end_of_a_job_nor_the_worker_for_work(
    workspace, dataset, submit, work, asked, row, wait_until, monkeypatch
):
    submit(name="before")
    work()
    (run,) = workspace.runs()
    question = ExplanationRequest(run.id, "q0", "d0", "term")

    class Asking(Made):
        def prepare(self, corpus):
            Explanations(workspace).ask(question)
            super().prepare(corpus)

        def score(self, requests):
            states.append(Explanations(workspace).find(question).state)
            return super().score(requests)

    workspace.score_cache.clear()
    asked.use(Asking)
    monkeypatch.setattr(occlusion, "create", worker.create)
    monkeypatch.setattr(worker, "IDLE_SECONDS", 0.01)
    stopping, states = threading.Event(), []
    around = workspace, Owner(), stopping, Handover()
    running = threading.Thread(target=worker.work, args=(around, services()))
    running.start()
    job_id = submit(name="job")
    wait_until(lambda: row(job_id).state == "done")
    stopping.set()
    running.join()
    assert states[-1] == "done", "the job goes on after it"


def test_a_workspace_that_cannot_be_opened_ends_the_worker_in_words(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert (
            worker.main(Services(), ["--workspace", str(tmp_path / "file"), "--end-with-stdin"])
            == 1
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "RANKDASH_HOME" in capsys.readouterr().err


def test_the_pace_is_that_of_the_latest_batches():
    """Cached scores, the first call, and time for other work are excluded."""

    def pace(*marks, skipped=0.0):
        made = Pace()
        for at, pairs in marks:
            if at > 5:
                made.skip(skipped)
                skipped = 0.0
            made.mark(at, pairs)
        return made.rate, made.seconds_left(100)

    assert pace() == pace((10.0, 0)) == pace((10.0, 0), (10.02, 1400)) == (None, None)
    assert pace((4.0, 0), (4.02, 1400), (6.0, 1500)) == pytest.approx((50.0, 2.0))
    assert pace((0.0, 0), (1.0, 10), (7.0, 20), skipped=5.0) == pytest.approx((10.0, 10.0))
    later = [(7.0 + second, 20 + 30 * second) for second in range(40)]
    assert pace((0.0, 0), (1.0, 10), *later)[0] == pytest.approx(30.0)
    # An interval too short to measure, and a slightly longer one.
    assert pace((0.0, 0), (0.025, 10)) == (None, None)
    assert pace((0.0, 0), (0.05, 10))[0] == pytest.approx(200.0)
    standing = [(1.0, 0), (2.0, 0)]
    assert pace(*standing) == (None, None), "nothing came"
    assert pace(*standing, (3.0, 100)) == (50.0, 2.0)
