"""Reading and storing of files in a separate process, so that the server stays responsive and
survives crashes.

The process receives a folder with the files and options, and writes its progress and outcome into
it. One process is started in advance with all imports done, so that small files are read quickly.
It ends with the server, or after a long idle time.
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
    NumbersNeeded,
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
# Below IDLE_SECONDS, so that no request is sent to a process that is about to end.
_STALE_SECONDS = 500.0
_LOOK_SECONDS = 0.01
# Arrow's default allocator reserves a gigabyte in advance, which would count against the limit.
_MEMORY = {"ARROW_DEFAULT_MEMORY_POOL": "system"}


class Process:
    """A process that handles requests in folders, one at a time."""

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
        """True if the process is running and can receive a request."""
        return self.running and time.monotonic() - self._idle_since < _STALE_SECONDS

    def send(self, folder: Path) -> None:
        """Send the request in a folder; the process writes its progress and outcome there."""
        self._idle_since = time.monotonic()
        # A dead process is detected later, by its exit.
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(str(folder)).encode() + b"\n")
                self._process.stdin.flush()

    def answered(self, folder: Path, seconds: float) -> bool:
        """Wait at most `seconds`, or until the process ends; return True if there is an answer."""
        until = time.monotonic() + seconds
        while self.running and time.monotonic() < until and not (folder / ANSWER).exists():
            time.sleep(_LOOK_SECONDS)
        return (folder / ANSWER).exists()

    def wait(self) -> int:
        """Wait until the process ends; return its exit code."""
        return self._process.wait()

    def stop(self) -> None:
        self._process.kill()
        self.wait()

    def kill(self) -> None:
        """Stop the process and close its log."""
        self.stop()
        self.leave()

    def leave(self) -> None:
        """Let the process end after it has stored its current files."""
        self._log.close()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def last_words(self) -> str:
        """Return the last line of the log, for a process that died."""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


_lock = threading.Lock()
_waiting: list[Process] = []


def warm() -> None:
    """Start a waiting process if there is none."""
    with _lock:
        if not any(each.fresh for each in _waiting):
            _drop()
            _waiting.append(Process())


def take() -> Process:
    """Return the waiting process, or a new one."""
    with _lock:
        if any(each.fresh for each in _waiting):
            return _waiting.pop()
        _drop()
    return Process()


def give_back(process: Process) -> None:
    """Make the process the waiting one if there is none; else kill it."""
    with _lock:
        if _waiting or not process.running:
            process.kill()
        else:
            _waiting.append(process)


def _drop() -> None:
    while _waiting:
        _waiting.pop().kill()


atexit.register(_drop)


# A folder per server for uploaded files until they are read. It is removed when the server ends, or
# at the next start if the server was killed.

_PREFIX = "rankdash-"
# The name of a file that marks these folders.
_MARK = "rankdash-uploads"

_folders: list[Path] = []


def uploads_folder() -> Path:
    """Return the folder of this process. Raises OSError if it cannot be created."""
    with _lock:
        # The system may have removed the temporary folder.
        if not _folders or not _folders[-1].is_dir():
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            files.hold(folder, _MARK)
            _folders.append(folder)
        return _folders[-1]


def sweep_uploads() -> None:
    """Remove the folders of killed processes, if the system can detect them."""
    files.sweep(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"), _MARK)


# Storing of a data set in a workspace, at most once.


@dataclass(frozen=True)
class StoreOutcome:
    """The outcome of reading and storing the files of a data set.

    dataset_id: the stored data set.
    was_here: True if an equal one was already stored; its name and check report are unchanged.
    added: the names of the newly stored systems.
    """

    dataset_id: str
    was_here: bool = False
    added: tuple[str, ...] = ()


def store_loaded(workspace: Workspace, loaded: Loaded) -> StoreOutcome:
    """Store a data set under an unused name, with its systems. If a data set with equal content is
    already stored, only missing systems are added.

    Raises StoreError if the workspace cannot be written.
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
    return StoreOutcome(dataset.id, was_here, tuple(run.name for run in added))


# Conversion of the outcome to JSON and back, including the classes of errors and questions.
#
# Not pickled, so that a process compromised by a file cannot run code in the server.

