"""`rerankers` and its arguments."""

from __future__ import annotations

import argparse
import sys

from rankdash.cli.commands.parsing import DONE, Commands, Parser, add_plugin


def add(commands: Commands[Parser]) -> None:
    parser = commands.add_parser(
        "rerankers",
        help="list the rerankers and their settings, those of plugins included",
        description="List every reranker that `rerank` takes, with its settings and their "
        "defaults.",
    )
    add_plugin(parser)
    parser.set_defaults(command=_rerankers)


def _rerankers(arguments: argparse.Namespace) -> int:
    from rankdash.cli.rerank import describe_rerankers, use_plugins

    use_plugins(arguments.plugin)
    sys.stdout.write(describe_rerankers() + "\n")
    return DONE
