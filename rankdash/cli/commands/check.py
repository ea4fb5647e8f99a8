"""`check` and its arguments."""

from __future__ import annotations

import argparse

from rankdash.cli.commands.parsing import DONE, INCOMPLETE, NAMES, Commands, Parser, add_conflict


def add(commands: Commands[Parser]) -> None:
    parser = commands.add_parser(
        "check",
        help="read the files of a data set and say what is in them and what is wrong",
        description="Read the files of one data set as the dashboard would, and report what is in "
        "them. Exit code 0 when they can be used (warnings included), 1 when they hold errors.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help=f"a file, folder or archive{NAMES}"
    )
    add_conflict(parser)
    parser.set_defaults(command=_check)


def _check(arguments: argparse.Namespace) -> int:
    from rankdash.cli.check import check_paths

    sound = check_paths(arguments.paths, conflict=arguments.conflict)
    return DONE if sound else INCOMPLETE
