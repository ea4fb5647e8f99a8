"""What the commands share: the parser, exit codes, and arguments that several of them take."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from rankdash.core.base.errors import SettingError, SpecError
from rankdash.core.base.rules import (
    CONVENTION_PRESETS,
    CONVENTION_SETTINGS,
    RULE_OF_THUMB,
    STATISTICS_SETTINGS,
    Conventions,
    Setting,
    StatisticsSettings,
)

if TYPE_CHECKING:
    from rankdash.core.base.rules import SettingSpec
    from rankdash.core.metrics import MetricList
    from rankdash.kit.commands.rankings import Rules

DONE, INCOMPLETE, REFUSED, INTERRUPTED = 0, 1, 2, 130

_DEFAULT_CHARACTERS = 60

# The names of all formats; each command has some of them.
TEXT = "text"
FORMATS = (TEXT, "json", "csv", "markdown", "latex", "junit")

# What follows in the help where a data set may be given by its name too.
NAMES = ", or a name such as ir_datasets:beir/scifact/test or hf:organization/name"


def described(action: argparse.Action) -> Setting | None:
    """Return the setting that an option was made from, as by `Parser.settings`."""
    owner = getattr(action.type, "__self__", None)
    return owner if isinstance(owner, Setting) else None


class UsageError(Exception):
    """The arguments make no sense; the message is argparse's own."""


