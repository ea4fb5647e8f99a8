"""Jobs from the view of a server, and the worker process that runs them. Loads no model library."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from rankdash.core.base.errors import RankdashError, RerankerError, SettingError, StoreError
from rankdash.core.base.rules import SettingValue
from rankdash.core.base.shipped import WORKER, python_path
from rankdash.core.data.measured import WithoutText
from rankdash.core.data.ranking import RETRIEVAL
from rankdash.core.rerankers import Reranker, create, get
from rankdash.core.rerankers.remote.connection import Place
from rankdash.core.runs.fetch_job import Fetch
from rankdash.core.runs.on_ray.cluster import Actors, allowed_address, refuse_elsewhere
from rankdash.core.runs.plan import Timing
from rankdash.core.runs.retrieving import Retrieval, with_source
from rankdash.core.runs.stopping import StopRule
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import Explanations
from rankdash.core.workspace.jobs.leases import State as JobState
from rankdash.core.workspace.jobs.queue import LIVE, JobRow, Owner, Queue, Stage, has_parts, new_id

__all__ = [
    "LIVE",
    "JobRequest",
    "JobRow",
    "JobState",
    "Stage",
    "StopRule",
    "Timing",
    "WorkerProcess",
    "any_waits",
    "cancel",
    "check",
    "delete",
    "list",
    "new_id",
    "resume",
    "retry",
    "retryable",
    "stop_when_conclusive",
    "submit",
    "submit_fetch",
    "submit_retrieval",
    "unreadable",
]


@dataclass(frozen=True)
class JobRequest:
    """Request for a run.

    depth: number of candidates of a query to rerank; None for all.
    sample: number of queries, sampled with `seed`; None for all.
    timing: measurements besides the scores.
    without_text: treatment of candidates without text, as in `rankdash.core.runs.plan.plan`.
    grid: an id from `new_id`, shared by the variants of one request; None for a single run.
    actors: for a run on the Ray cluster that the server allows; None to run on this machine.
    fused: the name of a second run, the reciprocal rank fusion of this run with the first stage;
        None without one.
    stop: the rule by which the run may stop by its result; None without one.
    candidates: the id of the retrieval run with the candidates to rerank; None for the first stage.
    """

    dataset_id: str
    reranker: str
    settings: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    name: str = ""
    depth: int | None = None
    sample: int | None = None
    seed: int = 0
    timing: Timing = field(default_factory=Timing)
    without_text: WithoutText = "exclude"
    grid: str | None = None
    actors: Actors | None = None
    fused: str | None = None
    stop: StopRule | None = None
    candidates: str | None = None


def check(reranker: str, settings: Mapping[str, str | int | float | bool]) -> Reranker:
    """Return the reranker of a job, not loaded.

    Raises SettingError or UnavailableError if it cannot be built from these settings, or if its
    model or package is missing on this machine. A model of the hub is not looked up.
    """
    built = create(reranker, settings)
    kind = get(reranker)
    if kind.check is not None:
        kind.check(built.settings)
    return built


def submit(workspace: Workspace, request: JobRequest, job_id: str | None = None) -> str:
    """Queue a job and return its id; its run will have the same id. Nothing is loaded here.

    job_id: from `new_id`, if the worker received keys for it before; None for a new one.

    Raises SettingError or UnavailableError as `check` does, SettingError for a depth or sample
    below 1 and candidates that cannot be reranked, StoreError for an unknown data set.
    """
    reranker = check(request.reranker, request.settings)
    for name, value in (("depth", request.depth), ("sample", request.sample)):
        if value is not None and value < 1:
            raise SettingError(
                "The {name} must be at least 1, not {value}.",
                remedy="Leave it empty to use all.",
                name=name,
                value=value,
            )
    if request.actors is not None:
        allowed_address()
        kind = get(request.reranker)
        refuse_elsewhere(kind.name, kind.able(reranker.settings))
    return Queue(workspace).submit(
        dataset_id=request.dataset_id,
        name=request.name or reranker.name,
        reranker=reranker.name,
        settings=_settings(workspace, request, reranker.settings),
        depth=request.depth,
        sample=request.sample,
        seed=request.seed,
        timing=asdict(request.timing),
        without_text=request.without_text,
        grid=request.grid,
        actors=None if request.actors is None else request.actors.as_dict(),
        fused=request.fused,
        stop=None if request.stop is None else request.stop.as_dict(),
        job_id=job_id,
    )


def _settings(
    workspace: Workspace, request: JobRequest, settings: Mapping[str, SettingValue]
) -> Mapping[str, SettingValue]:
    """Return the settings of a job, with the source of its candidates."""
    if request.candidates is None:
        return settings
    if request.stop is not None:
        raise SettingError(
            "A run can stop early only if it reranks the first stage's candidates.",
            remedy="Score all queries, or choose the first stage.",
        )
    rows = {row.id: row for row in workspace.runs(request.dataset_id)}
    if request.candidates not in rows:
        raise SettingError(
            "The ranking with the candidates was deleted.", remedy="Choose another one."
        )
    return with_source(settings, rows[request.candidates])


def submit_retrieval(
    workspace: Workspace, dataset_id: str, how: Retrieval, name: str, job_id: str | None = None
) -> str:
    """Queue a retrieval from all documents and return its id, as `submit` does."""
    return _submit_retrieval(workspace, dataset_id, how.as_dict(), name, job_id)


def submit_fetch(
    workspace: Workspace, dataset_id: str, request: Fetch, name: str, job_id: str | None = None
) -> str:
    """Queue a fetch from a search engine and return its id, as `submit` does."""
    return _submit_retrieval(workspace, dataset_id, request.settings, name, job_id)


def _submit_retrieval(
    workspace: Workspace,
    dataset_id: str,
    settings: Mapping[str, SettingValue],
    name: str,
    job_id: str | None,
) -> str:
    return Queue(workspace).submit(
        dataset_id=dataset_id,
        name=name,
        reranker=RETRIEVAL,
        settings=settings,
        depth=None,
        sample=None,
        seed=0,
        job_id=job_id,
    )


def list(workspace: Workspace, dataset_id: str | None = None) -> tuple[JobRow, ...]:
    """Return the jobs of a data set, or all, oldest first, finished ones included.

    A running job without a live worker is shown as interrupted.
    """
    return tuple(Queue(workspace).rows(dataset_id))


def any_waits(workspace: Workspace) -> bool:
    """Return whether a job, a judge or an explanation is waiting for a worker."""
    return any(table(workspace).any_waits() for table in (Queue, StoredJudges, Explanations))


def unreadable(workspace: Workspace, dataset_id: str) -> dict[str, tuple[str, StoreError]]:
    """Return id → name and error of each unreadable job of a data set, which `list` omits."""
    return Queue(workspace).unreadable(dataset_id)


def cancel(workspace: Workspace, job_id: str) -> None:
    """Stop a job. A queued job is cancelled immediately, a running one after its current query; its
    results are stored, and `resume` continues from them."""
    Queue(workspace).cancel(job_id)


def stop_when_conclusive(workspace: Workspace, job_id: str) -> None:
    """Stop a running job at its next conclusive look; its run has the queries scored until then."""
    Queue(workspace).stop_when_conclusive(job_id)


def resume(workspace: Workspace, job_id: str) -> None:
    """Queue a failed, cancelled or interrupted job again; scored queries are not scored again."""
    Queue(workspace).resume(job_id)


def retryable(workspace: Workspace, run_id: str) -> JobRow | None:
    """Return the job that made a run if `retry` can score its failed queries; else None."""
    done = {row.id: row for row in list(workspace) if row.state == "done" and row.failed}
    return done.get(run_id) if has_parts(workspace, run_id) else None


def retry(workspace: Workspace, run_id: str, name: str, job_id: str | None = None) -> str:
    """Queue a job that scores only the failed queries of a run, and return its id. Its run has the
    results of all queries; the original run is not changed.

    job_id: as in `submit`. Raises StoreError if the run was not made by a job, or its results are
        not stored.
    """
    job_id = job_id or new_id()
    Queue(workspace).retry(run_id, name, job_id)
    return job_id


def delete(workspace: Workspace, job_id: str) -> None:
    """Delete a job and its partial results; its finished run is not deleted."""
    Queue(workspace).delete(job_id)


# The worker process from the view of its parent: start it, restart it, stop it.

LOG_NAME = "worker.log"
LOG_LIMIT_BYTES = 1_000_000

# A worker that dies this soon failed at its start; after this many in a row, the next would too.
QUICK_DEATH_SECONDS = 10.0
QUICK_DEATHS = 3

NICENESS = 10
"""Increase of the worker's niceness, so that servers have priority."""