Outcome = StoreOutcome | TakenIn | list[Guess] | RankdashError
"""The outcome of a request: a data set, the content of a workspace file, guesses or an error."""

_ERRORS: dict[str, type[RankdashError]] = {
    kind.__name__: kind
    for kind in (*vars(errors).values(), MappingNeeded, NumbersNeeded, WordsNeeded, BaselineNeeded)
    if isinstance(kind, type) and issubclass(kind, RankdashError)
}


def answer_of(outcome: Outcome) -> str:
    """Return the outcome as JSON."""
    if isinstance(outcome, list):
        return json.dumps([_plain(vars(guess)) for guess in outcome])
    if isinstance(outcome, TakenIn):
        findings = [_plain(vars(finding)) for finding in outcome.findings]
        return json.dumps({**vars(outcome), "findings": findings})
    return json.dumps(asdict(outcome) if isinstance(outcome, StoreOutcome) else _plain(outcome))


def outcome_of(answer: str) -> Outcome:
    """Return the outcome from the JSON of `answer_of`."""
    content = json.loads(answer)
    if isinstance(content, list):
        return [Guess(**_fields(each)) for each in content]
    if "error" in content:
        return cast(RankdashError, _made(content))
    if "findings" in content:
        findings = [Finding(**_fields(each)) for each in content["findings"]]
        return TakenIn(content["datasets"], Counter(content["added"]), findings)
    return convert(content, StoreOutcome)


def _plain(value: object) -> Any:
    """Convert a value to JSON types; an object with a key for its type represents other types."""
    match value:
        case Phrase():
            return {"phrase": value.template, "params": _plain(value.params)}
        case RankdashError():
            # Private classes of errors are replaced by their nearest public base class.
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
    """Convert the output of `_plain` back; tuples become lists."""
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
    """Return the fields of a dataclass, with tuples for lists."""
    return {
        name: tuple(each) if isinstance(each, list) else each for name, each in _made(plain).items()
    }


# Requests of the server: read files, guess columns, try or import a file.

Step = Literal["reading", "joining", "checking", "storing"]

LARGE_BYTES = 20_000_000
"""The size of files in bytes from which reading is slow; compressed files count ten times."""

_DECIDED = "decided"
# The time limit for guesses of columns, far above the usual time for the small input.
_GUESS_SECONDS = 60.0
_REPORT_SECONDS = 0.5
# A tried file is then read and joined by the server, which needs about three times the memory.
_TRIED_SHARE = 16
_PACKED = (b"PK\x03\x04", b"\x1f\x8b")
_UNPACKED = 10


@dataclass(frozen=True)
class Progress:
    """The progress of reading files.

    step: "reading" until all rows are read, then "joining" them to queries, documents and labels,
        then "checking", which makes a first stage if there is none, then "storing", which cannot be
        cancelled.
    rows: the number of rows read from all files.
    seconds_left: an upper bound of the remaining time of "reading"; None if unknown.
    """

    step: Step = "reading"
    rows: int = 0
    seconds_left: float | None = None


def is_large(sources: Sequence[Source]) -> bool:
    """Return whether reading is slow enough for the page to show its progress."""
    sizes = [
        source.size * (_UNPACKED if source.head.startswith(_PACKED) else 1) for source in sources
    ]
    return sum(sizes) >= LARGE_BYTES


class Reading:
    """The reading, checking and storing of files in a process; arguments as for `load`.

    cancelled: True if it was cancelled, so that nothing was stored.
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
        """The seconds since the start."""
        return time.monotonic() - self._started

    @property
    def progress(self) -> Progress:
        try:
            return Progress(**json.loads((self._folder / PROGRESS).read_text("utf-8")))
        except OSError:
            # The process has not reported any progress yet.
            return Progress()

    def wait(self, seconds: float = float("inf")) -> None:
        """Wait until the reading is done, or for at most `seconds`."""
        self._process.answered(self._folder, seconds)

    def cancel(self) -> None:
        """Cancel the reading so that nothing is stored; no effect if storing has started."""
        if self.running and claim(self._folder):
            self.cancelled = True
            self._process.kill()
            self._end()

    def result(self) -> StoreOutcome:
        """Wait for the outcome and return it.

        Raises what `load` and `store_loaded` raise, and LimitError if the process died.
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
        return cast(StoreOutcome, outcome)


