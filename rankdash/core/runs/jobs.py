"""Jobs as a server sees them, and the process that works on them. Loads no model library."""

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
from rankdash.core.base.shipped import WORKER, python_path
from rankdash.core.data.measured import WithoutText
from rankdash.core.rerankers import Reranker, create, get
from rankdash.core.rerankers.remote.connection import Place
from rankdash.core.runs.on_ray.cluster import Actors, allowed_address, refuse_elsewhere
from rankdash.core.runs.plan import Timing
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
    "submit",
    "unreadable",
]


@dataclass(frozen=True)
class JobRequest:
    """A wish for a run.

    depth: how many candidates of a query are reranked; None for all.
    sample: how many queries, sampled with `seed`; None for all.
    timing: what is measured beside the scores.
    without_text: what becomes of candidates without a text, as `rankdash.core.runs.plan.plan` says.
    grid: an id from `new_id` that the variants of one wish share; None for a run of its own.
    actors: of a run on the Ray cluster that the server allows; None for one of this machine.
    fused: the name of a second run, the reciprocal rank fusion of this run with the first stage;
        None without one.
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


def check(reranker: str, settings: Mapping[str, str | int | float | bool]) -> Reranker:
    """The reranker that a job would score with, not loaded: whether it is worth queueing.

    Raises SettingError or UnavailableError for one that cannot be made from these settings, or
    whose model or package is plainly not on this machine. A model of the hub is not looked for.
    """
    made = create(reranker, settings)
    kind = get(reranker)
    if kind.check is not None:
        kind.check(made.settings)
    return made


def submit(workspace: Workspace, request: JobRequest, job_id: str | None = None) -> str:
    """Queue a job and return its id; its run will have the same. Nothing is loaded here.

    job_id: from `new_id`, where the worker was given keys for it before; None for a new one.

    Raises SettingError or UnavailableError as `check` does, SettingError for a depth or sample
    under 1, StoreError for an unknown data set.
    """
    reranker = check(request.reranker, request.settings)
    for name, value in (("depth", request.depth), ("sample", request.sample)):
        if value is not None and value < 1:
            raise SettingError(
                "The {name} must be at least 1, not {value}.",
                remedy="Leave it empty to take all.",
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
        settings=reranker.settings,
        depth=request.depth,
        sample=request.sample,
        seed=request.seed,
        timing=asdict(request.timing),
        without_text=request.without_text,
        grid=request.grid,
        actors=None if request.actors is None else request.actors.as_dict(),
        fused=request.fused,
        job_id=job_id,
    )


def list(workspace: Workspace, dataset_id: str | None = None) -> tuple[JobRow, ...]:
    """The jobs of a data set, or all, oldest first, those that are done included.

    A running job whose worker is gone shows as interrupted.
    """
    return tuple(Queue(workspace).rows(dataset_id))


def any_waits(workspace: Workspace) -> bool:
    """Whether there is work for a worker: a job, a judge or an explanation."""
    return any(table(workspace).any_waits() for table in (Queue, StoredJudges, Explanations))


def unreadable(workspace: Workspace, dataset_id: str) -> dict[str, tuple[str, StoreError]]:
    """id → name, and what is wrong with it, of each job of a data set that `list` is without."""
    return Queue(workspace).unreadable(dataset_id)


def cancel(workspace: Workspace, job_id: str) -> None:
    """Stop a job. One that waits is cancelled at once, one that runs after its current query; what
    is scored by then is kept, and `resume` goes on from there."""
    Queue(workspace).cancel(job_id)


def resume(workspace: Workspace, job_id: str) -> None:
    """Queue a failed, cancelled or interrupted job again; scored queries are not scored again."""
    Queue(workspace).resume(job_id)


def retryable(workspace: Workspace, run_id: str) -> JobRow | None:
    """Return the job that made a run if `retry` can score its failed queries; else None."""
    done = {row.id: row for row in list(workspace) if row.state == "done" and row.failed}
    return done.get(run_id) if has_parts(workspace, run_id) else None


def retry(workspace: Workspace, run_id: str, name: str, job_id: str | None = None) -> str:
    """Queue a job that scores only the queries that failed in a run, and return its id. Its run has
    the results of all queries; the run that it started from stays.

    job_id: as in `submit`. Raises StoreError if the run was not made by a job, or its results are
    not kept.
    """
    job_id = job_id or new_id()
    Queue(workspace).retry(run_id, name, job_id)
    return job_id


def delete(workspace: Workspace, job_id: str) -> None:
    """Forget a job and what it has scored so far; a run that it has finished stays."""
    Queue(workspace).delete(job_id)


# The worker process as its parent sees it: start it, keep it alive, end it.

LOG_NAME = "worker.log"
LOG_LIMIT_BYTES = 1_000_000

# A worker that dies this soon never got to work; after so many in a row the next would, too.
QUICK_DEATH_SECONDS = 10.0
QUICK_DEATHS = 3

NICENESS = 10
"""By so much a worker gives way to those who click."""

_STOP_SECONDS = 5.0


class WorkerProcess:
    """One worker for a workspace, ended with the process that made this.

    The worker holds the reading end of a pipe; when its parent ends, in whatever way, the pipe
    closes and the worker stops. What it writes to stderr goes to `worker.log` in the workspace.
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
        """The process id of the live worker; None where there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def ensure(self) -> None:
        """Start the worker unless it is alive. Cheap, so it may be called often.

        What a dead worker was doing is marked interrupted, with how it died. One that keeps dying
        at its start is not started again: what waits fails, with the reason.
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
        """Give the worker keys (variable → key) for a job, before the job is queued.

        They go through the pipe and stay in the worker's memory until the job ends, in whatever
        way; a worker that has died forgets them. Raises SettingError for what is too long to be a
        key.
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
                # It has just died. The job says that its key is missing.
                return

    def stop(self) -> None:
        """End the worker; what it was doing can be resumed."""
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
                "The worker process was killed by signal {signal}, maybe for lack of memory.",
                remedy="Resume continues where it stopped; a smaller model or batch size needs "
                "less memory. Details: {log}",
                signal=_signal_name(-code),
                log=str(self._log),
            )
        return RerankerError(
            "The worker process ended by itself (exit code {code}): {reason}",
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
        """Move a long log aside. It is emptied in place, because a live worker holds it open."""
        try:
            if self._log.stat().st_size > LOG_LIMIT_BYTES:
                shutil.copyfile(self._log, self._log.with_suffix(".log.1"))
                os.truncate(self._log, 0)
        except OSError:
            return


def _give_way(pid: int) -> None:
    """From its first import on, which takes a processor as long as a page does."""
    if hasattr(os, "setpriority"):
        with contextlib.suppress(OSError):
            niceness = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, pid, niceness + NICENESS)


def refuse_long(text: bytes) -> None:
    """Raises SettingError for what is too long to hold keys."""
    if len(text) > LONGEST_LINE_BYTES:
        raise SettingError("This is too long to be a key.", remedy="Copy it again.")


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe whose end tells the worker to stop."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


# One worker for several servers: the process that starts them keeps it, and each asks for it
# through a pipe.

PIPE_VARIABLE = "_RANKDASH_WORKER_PIPE"
"""Names the writing end that a server was given."""


class RelayedWorker:
    """A `WorkerProcess` of another process."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def ensure(self) -> None:
        self._say(b"\n")

    def hand_over(self, job_id: str, keys: Mapping[str, str]) -> None:
        text = line(job_id, keys)
        refuse_long(text)
        self._say(text)

    def stop(self) -> None:
        """Nothing: others may need it."""

    def _say(self, text: bytes) -> None:
        # The other process has ended, and this one is about to. So short a text is written whole.
        with contextlib.suppress(OSError):
            os.write(self._pipe, text)


