"""`workspace`: data sets with all that belongs to them, to and from one file."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from rankdash import __version__, sharing
from rankdash.cli.target import target_of
from rankdash.cli.writing import printable, warn
from rankdash.errors import DataError
from rankdash.store import Workspace

_ADDED = {
    "datasets": "data sets",
    "runs": "runs",
    "notes": "notes",
    "corrections": "corrected labels",
    "explanations": "explanations",
    "settings": "kinds of settings",
}


def export_file(out: str, names: Sequence[str]) -> None:
    """Write the file; nothing is left where that fails.

    names: names or ids of data sets; none for all. Raises DataError where there is no such data
    set, or none at all.
    """
    target, workspace = target_of(out), Workspace.open()
    chosen = _chosen(workspace, names)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        with part.open("wb") as stream:
            sharing.export(workspace, stream, __version__, chosen, _progress)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    size = target.stat().st_size / 1e6
    sys.stderr.write(
        f"Data sets exported: {len(chosen)}, {size:,.1f} MB. Written: {printable(out)}\n"
    )


def import_file(file: str) -> None:
    """Take a file in; what differs from what is there is said on standard error."""
    found = sharing.bring_in(Workspace.open(), Path(file), Path(file).name, _progress)
    warn(found.findings)
    added = [f"{_ADDED[kind]} {n:,}" for kind, n in found.added.items() if n and kind in _ADDED]
    sys.stderr.write(f"Added: {', '.join(added) or 'nothing, it was all there'}\n")


def _chosen(workspace: Workspace, names: Sequence[str]) -> list[str]:
    rows = workspace.datasets()
    if not rows:
        raise DataError(
            "There is no data set in the workspace {folder}.",
            remedy="Set RANKDASH_HOME to the folder of another one.",
            folder=str(workspace.root),
        )
    if not names:
        return [row.id for row in rows]
    found: dict[str, str] = {}
    for name in names:
        fitting = [row.id for row in rows if name in (row.id, row.name)]
        if not fitting:
            raise DataError(
                "There is no data set {name!r} in the workspace.",
                remedy="Possible: {names}.",
                name=name,
                names=", ".join(row.name for row in rows),
            )
        found |= dict.fromkeys(fitting, name)
    return list(found)


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done} of {total}" + ("\n" if done == total else ""))
