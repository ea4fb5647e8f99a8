"""`rerank` and its arguments."""

from __future__ import annotations

import argparse

from rankdash.cli.commands.parsing import (
    DONE,
    INCOMPLETE,
    NAMES,
    Commands,
    Parser,
    add_conflict,
    add_plugin,
)


def add(commands: Commands[Parser]) -> None:
    parser = commands.add_parser(
        "rerank",
        help="rerank a data set and write a TREC run",
        description="Rerank the candidates of a data set and write a TREC run, best first, with "
        "strictly decreasing scores. Queries that fail are named on standard error, are not in "
        "the file, and make the exit code 1; where all fail, no file is written (exit code 2).",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.closing = _reranker_help
    argument = parser.add_argument
    argument(
        "--data",
        required=True,
        nargs="+",
        action="extend",
        metavar="PATH",
        help=f"the files, folder or archive of the data set{NAMES}",
    )
    argument("--reranker", required=True, metavar="NAME", help="one of those below")
    argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="a setting of the reranker; may be repeated",
    )
    argument(
        "--depth",
        type=int,
        metavar="N",
        help="rerank the first N candidates of each query; the rest follow below them in "
        "first-stage order, with falling scores (default: all)",
    )
    argument(
        "--first-stage",
        metavar="NAME",
        help="the ranking to start from, where the data set holds several",
    )
    argument(
        "--out",
        required=True,
        metavar="FILE",
        help="the run to write; replaced if it is there, refused if it is one of the data's files",
    )
    argument(
        "--repeats",
        type=int,
        default=1,
        metavar="N",
        help="how often a query is timed alone; its latency is the median (default: %(default)s)",
    )
    argument(
        "--clients",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="measure the throughput with so many clients at once too, such as 1 2 4",
    )
    argument(
        "--timings",
        metavar="FILE",
        help="write what became of each query and how long it took, as CSV where the name ends in "
        ".csv and as JSON else; `gate` reads it",
    )
    add_plugin(parser)
    add_conflict(parser)
    parser.set_defaults(command=_rerank)


def _rerank(arguments: argparse.Namespace) -> int:
    from rankdash.cli.rerank import rerank_to_file, use_plugins
    from rankdash.runs.plan import Timing

    use_plugins(arguments.plugin)
    complete = rerank_to_file(
        arguments.data,
        arguments.reranker,
        arguments.settings,
        arguments.out,
        depth=arguments.depth,
        first_stage=arguments.first_stage,
        conflict=arguments.conflict,
        timing=Timing(repeats=arguments.repeats, concurrency=tuple(arguments.clients)),
        timings=arguments.timings,
    )
    return DONE if complete else INCOMPLETE


def _reranker_help() -> str:
    from rankdash.cli.rerank import describe_rerankers

    return describe_rerankers()