class Parser(argparse.ArgumentParser):
    """Takes no option cut short, which a later option of that beginning would break in a script.
    Refuses with one line.

    closing: writes the end of the help text when it is asked for. stands_for: from what was typed
    and the options that a settings file gives, the options in whose place positional arguments are.
    """

    closing: Callable[[], str] | None = None
    stands_for: Callable[[argparse.Namespace, Collection[str]], Collection[str]] | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def option(
        self, name: str, metavar: str, help_text: str, *, also: Sequence[str] = (), **settings: Any
    ) -> None:
        """An option with a value. metavar: FILE or PATH for a file. also: its other spellings."""
        self.add_argument(name, *also, metavar=metavar, help=help_text, **settings)

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

    def metrics(self, help_text: str, **settings: Any) -> None:
        """`--metric`, `--metrics` and `-m`: lists of specs, as `metrics_of` reads them."""
        self.several("--metric", "SPEC", help_text, also=("--metrics",), dest="metrics", **settings)
        self.option(
            "-m", "SPEC", "as --metric, one value at a time", action="append", dest="metrics",
            default=[],
        )  # fmt: skip

    def formats(self, forms: Collection[str], note: str = "") -> None:
        """`--format` with some of `FORMATS`, and `--json`. note: what is to be known of them."""
        self.choice(
            "--format",
            [form for form in FORMATS if form in forms],
            "; ".join(filter(None, ("the form of what is written", note)))
            + " (default: %(default)s)",
            default=TEXT,
            # What it was called before all commands had the same names.
            type=lambda name: TEXT if name == "table" else name,
        )
        self.add_argument(
            "--json", action="store_const", const="json", dest="format", help="--format json"
        )

    def flag(self, name: str, help_text: str, *, also: Sequence[str] = (), **settings: Any) -> None:
        self.add_argument(name, *also, action="store_true", help=help_text, **settings)

    def settings(
        self,
        specs: Iterable[Setting],
        *,
        also: Mapping[str, str] = MappingProxyType({}),
        hints: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """An option for each setting, None unless it is given. also: setting → another name of its
        option. hints: setting → what its help ends with."""
        for spec in specs:
            name = spec.option or spec.name.replace("_", "-")
            names = [f"--{each}" for each in (name, also.get(spec.name)) if each]
            values = "; ".join(f"{value}: {words}" for value, words in spec.words.items())
            description = " ".join(filter(None, (spec.help, values)))
            if isinstance(spec.default, bool):
                self.flag(names[0], description, dest=spec.name, default=None)
                continue
            default = spec.unset if spec.default is None else str(spec.default).removesuffix(".0")
            ends = "; ".join(filter(None, (f"default: {default}", hints.get(spec.name))))
            self.option(
                names[0],
                "|".join(spec.choices) or "N",
                f"{description} ({ends})".replace("%", "%%"),
                also=names[1:],
                dest=spec.name,
                type=spec.parse,
            )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, rest = super().parse_known_args(args, namespace)
        if self.stands_for is None or any(each.startswith("-") and each != "-" for each in rest):
            return parsed, rest
        # argparse takes positional arguments only where they first stand together.
        if rest:
            parsed.files = [*getattr(parsed, "files", ()), *rest]
        return parsed, []

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. See: {self.prog} --help")

    def format_help(self) -> str:
        if self.closing is not None:
            self.epilog = self.closing()
        return super().format_help()


def add_labels(parser: Parser) -> None:
    parser.option("--qrels", "FILE", "the labels, in any form that is read", required=True)


def add_profile(parser: Parser, help_text: str) -> None:
    """`--profile`, as `Goals.of` reads it."""
    from rankdash.core.value.targets import shipped

    parser.option(
        "--profile",
        "NAME",
        f"{help_text}: {', '.join(shipped().profiles)}, or one's own in a file that ends in .json "
        "(as Overview exports it) or .toml",
    )


def add_first_stage(parser: Parser) -> None:
    """`--first-stage`, and how one is made where there is none."""
    parser.option(
        "--first-stage", "NAME", "the ranking of the data set to start from, where it holds several"
    )
    parser.choice(
        "--retrieval",
        ("bm25", "bi-encoder", "fused", "listed", "rows"),
        "how a first stage is made where there is none: retrieved from all documents by BM25, by "
        "the packaged bi-encoder, or by both; listed: BM25 orders only the documents that the "
        "files list for a query, which is easier than any search; rows: the order of the rows "
        "(default: bm25; listed where the files list good and bad documents for each query)",
    )
    parser.number(
        "--retrieval-depth",
        "how many of all documents a query gets then (default: %(default)s)",
        kind=int,
        dest="retrieved",
        default=100,
    )


def add_judge(parser: Parser) -> None:
    parser.option(
        "--judge",
        "FILE",
        "the grades of a judge, such as a language model: CSV or JSON lines of query_id, doc_id "
        "and grade, as `rankdash judge run` writes them. Its verdict, people's and the one "
        "corrected by people's labels are set side by side; its grades never become labels",
    )


def add_label_rules(parser: Parser) -> None:
    """How labels are read: several of a pair, the lowest grade as the best, and their column."""
    parser.choice(
        "--conflict",
        ("highest", "lowest", "mean", "refuse"),
        "which label is kept where a pair has several (default: %(default)s)",
        default="highest",
    )
    parser.number(
        "--reverse-labels",
        "for labels whose lowest grade is the best, as in Cranfield: each becomes N minus itself, "
        "so N is the grade that means not relevant; labels below 0 stay",
        dest="worst_label",
    )
    parser.several(
        "--columns",
        "FIELD=COLUMN",
        "which column is which, where the guess is wrong; `check` writes the guess. Files of "
        "labels and of rankings each take the columns that they have. FIELD is query_id, query, "
        "doc_id, document, title, label, score, rank or reranked; an empty COLUMN is none",
    )


def columns_of(pairs: Sequence[str]) -> dict[str, str]:
    """Field → column, as --columns gives them. Raises SpecError for anything else."""
    columns: dict[str, str] = {}
    for pair in pairs:
        field, equals, column = pair.partition("=")
        if not equals:
            raise SpecError(
                "--columns takes FIELD=COLUMN, not {pair!r}.",
                remedy="For example: --columns query=Question label=Grade.",
                pair=pair,
            )
        field, column = field.strip(), column.strip()
        if columns.setdefault(field, column) != column:
            raise SpecError(
                "--columns gives {field} two columns: {first} and {second}.",
                remedy="Give each field once, and rename the column in one of the files.",
                field=field,
                first=columns[field],
                second=column,
            )
    return columns


def add_settings(parser: Parser, help_text: str) -> None:
    """`--set`, as `settings_of` reads it."""
    parser.option("--set", "KEY=VALUE", help_text, action="append", default=[], dest="settings")


def settings_of(pairs: Sequence[str]) -> dict[str, str]:
    """Name → value, as --set gives them. Raises SettingError for anything else."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise SettingError(
                "A setting is written key=value, not {pair!r}.",
                remedy="For example: --set max_length=256",
                pair=pair,
            )
        settings[key.strip()] = value
    return settings


def settings_lines(specs: Iterable[SettingSpec], indent: str) -> list[str]:
    """A line for each setting with its default, what it does, and its values, for the help text."""
    lines = []
    for spec in specs:
        possible = ", ".join(spec.choices) or spec.range or spec.type.__name__
        default = str(spec.default)
        if len(default) > _DEFAULT_CHARACTERS:
            # A prompt is many lines long.
            default = textwrap.shorten(default, _DEFAULT_CHARACTERS, placeholder=" …")
        lines.append(f"{indent}{spec.name}={default}  {spec.help} ({possible})")
    return lines


def add_plugin(parser: Parser) -> None:
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file that defines rerankers of your own; it is run, so name only what you "
        "trust; may be repeated (docs/rerankers.md)",
    )


_PRESETS = {**CONVENTION_PRESETS, "trec_eval9": Conventions.trec_eval(9)}


def add_conventions(parser: Parser) -> None:
    parser.choice(
        "--conventions",
        tuple(_PRESETS),
        "rankdash: every labelled query counts, those without a relevant document apart. "
        "trec_eval: as `trec_eval` 10 without -c. trec_eval9, BEIR: as version 9 and pytrec_eval, "
        "which compare scores in single precision. ranx, scikit-learn: see docs/metrics.md "
        "(default: %(default)s). The options below override single rules",
        default="rankdash",
    )
    parser.settings(CONVENTION_SETTINGS, hints={"threshold": "also rel=N in a metric"})


def metrics_of(specs: Sequence[str]) -> MetricList:
    """Metrics as given. Says on standard error which of them take the threshold of another one.
    Raises SpecError naming the nearest metric, or where there is none."""
    from rankdash.core.metrics import parse_metrics

    metrics = parse_metrics(specs)
    for typed in metrics.measures:
        if typed.startswith("ERR"):
            sys.stderr.write(
                f"note: {typed} uses the highest label of the data set; ir_measures and gdeval use "
                "4. For their values: --highest-label 4\n"
            )
    if metrics.implied:
        sys.stderr.write(
            f"note: rel={metrics.threshold:g} is the relevance threshold of all metrics, also of "
            f"{', '.join(metrics.implied)}\n"
        )
    return metrics


def rules(
    arguments: argparse.Namespace,
    threshold: float | None = None,
    statistics: Callable[[int], StatisticsSettings] | None = None,
) -> Rules:
    """The rules as given. threshold: that of the metrics; statistics: None for those that were
    given too. Raises SpecError for a value that does not exist, or for two thresholds."""
    from rankdash.core.metrics import one_threshold
    from rankdash.kit.commands.rankings import Rules

    changes = chosen_settings(arguments, CONVENTION_SETTINGS)
    relevant = one_threshold([arguments.threshold, threshold])
    if relevant is not None:
        changes["threshold"] = relevant
    if changes.get("missing") == "zero":
        # A missing query can only score 0 if the labels say which queries there are.
        changes.setdefault("queries", "qrels")
    return Rules(
        replace(_PRESETS[arguments.conventions], **changes),
        statistics
        or partial(
            StatisticsSettings.for_queries, **chosen_settings(arguments, STATISTICS_SETTINGS)
        ),
        arguments.conflict,
        arguments.worst_label,
        columns_of(arguments.columns),
    )


def chosen_settings(arguments: argparse.Namespace, specs: Iterable[Setting]) -> dict[str, Any]:
    """Return the settings whose options are in the arguments."""
    options = {each.name: getattr(arguments, each.name, None) for each in specs}
    return {name: value for name, value in options.items() if value is not None}


def add_statistics(parser: Parser) -> None:
    """Each is None unless given: the defaults are those of `StatisticsSettings`."""
    thumb = f"{RULE_OF_THUMB:g} is a common rule of thumb"
    parser.settings(STATISTICS_SETTINGS, also={"level": "level"}, hints={"worthwhile": thumb})


# The option that says how the queries of labels are found.


def add_match(parser: Parser) -> None:
    """Add --match."""
    parser.choice(
        "--match",
        ("id", "order"),
        "how the queries of labels are found: by their id, or, if the labels count them 1, 2, "
        "3 …, by their order in the file of queries (default: %(default)s)",
        default="id",
    )
