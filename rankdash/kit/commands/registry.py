"""The commands: the module of each, with the function that adds its options to a parser (after a
colon; `add` if not named), and its help line.

Only the module of the typed command is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from rankdash.kit.commands.arguments import Parser

COMMANDS: Mapping[str, tuple[str, str]] = {
    "serve": ("app.serve", "open the dashboard in the browser"),
    "check": (
        "features.data.command:add_check",
        "read the files of a data set and report their content and problems found",
    ),
    "sample-log": (
        "features.data.command_log",
        "sample queries of a log by frequency, with known probabilities",
    ),
    "evaluate": ("features.overview.command_evaluate", "score rankings against labels"),
    "compare": (
        "features.overview.command_compare",
        "compare rankings with a baseline: is the gain proven, and is it worth its cost",
    ),
    "gate": ("features.gate.command", "pass or fail a change by conditions, for CI"),
    "nightly": (
        "features.nightly.command",
        "compare tonight's rankings with a pinned run; one sequential test over all nights",
    ),
    "online": (
        "features.online.command",
        "compute the effect of an A/B test or of interleaved rankings from a table of outcomes",
    ),
    "policy": (
        "features.policy.command",
        "measure a serving policy: depth, skipped queries, deadline, floor; write policy.json",
    ),
    "report": (
        "features.report.command",
        "write the findings as one HTML file that opens without a network",
    ),
    "verify": (
        "features.report.command_verify",
        "check a report: compute its numbers again from the files",
    ),
    "export": (
        "features.report.command_export",
        "write a data set with its rankings in the format of another tool",
    ),
    "retrieve": (
        "features.run.command_retrieve",
        "retrieve from all documents of a data set and write a TREC run",
    ),
    "fetch": (
        "features.run.command_fetch",
        "fetch rankings from search engines into a folder of a data set",
    ),
    "rerank": ("features.run.command_rerank", "rerank a data set and write a TREC run"),
    "merge": (
        "features.run.command_combine:add_merge",
        "merge the shards of a run that were made on several machines",
    ),
    "fuse": (
        "features.run.command_combine:add_fuse",
        "fuse rankings into one, without scoring anything",
    ),
    "label": (
        "features.label.command",
        "choose documents to label and report the current result",
    ),
    "judge": (
        "features.judge.command",
        "grade documents with an LLM judge, and report how far its grades can be trusted",
    ),
    "rerankers": (
        "features.run.command_rerank:add_rerankers",
        "list the rerankers and their settings, including plugins",
    ),
    "workspace": (
        "features.data.command:add_workspace",
        "export or import data sets as one file, or repair the workspace",
    ),
}


def put(name: str, parser: Parser) -> None:
    """Add the options of a command to a parser."""
    module, _colon, function = COMMANDS[name][0].partition(":")
    getattr(import_module(f"rankdash.{module}"), function or "add")(parser)
