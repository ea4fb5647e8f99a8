"""A service that refuses requests or fails on queries: counts and retries."""

import threading
from collections import Counter

import pytest

from rankdash.core.base.errors import StoreError
from rankdash.core.runs import jobs
from rankdash.core.runs.worker import Attempt
from rankdash.core.workspace.jobs.queue import Owner, Queue


@pytest.fixture
def service(server):
    """A service that fails. broken: queries that it fails on. refusals: number of requests of each
    query that it refuses first. `asked` counts the requests of each query."""
    server.broken, server.refusals, server.asked = set(), {}, Counter()

    def fault(body):
        query = body["query"]
        server.asked[query] += 1
        refused = server.asked[query] <= server.refusals.get(query, 0)
        status = 429 if refused else 500 if query in server.broken else 0
        return {"status": status, "headers": {"retry-after-ms": "1"}} if status else {}

    server.fault_of = fault
    return server


@pytest.fixture
def started(submit, service):
    """The id of a job that uses the service."""
    settings = {"dialect": "tei", "base_url": service.url, "key_variable": "none", "retries": 3}
    return submit("endpoint", settings, name="service")


def work(workspace):
    owner = Owner()
    Attempt(workspace, owner, Queue(workspace).claim(owner), threading.Event()).run()


def test_refused_requests_are_counted_while_the_run_goes_on_and_in_its_record(
    workspace, service, started, monkeypatch
):
    service.refusals = {"ask q1": 2, "ask q3": 1}
    seen, progress = [], Queue.progress

    def watched(queue, job_id, owner, now):
        progress(queue, job_id, owner, now)
        row = queue.row(job_id)
        seen.append((row.state, row.refused))

    monkeypatch.setattr(Queue, "progress", watched)
    work(workspace)
    refused = [count for state, count in seen if state == "running"]
    assert sorted(refused) == refused and {0, 3} <= {*refused}
    row, run = Queue(workspace).row(started), workspace.run(started)
    sent = sum(service.asked.values())
    assert (row.state, row.failed, row.refused) == ("done", 0, 3)
    # The warm-up call belongs to the run, not to a query.
    assert row.requests in (sent, sent - 1)
    assert (run.measured.requests, run.measured.refused) == (row.requests, 3)
    assert run.measured.refused_share == pytest.approx(3 / row.requests)
    assert run.calls.groupby("query_id")["refused"].sum().to_dict() == (
        {f"q{n}": {1: 2, 3: 1}.get(n, 0) for n in range(6)}
    )


def test_only_the_failed_query_is_asked_again_and_the_run_that_lacks_it_stays(
    workspace, service, started
):
    service.broken = {"ask q2"}
    work(workspace)
    before = workspace.run(started)
    assert before.excluded == {"q2": "failed"}
    assert jobs.retryable(workspace, started).failed == 1
    service.broken, service.asked = set(), Counter()
    # Without the score cache: results of done queries are stored with the job.
    workspace.score_cache.clear()
    again = jobs.retry(workspace, started, "service (2)")
    work(workspace)
    assert "ask q2" in service.asked
    assert {*service.asked} <= {"ask q2", "ask q0"}, "the first query warms the service up"
    after = workspace.run(again)
    assert after.name == "service (2)" and after.excluded == {}
    assert workspace.run(started).excluded == {"q2": "failed"}
    done = before.queries["query_id"] != "q2"
    assert after.queries[done].equals(before.queries[done])
    for query in before.ranking.query_ids:
        assert after.ranking.documents_of(query)[0] == before.ranking.documents_of(query)[0]
    # Nothing failed in the second run, so there is nothing to retry; nor if a run is deleted.
    assert jobs.retryable(workspace, again) is None
    assert not (workspace.root / "jobs" / again).exists()
    workspace.delete_run(started)
    assert not (workspace.root / "jobs" / started).exists()
    assert jobs.retryable(workspace, started) is None
    with pytest.raises(StoreError, match="no job"):
        jobs.retry(workspace, started, "again")
