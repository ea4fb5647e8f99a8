"""`evaluate` and its arguments."""

from __future__ import annotations

import argparse
import sys

from rankdash.cli.commands.parsing import (
    DONE,
    Commands,
    Parser,
    add_conflict,
    add_conventions,
    add_labels,
    rules,
)

DEFAULT_METRICS = "ndcg@10,mrr@10,map,recall@10,judged@10"


def add(commands: Commands[Parser]) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="score rankings against labels",
        description="Score one or more rankings against labels. Rankings are read by score, and a "
        "system is called after its file.",
    )
    argument = parser.add_argument
    add_labels(parser)
    argument(
        "--run",
        required=True,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="a ranking, in any form that is read; may be repeated",
    )
    argument(
        "--metrics",
        nargs="+",
        default=[DEFAULT_METRICS],
        metavar="LIST",
        help="metrics with commas between, such as ndcg@10,map (default: %(default)s)",
    )
    argument(
        "--per-query",
        action="store_true",
        help="write the values of every query as well (json always holds them)",
    )
    add_conventions(parser)
    argument(
        "--format",
        choices=("table", "json", "csv"),
        default="table",
        help="json and csv hold unrounded numbers; in csv a text that a spreadsheet would run as "
        "a formula starts with an apostrophe (default: %(default)s)",
    )
    add_conflict(parser)
    parser.set_defaults(command=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> int:
    from rankdash.cli.evaluate import evaluate_files
    from rankdash.cli.rankings import typed_metrics
    from rankdash.cli.results import FORMATS

    results = evaluate_files(
        arguments.qrels,
        arguments.run,
        typed_metrics(arguments.metrics),
        rules(arguments),
    )
    sys.stdout.writelines(FORMATS[arguments.format](results, arguments.per_query))
    return DONE
