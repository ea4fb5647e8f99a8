"""What the commands share: the parser, exit codes, and arguments that several of them take."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rankdash.analysis.statistics.settings import StatisticsSettings
    from rankdash.cli.rankings import Rules

DONE, INCOMPLETE, REFUSED, INTERRUPTED = 0, 1, 2, 130

_CONVENTIONS = ("ties", "threshold", "judged_only", "missing", "no_relevant")
_STATISTICS = (
    *("level", "interval", "test", "correction", "family"),
    *("resamples", "seed", "tie_band", "worthwhile"),
)

# What follows in the help where a data set may be given by its name too.
NAMES = ", or a name such as ir_datasets:beir/scifact/test or hf:organization/name"


class UsageError(Exception):
    """The arguments make no sense; the message is argparse's own."""


class Parser(argparse.ArgumentParser):
    """Takes no option cut short, which a later option of that beginning would break in a script.
    Refuses with one line; `closing` writes the end of the help text when it is asked for."""

    closing: Callable[[], str] | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def option(self, name: str, metavar: str, help_text: str, **settings: Any) -> None:
        """An option with a value."""
        self.add_argument(name, metavar=metavar, help=help_text, **settings)

    def several(self, name: str, metavar: str, help_text: str, **settings: Any) -> None:
        """An option with values, which may be repeated; [] where it is not given."""
        self.option(
            name,
            metavar,
            help_text,
            **{"nargs": "+", "action": "extend", "default": [], **settings},
        )

    def number(self, name: str, help_text: str, kind: type[float] = float, **settings: Any) -> None:
        self.option(name, "N", help_text, type=kind, **settings)

    def choice(
        self, name: str, choices: Sequence[str], help_text: str = "", **settings: Any
    ) -> None:
        self.add_argument(name, choices=choices, help=help_text, **settings)

    def flag(self, name: str, help_text: str, **settings: Any) -> None:
        self.add_argument(name, action="store_true", help=help_text, **settings)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. See: {self.prog} --help")

    def format_help(self) -> str:
        if self.closing is not None:
            self.epilog = self.closing()
        return super().format_help()


def add_labels(parser: Parser) -> None:
    parser.option("--qrels", "FILE", "the labels, in any form that is read", required=True)


def add_conflict(parser: Parser) -> None:
    parser.choice(
        "--conflict",
        ("highest", "lowest", "mean", "refuse"),
        "which label is kept where a pair has several (default: %(default)s)",
        default="highest",
    )


def add_plugin(parser: Parser) -> None:
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file that defines rerankers of your own; it is run, so name only what you "
        "trust; may be repeated (see the README)",
    )


def add_conventions(parser: Parser) -> None:
    parser.choice(
        "--conventions",
        ("rankdash", "trec_eval"),
        "rankdash: every labelled query counts, those without a relevant document apart. "
        "trec_eval: as `trec_eval` without -c (default: %(default)s). The options below override "
        "single rules",
        default="rankdash",
    )
    parser.choice(
        "--ties",
        ("as_ranked", "trec", "stable"),
        "equal scores: by the ranking's own rule (the default; that of a file is by document "
        "id, descending), by document id, descending, or as in the file",
    )
    parser.number("--threshold", "the lowest label that is relevant")
    parser.flag("--judged-only", "take documents without a label out of the rankings", default=None)
    parser.choice(
        "--missing",
        ("zero", "skip"),
        "a labelled query that a ranking lacks: scores 0, or is left out",
    )
    parser.choice(
        "--no-relevant",
        ("count", "skip"),
        "a query without a relevant document: counts as 0, or is left out",
    )


def rules(
    arguments: argparse.Namespace, statistics: Callable[[int], StatisticsSettings] | None = None
) -> Rules:
    """The rules as given; statistics: None for those that were given too. Raises SpecError for a
    value that does not exist."""
    from rankdash.analysis.statistics.settings import StatisticsSettings
    from rankdash.cli.rankings import Rules
    from rankdash.metrics import Conventions

    preset = arguments.conventions == "trec_eval"
    changes = _given(arguments, _CONVENTIONS)
    if changes.get("missing") == "zero":
        # A missing query can only score 0 where the labels say which queries there are.
        changes["queries"] = "qrels"
    return Rules(
        replace(Conventions.trec_eval() if preset else Conventions.rankdash(), **changes),
        statistics or partial(StatisticsSettings.for_queries, **_given(arguments, _STATISTICS)),
        arguments.conflict,
    )


def _given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Those that were typed."""
    found = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def add_statistics(parser: Parser) -> None:
    """Each is None unless given: the defaults are those of `StatisticsSettings`."""
    parser.number("--level", "confidence of the intervals (default: 0.95)")
    parser.option("--interval", "KIND", "bca or percentile (default: bca)")
    parser.option("--test", "NAME", "sign-flip, t or wilcoxon (default: sign-flip)")
    parser.option("--correction", "NAME", "holm, bh or none (default: holm)")
    parser.option(
        "--family",
        "SCOPE",
        "what is corrected together: the challengers of each metric (metric), or all "
        "challengers and metrics (all) (default: metric)",
    )
    parser.number("--resamples", "resamples and flips (default: 10000)", kind=int)
    parser.number("--seed", "the same seed gives the same numbers", kind=int)
    parser.number(
        "--tie-band", "changes of a query up to this size count as the same (default: 0.005)"
    )
    parser.option(
        "--worthwhile",
        "SHARE",
        "the smallest relative gain worth having (default: 0.15)",
        type=float,
    )
