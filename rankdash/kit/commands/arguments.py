"""Shared parts of the commands: the parser, exit codes, and arguments of several commands."""

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
from rankdash.kit.commands.examples import EXAMPLES

if TYPE_CHECKING:
    from rankdash.core.base.rules import SettingSpec
    from rankdash.core.metrics import MetricList
    from rankdash.kit.commands.rankings import Rules

DONE, INCOMPLETE, REFUSED, INTERRUPTED = 0, 1, 2, 130

_DEFAULT_CHARACTERS = 60

# The names of all formats; each command supports some of them.
TEXT = "text"
FORMATS = (TEXT, "json", "csv", "markdown", "latex", "junit")

# Appended to the help if a data set may also be loaded by its name.
NAMES = ", or a name such as ir_datasets:beir/scifact/test or hf:organization/name"


def described(action: argparse.Action) -> Setting | None:
    """Return the setting that an option was made from by `Parser.settings`."""
    owner = getattr(action.type, "__self__", None)
    return owner if isinstance(owner, Setting) else None


class UsageError(Exception):
    """Invalid arguments; the message is argparse's own."""


class Parser(argparse.ArgumentParser):
    """A parser that refuses with one line and accepts no abbreviated options, since a later option
    with the same beginning would break scripts.

    closing: returns the end of the help text, when it is shown.
    stands_for: returns the options that positional arguments replace, from the typed arguments and
        the options in a settings file.
    """

    closing: Callable[[], str] | None = None
    stands_for: Callable[[argparse.Namespace, Collection[str]], Collection[str]] | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def option(
        self, name: str, metavar: str, help_text: str, *, also: Sequence[str] = (), **settings: Any
    ) -> None:
        """Add an option with a value. metavar: FILE or PATH for a file. also: its other
        spellings."""
        self.add_argument(name, *also, metavar=metavar, help=help_text, **settings)

    def several(self, name: str, metavar: str, help_text: str, **settings: Any) -> None:
        """Add an option with values, which may be repeated; its default is []."""
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
        """Add `--metric`, `--metrics` and `-m`: lists of specs, as `metrics_of` reads them."""
        self.several("--metric", "SPEC", help_text, also=("--metrics",), dest="metrics", **settings)
        self.option(
            "-m", "SPEC", "as --metric, one value at a time", action="append", dest="metrics",
            default=[],
        )  # fmt: skip

    def formats(self, forms: Collection[str], note: str = "") -> None:
        """Add `--format` with some of `FORMATS`, and `--json`. note: an explanation of the
        formats."""
        self.choice(
            "--format",
            [form for form in FORMATS if form in forms],
            "; ".join(filter(None, ("output format", note))) + " (default: %(default)s)",
            default=TEXT,
            # Its name before all commands had the same names.
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
        """Add an option for each setting; its default is None. also: setting → another name of its
        option. hints: setting → the end of its help."""
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
        # argparse accepts positional arguments only in one place.
        if rest:
            parsed.files = [*getattr(parsed, "files", ()), *rest]
        return parsed, []

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. See: {self.prog} --help")

    def format_help(self) -> str:
        if self.closing is not None:
            self.epilog = self.closing()
        examples = EXAMPLES.get(self.prog.partition(" ")[2], ())
        listed = "".join(f"  {example}\n" for example in examples)
        return super().format_help() + (f"\nexamples:\n{listed}" if listed else "")


def add_labels(parser: Parser) -> None:
    parser.option("--qrels", "FILE", "the labels, in any supported format", required=True)


def add_profile(parser: Parser, help_text: str) -> None:
    """Add `--profile`, as `Goals.of` reads it."""
    from rankdash.core.value.targets import shipped

    parser.option(
        "--profile",
        "NAME",
        f"{help_text}: {', '.join(shipped().profiles)}, or your own .json file "
        "(as exported by Overview) or .toml file",
    )


def add_first_stage(parser: Parser) -> None:
    """Add `--first-stage`, and the options to make a first stage if there is none."""
    parser.option(
        "--first-stage",
        "NAME",
        "the ranking of the data set to use as the first stage, if it contains several",
    )
    parser.choice(
        "--retrieval",
        ("bm25", "bi-encoder", "fused", "listed", "rows"),
        "how to make a missing first stage. bm25, bi-encoder, fused: retrieve from all documents "
        "by BM25, by the packaged bi-encoder, or by both. listed: order only the listed documents "
        "of a query by BM25, which overstates quality. rows: use the order of the rows. Default: "
        "bm25, or listed if the files list relevant and irrelevant documents",
    )
    parser.number(
        "--retrieval-depth",
        "the number of documents to retrieve per query (default: %(default)s)",
        kind=int,
        dest="retrieved",
        default=100,
    )


def add_judge(parser: Parser) -> None:
    parser.option(
        "--judge",
        "FILE",
        "the grades of an LLM judge: CSV or JSON lines of query_id, doc_id and grade, as "
        "written by `rankdash judge run`. The output shows the verdicts by human labels, by the "
        "judge, and by the judge corrected with human labels; grades are never used as labels",
    )


def add_label_rules(parser: Parser) -> None:
    """Add the options for reading labels: several labels of a pair, scales whose lowest grade is
    the best, and column names."""
    parser.choice(
        "--conflict",
        ("highest", "lowest", "mean", "refuse"),
        "which label to use if a pair has several (default: %(default)s)",
        default="highest",
    )
    parser.number(
        "--reverse-labels",
        "for labels whose lowest grade is the best, as in Cranfield: each label L becomes N - "
        'L, so N is the grade for "not relevant"; labels below 0 stay',
        dest="worst_label",
    )
    parser.several(
        "--columns",
        "FIELD=COLUMN",
        "override detected columns, which `check` shows. Each file uses the columns that it "
        "has. FIELD is query_id, query, doc_id, document, title, label, score, rank or "
        "reranked; an empty COLUMN ignores the field",
    )


def columns_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return field → column, from the values of --columns. Raises SpecError for anything else."""
    columns: dict[str, str] = {}
    for pair in pairs:
        field, equals, column = pair.partition("=")
        if not equals:
            raise SpecError(
                "--columns needs FIELD=COLUMN, not {pair!r}.",
                remedy="For example: --columns query=Question label=Grade.",
                pair=pair,
            )
        field, column = field.strip(), column.strip()
        if columns.setdefault(field, column) != column:
            raise SpecError(
                "--columns assigns two columns to {field}: {first} and {second}.",
                remedy="Use each field once, and rename the column in one of the files.",
                field=field,
                first=columns[field],
                second=column,
            )
    return columns


def add_settings(parser: Parser, help_text: str) -> None:
    """Add `--set`, as `settings_of` reads it."""
    parser.option("--set", "KEY=VALUE", help_text, action="append", default=[], dest="settings")


def settings_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return name → value, from the values of --set. Raises SettingError for anything else."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise SettingError(
                "--set needs key=value, not {pair!r}.",
                remedy="For example: --set max_length=256",
                pair=pair,
            )
        settings[key.strip()] = value
    return settings


def settings_lines(specs: Iterable[SettingSpec], indent: str) -> list[str]:
    """Return a line for each setting with its default, help and values, for the help text."""
    lines = []
    for spec in specs:
        possible = ", ".join(spec.choices) or spec.range or spec.type.__name__
        default = str(spec.default)
        if len(default) > _DEFAULT_CHARACTERS:
            # A prompt has many lines.
            default = textwrap.shorten(default, _DEFAULT_CHARACTERS, placeholder=" …")
        lines.append(f"{indent}{spec.name}={default}  {spec.help} ({possible})")
    return lines


def add_plugin(parser: Parser) -> None:
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file that defines your own rerankers; the file is executed, so use only "
        "files that you trust; may be repeated (docs/rerankers.md)",
    )


_PRESETS = {**CONVENTION_PRESETS, "trec_eval9": Conventions.trec_eval(9)}


def add_outputs(parser: Parser) -> None:
    """Add the formats and the files of a check for CI."""
    parser.formats(("text", "json", "markdown", "junit"))
    parser.option(
        "--out",
        "FILE",
        "write to a file, and text to the screen; may be repeated. The extension sets the format: "
        ".md Markdown, .xml JUnit, .json JSON, .txt text, otherwise --format; - is standard output",
        also=("-o",),
        action="append",
        default=[],
    )


def add_conventions(parser: Parser) -> None:
    parser.choice(
        "--conventions",
        tuple(_PRESETS),
        "rankdash: every labelled query counts, except queries without a relevant document. "
        "trec_eval: as `trec_eval` 10 without -c. trec_eval9, BEIR: as version 9 and "
        "pytrec_eval, which compare scores in single precision. ranx, scikit-learn: see "
        "docs/metrics.md (default: %(default)s). The options below override single conventions",
        default="rankdash",
    )
    parser.settings(CONVENTION_SETTINGS, hints={"threshold": "also rel=N in a metric"})
    parser.option(
        "--frequencies",
        "FILE",
        "a table of queries with query_id and frequency, and optionally stratum and probability, "
        "as written by `sample-log`; needed for means per search if no other file has them",
    )


def metrics_of(specs: Sequence[str]) -> MetricList:
    """Return the metrics of the specs. Report on standard error which of them use the threshold of
    another one. Raises SpecError with the nearest metric's name, or if there are no metrics."""
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
            f"note: rel={metrics.threshold:g} is the relevance threshold of all metrics, including "
            f"{', '.join(metrics.implied)}\n"
        )
    return metrics


