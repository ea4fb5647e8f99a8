"""Fetching a data set by its name into a folder: what runs in the process that `by_name` starts.

The folder ends up with `DONE`, which lists the files as sources with notes on them, or `FAILED`, a
DataError in parts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankdash.core.base.errors import DataError, Finding
from rankdash.core.base.shipped import python_path
from rankdash.core.readers.parse.source import Source, sources_from_path

DONE, FAILED = "done.json", "failed.json"
IR_DATASETS, HUB = "ir_datasets", "hf"
# Corpora with more documents than this are read in part: what is labelled or ranked.
MOST_DOCUMENTS = 100_000


@dataclass(frozen=True)
class Fetched:
    """One file: where it lies, what it is called among the sources, the data set it came with."""

    path: Path
    name: str
    origin: str
    notes: tuple[Finding, ...] = ()


def partly_read(name: str, read: int, rows: int, file: str) -> Finding:
    """The note that only some documents of a corpus were taken."""
    return Finding(
        "warning",
        "partly_read",
        "{name} has {rows:,} texts. Only the {read:,} that have a label or a rank were read.",
        {"name": name, "rows": rows, "read": read},
        "To have other candidates, add a ranking that holds them.",
        file,
        count=rows - read,
    )


# Data sets by name: `ir_datasets:beir/scifact/test` and `hf:org/name`, wherever a path is taken.
#
#     ir_datasets:NAME                  a data set of the package ir_datasets, which is an extra
#     hf:ORG/NAME[/FOLDER][@REVISION]   a data set of the hub, or a folder or file of it
#
# What is fetched comes as files, and is read as any other files are. Fetching happens in a process
# of its own (`fetching`): it cannot hold up a server, ask at a terminal, or keep a corpus in
# memory, and it is ended where it takes too long or nobody waits for it any more.

_NAMED = re.compile(rf"(?:{HUB}|{IR_DATASETS}):")
_REMEDY = (
    "Write ir_datasets:NAME, such as ir_datasets:beir/scifact/test, or hf:ORGANIZATION/NAME, such "
    "as hf:BeIR/scifact."
)
# Seconds. A server that says nothing is given up by the libraries much sooner; this is for one that
# says a little all the time, and for a corpus that takes hours to read.
TIME_LIMIT = 1800.0
_LOOK_SECONDS = 0.2
_ENVIRONMENT = {
    # The hub: no second protocol with time limits of its own, nothing drawn, nothing reported.
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DOWNLOAD_TIMEOUT": "15",
    "HF_HUB_ETAG_TIMEOUT": "10",
    "IR_DATASETS_DL_DISABLE_PBAR": "true",
    "IR_DATASETS_DL_TIMEOUT": "15",
    "IR_DATASETS_DL_TRIES": "2",
    "IR_DATASETS_DL_403_TRIES": "2",
}


def is_name(place: str) -> bool:
    """Whether it names a data set of a collection, and no file or folder."""
    return bool(_NAMED.match(place)) and not Path(place).exists()


def sources_at(places: Sequence[str | os.PathLike[str]]) -> list[Source]:
    """The files of paths and names, which together are one data set. Raises what
    `sources_from_path` and `sources_by_name` raise."""
    texts = [os.fspath(place) for place in places]
    names = [text for text in texts if is_name(text)]
    paths = [Path(text) for text in texts if text not in names]
    local = [source for path in paths for source in sources_from_path(path)]
    return local + (sources_by_name(names) if names else [])


def sources_by_name(
    names: Sequence[str],
    *,
    seconds: float = TIME_LIMIT,
    waiting: Callable[[], None] = lambda: None,
) -> list[Source]:
    """Fetch the files of the data sets of these names, which together are one.

    seconds: how long it may take in all. waiting: called a few times a second; what it raises ends
    the fetching.

    Raises DataError where a name is none, a package is missing, a server cannot be reached or says
    no, or there is more than is read; LimitError for a file that is too large.
    """
    for name in names:
        if not _NAMED.match(name):
            raise DataError("{name!r} is not a name of a data set.", remedy=_REMEDY, name=name)
    with tempfile.TemporaryDirectory(prefix="rankdash-") as made:
        folder = Path(made)
        code = _run(folder, names, seconds, waiting)
        if (folder / FAILED).is_file():
            raise DataError(**_read(folder / FAILED))
        if code or not (folder / DONE).is_file():
            output = (folder / "said.txt").read_text("utf-8", "replace").strip()
            raise DataError(
                "{names} could not be opened: {reason}",
                remedy="Try again; if it happens again, load the files of the data set instead.",
                names=", ".join(names),
                reason=output.rpartition("\n")[2].strip()[:300]
                or f"the process that fetches it ended with {code}",
            )
        return [
            replace(
                Source.from_path(folder / entry["file"]),
                name=entry["name"],
                origin=entry["origin"],
                notes=tuple(
                    Finding(**{**note, "examples": tuple(note["examples"])})
                    for note in entry["notes"]
                ),
            )
            for entry in _read(folder / DONE)["sources"]
        ]


def _run(folder: Path, names: Sequence[str], seconds: float, waiting: Callable[[], None]) -> int:
    """Fetch into the folder; the exit code of the process."""
    ends = time.monotonic() + seconds
    with (folder / "said.txt").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rankdash.core.readers.by_name.fetching", str(folder), *names],
            # Closed when this process ends, in whatever way; the other then ends too.
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={**_ENVIRONMENT, **os.environ, "PYTHONPATH": python_path()},
        )
        try:
            while True:
                try:
                    return process.wait(_LOOK_SECONDS)
                except subprocess.TimeoutExpired:
                    waiting()
                if time.monotonic() > ends:
                    raise DataError(
                        "{names} did not arrive in time ({minutes:,.0f} min).",
                        remedy="Try again; downloaded parts may be kept. Or download the data "
                        "set elsewhere and load its files.",
                        names=", ".join(names),
                        minutes=max(seconds / 60, 1),
                    )
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return content
