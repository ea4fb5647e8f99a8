"""Large files, read and stored by a process of their own: the server stays quick and outlives it.

The process gets a folder with the files and what was chosen, and writes into it how far it is and
what became of them. It ends with the server, and where nobody waits for it any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Unpack

from rankdash.errors import LimitError
from rankdash.intake.keeping import Kept
from rankdash.intake.messages import outcome_of
from rankdash.loading import Retrieval
from rankdash.readers import Choices, Source
from rankdash.shipped import python_path
from rankdash.store import Workspace

Step = Literal["reading", "joining", "checking", "storing"]

LARGE_BYTES = 20_000_000
"""From so many bytes on, files are read in a process; one that is packed counts ten times."""

REQUEST, PROGRESS, ANSWER = "request.json", "progress.json", "answer.json"
_DECIDED, _LOG = "decided", "stderr.txt"
_PACKED = (b"PK\x03\x04", b"\x1f\x8b")
_UNPACKED = 10


@dataclass(frozen=True)
class Progress:
    """How far the files are.

    step: "reading" until all rows are read, then "joining" them to queries, documents and labels,
        then "checking", which makes a first stage where there is none, then "storing", which
        cannot be cancelled.
    rows: read so far, of all files.
    seconds_left: of reading rows, at most: a row may take several lines; None where not known.
    """

    step: Step = "reading"
    rows: int = 0
    seconds_left: float | None = None


def is_large(sources: Sequence[Source]) -> bool:
    """Whether reading takes so long that it needs a process of its own."""
    sizes = [
        len(source.data) * (_UNPACKED if source.data.startswith(_PACKED) else 1)
        for source in sources
    ]
    return sum(sizes) >= LARGE_BYTES


class Reading:
    """Files that a process reads, checks and stores; arguments as for `load`.

    cancelled: whether it was cancelled; nothing was stored then.
    """

    def __init__(
        self,
        workspace: Workspace,
        sources: Sequence[Source],
        *,
        name: str | None = None,
        retrieval: Retrieval | None = None,
        **choices: Unpack[Choices],
    ) -> None:
        self.cancelled = False
        self._started = time.monotonic()
        self._folder = Path(tempfile.mkdtemp(prefix="rankdash-"))
        for place, source in enumerate(sources):
            (self._folder / str(place)).write_bytes(source.data)
        request = {
            "workspace": str(workspace.root),
            "files": [
                {
                    "name": source.name,
                    "origin": source.origin,
                    "notes": [asdict(note) for note in source.notes],
                }
                for source in sources
            ],
            "name": name,
            "retrieval": retrieval,
            "choices": choices,
        }
        (self._folder / REQUEST).write_text(json.dumps(request, default=str), "utf-8")
        with (self._folder / _LOG).open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rankdash.intake", str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": python_path()},
            )
        self._end = weakref.finalize(self, _end, self._process, self._folder)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self._started

    @property
    def progress(self) -> Progress:
        try:
            return Progress(**json.loads((self._folder / PROGRESS).read_text("utf-8")))
        except OSError:
            # The process has only just begun.
            return Progress()

    def wait(self) -> None:
        """Until the process has ended."""
        self._process.wait()

    def cancel(self) -> None:
        """End it with nothing stored; without effect once it stores."""
        if self.running and claim(self._folder):
            self.cancelled = True
            self._process.kill()
            self._process.wait()
            self._end()

    def result(self) -> Kept:
        """What became of the files, once the process has ended.

        Raises what `load` and `keep` raise, and LimitError where the process died.
        """
        code = self._process.wait()
        try:
            outcome = outcome_of((self._folder / ANSWER).read_text("utf-8"))
        except OSError:
            outcome = _death(code, self._folder)
        self._end()
        if isinstance(outcome, Kept):
            return outcome
        raise outcome


def claim(folder: Path) -> bool:
    """Decide what becomes of the files: the process that it stores them, or whoever cancels that it
    does not. False where the other was first."""
    try:
        os.close(os.open(folder / _DECIDED, os.O_CREAT | os.O_EXCL))
    except OSError:
        return False
    return True


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Leave nothing behind but what is stored or being stored."""
    if claim(folder):
        process.kill()
        process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    shutil.rmtree(folder, ignore_errors=True)


def _death(code: int, folder: Path) -> LimitError:
    lines = (folder / _LOG).read_text("utf-8", "replace").split("\n")
    last = next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
    return LimitError(
        "The process that read the files ended ({code}), maybe for lack of memory: {reason}.",
        remedy="Free memory, or load a sample of the queries with all their rows.",
        code=code,
        reason=last.rstrip(".") or "-",
    )