def obey(worker: WorkerProcess, line: bytes) -> None:
    """Do what a server said in one line."""
    if line.strip():
        request = json.loads(line)
        worker.hand_over(request["job"], request["keys"])
    else:
        worker.ensure()


# Keys on their way from a server to its worker: through a pipe, into memory, never onto a disk.

# Longer is no key, and a pipe takes so much at once or not at all.
LONGEST_LINE_BYTES = 4000

# How long what was claimed waits for a key that was typed for it.
KEY_SECONDS = 0.5


def line(job_id: str, keys: Mapping[str, str]) -> bytes:
    """What a server writes: variable → key for one job."""
    return json.dumps({"job": job_id, "keys": dict(keys)}).encode() + b"\n"


class Handover:
    """The keys that a worker was given, by job. One thread feeds, another asks."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[str, str]] = {}
        self._arrived = threading.Condition()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """What came through the pipe, whole lines or parts of them."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for text in lines:
            try:
                message = json.loads(text)
                job_id, keys = str(message["job"]), dict(message["keys"])
            except (ValueError, KeyError, TypeError):
                # Not repeated anywhere: it may hold a key.
                continue
            with self._arrived:
                self._keys[job_id] = keys
                self._arrived.notify_all()

    def take(self, job_id: str, patience: float = 0.0) -> Mapping[str, str]:
        """variable → key for the job, which are not held here any longer; waits so many seconds for
        keys that are on their way."""
        with self._arrived:
            self._arrived.wait_for(lambda: job_id in self._keys, patience)
            return self._keys.pop(job_id, {})

    def take_for(self, job_id: str, place: Place | None) -> Mapping[str, str]:
        """As `take`, waiting where a key is needed that the environment has not. It is sent before
        the job is queued, so that the wait is one for another thread to put it down."""
        awaited = place is not None and place.variable and not place.in_environment
        return self.take(job_id, KEY_SECONDS if awaited else 0.0)
