"""`report` and its arguments."""

from __future__ import annotations

import argparse

from rankdash.cli.commands.parsing import (
    DONE,
    NAMES,
    Commands,
    Parser,
    add_conflict,
    add_conventions,
    add_statistics,
    rules,
)


def add(commands: Commands[Parser]) -> None:
    parser = commands.add_parser(
        "report",
        help="write what was found as one HTML file that opens without a network",
        description="Compare rankings and write the report: verdict and price first, then every "
        "metric with its interval, the queries helped and hurt, latency, cost, the data and how "
        "each number is made. One HTML file, which loads nothing.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.closing = _sections_help
    argument = parser.add_argument
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--data",
        nargs="+",
        action="extend",
        metavar="PATH",
        help=f"the files, folder or archive of a data set{NAMES}; where it has texts, the report "
        "quotes queries",
    )
    source.add_argument("--qrels", metavar="FILE", help="the labels alone; needs --baseline")
    argument(
        "--baseline",
        metavar="FILE",
        help="the ranking to compare with (default: the first stage of --data)",
    )
    argument(
        "--challenger",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="a ranking to compare; may be repeated (default: the rankings that are in --data)",
    )
    argument(
        "--timings",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="how long the queries of each --challenger took, in their order, as `rerank "
        "--timings` writes it; queries that failed there leave both sides",
    )
    argument(
        "--first-stage",
        metavar="NAME",
        help="the ranking of --data to start from, where it holds several",
    )
    argument("--metric", default="ndcg@10", metavar="SPEC", help="(default: %(default)s)")
    argument("--out", required=True, metavar="FILE", help="the report to write")
    argument("--title", default="", metavar="TEXT", help="(default: names the data set)")
    argument("--note", default="", metavar="TEXT", help="a text under the title")
    argument("--logo", metavar="FILE", help="a PNG, JPEG, GIF or WebP picture beside the title")
    argument(
        "--sections",
        nargs="+",
        action="extend",
        metavar="ID",
        help="the parts to write, of those below (default: all)",
    )
    argument("--language", default="en", metavar="CODE", help="en or zh (default: %(default)s)")
    argument(
        "--assumptions",
        metavar="FILE",
        help="TOML with what a search is worth and costs (see the README); without it the report "
        "takes example values and says so",
    )
    add_statistics(parser)
    add_conventions(parser)
    add_conflict(parser)
    parser.set_defaults(command=_report)


def _report(arguments: argparse.Namespace) -> int:
    from rankdash.cli.report import Asked, write_report

    write_report(
        Asked(
            data=tuple(arguments.data or ()),
            qrels=arguments.qrels,
            baseline=arguments.baseline,
            challengers=tuple(arguments.challenger),
            timings=tuple(arguments.timings),
            first_stage=arguments.first_stage,
            metric=arguments.metric,
            title=arguments.title,
            note=arguments.note,
            logo=arguments.logo,
            sections=tuple(
                name.strip()
                for given in arguments.sections or ()
                for name in given.split(",")
                if name.strip()
            ),
            language=arguments.language,
            assumptions=arguments.assumptions,
        ),
        arguments.out,
        rules(arguments),
    )
    return DONE


def _sections_help() -> str:
    from rankdash.cli.report import describe

    return describe()
