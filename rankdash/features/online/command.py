"""`online`: the effect of an online experiment, from a table of outcomes."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rankdash.core.base.errors import SpecError
from rankdash.kit.commands.arguments import (
    DONE,
    INCOMPLETE,
    Parser,
    chosen_settings,
    columns_of,
)
from rankdash.kit.commands.output import (
    spare_the_input,
    target_of,
    warn,
    write,
)

_SETTINGS = ("level", "correction")


def add(parser: Parser) -> None:
    from rankdash.core.base.rules import STATISTICS_SETTINGS

    parser.description = (
        "Compute the effect of an A/B test, or the preference between interleaved rankings, from a "
        "table of outcomes. It has one row per search, with the columns arm (or team), outcome "
        "and, if possible, user or session, query and time. Intervals are clustered by user or "
        "session. "
        "Exit code 0: computed. 1: no effect is shown, because the arms do not have their planned "
        "sizes. 2: the command could not run."
    )
    parser.add_argument(
        "outcomes",
        metavar="OUTCOMES",
        help="CSV, TSV, JSON lines or Parquet; may be compressed with gzip, bzip2 or Zstandard",
    )
    parser.several(
        "--columns",
        "FIELD=COLUMN",
        "columns whose names are not recognised, such as unit=visitor arm=bucket outcome=orders",
    )
    parser.option(
        "--control",
        "ARM",
        "the arm that others are compared with (default: one with a usual name, such as control)",
        default="",
    )
    parser.several(
        "--shares",
        "ARM=SHARE",
        "planned shares of all arms, such as control=0.9 new=0.1 (default: equal)",
    )
    parser.option(
        "--start", "DATE", "the start in UTC, such as 2026-11-01T09:00; earlier rows do not count"
    )
    parser.flag(
        "--planned",
        "the experiment ended at a number of searches or a date that was planned before its start; "
        "otherwise intervals are anytime-valid, and wider",
    )
    specs = [each for each in STATISTICS_SETTINGS if each.name in _SETTINGS]
    parser.settings(specs, also={"level": "level"})
    parser.formats(("text", "json"))
    parser.option("--out", "FILE", "write to a file; - is standard output", also=("-o",))
    parser.set_defaults(command=_online)


def _online(arguments: argparse.Namespace) -> int:
    from rankdash.core.base.rules import STATISTICS_SETTINGS, StatisticsSettings
    from rankdash.core.readers.outcomes import read_outcomes
    from rankdash.features.online.command_results import as_text, json_of
    from rankdash.features.online.experiment import experiment_of

    if arguments.out is not None:
        spare_the_input(target_of(arguments.out), [arguments.outcomes])
    specs = [each for each in STATISTICS_SETTINGS if each.name in _SETTINGS]
    experiment = experiment_of(
        read_outcomes(Path(arguments.outcomes), columns_of(arguments.columns)),
        StatisticsSettings(**chosen_settings(arguments, specs)),
        control=arguments.control,
        shares=_shares(arguments.shares),
        start=_start(arguments.start),
        planned=arguments.planned,
    )
    warn(experiment.findings)
    made = (json_of if arguments.format == "json" else as_text)(experiment)
    if arguments.out is None:
        sys.stdout.write(made)
    else:
        write(made.encode("utf-8", "replace"), target_of(arguments.out))
    return INCOMPLETE if experiment.refused else DONE


def _shares(typed: Sequence[str]) -> dict[str, float]:
    shares = {}
    for each in typed:
        arm, _equals, share = each.rpartition("=")
        try:
            shares[arm] = float(share)
        except ValueError:
            shares[arm] = math.nan
        if not arm or not shares[arm] > 0 or math.isinf(shares[arm]):
            raise SpecError(
                "--shares needs ARM=SHARE with a share above 0, not {typed!r}.",
                remedy="For example: --shares control=0.9 reranker=0.1",
                typed=each,
            )
    return shares


def _start(typed: str | None) -> float:
    """Return seconds since 1970. Raises SpecError if it is not a date."""
    if typed is None:
        return math.nan
    try:
        date = datetime.fromisoformat(typed)
    except ValueError as problem:
        raise SpecError(
            "{typed!r} is not a date.",
            remedy="Write it as 2026-11-01 or 2026-11-01T09:00, in UTC.",
            typed=typed,
        ) from problem
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
