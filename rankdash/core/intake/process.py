"""The process that reads uploads: it may take so much memory, and the server outlives it.

One waits with everything imported from when files can be dropped, so that small files are quick.
It ends with the server, and where nothing comes for long.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from rankdash.core.base.shipped import python_path

REQUEST, PROGRESS, ANSWER = "request.json", "progress.json", "answer.json"
IDLE_SECONDS = 600.0
# Before one that ends could be given work.
_STALE_SECONDS = 500.0
_LOOK_SECONDS = 0.01
# Arrow's own allocator takes a gigabyte before it needs any, which would count.
_MEMORY = {"ARROW_DEFAULT_MEMORY_POOL": "system"}


class Process:
    """A process that does the requests of folders, one after the other."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rankdash.core.intake"],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, **_MEMORY, "PYTHONPATH": python_path()},
        )
        self._idle_since = time.monotonic()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def fresh(self) -> bool:
        """Whether it can still be given work."""
        return self.running and time.monotonic() - self._idle_since < _STALE_SECONDS

    def send(self, folder: Path) -> None:
        """Have it do what REQUEST in a folder says; how far it is and what became of it are written
        there."""
        self._idle_since = time.monotonic()
        # One that has died says so by its end.
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(str(folder)).encode() + b"\n")
                self._process.stdin.flush()

    def answered(self, folder: Path, seconds: float) -> bool:
        """Wait until there is an answer in the folder, or it has ended; whether there is one."""
        until = time.monotonic() + seconds
        while self.running and time.monotonic() < until and not (folder / ANSWER).exists():
            time.sleep(_LOOK_SECONDS)
        return (folder / ANSWER).exists()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self._process.wait()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        """Stop it, and forget what it wrote."""
        self.stop()
        self.leave()

    def leave(self) -> None:
        """Have it end when it has stored what it stores."""
        self._log.close()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def last_words(self) -> str:
        """The last line that it wrote, where it died."""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


_lock = threading.Lock()
_waiting: list[Process] = []


def warm() -> None:
    """Have a process wait, if none does."""
    with _lock:
        if not any(each.fresh for each in _waiting):
            _drop()
            _waiting.append(Process())


def take() -> Process:
    """The process that waits, or a new one."""
    with _lock:
        if any(each.fresh for each in _waiting):
            return _waiting.pop()
        _drop()
    return Process()


def give_back(process: Process) -> None:
    """Have it wait for the next, if none does."""
    with _lock:
        if _waiting or not process.running:
            process.kill()
        else:
            _waiting.append(process)


def _drop() -> None:
    while _waiting:
        _waiting.pop().kill()


atexit.register(_drop)
