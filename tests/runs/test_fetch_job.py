"""A fetch from a search engine as a job: cancelled, resumed, retried, and repeated."""

import io
import json
import threading

import pytest

from rankdash.core.readers.checks.check import check
from rankdash.core.rerankers.remote.connection import Policy
from rankdash.core.runs import jobs
from rankdash.core.runs.fetch_job import Fetch
from rankdash.core.runs.jobs import Handover, JobRequest
from rankdash.core.runs.retrieving import Retrieval
from rankdash.core.runs.worker import Attempt
from rankdash.core.search.endpoint import Endpoint
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.core.workspace.workspace_file import archive, import_workspace
from tests.rerankers.loopback import engine_at

KEY = "typed-by-hand-4711"


def endpoint(url, **fields):
    return Endpoint.of(engine_at(url, **fields))


def asked(server):
    return [body["query"]["match"]["text"] for _path, _headers, body in server.seen]


@pytest.fixture
def dataset(workspace, make_dataset):
    made = make_dataset()
    workspace.save_dataset(made)
    return made


@pytest.fixture
def engine(server):
    server.forget(KEY)
    new = {f"new{number}": f"*ask* <b>q{number}</b>" for number in range(3)}
    server.documents = {"d0": "ask about d0", **new}
    return server


@pytest.fixture
def work(workspace):
    """Run all queued jobs in this process, and return the last one. keys: of every job."""

    def all_jobs(stopping=None, **keys):
        queue, owner, handover, row = Queue(workspace), Owner(), Handover(), None
        while (job := queue.claim(owner)) is not None:
            handover.feed(jobs.line(job.id, keys))
            Attempt(workspace, owner, job, stopping or threading.Event(), handover).run()
            row = queue.row(job.id)
        return row

    return all_jobs


def submit(workspace, dataset, server, policy=None, repeats=1):
    request = Fetch(endpoint(server.url), 3, repeats, policy or Policy(concurrency=1))
    return jobs.submit_fetch(workspace, dataset.id, request, "Stub · top 3")


def test_a_fetch_is_a_run_with_documents_that_the_data_set_lacks(workspace, dataset, engine, work):
    job_id = submit(workspace, dataset, engine, repeats=2)
    row = work(SEARCH_KEY=KEY)
    assert (row.state, row.done, row.failed, row.total) == ("done", 6, 0, 6), row.message
    assert len(engine.seen) == 12
    run = workspace.run(job_id)
    assert run.name == "Stub · top 3" and set(run.queries["state"]) == {"done"}
    assert run.queries["latency_ms"].notna().all() and len(run.calls) == 6
    assert set(run.documents["doc_id"]) == {"new0", "new1", "new2"}
    assert run.ranking.documents_of("q1")[0][0] == "new1"
    assert (run.settings["how"], run.settings["depth"]) == ("search", 3)
    assert json.loads(run.settings["endpoint"]) == endpoint(engine.url).as_dict()
    measured = {name: run.machine[name] for name in ("repeats", "churn@10", "changed_queries")}
    assert measured == {"repeats": 2, "churn@10": 0.0, "changed_queries": 0.0}
    assert not (workspace.root / "jobs" / job_id).exists()
    assert KEY not in "".join(
        path.read_text(errors="replace") for path in workspace.root.rglob("*") if path.is_file()
    )
    # A second fetch stores all its documents, so that the first one may be deleted.
    again = submit(workspace, dataset, engine)
    work(SEARCH_KEY=KEY)
    workspace.delete_run(job_id)
    assert set(workspace.run(again).documents["doc_id"]) == {"new0", "new1", "new2"}
    reranked = jobs.submit(workspace, JobRequest(dataset.id, "bm25", candidates=again))
    assert work().state == "done"
    workspace.delete_run(again)
    assert set(workspace.run(reranked).documents["doc_id"]) == {"new0", "new1", "new2"}
    assert "new1" in workspace.dataset(dataset.id).document_places


def test_a_query_that_loses_its_hits_is_churn(workspace, dataset, engine, work):
    engine.documents = {"d0": "ask"}
    last = 6
    engine.fault_of = lambda _body: (
        (engine.documents.clear() if len(engine.seen) > last else None) or {}
    )
    job_id = submit(workspace, dataset, engine, repeats=2)
    assert work(SEARCH_KEY=KEY).state == "done"
    machine = workspace.run(job_id).machine
    assert machine["churn@10"] > 0.5 and machine["changed_queries"] > 0.5


