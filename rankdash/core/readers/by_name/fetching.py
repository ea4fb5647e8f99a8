"""Fetching a data set by its name into a folder: what runs in the process that `by_name` starts.

The folder ends up with `DONE`, which lists the files as sources with notes on them, or `FAILED`, a
DataError in parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rankdash.core.base.findings import Finding

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
