"""The command line: check, evaluate, rerank. It loads what a command needs, and only then."""

from rankdash.cli.commands import main

__all__ = ["main"]
