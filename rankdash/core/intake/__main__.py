"""`python -m rankdash.core.intake`: process requests in folders, whose paths are read from stdin.

Only `Process` starts it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rankdash.core.base.errors import Finding, RankdashError
from rankdash.core.intake.reading import (
    ANSWER,
    IDLE_SECONDS,
    PROGRESS,
    REQUEST,
    Outcome,
    Progress,
    Step,
    StoreOutcome,
    answer_of,
    claim,
    is_large,
    store_loaded,
)
from rankdash.core.readers import Guess, ReadLimits, Source, guesses, read
from rankdash.core.readers.detect import tables_of
from rankdash.core.readers.loading import Retrieval, checked, load, usable
from rankdash.core.readers.parse.limits import reading
from rankdash.core.readers.parse.unpack import unpack
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import import_workspace
from rankdash.core.workspace.workspace_file.import_workspace import TakenIn

_NICENESS = 10
# The interval at which a page reads the progress.
_REPORT_SECONDS = 0.5


def main(folder: Path) -> bool:
    """Process the request in a folder and write the outcome into it. Return whether another request
    can follow: not after large files, because memory remains allocated."""
    request = json.loads((folder / REQUEST).read_text("utf-8"))
    task, limits = request.pop("task"), ReadLimits(**request.pop("limits"))
    sources = [
        Source(file["name"], (folder / str(place)).read_bytes(), file["origin"], _notes(file))
        for place, file in enumerate(request.pop("files"))
    ]
    if is_large(sources) and hasattr(os, "nice"):
        os.nice(_NICENESS)
    outcome: Outcome | None
    try:
        outcome = _TASKS[task](folder, sources, limits, **request)
    except RankdashError as error:
        outcome = error
    if outcome is not None:
        # The server may have removed the folder; stored data remains.
        with contextlib.suppress(OSError):
            _write(folder / ANSWER, answer_of(outcome))
    return not is_large(sources)


def _read(
    folder: Path,
    sources: Sequence[Source],
    limits: ReadLimits,
    workspace: str,
    name: str | None,
    retrieval: Retrieval | None,
    choices: dict[str, Any],
) -> StoreOutcome | None:
    """Read, check and store a data set; return None if the reading was cancelled."""
    steps = _ProgressFile(folder, sources)
    limits = replace(limits, watch=steps.rows, joining=lambda: steps.step("joining"))
    parsed = read(sources, limits=limits, **choices)
    steps.step("checking")
    loaded = usable(checked(parsed, name=name, retrieval=retrieval))
    opened = Workspace.open(Path(workspace))
    # After this, the reading can no longer be cancelled.
    if not claim(folder):
        return None
    steps.step("storing")
    return store_loaded(opened, loaded)


def _guess(
    _folder: Path, sources: Sequence[Source], limits: ReadLimits, most_bytes: int
) -> list[Guess]:
    return guesses(sources, most_bytes, limits)


def _try(_folder: Path, sources: Sequence[Source], limits: ReadLimits) -> list[Guess]:
    with _less_memory(limits.memory_bytes):
        files, broken = unpack(sources, limits)
        for source in files:
            tables_of(source, limits)
    if broken:
        raise broken[0]
    return []


def _import(
    folder: Path, sources: Sequence[Source], _limits: ReadLimits, workspace: str
) -> TakenIn:
    def progress(*of: int) -> None:
        with contextlib.suppress(OSError):
            _write(folder / PROGRESS, json.dumps(of))

    [source] = sources
    with reading(source.name), source.open() as file:
        return import_workspace.bring_in(
            Workspace.open(Path(workspace)), file, source.name, progress
        )


_TASKS: dict[str, Callable[..., Outcome | None]] = {
    "read": _read,
    "import": _import,
    "guess": _guess,
    "try": _try,
}


def _limit_memory(most: int) -> None:
    """Limit the memory of this process, on Linux, to `most` bytes in addition to its current use,
    at most three quarters of the machine's memory; more raises MemoryError. If memory runs out
    anyway, the system stops this process before the server."""
    try:
        import resource
    except ImportError:
        return
    page = os.sysconf("SC_PAGE_SIZE")
    most = min(most, page * os.sysconf("SC_PHYS_PAGES") * 3 // 4)
    # Only Linux has these files and enforces the limit.
    with contextlib.suppress(OSError):
        used = page * int(Path("/proc/self/statm").read_text().split()[5])
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (used + most, hard))
        Path("/proc/self/oom_score_adj").write_text("1000")


@contextlib.contextmanager
def _less_memory(most: int) -> Iterator[None]:
    """Limit the memory within the block, and restore the previous limit after it."""
    try:
        import resource
    except ImportError:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    _limit_memory(most)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _notes(file: dict[str, Any]) -> tuple[Finding, ...]:
    return tuple(Finding(**{**note, "examples": tuple(note["examples"])}) for note in file["notes"])


class _ProgressFile:
    """A file with the progress of a reading, for the page."""

    def __init__(self, folder: Path, sources: Sequence[Source]) -> None:
        self._file = folder / PROGRESS
        # An upper bound of rows: a row has at least one line.
        self._lines = sum(source.data.count(b"\n") for source in sources)
        self._rows: dict[str, int] = {}
        self._started = self._written = time.monotonic()

    def rows(self, file: str, rows: int) -> None:
        """Update the number of rows read from a file."""
        self._rows[file] = rows
        now = time.monotonic()
        if now - self._written >= _REPORT_SECONDS:
            self._written = now
            every = sum(self._rows.values())
            seconds = (now - self._started) / every * max(self._lines - every, 0) if every else 0.0
            self._write("reading", seconds or None)

    def step(self, step: Step) -> None:
        self._write(step, None)

    def _write(self, step: Step, seconds_left: float | None) -> None:
        progress = Progress(step, sum(self._rows.values()), seconds_left)
        # As in `main`, the folder may have been removed.
        with contextlib.suppress(OSError):
            _write(self._file, json.dumps(asdict(progress)))


def _write(file: Path, text: str) -> None:
    """Write the file atomically, because the page may read it at any time."""
    new = file.with_suffix(".new")
    new.write_text(text, "utf-8")
    new.replace(file)


def _listen(folders: queue.Queue[Path], active: list[Path]) -> None:
    """Queue the folders from stdin; exit when the server has ended, unless files are stored."""
    for line in sys.stdin:
        folders.put(Path(json.loads(line)))
    if not active or claim(active[0]):
        os._exit(1)


def _serve() -> None:
    folders: queue.Queue[Path] = queue.Queue()
    active: list[Path] = []
    threading.Thread(target=_listen, args=(folders, active), daemon=True).start()
    if folders.empty():
        # Many modules are imported on first use, so read a small file in advance.
        load([Source("rows.csv", b"query,document,label\na,b,1\na,c,0\n")])
    reusable = True
    while reusable:
        try:
            folder = folders.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            return
        active.append(folder)
        reusable = main(folder)
        active.clear()


if __name__ == "__main__":
    _limit_memory(ReadLimits().memory_bytes)
    _serve()
