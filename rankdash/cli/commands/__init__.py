"""The commands, a room each with its arguments, and what happens when something goes wrong.

Exit codes: 0 done; 1 the data has errors (`check`), some queries failed (`rerank`) or a condition
is not met (`gate`); 2 nothing could be done, with one line on standard error that says what, where
and what to do; 130 stopped by Ctrl+C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rankdash.cli.commands import (
    check,
    compare,
    evaluate,
    fuse,
    gate,
    report,
    rerank,
    rerankers,
    workspace,
)
from rankdash.cli.commands.parsing import DONE, INTERRUPTED, REFUSED, Parser, UsageError
from rankdash.errors import RankdashError

__all__ = ["INTERRUPTED", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command (None: the program's own arguments) and give its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = _parser().parse_args(argv)
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
    from rankdash.cli.writing import one_line

    sys.stderr.write(f"error: {one_line(message)}\n")
    return REFUSED


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m rankdash",
        description="Does reranking help, for which queries? The dashboard starts with: "
        "streamlit run app.py",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for room in (check, evaluate, compare, gate, report, rerank, fuse, rerankers, workspace):
        room.add(commands)
    return parser
