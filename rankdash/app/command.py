"""Running one command and reporting its errors.

Exit codes: 0 done; 1 the data has errors (`check`), some queries failed (`rerank`) or a condition
    is not met (`gate`); 2 nothing could be done, with one line on standard error that contains the
    problem, its location and a remedy; 130 stopped by Ctrl+C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from rankdash import __version__
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.shipped import starting
from rankdash.kit.commands.arguments import DONE, INTERRUPTED, REFUSED, Parser, UsageError
from rankdash.kit.commands.registry import COMMANDS, put


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command (None: the program's own arguments) and return its exit code."""
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
        # The reader closed the pipe. Python would complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as problem:
        return _refuse(f"{problem.filename or 'The system'}: {problem.strerror or problem}.")
    except Exception as problem:  # noqa: BLE001 - a user is never shown a traceback
        return _refuse(
            f"This is a bug in rankdash, please report it: {type(problem).__name__}: {problem}"
        )
    return code


def _refuse(message: str) -> int:
    from rankdash.kit.commands.output import one_line

    sys.stderr.write(f"error: {one_line(message)}\n")
    return REFUSED


def _apply_settings(name: str, command: Parser, typed: Sequence[str]) -> None:
    from rankdash.kit.commands import settings_file

    if name in settings_file.COMMANDS:
        settings_file.apply(name, command, typed)


def _parser(typed: Sequence[str]) -> Parser:
    """Return the parser; only the module of the typed command is loaded."""
    parser = Parser(
        prog="rankdash",
        description="Measure whether a reranker improves your search, and on which queries. "
        "Without a command: open the dashboard.",
    )
    parser.add_argument("--version", action="version", version=f"rankdash {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    requested = next((each for each in typed if not each.startswith("-")), None)
    for name, (_address, help_line) in COMMANDS.items():
        command = commands.add_parser(name, help=help_line)
        if name == requested:
            put(name, command)
            command.set_defaults(typed=typed)
            _apply_settings(name, command, typed[typed.index(name) + 1 :])
    return parser
