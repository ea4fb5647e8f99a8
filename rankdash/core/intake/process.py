"""The process that reads uploads: it may take so much memory, and the server outlives it.

One waits with everything imported from when files can be dropped, so that small files are quick.
It ends with the server, and where nothing comes for long.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base import errors, files, text
from rankdash.core.base.errors import Finding, Phrase, RankdashError
from rankdash.core.base.shipped import python_path
from rankdash.core.readers import BaselineNeeded, Guess, MappingNeeded, WordsNeeded
from rankdash.core.readers.loading import Loaded
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


# Where files that are given to a server lie until they are read: a folder of its own, which goes
# when the server ends, or with the next start where it was killed.

_PREFIX = "rankdash-"
# Nothing else writes a file of this name.
_MARK = "rankdash-uploads"

_own: list[Path] = []


def folder() -> Path:
    """The folder of this process. Raises OSError where it cannot be made."""
    with _lock:
        # Temporary folders are emptied now and then.
        if not _own or not _own[-1].is_dir():
            made = Path(tempfile.mkdtemp(prefix=_PREFIX))
            atexit.register(shutil.rmtree, made, ignore_errors=True)
            files.hold(made, _MARK)
            _own.append(made)
        return _own[-1]


def sweep() -> None:
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
        error: RankdashError = _made(content)
        return error
    if "findings" in content:
        findings = [Finding(**_fields(each)) for each in content["findings"]]
        return TakenIn(content["datasets"], Counter(content["added"]), findings)
    return Kept(content["dataset_id"], content["was_here"], tuple(content["added"]))


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
