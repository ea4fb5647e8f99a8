"""A service that refuses requests or fails on queries: what is counted, and what is tried again."""

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler

import pytest

from rankdash.errors import StoreError
from rankdash.runs import jobs
from rankdash.runs.jobs import JobRequest
from rankdash.runs.worker import Attempt
from rankdash.store.jobs.queue import Owner, Queue
from tests.loopback import serving

QUERIES = 6


class Service:
    """A rerank service in TEI's form. broken: queries that it fails on. refusals: how many requests
    of each query it refuses first."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.refusals: dict[str, int] = {}
        self.asked: Counter[str] = Counter()

    def status(self, query: str) -> int:
        self.asked[query] += 1
        if self.asked[query] <= self.refusals.get(query, 0):
            return 429
        return 500 if query in self.broken else 200


@pytest.fixture
def service():
    made = Service()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = made.status(body["query"])
            scores = [{"index": at, "score": -float(at)} for at in range(len(body["texts"]))]
            content = json.dumps(scores if status == 200 else {"error": "no"}).encode()
            self.send_response(status)
            self.send_header("retry-after-ms", "1")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with serving(Handler) as url:
        made.url = url
        yield made


@pytest.fixture
def dataset(workspace, make_dataset):
    dataset = make_dataset(queries=QUERIES)
    workspace.save_dataset(dataset)
    return dataset


@pytest.fixture
def started(workspace, dataset, service):
    """The id of a job that asks the service."""
    settings = {"dialect": "tei", "base_url": service.url, "key_variable": "none", "retries": 3}
    return jobs.submit(workspace, JobRequest(dataset.id, "endpoint", settings, name="service"))


def work(workspace):
    owner = Owner()
    Attempt(workspace, owner, Queue(workspace).claim(owner), threading.Event()).run()


def test_refused_requests_are_counted_while_the_run_goes_on_and_in_its_record(
    workspace, service, started, monkeypatch
):
    service.refusals = {"ask q1": 2, "ask q3": 1}
    seen = []
    progress = Queue.progress

    def watched(queue, job_id, owner, now):
        progress(queue, job_id, owner, now)
        row = queue.row(job_id)
        seen.append((row.state, row.requests, row.refused))

    monkeypatch.setattr(Queue, "progress", watched)
    work(workspace)
    refused = [count for state, _requests, count in seen if state == "running"]
    assert sorted(refused) == refused and {0, 3} <= {*refused}
    row, run = Queue(workspace).row(started), workspace.run(started)
    sent = sum(service.asked.values())
    assert (row.state, row.failed, row.refused) == ("done", 0, 3)
    # The call that warms up the service is the run's own, and of no query.
    assert row.requests in (sent, sent - 1)
    assert (run.measured.requests, run.measured.refused) == (row.requests, 3)
    assert run.measured.refused_share == pytest.approx(3 / row.requests)
    assert run.calls["refused"].sum() == 3
    assert int(run.calls.loc[run.calls["query_id"] == "q1", "refused"].sum()) == 2


def test_only_the_failed_query_is_asked_again_and_the_run_that_lacks_it_stays(
    workspace, service, started
):
    service.broken = {"ask q2"}
    work(workspace)
    before = workspace.run(started)
    assert before.left_out == {"q2": "failed"}
    assert jobs.retryable(workspace, started).failed == 1

    service.broken, service.asked = set(), Counter()
    # Nothing comes from the score cache: what is done is known.
    workspace.score_cache.clear()
    again = jobs.retry(workspace, started, "service (2)")
    work(workspace)
    assert {*service.asked} <= {"ask q2", "ask q0"}, "the first query warms the service up"
    assert service.asked["ask q2"] >= 1
    after = workspace.run(again)
    assert after.name == "service (2)" and after.left_out == {}
    assert workspace.run(started).left_out == {"q2": "failed"}
    done = before.queries["query_id"] != "q2"
    assert after.queries[done].equals(before.queries[done])
    for query in before.ranking.query_ids:
        assert list(after.ranking.documents_of(query)[0]) == list(
            before.ranking.documents_of(query)[0]
        )
    # Nothing failed in the second run, so there is nothing to retry.
    assert jobs.retryable(workspace, again) is None
    assert not (workspace.root / "jobs" / again).exists()


def test_a_run_without_failures_and_one_that_is_deleted_leave_nothing_to_retry(
    workspace, service, started
):
    service.broken = {"ask q2"}
    work(workspace)
    assert jobs.retryable(workspace, started) is not None
    workspace.delete_run(started)
    assert not (workspace.root / "jobs" / started).exists()
    assert jobs.retryable(workspace, started) is None
    with pytest.raises(StoreError, match="no job"):
        jobs.retry(workspace, started, "again")
