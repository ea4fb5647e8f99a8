"""The file that a command writes: its folder is there, and it is none of those that are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rankdash.errors import DataError


def target_of(out: str) -> Path:
    """The file to write. Raises DataError where its folder is missing."""
    target = Path(out)
    if not target.parent.is_dir():
        raise DataError(
            "There is no folder {folder}.",
            remedy="Make it first, or write elsewhere.",
            file=out,
            folder=str(target.parent),
        )
    return target


def spare_the_input(target: Path, data: Sequence[str]) -> None:
    """Raises DataError where `target` is one of the input files, or a file inside an input
    folder."""
    if not target.exists():
        return
    for path in map(Path, data):
        files = path.rglob("*") if path.is_dir() else [path]
        if any(file.exists() and file.samefile(target) for file in files):
            raise DataError(
                "This file belongs to the data set; writing the run would destroy it.",
                remedy="Give --out another name.",
                file=str(target),
            )
