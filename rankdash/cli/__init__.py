"""The command line: one module a command. Each loads what it needs, and only then."""

from rankdash.cli.main import main

__all__ = ["main"]