_STOP_SECONDS = 5.0


class WorkerProcess:
    """Worker of a workspace; ends with the process that created this object.

    The worker reads from a pipe; when its parent ends for any reason, the pipe closes and the
    worker stops. Its stderr is appended to `worker.log` in the workspace.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._queue = Queue(workspace)
        self._log = workspace.root / LOG_NAME
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""
        self._started = 0.0
        self._quick_deaths = 0

    @property
    def pid(self) -> int | None:
        """Process id of the live worker; None without one."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def ensure(self) -> None:
        """Start the worker unless it is alive. Cheap, so it may be called often.

        The work of a dead worker is marked interrupted, with the cause of death. A worker that
        repeatedly dies at its start is not started again: waiting jobs fail, with the reason.
        """
        with self._lock:
            if self._process is not None:
                code = self._process.poll()
                if code is None:
                    self._limit_log()
                    return
                self._bury(self._process, code)
                if self._quick_deaths >= QUICK_DEATHS:
                    self._quick_deaths = 0
                    return
            self._start()

    def hand_over(self, job_id: str, keys: Mapping[str, str]) -> None:
        """Send the worker keys (variable → key) for a job, before the job is queued.

        They go through the pipe and stay in the worker's memory until the job ends for any reason;
        a dead worker's keys are lost. Raises SettingError for text that is too long to be a key.
        """
        text = line(job_id, keys)
        refuse_long(text)
        self.ensure()
        with self._lock:
            if self._process is None or self._process.stdin is None:
                return
            try:
                self._process.stdin.write(text)
                self._process.stdin.flush()
            except OSError:
                # The worker has just died. The job will report that its key is missing.
                return

    def stop(self) -> None:
        """Stop the worker; its work can be resumed."""
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            _close(process)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._queue.interrupt(self._token)

    def _start(self) -> None:
        self._limit_log()
        self._token = Owner().token
        self._started = time.monotonic()
        try:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        *("-X", "faulthandler"),
                        *("-m", WORKER),
                        *("--workspace", str(self._workspace.root)),
                        *("--token", self._token),
                        "--end-with-stdin",
                    ],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "PYTHONPATH": python_path()},
                )
            _give_way(self._process.pid)
        except OSError as error:
            self._process = None
            self._queue.fail_waiting(
                RerankerError(
                    "The worker process cannot be started: {reason}",
                    remedy="Free memory or disk space and resume the job.",
                    reason=str(error),
                )
            )

    def _bury(self, process: subprocess.Popen[bytes], code: int) -> None:
        self._process = None
        _close(process)
        quick = time.monotonic() - self._started < QUICK_DEATH_SECONDS
        self._quick_deaths = self._quick_deaths + 1 if quick else 0
        error = self._death(code)
        self._queue.interrupt(self._token, error)
        if self._quick_deaths >= QUICK_DEATHS:
            self._queue.fail_waiting(error)

    def _death(self, code: int) -> RankdashError:
        if code < 0:
            return RerankerError(
                "The worker process was killed by signal {signal}, possibly because of a lack of "
                "memory.",
                remedy="Resume continues where it stopped; a smaller model or batch size needs "
                "less memory. Details: {log}",
                signal=_signal_name(-code),
                log=str(self._log),
            )
        return RerankerError(
            "The worker process ended with exit code {code}: {reason}",
            remedy="Resume continues where it stopped. Details: {log}",
            code=code,
            reason=self._last_words(),
            log=str(self._log),
        )

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            lines = []
        return next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")

    def _limit_log(self) -> None:
        """Copy a long log to another file. It is truncated in place, because a live worker has it
        open."""
        try:
            if self._log.stat().st_size > LOG_LIMIT_BYTES:
                shutil.copyfile(self._log, self._log.with_suffix(".log.1"))
                os.truncate(self._log, 0)
        except OSError:
            return


