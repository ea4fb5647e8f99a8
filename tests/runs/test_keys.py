"""A typed key reaches the worker through a pipe and is not stored."""

import json
from pathlib import Path

import pytest

from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import Handover, line

KEY = "sk-typed-by-hand-4711"
WRONG = "sk-mistyped-0815"


@pytest.fixture
def dataset(workspace, make_dataset):
    made = make_dataset(query_text="text of d1")
    workspace.save_dataset(made)
    return made


def files_with(folder, text):
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


def test_a_typed_key_is_used_for_its_job_and_is_in_no_file_afterwards(
    workspace, worker, submit, ended, server
):
    server.key = KEY

    def start(key, model=""):
        job_id = jobs.new_id()
        worker.hand_over(job_id, {"RACK_API_KEY": key} if key else {})
        settings = {"base_url": server.url, "key_variable": "RACK_API_KEY", "model": model}
        return submit("endpoint", settings, job_id)

    job_id = start(KEY)
    assert ended(job_id).state == "done"
    assert {headers["Authorization"] for _, headers, _ in server.seen} == {f"Bearer {KEY}"}
    run = workspace.run(job_id)
    assert run.settings["key_variable"] == "RACK_API_KEY"
    assert KEY not in repr(run)
    process = Path("/proc") / str(worker.pid)
    assert KEY.encode() not in (process / "cmdline").read_bytes()
    assert KEY.encode() not in (process / "environ").read_bytes()
    # With another model, so that no score is cached.
    assert "missing" in ended(start("", model="second")).message, "it is not that of another job"
    # A service that repeats a wrong key in its error.
    job_id = start(WRONG, model="third")
    failed = ended(job_id)
    assert failed.state == "failed"
    assert "(401): invalid api token: Bearer •••" in failed.message
    jobs.resume(workspace, job_id)
    said = ended(job_id).message
    assert "The key of the service is missing. Enter the key in the form" in said
    assert "RACK_API_KEY" in said, "it was not kept beyond the run"
    worker.hand_over(job_id, {"RACK_API_KEY": KEY})
    jobs.resume(workspace, job_id)
    assert ended(job_id).state == "done"
    worker.stop()
    for key in (KEY, WRONG):
        assert files_with(workspace.root, key.encode()) == []
    assert (workspace.root / "worker.log").read_text()


def test_parts_of_lines_and_strange_ones_are_taken_as_they_come():
    handover = Handover()
    text = line("one", {"A_API_KEY": "x"}) + b"no json\n[]\n{}\n" + line("two", {"B_API_KEY": "y"})
    for start in range(0, len(text), 5):
        handover.feed(text[start : start + 5])
    assert handover.take("one") == {"A_API_KEY": "x"}
    assert handover.take("two") == {"B_API_KEY": "y"}
    assert handover.take("three") == handover.take("one") == {}, "it is taken once"
    assert json.loads(line("a\nb", {})) == {"job": "a\nb", "keys": {}}
