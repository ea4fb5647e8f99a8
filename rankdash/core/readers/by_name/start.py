"""`sources_by_name`: download data sets by name in a separate process (`fetching`).

The process writes its result to a folder: `DONE` lists the files as sources with notes, `FAILED`
contains the parts of a DataError.
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
# In corpora with more documents than this, only labelled or ranked ones are read.
MOST_DOCUMENTS = 100_000


@dataclass(frozen=True)
class Fetched:
    """A downloaded file. name: the name of its source. origin: the data set that contains it."""

    path: Path
    name: str
    origin: str
    notes: tuple[Finding, ...] = ()


def partly_read(name: str, read: int, rows: int, file: str) -> Finding:
    """Return the finding that only some documents of a corpus were read."""
    return Finding(
        "warning",
        "partly_read",
        "{name} has {rows:,} texts. Only the {read:,} that have a label or a rank were read.",
        {"name": name, "rows": rows, "read": read},
        "To use other candidates, add a ranking that contains them.",
        file,
        count=rows - read,
    )


# Data sets by name, accepted instead of a path: `ir_datasets:beir/scifact/test`, `hf:org/name`.
#
#     ir_datasets:NAME                  a data set of the package ir_datasets, which is an extra
#     hf:ORG/NAME[/FOLDER][@REVISION]   a data set of the hub, or a folder or file of it
#
# Downloaded files are read like any other files. The download runs in a separate process
# (`fetching`), so that it cannot block a server, prompt in a terminal or fill the memory; the
# process is stopped if it times out or is cancelled.

_NAMED = re.compile(rf"(?:{HUB}|{IR_DATASETS}):")
_REMEDY = (
    "Write ir_datasets:NAME, such as ir_datasets:beir/scifact/test, or hf:ORGANIZATION/NAME, such "
    "as hf:BeIR/scifact."
)
# Seconds. The libraries time out much sooner if a server does not respond; this limit is for very
# slow servers, and for corpora that take hours to read.
TIME_LIMIT = 1800.0
_LOOK_SECONDS = 0.2
_ENVIRONMENT = {
    # The hub: no second protocol with separate timeouts, no progress bars, no telemetry.
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
    """Return whether `place` is the name of a data set and not an existing file or folder."""
    return bool(_NAMED.match(place)) and not Path(place).exists()


def sources_at(places: Sequence[str | os.PathLike[str]]) -> list[Source]:
    """Return the files of paths and names, which together are one data set. Raises what
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
    """Download the files of the named data sets, which are read together as one.

    seconds: the time limit. waiting: called a few times per second; if it raises an error, the
    download is cancelled.

    Raises DataError if a name is invalid, a package is missing, a server cannot be reached or
    denies access, or a limit is exceeded; LimitError for a file that is too large.
    """
    for name in names:
        if not _NAMED.match(name):
            raise DataError("{name!r} is not a name of a data set.", remedy=_REMEDY, name=name)
    with tempfile.TemporaryDirectory(prefix="rankdash-") as directory:
        folder = Path(directory)
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
                or f"the download process ended with code {code}",
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
    """Download into the folder; return the exit code of the process."""
    ends = time.monotonic() + seconds
    with (folder / "said.txt").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rankdash.core.readers.by_name.fetching", str(folder), *names],
            # The pipe closes when this process ends for any reason, which ends the other process.
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
                        "The download of {names} timed out ({minutes:,.0f} min).",
                        remedy="Try again; downloaded parts may be reused. Or download the data "
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
