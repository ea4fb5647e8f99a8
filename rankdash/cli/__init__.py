"""The command line: check, evaluate, compare, rerank. Each loads what it needs, and only then."""

from rankdash.cli.commands import main

__all__ = ["main"]
