"""The worker process of a server: started, restarted, and ended with its parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rankdash.core.base.errors import SettingError
from rankdash.core.runs import jobs
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.core.workspace.jobs.queue import Queue
from tests.approved import table

ROOT = Path(__file__).parents[2]

PARENT = """
import sys, time
from pathlib import Path
from rankdash.core.runs.jobs import WorkerProcess
from rankdash.core.workspace import Workspace
worker = WorkerProcess(Workspace.open(Path(sys.argv[1])))
worker.ensure()
print(worker.pid, flush=True)
time.sleep(600)
"""


def is_alive(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


LOADED = """
import gc, runpy, sys
heavy = "torch transformers sentence_transformers onnx onnxruntime openvino tokenizers scipy bm25s"
heavy += " rjieba Stemmer huggingface_hub httpx2 streamlit plotly"
def loaded(what):
    print(what, [name for name in heavy.split() if name in sys.modules])
import rankdash.core.runs.jobs, rankdash.core.workspace
loaded("a server")
import rankdash.core.rerankers as r
[r.create(kind.name) for kind in r.kinds() if kind.settings]
loaded("rerankers")
sys.argv[1:] = ["--help"]
try:
    runpy.run_module("rankdash.app.worker", run_name="__main__")
except SystemExit:
    loaded("a worker")
    print("garbage", gc.isenabled(), gc.get_freeze_count() > 10_000)
