"""`nightly`: tonight's rankings compared with a pinned run, by one sequential test over nights."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from datetime import UTC, datetime

from rankdash.core.base.errors import RankdashError, SpecError
from rankdash.features.nightly.config import Config
from rankdash.features.nightly.state import State
from rankdash.kit.commands.arguments import DONE, INCOMPLETE, Parser, add_outputs
from rankdash.kit.commands.checks import write_files, write_refusal
from rankdash.kit.commands.output import STANDARD, spare_the_input, target_of


def add(parser: Parser) -> None:
    parser.description = (
        "Fetch tonight's rankings, compare them with the pinned run on the labelled queries, and "
        "raise an alarm if a metric fell. All nights together are one sequential test: the chance "
        "of any false alarm in a year is at most the alpha of the configuration. Exit code 0: no "
        "alarm. 1: an alarm, too many failed queries, or a latency above its limit. 2: the command "
        "could not run."
    )
    parser.add_argument(
        "config", metavar="CONFIG", help="a TOML file, whose keys docs/tasks/nightly.md lists"
    )
    parser.flag(
        "--accept",
        "fetch nothing; make the newest night the pinned run, because its change is intended",
    )
    parser.number(
        "--repeat",
        "fetches of this night, in place of the configured number; with more, a night that you "
        "accept is a more exact pinned run",
        kind=int,
    )
    parser.option(
        "--date", "DATE", "the date of the night, such as 2026-11-28 (default: today, in UTC)"
    )
    add_outputs(parser)
    parser.set_defaults(command=_nightly)


def _nightly(arguments: argparse.Namespace) -> int:
    from rankdash.features.nightly.command_night import Night
    from rankdash.features.nightly.command_results import formats, headline, passed

    inputs = [arguments.config]
    try:
        for file in arguments.out:
            spare_the_input(target_of(file), inputs)
        date = _date(arguments.date)
        config = Config.of(arguments.config, arguments.repeat)
        with State(config.state).locked():
            night = Night(config, date)
            if arguments.accept:
                line = night.accept()
                sys.stdout.write(
                    f"Night {line.night} ({line.date}) is the pinned run of later nights.\n"
                )
                return DONE
            tonight = night.run()
            night.note(tonight.line, headline(config, tonight))
    except RankdashError as error:
        write_refusal("nightly", error, arguments.out, arguments.format, inputs)
        raise
    made = formats(config, tonight)
    write_files(made, arguments.out, arguments.format)
    if STANDARD not in arguments.out:
        sys.stdout.write(made["text" if arguments.out else arguments.format]())
    return DONE if passed(config, tonight) else INCOMPLETE


def _date(typed: str | None) -> str:
    """Return the date in ISO 8601. Raises SpecError if it is none."""
    if typed is None:
        return datetime.now(UTC).date().isoformat()
    with suppress(ValueError):
        return datetime.strptime(typed, "%Y-%m-%d").date().isoformat()
    raise SpecError(
        "{typed!r} is not a date.", remedy="Write it as 2026-11-28: year, month, day.", typed=typed
    )
