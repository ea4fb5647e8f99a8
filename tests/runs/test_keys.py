"""A key that was typed reaches the worker through a pipe and is nowhere afterwards."""

import json
import os
import signal
from pathlib import Path

import pytest

from rankdash.runs import jobs
from rankdash.runs.jobs import JobRequest
from rankdash.runs.key_pipe import Handover, line
from tests.rerankers.loopback import running

KEY = "sk-typed-by-hand-4711"
WRONG = "sk-mistyped-0815"


@pytest.fixture
def server():
    with running(key=KEY) as running_server:
        yield running_server


@pytest.fixture
def start(workspace, worker, make_dataset, server):
    dataset = make_dataset(query_text="text of d1")
    workspace.save_dataset(dataset)

    def started(key, model=""):
        job_id = jobs.new_id()
        worker.hand_over(job_id, {"RACK_API_KEY": key} if key else {})
        settings = {"base_url": server.url, "key_variable": "RACK_API_KEY", "model": model}
        jobs.submit(workspace, JobRequest(dataset.id, "endpoint", settings), job_id)
        return job_id

    return started


@pytest.fixture
def ended(workspace, wait_until):
    def wait(job_id):
        def row():
            found = next(row for row in jobs.list(workspace) if row.id == job_id)
            return None if found.state in jobs.LIVE else found

        return wait_until(row)

    return wait


def files_with(folder, text):
    return [
        path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()
    ]


def test_a_typed_key_is_used_for_its_job_and_is_in_no_file_afterwards(
    workspace, worker, start, ended, server
):
    job_id = start(KEY)
    assert ended(job_id).state == "done"
    assert {headers["Authorization"] for _, headers, _ in server.seen} == {f"Bearer {KEY}"}
    run = workspace.run(job_id)
    assert run.settings["key_variable"] == "RACK_API_KEY"
    assert KEY not in repr(run)
    process = Path("/proc") / str(worker.pid)
    assert KEY.encode() not in (process / "cmdline").read_bytes()
    assert KEY.encode() not in (process / "environ").read_bytes()
    # Another model, or the scores were known already.
    assert "missing" in ended(start("", model="second")).message, "it is not that of another job"
    # A service that repeats a wrong one.
    failed = ended(start(WRONG, model="third"))
    assert failed.state == "failed"
    assert "(401): invalid api token: Bearer •••" in failed.message
    worker.stop()
    assert files_with(workspace.root, KEY) == files_with(workspace.root, WRONG) == []
    assert (workspace.root / "worker.log").read_text()


@pytest.mark.thorough
def test_after_its_end_and_after_a_restart_the_key_is_asked_for_again_and_the_job_goes_on(
    workspace, worker, start, ended, wait_until, server
):
    server.key = "another"
    job_id = start(KEY)
    assert ended(job_id).state == "failed"
    server.key = KEY
    jobs.resume(workspace, job_id)
    assert "missing" in ended(job_id).message, "it was not kept beyond the run"
    worker.hand_over(job_id, {"RACK_API_KEY": KEY})
    jobs.resume(workspace, job_id)
    assert ended(job_id).state == "done"
    # Another model, or the scores were known already.
    again = start(WRONG, model="second")
    assert ended(again).state == "failed"
    os.kill(worker.pid, signal.SIGKILL)
    wait_until(lambda: worker.pid is None)
    worker.ensure()
    jobs.resume(workspace, again)
    failed = ended(again)
    assert "The key of the service is missing. Type it into the form" in failed.message
    assert "RACK_API_KEY" in failed.message
    worker.hand_over(again, {"RACK_API_KEY": KEY})
    jobs.resume(workspace, again)
    assert ended(again).state == "done"


def test_parts_of_lines_and_strange_ones_are_taken_as_they_come():
    handover = Handover()
    text = line("one", {"A_API_KEY": "x"}) + b"no json\n[]\n{}\n" + line("two", {"B_API_KEY": "y"})
    for start in range(0, len(text), 5):
        handover.feed(text[start : start + 5])
    assert handover.take("one") == {"A_API_KEY": "x"}
    assert handover.take("two") == {"B_API_KEY": "y"}
    assert handover.take("three") == {}
    assert handover.take("one") == {}, "it is taken once"
    assert json.loads(line("a\nb", {})) == {"job": "a\nb", "keys": {}}
