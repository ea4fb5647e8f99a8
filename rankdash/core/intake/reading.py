"""Files, read and stored by a process of their own: the server stays quick and outlives it.

It gets a folder with the files and what was chosen, and writes into it how far it is and what
became of them. One waits with everything imported from when files can be dropped, so that small
files are quick. It ends with the server, and where nothing comes for long.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Unpack, cast

import numpy as np
import pandas as pd
from msgspec import convert

from rankdash.core.base import errors, files, text
from rankdash.core.base.errors import DataError, Finding, LimitError, Phrase, RankdashError
from rankdash.core.base.shipped import python_path
from rankdash.core.readers import (
    BaselineNeeded,
    Choices,
    Guess,
    MappingNeeded,
    ReadLimits,
    Source,
    WordsNeeded,
)
from rankdash.core.readers.detect import beginning
from rankdash.core.readers.loading import Loaded, Retrieval
from rankdash.core.readers.parse.limits import MEGABYTE, variable
from rankdash.core.readers.parse.values import Word
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file.import_workspace import TakenIn

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
        with suppress(OSError):
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
        self.wait()

    def kill(self) -> None:
        """Stop it, and forget what it wrote."""
        self.stop()
        self.leave()

    def leave(self) -> None:
        """Have it end when it has stored what it stores."""
        self._log.close()
        if self._process.stdin is not None:
            with suppress(OSError):
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


# Where files that are given to a server lie until they are read: a folder of its own, which goes
# when the server ends, or with the next start where it was killed.

_PREFIX = "rankdash-"
# Nothing else writes a file of this name.
_MARK = "rankdash-uploads"

_own: list[Path] = []


def uploads_folder() -> Path:
    """The folder of this process. Raises OSError where it cannot be made."""
    with _lock:
        # Temporary folders are emptied now and then.
        if not _own or not _own[-1].is_dir():
            made = Path(tempfile.mkdtemp(prefix=_PREFIX))
            atexit.register(shutil.rmtree, made, ignore_errors=True)
            files.hold(made, _MARK)
            _own.append(made)
        return _own[-1]


def sweep_uploads() -> None:
    """Remove the folders of processes that were killed, where the system can tell."""
    files.sweep(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"), _MARK)


# What was read, into a workspace: stored once, and said where it is there already.


@dataclass(frozen=True)
class Kept:
    """What became of the files of a data set.

    dataset_id: the stored data set.
    was_here: whether an equal one was stored before; it keeps its name and its check report.
    added: the names of the systems that were stored now.
    """

    dataset_id: str
    was_here: bool = False
    added: tuple[str, ...] = ()


def keep(workspace: Workspace, loaded: Loaded) -> Kept:
    """Store a data set under a free name, with the systems that came with it. Of one that is there
    already (its content is equal) only the systems that it lacks are stored.

    Raises StoreError where the workspace cannot be written.
    """
    dataset = loaded.dataset
    others = {row.id: row.name for row in workspace.datasets()}
    was_here = dataset.id in others
    if not was_here:
        workspace.save_dataset(dataset, source="upload", report_json=loaded.report.to_json())
        if dataset.name in others.values():
            workspace.rename_dataset(dataset.id, text.free(dataset.name, others.values()))
    stored = {row.id for row in workspace.runs(dataset.id)}
    added = [run for run in loaded.runs if run.id not in stored]
    for run in added:
        workspace.save_run(run)
    return Kept(dataset.id, was_here, tuple(run.name for run in added))


# What the reading process answers, as JSON and back: a question or an error stays what it was.
#
# Not pickled: what a file made of the process must not run in the server.

Outcome = Kept | TakenIn | list[Guess] | RankdashError
"""What becomes of files: a data set, the content of a workspace file, guesses, or an error."""

_ERRORS: dict[str, type[RankdashError]] = {
    kind.__name__: kind
    for kind in (*vars(errors).values(), MappingNeeded, WordsNeeded, BaselineNeeded)
    if isinstance(kind, type) and issubclass(kind, RankdashError)
}


def answer_of(outcome: Outcome) -> str:
    """What became of the files, as JSON."""
    if isinstance(outcome, list):
        return json.dumps([_plain(vars(guess)) for guess in outcome])
    if isinstance(outcome, TakenIn):
        findings = [_plain(vars(finding)) for finding in outcome.findings]
        return json.dumps({**vars(outcome), "findings": findings})
    return json.dumps(asdict(outcome) if isinstance(outcome, Kept) else _plain(outcome))


def outcome_of(answer: str) -> Outcome:
    """What `answer_of` wrote."""
    content = json.loads(answer)
    if isinstance(content, list):
        return [Guess(**_fields(each)) for each in content]
    if "error" in content:
        return cast(RankdashError, _made(content))
    if "findings" in content:
        findings = [Finding(**_fields(each)) for each in content["findings"]]
        return TakenIn(content["datasets"], Counter(content["added"]), findings)
    return convert(content, Kept)


def _plain(value: object) -> Any:
    """What JSON can say, each kind of value under its name."""
    match value:
        case Phrase():
            return {"phrase": value.template, "params": _plain(value.params)}
        case RankdashError():
            # One of a class that only a reader knows is the nearest that all know.
            kind = next(each.__name__ for each in type(value).__mro__ if each.__name__ in _ERRORS)
            return {"error": kind, "fields": _plain(vars(value))}
        case Word():
            return {"word": asdict(value)}
        case pd.DataFrame():
            return {"table": value.to_dict("split", index=False)}
        case Mapping():
            return {"fields": {str(name): _plain(each) for name, each in value.items()}}
        case list() | tuple():
            return [_plain(each) for each in value]
        case np.generic():
            return value.item()
        case str() | int() | float() | None:
            return value
    return str(value)


def _made(value: Any) -> Any:
    """What `_plain` was given; a tuple comes back as a list."""
    match value:
        case {"phrase": template, "params": params}:
            return Phrase(template, **_made(params))
        case {"error": kind, "fields": fields}:
            error = _ERRORS[kind].__new__(_ERRORS[kind])
            vars(error).update(_made(fields))
            return error
        case {"word": fields}:
            return Word(**fields)
        case {"table": table}:
            return pd.DataFrame(table["data"], columns=table["columns"], dtype="str")
        case {"fields": fields}:
            return {name: _made(each) for name, each in fields.items()}
        case list():
            return [_made(each) for each in value]
    return value


def _fields(plain: Any) -> dict[str, Any]:
    """The fields of a dataclass whose lists are tuples."""
    return {
        name: tuple(each) if isinstance(each, list) else each for name, each in _made(plain).items()
    }


# What the server asks of it: files to be read, guessed, tried or imported.

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
        return cast(list[Guess], _asked("guess", starts, _GUESS_SECONDS, most_bytes=most_bytes))
    except RankdashError:
        return []


def tried(sources: Sequence[Source]) -> None:
    """Read files in the process to see that they do no harm, before they are read here.

    Raises what `readers.read` raises for files of no known form or beyond a limit, and LimitError
    where they take more than a part of the memory that is allowed, or the process died.
    """
    limits = ReadLimits()
    limits = replace(limits, memory_bytes=limits.memory_bytes // _TRIED_SHARE)
    _asked("try", sources, float("inf"), limits=limits)


def imported(
    workspace: Workspace, source: Source, progress: Callable[[int, int], object]
) -> TakenIn:
    """Have the process bring a workspace file in, as `bring_in` does; it raises what that
    raises, and LimitError where the process died: nothing was added then."""

    def say(folder: Path) -> None:
        with suppress(OSError):
            progress(*json.loads((folder / PROGRESS).read_text("utf-8")))

    root = str(workspace.root)
    return cast(TakenIn, _asked("import", [source], float("inf"), say, workspace=root))


def _asked(
    task: str,
    sources: Sequence[Source],
    seconds: float,
    say: Callable[[Path], None] = lambda _folder: None,
    limits: ReadLimits | None = None,
    **more: Any,
) -> Outcome:
    """What the process answers, raised if it is an error; LimitError where it died or took longer.
    say: called now and then with the folder of the request."""
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
        else:
            process.stop()
            outcome = _death(process, [each.name for each in sources], limits)
        if process.running and not is_large(sources):
            give_back(process)
        else:
            process.kill()
            # What was asked is mostly read next, and a new one takes a while to begin.
            warm()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if isinstance(outcome, RankdashError):
        raise outcome
    return outcome


def _request(task: str, sources: Sequence[Source], limits: ReadLimits, **more: Any) -> Path:
    """A new folder with the files and what to do with them. Raises DataError where there is no room
    for them."""
    files = [
        {"name": each.name, "origin": each.origin, "notes": list(map(asdict, each.notes))}
        for each in sources
    ]
    numbers = {name: limit for name, limit in vars(limits).items() if isinstance(limit, int)}
    request = {"task": task, "limits": numbers, "files": files, **more}
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(dir=uploads_folder()))
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
