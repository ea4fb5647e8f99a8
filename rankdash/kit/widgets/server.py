"""What lives as long as the server: the workspace and the worker process."""

from __future__ import annotations

import os
from functools import cache

from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import PIPE_VARIABLE, RelayedWorker, WorkerProcess
from rankdash.core.workspace import Workspace
from rankdash.kit.widgets.cache import forget_all


@cache
def workspace() -> Workspace:
    return Workspace.open()


def read_only() -> bool:
    """Whether the workspace is shown and nothing in it can be changed."""
    return workspace().read_only


@cache
def worker() -> WorkerProcess | RelayedWorker:
    """Raises StoreError where the workspace is read-only: no work is done then."""
    workspace().database.refuse_read_only()
    pipe = os.environ.get(PIPE_VARIABLE)
    return RelayedWorker(int(pipe)) if pipe else WorkerProcess(workspace())


def reopen() -> None:
    """Open the workspace again after it was repaired, and have its work done again."""
    workspace.cache_clear()
    # What was read from the stand-in of the database.
    forget_all()
    if not read_only():
        work_on()


def work_on() -> None:
    """Have done what waits. Whatever queues more asks for the worker itself: a server that only
    shows pages needs no second process."""
    # Made here, because two sessions that ask for it first would each make one.
    hand = worker()
    if jobs.any_waits(workspace()):
        hand.ensure()