def claim(folder: Path) -> bool:
    """Claim the decision about a request: the process claims it to store the files, the server to
    cancel. Return False if the other one was first."""
    try:
        os.close(os.open(folder / _DECIDED, os.O_CREAT | os.O_EXCL))
    except OSError:
        return False
    return True


def guessed(sources: Sequence[Source], most_bytes: int) -> list[Guess]:
    """Call `readers.guesses` in the process; return [] if it times out or fails."""
    starts = [beginning(source, most_bytes) for source in sources]
    try:
        return cast(list[Guess], _response("guess", starts, _GUESS_SECONDS, most_bytes=most_bytes))
    except RankdashError:
        return []


def tried(sources: Sequence[Source]) -> None:
    """Parse files in the process before the server reads them itself, to detect harmful files.

    Raises what `readers.read` raises for files in an unknown format or beyond a limit, and
    LimitError if they need more than 1/16 of the memory limit, or if the process died.
    """
    limits = ReadLimits()
    limits = replace(limits, memory_bytes=limits.memory_bytes // _TRIED_SHARE)
    _response("try", sources, float("inf"), limits=limits)


def imported(
    workspace: Workspace, source: Source, progress: Callable[[int, int], object]
) -> TakenIn:
    """Import a workspace file in the process with `bring_in`. Raises what that raises, and
    LimitError if the process died, in which case nothing was added."""

    def report(folder: Path) -> None:
        with suppress(OSError):
            progress(*json.loads((folder / PROGRESS).read_text("utf-8")))

    root = str(workspace.root)
    return cast(TakenIn, _response("import", [source], float("inf"), report, workspace=root))


def _response(
    task: str,
    sources: Sequence[Source],
    seconds: float,
    report: Callable[[Path], None] = lambda _folder: None,
    limits: ReadLimits | None = None,
    **more: Any,
) -> Outcome:
    """Return the outcome of a request, or raise it if it is an error; LimitError if the process
    died or exceeded `seconds`. report: called regularly with the folder of the request."""
    limits = limits or ReadLimits()
    folder = _request(task, sources, limits, **more)
    process = take()
    process.send(folder)
    until = time.monotonic() + seconds
    try:
        while not process.answered(folder, min(_REPORT_SECONDS, seconds)):
            report(folder)
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
            # The files are usually read next, and a new process starts slowly.
            warm()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if isinstance(outcome, RankdashError):
        raise outcome
    return outcome


def _request(task: str, sources: Sequence[Source], limits: ReadLimits, **more: Any) -> Path:
    """Create a folder with the files and the request. Raises DataError if they cannot be
    written."""
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
            "The files could not be copied for reading: {problem}.",
            remedy="Free {size:,.0f} MB on the disk of temporary files, or set TMPDIR to a folder "
            "with more space.",
            file=", ".join(source.name for source in sources),
            problem=problem.strerror or type(problem).__name__,
            size=sum(source.size for source in sources) / MEGABYTE + 1,
        ) from problem
    return folder


def _place(source: Source, target: Path) -> None:
    """Write the content to `target`; link it if it is a file on the same disk."""
    if isinstance(source.content, bytes):
        target.write_bytes(source.content)
        return
    try:
        os.link(source.content, target)
    except OSError:
        shutil.copyfile(source.content, target)


def _end(process: Process, folder: Path) -> None:
    """End the process, unless it is storing files, and remove the folder."""
    if claim(folder) or (folder / ANSWER).exists():
        process.kill()
    else:
        process.leave()
    shutil.rmtree(folder, ignore_errors=True)


def _death(process: Process, names: Sequence[str], limits: ReadLimits) -> LimitError:
    return LimitError(
        "The process that read the files ended ({code}), possibly because it was out of memory: "
        "{reason}. Memory limit: {limit:,.0f} MB.",
        remedy="Free memory, load a sample of the queries with all their rows, or allow more with "
        "{variable}.",
        file=", ".join(names),
        code=process.wait(),
        reason=process.last_words().rstrip(".") or "-",
        limit=limits.memory_bytes / MEGABYTE,
        variable=variable("memory_bytes"),
    )
