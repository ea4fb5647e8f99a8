"""`workspace export`, `import` and `repair`, and their arguments."""

from __future__ import annotations

import argparse

from rankdash.cli.commands.parsing import DONE, Commands, Parser


def add(commands: Commands[Parser]) -> None:
    parser = commands.add_parser(
        "workspace",
        help="write data sets with all that belongs to them into one file, take such a file in, "
        "or repair the workspace",
        description="The workspace is the folder in RANKDASH_HOME (for a new one: an empty or new "
        "folder), or the one in your user data directory.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)
    export = actions.add_parser(
        "export",
        help="write data sets, runs, notes, corrections, scenarios, prices and targets",
        description="Write data sets with their runs, notes, corrected labels and explanations, "
        "and the scenarios, prices and targets, into one file. Without keys, kept scores, "
        "unfinished runs, and paths on this machine.",
    )
    export.add_argument("file", metavar="FILE", help="the file to write; replaced if it exists")
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
        "stays as it is, and what differs is said. A broken file adds nothing.",
    )
    bring.add_argument("file", metavar="FILE", help="the file to take in")
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


def _export(arguments: argparse.Namespace) -> int:
    from rankdash.cli.workspace import export_file

    export_file(arguments.file, arguments.data)
    return DONE


def _import(arguments: argparse.Namespace) -> int:
    from rankdash.cli.workspace import import_file

    import_file(arguments.file)
    return DONE


def _repair(_arguments: argparse.Namespace) -> int:
    from rankdash.cli.workspace import repair

    repair()
    return DONE