def _give_way(pid: int) -> None:
    """Lower the priority of the worker, including its imports, which use much CPU time."""
    if hasattr(os, "setpriority"):
        with contextlib.suppress(OSError):
            niceness = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, pid, niceness + NICENESS)


def refuse_long(text: bytes) -> None:
    """Raise SettingError for text that is too long to contain keys."""
    if len(text) > LONGEST_LINE_BYTES:
        raise SettingError("The key is too long.", remedy="Copy it again.")


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe; the worker stops at its end."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


# One worker for several servers: the process that starts the servers owns it, and each server uses
# it through a pipe.

PIPE_VARIABLE = "_RANKDASH_WORKER_PIPE"
"""Variable with the file descriptor of the pipe's writing end in a server."""


class RelayedWorker:
    """Proxy of a `WorkerProcess` in another process."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def ensure(self) -> None:
        self._say(b"\n")

    def hand_over(self, job_id: str, keys: Mapping[str, str]) -> None:
        text = line(job_id, keys)
        refuse_long(text)
        self._say(text)

    def stop(self) -> None:
        """Do nothing: other servers may need the worker."""

    def _say(self, text: bytes) -> None:
        # An error means that the other process has ended, and this one is about to. Text this short
        # is written atomically.
        with contextlib.suppress(OSError):
            os.write(self._pipe, text)


def obey(worker: WorkerProcess, line: bytes) -> None:
    """Execute one line from a server."""
    if line.strip():
        request = json.loads(line)
        worker.hand_over(request["job"], request["keys"])
    else:
        worker.ensure()


# Transfer of keys from a server to its worker: through a pipe, into memory, never to disk.

# Longer text is not a key, and a pipe writes this much atomically.
LONGEST_LINE_BYTES = 4000

# Time that claimed work waits for a key that the user typed.
KEY_SECONDS = 0.5


def line(job_id: str, keys: Mapping[str, str]) -> bytes:
    """Return the line that a server writes: variable → key for one job."""
    return json.dumps({"job": job_id, "keys": dict(keys)}).encode() + b"\n"


class Handover:
    """Keys that a worker received, by job. One thread adds, another takes."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[str, str]] = {}
        self._arrived = threading.Condition()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Add data from the pipe, which may end within a line."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for text in lines:
            try:
                message = json.loads(text)
                job_id, keys = str(message["job"]), dict(message["keys"])
            except (ValueError, KeyError, TypeError):
                # Not logged: it may contain a key.
                continue
            with self._arrived:
                self._keys[job_id] = keys
                self._arrived.notify_all()

    def take(self, job_id: str, patience: float = 0.0) -> Mapping[str, str]:
        """Remove and return variable → key of the job; wait up to `patience` seconds for keys in
        transit."""
        with self._arrived:
            self._arrived.wait_for(lambda: job_id in self._keys, patience)
            return self._keys.pop(job_id, {})

    def take_for(self, job_id: str, place: Place | None) -> Mapping[str, str]:
        """Return the keys of a job, and wait for them if the environment lacks a required key. A
        key is sent before its job is queued, so the wait only covers the other thread's work."""
        awaited = place is not None and place.variable and not place.in_environment
        return self.take(job_id, KEY_SECONDS if awaited else 0.0)