def test_a_retrieval_keeps_the_fetched_documents_that_it_ranks(workspace, dataset, engine, work):
    workspace.delete_dataset(dataset.id)
    workspace.save_dataset(dataset, report_json=check(dataset, [], {}).to_json())
    fetched = submit(workspace, dataset, engine)
    work(SEARCH_KEY=KEY)
    retrieved = jobs.submit_retrieval(workspace, dataset.id, Retrieval("bm25", 9), "BM25")
    assert work().state == "done"
    run = workspace.run(retrieved)
    new = {"new0", "new1", "new2"}
    assert new & {*run.ranking.doc_ids} == {*run.documents["doc_id"]} & new != set()
    workspace.delete_run(fetched)
    places = workspace.dataset(dataset.id).document_places
    assert {*run.ranking.doc_ids} <= places.keys()
    target = io.BytesIO()
    archive.export(workspace, target, "1.2.3")
    other = Workspace(workspace.root.with_name("other"))
    import_workspace.bring_in(other, target, "shop.rankdash.zip")
    assert {row.id for row in other.runs()} == {row.id for row in workspace.runs()}


def test_a_cancelled_fetch_continues_without_repeated_requests(workspace, dataset, engine, work):
    job_id = submit(workspace, dataset, engine)

    def cancel_at_third(_body):
        if len(engine.seen) == 3:
            jobs.cancel(workspace, job_id)
            # Until the heartbeat of the worker has noticed.
            return {"slow": 2.0}
        return {}

    engine.fault_of = cancel_at_third
    row = work(SEARCH_KEY=KEY)
    assert row.state == "cancelled" and 2 <= row.done <= 4
    assert job_id not in {run.id for run in workspace.runs()}
    answered = asked(engine)
    jobs.resume(workspace, job_id)
    assert work(SEARCH_KEY=KEY).state == "done"
    assert asked(engine)[len(answered) :] == [f"ask q{n}" for n in range(len(answered), 6)]
    assert set(workspace.run(job_id).queries["state"]) == {"done"}


def test_failed_queries_are_retried_alone(workspace, dataset, engine, work):
    engine.fault_of = lambda body: (
        {"status": 500} if body["query"]["match"]["text"] == "ask q4" else {}
    )
    job_id = submit(workspace, dataset, engine, Policy(concurrency=1, retries=0))
    row = work(SEARCH_KEY=KEY)
    assert (row.state, row.done, row.failed) == ("done", 5, 1), row.message
    queries = workspace.run(job_id).queries.set_index("query_id")
    assert queries.loc["q4", "state"] == "failed" and "500" in queries.loc["q4", "reason"]
    assert jobs.retryable(workspace, job_id) is not None
    engine.fault_of = lambda _body: {}
    before = len(engine.seen)
    again = jobs.retry(workspace, job_id, "Stub again")
    assert work(SEARCH_KEY=KEY).state == "done"
    assert asked(engine)[before:] == ["ask q4"]
    assert set(workspace.run(again).queries["state"]) == {"done"}
    assert workspace.run(job_id).queries.set_index("query_id").loc["q4", "state"] == "failed"


def test_progress_counts_queries_and_not_their_repeats(workspace, dataset, engine, work):
    engine.fault_of = lambda body: (
        {"status": 500} if body["query"]["match"]["text"] == "ask q4" else {}
    )
    shown, report = [], Queue.progress

    def progress(queue, job_id, owner, now):
        report(queue, job_id, owner, now)
        row = queue.row(job_id)
        shown.append((row.stage, row.done, row.failed, row.total, row.requests))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Queue, "progress", progress)
        submit(workspace, dataset, engine, Policy(concurrency=1, retries=0), repeats=3)
        row = work(SEARCH_KEY=KEY)
    assert (row.done, row.failed, row.total, row.requests) == (5, 1, 6, 18)
    assert {total for *_, total, _requests in shown} == {6}
    first = [each for each in shown if each[-1] <= 6]
    assert [(done, failed) for _, done, failed, *_ in first][-2:] == [(4, 1), (5, 1)]
    repeats = [each for each in shown if each[-1] > 6]
    assert {each[:3] for each in repeats} == {("timing", 5, 1)} and len(repeats) >= 12


def test_a_fetch_without_any_answer_fails_in_words(workspace, dataset, engine, work):
    submit(workspace, dataset, engine)
    assert "The key of the service is missing" in work().message
    jobs.resume(workspace, jobs.list(workspace)[0].id)
    assert "refuses the requests" in work(SEARCH_KEY="wrong-key-0815").message
    engine.fault_of = lambda _body: {"with": {"hits": {}}}
    jobs.resume(workspace, jobs.list(workspace)[0].id)
    message = work(SEARCH_KEY=KEY).message
    assert "None of the 6 queries could be fetched" in message and "hits.hits" in message
    assert workspace.runs() == []
