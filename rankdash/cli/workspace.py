"""`workspace`: data sets with all that belongs to them, to and from one file; the repair."""

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

_LISTED = {
    "datasets": "data sets",
    "runs": "runs",
    "notes": "notes on queries",
    "run_notes": "notes on runs",
    "corrections": "label corrections",
    "settings": "settings",
}


def export_file(out: str, names: Sequence[str]) -> None:
    """Write the file; nothing is left where that fails.

    names: names or ids of data sets; none for all. Raises DataError where there is no such data
    set, or none at all.
    """
    target, workspace = target_of(out), Workspace.open()
    if workspace.trouble is not None:
        sys.stderr.write(f"warning: {printable(str(workspace.trouble))}\n")
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


def repair() -> None:
    """Make the database of the workspace anew, and say on standard error what came back."""
    workspace = Workspace.open()
    done = workspace.repair()
    if done is None:
        sys.stderr.write(f"There is nothing to repair in {printable(str(workspace.root))}\n")
        return
    rows = ", ".join(f"{words} {done.rows[name]:,}" for name, words in _LISTED.items())
    lines = [f"Repaired: {workspace.root}", f"There are now: {rows}"]
    if done.from_folders:
        lines.append(f"Data sets and runs that only their folders knew: {done.from_folders:,}")
    if done.copy_of:
        lines.append(f"Used as well: the copy of the database of {done.copy_of}")
    lines += [f"Cannot be listed, stays where it is: {folder}" for folder in done.unlisted]
    lines += [f"Has no folder any more: {name}" for name in done.gone]
    if done.trash is not None:
        lines.append(f"The old database is in {done.trash} for 30 days")
    sys.stderr.writelines(f"{printable(line)}\n" for line in lines)


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
