"""`rerankers`: every reranker with its settings."""

from __future__ import annotations

import argparse
import json
import sys

from rankdash.cli.arguments import DONE, Parser, add_plugin
from rankdash.cli.rerank import describe_rerankers, rerankers_by_name, use_plugins


def add(parser: Parser) -> None:
    parser.description = (
        "List every reranker that `rerank` takes, with its settings and their defaults."
    )
    add_plugin(parser)
    parser.formats(("text", "json"))
    parser.set_defaults(command=_rerankers)


def _rerankers(arguments: argparse.Namespace) -> int:
    use_plugins(arguments.plugin)
    if arguments.format == "json":
        sys.stdout.write(json.dumps(rerankers_by_name(), indent=2) + "\n")
    else:
        sys.stdout.write(describe_rerankers() + "\n")
    return DONE
