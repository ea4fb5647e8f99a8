"""Files, read and stored by a process of their own: the server stays quick and outlives it.

The process gets a folder with the files and what was chosen, and writes into it how far it is and
what became of them. It ends with the server, and where nobody waits for it any more.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Unpack, cast

from rankdash.core.base.errors import DataError, LimitError, RankdashError
from rankdash.core.intake import process as intake_process
from rankdash.core.intake.process import (
    ANSWER,
    PROGRESS,
    REQUEST,
    Kept,
    Outcome,
    Process,
    give_back,
    outcome_of,
    take,
    warm,
)
from rankdash.core.readers import Choices, Guess, ReadLimits, Source
from rankdash.core.readers.guesses import beginning
from rankdash.core.readers.loading import Retrieval
from rankdash.core.readers.parse.limits import MEGABYTE, variable
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file.import_workspace import TakenIn

Step = Literal["reading", "joining", "checking", "storing"]

LARGE_BYTES = 20_000_000
"""From so many bytes on, reading takes long; a file that is packed counts ten times."""

_DECIDED = "decided"
# Columns are guessed while a page is drawn, of little enough that only a fault takes so long.
_GUESS_SECONDS = 60.0
_SAY_SECONDS = 0.5
# What is tried is read by the server itself then, and joined, which takes three times as much.
_TRIED_SHARE = 16
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
    """Whether reading takes so long that a page says how far it is."""
    sizes = [
        source.size * (_UNPACKED if source.head.startswith(_PACKED) else 1) for source in sources
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
        self.cancelled = self._ended = False
        self._started = time.monotonic()
        self._small = not is_large(sources)
        self._names = [source.name for source in sources]
        self._limits = ReadLimits()
        self._folder = _request(
            "read",
            sources,
            self._limits,
            workspace=str(workspace.root),
            name=name,
            retrieval=retrieval,
            choices=choices,
        )
        self._process = take()
        self._process.send(self._folder)
        self._end = weakref.finalize(self, _end, self._process, self._folder)

    @property
    def running(self) -> bool:
        done = self._ended or (self._folder / ANSWER).exists()
        return self._process.running and not done

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

    def wait(self, seconds: float = float("inf")) -> None:
        """Until it is done, or for so long."""
        self._process.answered(self._folder, seconds)

    def cancel(self) -> None:
        """End it with nothing stored; without effect once it stores."""
        if self.running and claim(self._folder):
            self.cancelled = True
            self._process.kill()
            self._end()

    def result(self) -> Kept:
        """What became of the files, once the process has ended.

        Raises what `load` and `keep` raise, and LimitError where the process died.
        """
        self._ended = True
        if self._process.answered(self._folder, float("inf")):
            outcome = outcome_of((self._folder / ANSWER).read_text("utf-8"))
            if self._small and self._end.detach():
                shutil.rmtree(self._folder, ignore_errors=True)
                give_back(self._process)
        else:
            outcome = _death(self._process, self._names, self._limits)
        self._end()
        if isinstance(outcome, RankdashError):
            raise outcome
        return cast(Kept, outcome)


def claim(folder: Path) -> bool:
    """Decide what becomes of the files: the process that it stores them, or whoever cancels that it
    does not. False where the other was first."""
    try:
        os.close(os.open(folder / _DECIDED, os.O_CREAT | os.O_EXCL))
    except OSError:
        return False
    return True


def guessed(sources: Sequence[Source], most_bytes: int) -> list[Guess]:
    """As `readers.guesses`, by the process; nothing where it takes too long or ends."""
    starts = [beginning(source, most_bytes) for source in sources]
    try:
        found = _asked("guess", starts, _GUESS_SECONDS, most_bytes=most_bytes)
    except RankdashError:
        return []
    return found if isinstance(found, list) else []


def tried(sources: Sequence[Source]) -> None:
    """Read files in the process to see that they do no harm, before they are read here.

    Raises what `readers.read` raises for files of no known form or beyond a limit, and LimitError
    where they take more than a part of the memory that is allowed, or the process died.
    """
    limits = ReadLimits()
    limits = replace(limits, memory_bytes=limits.memory_bytes // _TRIED_SHARE)
    outcome = _asked("try", sources, float("inf"), limits=limits)
    if isinstance(outcome, RankdashError):
        raise outcome


def imported(
    workspace: Workspace, source: Source, progress: Callable[[int, int], object]
) -> TakenIn:
    """Have the process bring a workspace file in, as `sharing.bring_in` does; it raises what that
    raises, and LimitError where the process died: nothing was added then."""

    def say(folder: Path) -> None:
        with suppress(OSError):
            progress(*json.loads((folder / PROGRESS).read_text("utf-8")))

    outcome = _asked("import", [source], float("inf"), say, workspace=str(workspace.root))
    if isinstance(outcome, RankdashError):
        raise outcome
    return cast(TakenIn, outcome)


def _asked(
    task: str,
    sources: Sequence[Source],
    seconds: float,
    say: Callable[[Path], None] = lambda _folder: None,
    limits: ReadLimits | None = None,
    **more: Any,
) -> Outcome:
    """What the process answers; LimitError where it died or took longer. say: called now and then
    with the folder of the request."""
    limits = limits or ReadLimits()
    folder = _request(task, sources, limits, **more)
    process = take()
    process.send(folder)
    until = time.monotonic() + seconds
    try:
        while not process.answered(folder, min(_SAY_SECONDS, seconds)):
            say(folder)
            if not process.running or time.monotonic() >= until:
                break
        if process.answered(folder, 0.0):
            outcome = outcome_of((folder / ANSWER).read_text("utf-8"))
            if not is_large(sources):
                give_back(process)
                return outcome
        else:
            process.stop()
            outcome = _death(process, [each.name for each in sources], limits)
        process.kill()
        # What was asked is mostly read next, and a new one takes a while to begin.
        warm()
        return outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _request(task: str, sources: Sequence[Source], limits: ReadLimits, **more: Any) -> Path:
    """A new folder with the files and what to do with them. Raises DataError where there is no room
    for them."""
    files = [
        {
            "name": source.name,
            "origin": source.origin,
            "notes": [asdict(note) for note in source.notes],
        }
        for source in sources
    ]
    numbers = {
        each.name: getattr(limits, each.name)
        for each in fields(limits)
        if isinstance(getattr(limits, each.name), int)
    }
    request = {"task": task, "limits": numbers, "files": files, **more}
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(dir=intake_process.folder()))
        for number, source in enumerate(sources):
            _place(source, folder / str(number))
        (folder / REQUEST).write_text(json.dumps(request, default=str), "utf-8")
    except OSError as problem:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise DataError(
            "The files cannot be put where they are read: {problem}.",
            remedy="Free {size:,.0f} MB on the disk of temporary files, or set TMPDIR to a folder "
            "with more room.",
            file=", ".join(source.name for source in sources),
            problem=problem.strerror or type(problem).__name__,
            size=sum(source.size for source in sources) / MEGABYTE + 1,
        ) from problem
    return folder


def _place(source: Source, target: Path) -> None:
    """The bytes under another name: once on the disk where they are on one already."""
    if isinstance(source.content, bytes):
        target.write_bytes(source.content)
        return
    try:
        os.link(source.content, target)
    except OSError:
        shutil.copyfile(source.content, target)


def _end(process: Process, folder: Path) -> None:
    """Leave nothing behind but what is stored or being stored."""
    if claim(folder) or (folder / ANSWER).exists():
        process.kill()
    else:
        process.leave()
    shutil.rmtree(folder, ignore_errors=True)


def _death(process: Process, names: Sequence[str], limits: ReadLimits) -> LimitError:
    return LimitError(
        "The process that read the files ended ({code}), maybe for lack of memory: {reason}. It "
        "may take {limit:,.0f} MB.",
        remedy="Free memory, load a sample of the queries with all their rows, or allow more with "
        "{variable}.",
        file=", ".join(names),
        code=process.wait(),
        reason=process.last_words().rstrip(".") or "-",
        limit=limits.memory_bytes / MEGABYTE,
        variable=variable("memory_bytes"),
    )