def rules(
    arguments: argparse.Namespace,
    threshold: float | None = None,
    statistics: Callable[[int], StatisticsSettings] | None = None,
) -> Rules:
    """Return the rules of the arguments. threshold: the threshold in the metrics. statistics: None
    to use the arguments. Raises SpecError for a value that does not exist, or for two thresholds.
    """
    from rankdash.core.metrics import one_threshold
    from rankdash.kit.commands.rankings import Rules

    changes = chosen_settings(arguments, CONVENTION_SETTINGS)
    relevant = one_threshold([arguments.threshold, threshold])
    if relevant is not None:
        changes["threshold"] = relevant
    if changes.get("missing") == "zero":
        # A missing query can score 0 only if the labels define the set of queries.
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
        getattr(arguments, "frequencies", None),
    )


def chosen_settings(arguments: argparse.Namespace, specs: Iterable[Setting]) -> dict[str, Any]:
    """Return the settings whose options are in the arguments."""
    options = {each.name: getattr(arguments, each.name, None) for each in specs}
    return {name: value for name, value in options.items() if value is not None}


def add_statistics(parser: Parser) -> None:
    """Add the options of `StatisticsSettings`; each is None by default."""
    thumb = f"{RULE_OF_THUMB:g} is a common rule of thumb"
    parser.settings(STATISTICS_SETTINGS, also={"level": "level"}, hints={"worthwhile": thumb})


# How labels are matched with queries.


def add_match(parser: Parser) -> None:
    """Add --match."""
    parser.choice(
        "--match",
        ("id", "order"),
        "how labels are matched with queries: by query id, or, if the labels number the queries "
        "1, 2, 3 …, by their order in the file of queries (default: %(default)s)",
        default="id",
    )
