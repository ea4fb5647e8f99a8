"""`workspace`: data sets with all that belongs to them, to and from one file; the repair; the
check of its files."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from rankdash import __version__
from rankdash.core.base.errors import DataError
from rankdash.core.readers import name_of
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.core.workspace.workspace_file.archive import DAMAGED_DATASET
from rankdash.kit.commands.arguments import DONE, INCOMPLETE, Parser
from rankdash.kit.commands.output import STANDARD, place_name, printable, target_of, warn, writing

_ADDED = {
    "datasets": "data sets",
    "runs": "runs",
    "notes": "notes",
    "corrections": "corrected labels",
    "explanations": "explanations",
    "judges": "judges with their grades",
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


def add(parser: Parser) -> None:
    parser.description = (
        "The workspace is the folder in RANKDASH_HOME (for a new one: an empty or new "
        "folder), or the one in your user data directory."
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)
    export = actions.add_parser(
        "export",
        help="write data sets, runs, notes, corrections, scenarios, prices and targets",
        description="Write data sets with their runs, notes, corrected labels, judges and "
        "explanations, "
        "and the scenarios, prices and targets, into one file. Without keys, cached scores, "
        "unfinished runs, and paths on this machine.",
    )
    export.add_argument(
        "file",
        metavar="FILE",
        help="the file to write; replaced if it exists; - is standard output",
    )
    export.add_argument(
        "--data",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="a data set, by its name or id (default: all)",
    )
    export.set_defaults(command=_export)
    bring = actions.add_parser(
        "import",
        help="add what such a file holds and the workspace does not",
        description="Add what the file holds and the workspace does not. What is there already "
        "stays as it is, and differences are listed. A broken file adds nothing.",
    )
    bring.add_argument("file", metavar="FILE", help="the file to take in; - is standard input")
    bring.set_defaults(command=_import)
    mend = actions.add_parser(
        "repair",
        help="make the database anew where it is missing, damaged or an older copy",
        description="Make the database anew from the folders, what can be read of it, and its "
        "newest copy in the folder backups. Nothing is deleted: the old database goes to the "
        "folder trash. Close other programs that use the workspace first. A sound workspace stays "
        "as it is.",
    )
    mend.set_defaults(command=_repair)
    check = actions.add_parser(
        "check",
        help="say which files of data sets and runs have changed since they were written",
        description="Read every table of the workspace and compare it with the hash that it "
        "carries; one of a version that wrote none gets its hash. What is damaged is named, and "
        "ends the command with 1.",
    )
    check.set_defaults(command=_check)


def _export(arguments: argparse.Namespace) -> int:
    """Write the file; nothing is left where that fails. What is damaged is named, and ends the
    command with 1."""
    target, workspace = target_of(arguments.file), Workspace.open()
    if workspace.trouble is not None:
        sys.stderr.write(f"warning: {printable(str(workspace.trouble))}\n")
    chosen = _chosen(workspace, arguments.data)
    with writing(target) as stream:
        excluded = archive.export(workspace, stream, __version__, chosen, _progress)
        size = stream.tell()
    warn(excluded)
    whole = [each for each in excluded if each.code == DAMAGED_DATASET]
    sys.stderr.write(
        f"Data sets exported: {len(chosen) - len(whole)}, {size / 1e6:,.1f} MB. "
        f"Written: {place_name(target)}\n"
    )
    return INCOMPLETE if excluded else DONE


def _import(arguments: argparse.Namespace) -> int:
    """Take a file in; what differs from what is there is said on standard error."""
    file = Path(arguments.file)
    with tempfile.TemporaryFile() as stream:
        source: Path | BinaryIO = file
        if arguments.file == STANDARD:
            # A zip is read from its end.
            shutil.copyfileobj(sys.stdin.buffer, stream)
            source = stream
        found = import_workspace.bring_in(Workspace.open(), source, name_of(file), _progress)
    warn(found.findings)
    added = [f"{_ADDED[kind]} {n:,}" for kind, n in found.added.items() if n and kind in _ADDED]
    sys.stderr.write(f"Added: {', '.join(added) or 'nothing, it was all there'}\n")
    return DONE


def _repair(_arguments: argparse.Namespace) -> int:
    """Make the database of the workspace anew, and say on standard error what came back."""
    workspace = Workspace.open()
    done = workspace.repair()
    if done is None:
        sys.stderr.write(f"There is nothing to repair in {printable(str(workspace.root))}\n")
        return DONE
    rows = ", ".join(f"{words} {done.rows[name]:,}" for name, words in _LISTED.items())
    lines = [f"Repaired: {workspace.root}", f"There are now: {rows}"]
    if done.from_folders:
        lines.append(f"Data sets and runs that only their folders knew: {done.from_folders:,}")
    if done.copy_of:
        lines.append(f"Also used: the copy of the database of {done.copy_of}")
    if done.changed:
        lines.append(
            f"Set apart, because they changed since they were written: {done.changed:,} rows"
        )
    lines += [f"Cannot be listed, stays where it is: {folder}" for folder in done.unlisted]
    lines += [f"Has no folder any more: {name}" for name in done.gone]
    if done.trash is not None:
        lines.append(f"The old database is in {done.trash} for 30 days")
    sys.stderr.writelines(f"{printable(line)}\n" for line in lines)
    return DONE


def _check(_arguments: argparse.Namespace) -> int:
    """Name what is damaged on standard output."""
    workspace = Workspace.open()
    stored = [
        *(("datasets", row.id, row.name) for row in workspace.datasets()),
        *(("runs", row.id, row.name) for row in workspace.runs()),
    ]
    found = [
        f"{name}: {error}"
        for kind, key, name in stored
        if (error := workspace.damage(kind, key)) is not None
    ]
    sys.stdout.writelines(f"{printable(line)}\n" for line in found)
    sys.stderr.write(f"Data sets and runs checked: {len(stored):,}. Damaged: {len(found):,}.\n")
    return INCOMPLETE if found else DONE


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
