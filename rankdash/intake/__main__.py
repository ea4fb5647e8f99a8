"""`python -m rankdash.intake FOLDER`: reads what `Reading` put there; started by it alone."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rankdash.errors import RankdashError
from rankdash.findings import Finding
from rankdash.intake.keeping import Kept, keep
from rankdash.intake.messages import answer_of
from rankdash.intake.reading import ANSWER, PROGRESS, REQUEST, Progress, Step, claim
from rankdash.loading import Retrieval, checked, usable
from rankdash.readers import ReadLimits, Source, read
from rankdash.store import Workspace

_NICENESS = 10
# As often as a page looks.
_REPORT_SECONDS = 0.5


def main(folder: Path) -> None:
    """Read and store the files of a folder; what became of them is written into it."""
    request = json.loads((folder / REQUEST).read_text("utf-8"))
    try:
        kept = _read(folder, **request)
    except RankdashError as error:
        _write(folder / ANSWER, answer_of(error))
        return
    if kept is not None:
        # Whoever asked may have gone with the folder; what is stored stays.
        with contextlib.suppress(OSError):
            _write(folder / ANSWER, answer_of(kept))


def _read(
    folder: Path,
    workspace: str,
    files: Sequence[dict[str, Any]],
    name: str | None,
    retrieval: Retrieval | None,
    choices: dict[str, Any],
) -> Kept | None:
    """None where the reading was cancelled."""
    sources = [
        Source(file["name"], (folder / str(place)).read_bytes(), file["origin"], _notes(file))
        for place, file in enumerate(files)
    ]
    said = _Said(folder, sources)
    limits = ReadLimits(watch=said.rows, joining=lambda: said.step("joining"))
    parsed = read(sources, limits=limits, **choices)
    said.step("checking")
    loaded = usable(checked(parsed, name=name, retrieval=retrieval))
    opened = Workspace.open(Path(workspace))
    # From here on there is something to leave behind.
    if not claim(folder):
        return None
    said.step("storing")
    return keep(opened, loaded)


def _notes(file: dict[str, Any]) -> tuple[Finding, ...]:
    return tuple(Finding(**{**note, "examples": tuple(note["examples"])}) for note in file["notes"])


class _Said:
    """How far it is, written for the page."""

    def __init__(self, folder: Path, sources: Sequence[Source]) -> None:
        self._file = folder / PROGRESS
        # A row may take several lines, and takes one at least.
        self._lines = sum(source.data.count(b"\n") for source in sources)
        self._rows: dict[str, int] = {}
        self._started = self._written = time.monotonic()

    def rows(self, file: str, rows: int) -> None:
        """So many rows of a file were read."""
        self._rows[file] = rows
        now = time.monotonic()
        if now - self._written >= _REPORT_SECONDS:
            self._written = now
            every = sum(self._rows.values())
            left = (now - self._started) / every * max(self._lines - every, 0) if every else 0.0
            self._write("reading", left or None)

    def step(self, step: Step) -> None:
        self._write(step, None)

    def _write(self, step: Step, seconds_left: float | None) -> None:
        progress = Progress(step, sum(self._rows.values()), seconds_left)
        # As in `main`: nobody may be there to look.
        with contextlib.suppress(OSError):
            _write(self._file, json.dumps(asdict(progress)))


def _write(file: Path, text: str) -> None:
    """Whole or not at all: the page reads it at any time."""
    new = file.with_suffix(".new")
    new.write_text(text, "utf-8")
    new.replace(file)


def _end_with_parent(folder: Path) -> None:
    """End when the server has gone, unless it is being stored already."""
    while os.read(0, 4096):
        pass
    if claim(folder):
        os._exit(1)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    place = Path(sys.argv[1])
    threading.Thread(target=_end_with_parent, args=(place,), daemon=True).start()
    main(place)