"""


def test_server_rerankers_and_worker_load_no_heavy_library_and_no_garbage_is_looked_for_in_it():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOADED],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    server, rerankers, *_, worker, garbage = done.stdout.splitlines()
    assert (server, rerankers, worker) == ("a server []", "rerankers []", "a worker []")
    assert garbage == "garbage True True"


def test_a_job_is_run_by_real_bm25_and_becomes_a_run(workspace, worker, submit, ended):
    job_id = submit(depth=4, name="lexical")
    worker.ensure()
    pid = worker.pid
    # The priority is lowered before any import, and not again later.
    behind = min(os.getpriority(os.PRIO_PROCESS, 0) + jobs.NICENESS, 19)
    assert os.getpriority(os.PRIO_PROCESS, pid) == behind
    worker.ensure()
    assert worker.pid == pid
    assert ended(job_id).state == "done"
    run = workspace.run(job_id)
    assert (run.name, run.reranker, run.depth) == ("lexical", "bm25", 4)
    assert set(run.queries["state"]) == {"done"}
    assert run.load_ms > 0
    assert (run.queries["latency_ms"] > 0).all()
    assert workspace.runs()[0].pairs_per_second > 0
    assert os.getpriority(os.PRIO_PROCESS, pid) == behind
    worker.stop()
    assert worker.pid is None
    assert not is_alive(pid)


def test_sigterm_leaves_a_job_that_can_be_resumed(worker, submit, row, server, wait_until):
    """The second request is active."""
    server.fault_of = lambda body: {"hang": 600.0} if len(server.seen) == 2 else {}
    settings = {"base_url": server.url, "key_variable": "none", "concurrency": 1}
    job_id = submit("endpoint", settings)
    worker.ensure()
    wait_until(lambda: len(server.seen) == 2)
    os.kill(worker.pid, signal.SIGTERM)
    server.forget()
    wait_until(lambda: worker.pid is None)
    assert row(job_id).state == "interrupted"


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)]
)
def test_the_worker_ends_with_its_parent(workspace, wait_until, number):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(workspace.root)], cwd=ROOT, stdout=subprocess.PIPE
    )
    with parent:
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.send_signal(number)
    wait_until(lambda: not is_alive(pid))


def test_a_worker_that_cannot_be_started_at_all(worker, submit, row, monkeypatch, tmp_path):
    monkeypatch.setattr(jobs.sys, "executable", str(tmp_path / "no-such-python"))
    job_id = submit()
    worker.ensure()
    assert row(job_id).state == "failed"
    assert "cannot be started" in row(job_id).message


class Process:
    """A worker that is never started: it ends once it has a `code`. written: data in its pipe."""

    # Not the id of any process.
    pid = 2**22 + 1

    def __init__(self, command):
        self.token = command[command.index("--token") + 1]
        self.code, self.written, self.broken, self.stdin = None, [], False, self

    def poll(self):
        return self.code

    def write(self, text):
        if self.broken:
            raise BrokenPipeError
        self.written.append(text)

    def flush(self):
        self.written.append("flush")

    def close(self):
        self.written.append("close")


@pytest.fixture
def started(monkeypatch):
    """Fake processes that are started instead of workers."""
    made = []

    def start(command, **how):
        made.append(Process(command))
        return made[-1]

    monkeypatch.setattr(jobs.subprocess, "Popen", start)
    return made


def test_a_log_is_moved_aside_once_it_is_longer_than_its_limit(workspace, started, monkeypatch):
    monkeypatch.setattr(jobs, "LOG_LIMIT_BYTES", 10)
    log = workspace.root / jobs.LOG_NAME
    for size, left in ((10, 10), (11, 0)):
        log.write_bytes(b"x" * size)
        jobs.WorkerProcess(workspace).ensure()
        assert log.with_suffix(".log.1").exists() == (left == 0)
        assert log.stat().st_size == left


def test_after_the_third_quick_death_in_a_row_what_waits_fails_and_one_more_start_is_tried(
    workspace, started, submit, row, monkeypatch
):
    now = 0.0
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now)
    worker, job_id, states = jobs.WorkerProcess(workspace), submit(), []
    worker.ensure()
    for lived in (0.0, 0.0, jobs.QUICK_DEATH_SECONDS, 0.0, 0.0, 0.0):
        now += lived
        started[-1].code = 1
        worker.ensure()
        states.append(row(job_id).state)
    assert states == ["queued"] * 5 + ["failed"]
    assert "with exit code 1" in row(job_id).message
    assert len(started) == 6, "none right after what waits has failed"
    worker.ensure()
    assert len(started) == 7
    jobs.resume(workspace, job_id)
    assert row(job_id).state == "queued"


DEATHS = [(-9, "a line"), (-200, "a line"), (3, "first\n  the last one \n\n"), (0, ""), (1, None)]


def test_how_a_worker_died_is_said_of_what_it_was_doing(workspace, started, submit, row, approved):
    cases, path = {}, workspace.root / jobs.LOG_NAME
    for code, log in DEATHS:
        worker, job_id = jobs.WorkerProcess(workspace), submit()
        worker.ensure()
        Queue(workspace).claim(Owner(started[-1].token))
        path.unlink() if log is None else path.write_text(log)
        started[-1].code = code
        worker.ensure()
        assert row(job_id).state == "interrupted"
        cases[f"{code}, {log!r}"] = row(job_id).message.replace(str(path), "<log>")
    approved("runs/deaths", table(cases))


def test_a_live_worker_is_not_started_again_and_a_dead_one_takes_no_key(
    workspace, started, monkeypatch
):
    def gone(command, **how):
        raise OSError

    worker, key = jobs.WorkerProcess(workspace), {"X_API_KEY": "k"}
    for broken in (False, False, True):
        if started:
            started[0].broken = broken
        worker.hand_over("job", key)
    (live,) = started
    assert worker.pid == live.pid
    assert live.written == [jobs.line("job", key), "flush"] * 2
    live.code = 1
    monkeypatch.setattr(jobs.subprocess, "Popen", gone)
    worker.hand_over("job", key)
    assert (worker.pid, live.written[4:]) == (None, ["close"])


def test_a_key_as_long_as_a_pipe_takes_at_once_is_handed_over(workspace, monkeypatch):
    worker = jobs.WorkerProcess(workspace)
    monkeypatch.setattr(worker, "ensure", lambda: None)
    longest = jobs.LONGEST_LINE_BYTES - len(jobs.line("job", {"X_API_KEY": ""}))
    worker.hand_over("job", {"X_API_KEY": "k" * longest})
    with pytest.raises(SettingError, match="The key is too long"):
        worker.hand_over("job", {"X_API_KEY": "k" * (longest + 1)})
