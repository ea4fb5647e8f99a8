"""`compare` and its arguments."""

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
    add_statistics,
    rules,
)


def add(commands: Commands[Parser]) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare rankings with a baseline: is the gain real, and is it worth it",
        description="Compare rankings with a baseline, query by query: the change with its "
        "interval, p values, queries helped and hurt, and a verdict.",
    )
    argument = parser.add_argument
    add_labels(parser)
    argument("--baseline", required=True, metavar="FILE", help="the ranking to compare with")
    argument(
        "--challenger",
        required=True,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="a ranking to compare; may be repeated",
    )
    argument(
        "--metric",
        nargs="+",
        action="extend",
        metavar="SPEC",
        help="a metric, such as ndcg@10; may be repeated (default: ndcg@10)",
    )
    add_statistics(parser)
    add_conventions(parser)
    argument(
        "--format",
        choices=("table", "json", "markdown", "latex"),
        default="table",
        help="json holds unrounded numbers; latex needs booktabs (default: %(default)s)",
    )
    add_conflict(parser)
    parser.set_defaults(command=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    from rankdash.cli.compare import FORMATS, compare_files
    from rankdash.cli.rankings import typed_metrics

    compared = compare_files(
        arguments.qrels,
        arguments.baseline,
        arguments.challenger,
        typed_metrics(arguments.metric or ["ndcg@10"]),
        rules(arguments),
    )
    sys.stdout.writelines(FORMATS[arguments.format](compared))
    return DONE
