"""One worker for several servers: the process that starts them keeps it, and each asks for it
through a pipe."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping

from rankdash.core.runs import key_pipe
from rankdash.core.runs.process import WorkerProcess, refuse_long

PIPE_VARIABLE = "_RANKDASH_WORKER_PIPE"
"""Names the writing end that a server was given."""


class RelayedWorker:
    """A `WorkerProcess` of another process."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def ensure(self) -> None:
        self._say(b"\n")

    def hand_over(self, job_id: str, keys: Mapping[str, str]) -> None:
        text = key_pipe.line(job_id, keys)
        refuse_long(text)
        self._say(text)

    def stop(self) -> None:
        """Nothing: others may need it."""

    def _say(self, text: bytes) -> None:
        # The other process has ended, and this one is about to. So short a text is written whole.
        with contextlib.suppress(OSError):
            os.write(self._pipe, text)


def obey(worker: WorkerProcess, said: bytes) -> None:
    """Do what a server said in one line."""
    if said.strip():
        asked = json.loads(said)
        worker.hand_over(asked["job"], asked["keys"])
    else:
        worker.ensure()
