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
    conventions,
)

_STATISTICS = (
    *("level", "interval", "test", "correction", "family"),
    *("resamples", "seed", "tie_band", "worthwhile"),
)


def add(commands: Commands[Parser]) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare rankings with a baseline: is the gain real, and is it worth it",
        description="Compare rankings with a baseline, query by query: the change with its "
        "interval, p values, queries helped and hurt, and a verdict.",
        allow_abbrev=False,
    )
    argument = parser.add_argument
    argument("--qrels", required=True, metavar="FILE", help="the labels, in any form that is read")
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
    _add_statistics(parser)
    add_conventions(parser)
    argument(
        "--format",
        choices=("table", "json", "markdown", "latex"),
        default="table",
        help="json holds unrounded numbers; latex needs booktabs (default: %(default)s)",
    )
    add_conflict(parser)
    parser.set_defaults(command=_compare)


def _add_statistics(parser: argparse.ArgumentParser) -> None:
    """Each is None unless given: the defaults are those of `StatisticsSettings`."""
    argument = parser.add_argument
    argument("--level", type=float, metavar="N", help="confidence of the intervals (default: 0.95)")
    argument("--interval", metavar="KIND", help="bca or percentile (default: bca)")
    argument("--test", metavar="NAME", help="sign-flip, t or wilcoxon (default: sign-flip)")
    argument("--correction", metavar="NAME", help="holm, bh or none (default: holm)")
    argument(
        "--family",
        metavar="SCOPE",
        help="what is corrected together: the challengers of each metric (metric), or all "
        "challengers and metrics (all) (default: metric)",
    )
    argument("--resamples", type=int, metavar="N", help="resamples and flips (default: 10000)")
    argument("--seed", type=int, metavar="N", help="the same seed gives the same numbers")
    argument(
        "--tie-band",
        type=float,
        metavar="N",
        help="changes of a query up to this size count as the same (default: 0.005)",
    )
    argument(
        "--worthwhile",
        type=float,
        metavar="SHARE",
        help="the smallest relative gain worth having (default: 0.15)",
    )


def _compare(arguments: argparse.Namespace) -> int:
    from rankdash.analysis.statistics_settings import StatisticsSettings
    from rankdash.cli.compare import FORMATS, compare_files
    from rankdash.cli.evaluate import typed_metrics

    asked = {name: getattr(arguments, name) for name in _STATISTICS}
    compared = compare_files(
        arguments.qrels,
        arguments.baseline,
        arguments.challenger,
        typed_metrics(arguments.metric or ["ndcg@10"]),
        conventions(arguments),
        StatisticsSettings(**{name: value for name, value in asked.items() if value is not None}),
        conflict=arguments.conflict,
    )
    sys.stdout.writelines(FORMATS[arguments.format](compared))
    return DONE
