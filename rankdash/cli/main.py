"""Runs one command, and says what happens when something goes wrong.

Exit codes: 0 done; 1 the data has errors (`check`), some queries failed (`rerank`) or a condition
is not met (`gate`); 2 nothing could be done, with one line on standard error that says what, where
and what to do; 130 stopped by Ctrl+C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

from rankdash import __version__
from rankdash.cli.arguments import DONE, INTERRUPTED, REFUSED, Parser, UsageError
from rankdash.errors import RankdashError
from rankdash.starting import starting

# Each is a module here, whose `add` puts its arguments into a parser.
COMMANDS = {
    "serve": "open the dashboard in the browser",
    "check": "read the files of a data set and say what is in them and what is wrong",
    "evaluate": "score rankings against labels",
    "compare": "compare rankings with a baseline: is the gain real, and is it worth it",
    "gate": "pass or fail a change by conditions, for CI",
    "report": "write what was found as one HTML file that opens without a network",
    "rerank": "rerank a data set and write a TREC run",
    "merge": "put the shards of a run, made on several machines, together",
    "fuse": "fuse rankings into one, without scoring anything",
    "label": "say which documents to label next, and what the labels say so far",
    "judge": "have a language model grade documents, and say how far its grades can be trusted",
    "rerankers": "list the rerankers and their settings, those of plugins included",
    "workspace": "write data sets with all that belongs to them into one file, take such a file "
    "in, or repair the workspace",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command (None: the program's own arguments) and give its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        typed = (sys.argv[1:] if argv is None else list(argv)) or ["serve"]
        with starting() if argv is None else nullcontext():
            arguments = _parser(typed).parse_args(typed)
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except (UsageError, RankdashError) as problem:
        return _refuse(str(problem))
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as problem:
        return _refuse(f"{problem.filename or 'The system'}: {problem.strerror or problem}.")
    except Exception as problem:  # noqa: BLE001 - a user is never shown a traceback
        return _refuse(
            f"This is a fault of rankdash, please report it: {type(problem).__name__}: {problem}"
        )
    return code


def _refuse(message: str) -> int:
    from rankdash.cli.output import one_line

    sys.stderr.write(f"error: {one_line(message)}\n")
    return REFUSED


def _take_settings(name: str, command: Parser, typed: Sequence[str]) -> None:
    from rankdash.cli import settings_file

    if name in settings_file.COMMANDS:
        settings_file.apply(name, command, typed)


def _parser(typed: Sequence[str]) -> Parser:
    """Only the command that was typed is loaded, and what it needs."""
    parser = Parser(
        prog="rankdash",
        description="Does reranking help, for which queries? Without a command: the dashboard.",
    )
    parser.add_argument("--version", action="version", version=f"rankdash {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    asked = next((each for each in typed if not each.startswith("-")), None)
    for name, help_line in COMMANDS.items():
        command = commands.add_parser(name, help=help_line)
        if name == asked:
            import_module(f"rankdash.cli.{name}").add(command)
            command.set_defaults(typed=typed)
            _take_settings(name, command, typed[typed.index(name) + 1 :])
    return parser
