"""`rerankers`: every reranker with its settings."""

from __future__ import annotations

import argparse
import sys

from rankdash.cli.arguments import DONE, Parser, add_plugin
from rankdash.cli.rerank import describe_rerankers, use_plugins


def add(parser: Parser) -> None:
    parser.description = (
        "List every reranker that `rerank` takes, with its settings and their defaults."
    )
    add_plugin(parser)
    parser.set_defaults(command=_rerankers)


def _rerankers(arguments: argparse.Namespace) -> int:
    use_plugins(arguments.plugin)
    sys.stdout.write(describe_rerankers() + "\n")
    return DONE
