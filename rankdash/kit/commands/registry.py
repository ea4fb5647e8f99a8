"""The commands: the module of each, with the function there that puts its options into a parser
(after a colon; `add` if not named), and its help line.

Only the module of the command that was typed is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from rankdash.kit.commands.arguments import Parser

COMMANDS: Mapping[str, tuple[str, str]] = {
    "serve": ("app.serve", "open the dashboard in the browser"),
    "check": (
        "features.data.command:add_check",
        "read the files of a data set and say what is in them and what is wrong",
    ),
    "evaluate": ("features.overview.command_evaluate", "score rankings against labels"),
    "compare": (
        "features.overview.command_compare",
        "compare rankings with a baseline: is the gain real, and is it worth it",
    ),
    "gate": ("features.gate.command", "pass or fail a change by conditions, for CI"),
    "report": (
        "features.report.command",
        "write what was found as one HTML file that opens without a network",
    ),
    "rerank": ("features.run.command_rerank", "rerank a data set and write a TREC run"),
    "merge": (
        "features.run.command_combine:add_merge",
        "put the shards of a run, made on several machines, together",
    ),
    "fuse": (
        "features.run.command_combine:add_fuse",
        "fuse rankings into one, without scoring anything",
    ),
    "label": (
        "features.label.command",
        "say which documents to label next, and what the labels say so far",
    ),
    "judge": (
        "features.judge.command",
        "have a language model grade documents, and say how far its grades can be trusted",
    ),
    "rerankers": (
        "features.run.command_rerank:add_rerankers",
        "list the rerankers and their settings, those of plugins included",
    ),
    "workspace": (
        "features.data.command:add_workspace",
        "write data sets with all that belongs to them into one file, take such a file "
        "in, or repair the workspace",
    ),
}


def put(name: str, parser: Parser) -> None:
    """Put the options of a command into a parser."""
    module, _colon, function = COMMANDS[name][0].partition(":")
    getattr(import_module(f"rankdash.{module}"), function or "add")(parser)
