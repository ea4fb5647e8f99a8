"""`report`: a comparison of files as one HTML file."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.base.files import from_toml, guarded, text_of
from rankdash.core.base.i18n import speaking
from rankdash.core.metrics import MetricList
from rankdash.core.readers import Source
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.core.value.prices import ListedPrice, parse_prices
from rankdash.core.value.targets import Goals, is_file
from rankdash.kit.commands.arguments import (
    DONE,
    NAMES,
    Parser,
    add_conventions,
    add_first_stage,
    add_judge,
    add_label_rules,
    add_profile,
    add_statistics,
    metrics_of,
    rules,
)
from rankdash.kit.commands.output import place_name, spare_the_input, target_of, write
from rankdash.kit.commands.rankings import Files, study_of
from rankdash.kit.commands.timings import timings_of

_MB = 1_000_000
_EVERYONE = "all"


def add(parser: Parser) -> None:
    parser.description = (
        "Compare rankings and write the report. It begins with a one-page summary: findings, "
        "cost, risks, open points, next step. Then follow every metric with its interval, the "
        "queries helped and hurt, latency, cost, the data and the definition of each number. The "
        "report is one HTML file that loads nothing from a network."
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.closing = _closing
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--data",
        nargs="+",
        action="extend",
        metavar="PATH",
        help=f"the files, folder or archive of a data set{NAMES}; if it has texts, the report "
        "quotes queries",
    )
    source.add_argument(
        "--qrels", metavar="FILE", help="the labels, without a data set; needs --baseline"
    )
    parser.option(
        "--baseline", "FILE", "the ranking to compare with (default: the first stage of --data)"
    )
    parser.several(
        "--challenger",
        "FILE",
        "a ranking to compare; may be repeated (default: the rankings in --data)",
        also=("--challengers",),
    )
    parser.several(
        "--timings",
        "FILE",
        "the latencies of each --challenger, in the same order, as written by `rerank --timings`; "
        "failed queries are excluded for both systems",
    )
    add_first_stage(parser)
    add_judge(parser)
    parser.metrics(
        "the metric of the verdict, then other metrics to show; may be repeated (default: ndcg@10)"
    )
    parser.option(
        "--out",
        "FILE",
        "the report to write; - is standard output",
        also=("-o",),
        required=True,
    )
    add_profile(parser, "also show the targets of a profile")
    parser.option(
        "--hard-negatives",
        "FILE",
        "also write JSON lines with query, positive and negative for training, the triplet format "
        "of sentence-transformers. A negative is a document labelled not relevant that the first "
        "--challenger ranks above the positive, a relevant document",
    )
    parser.option(
        "--title", "TEXT", "title of the report (default: names the data set)", default=""
    )
    parser.option("--note", "TEXT", "a text below the title", default="")
    parser.option("--logo", "FILE", "a PNG, JPEG, GIF or WebP picture next to the title")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument(
        "--preset",
        choices=("decision", "full"),
        help="decision: one printed page; full: all sections (default: full)",
    )
    parts.add_argument(
        "--sections",
        nargs="+",
        action="extend",
        default=[],
        metavar="ID",
        help="sections to write instead of a preset; their ids are listed below",
    )
    parser.option("--language", "CODE", "en or zh (default: %(default)s)", default="en")
    parser.option(
        "--assumptions",
        "FILE",
        "TOML with the value and the cost of a search (docs/cost.md); without it, the report "
        "shows only the cost",
    )
    parser.flag(
        "--example-values",
        "for a demonstration: use example values if no price or no value of a search is set; each "
        "result that uses one is marked",
    )
    add_statistics(parser)
    add_conventions(parser)
    add_label_rules(parser)
    parser.set_defaults(command=_report)


def _report(arguments: argparse.Namespace) -> int:
    """Read, compare and write. Findings of the readers go to standard error."""
    from rankdash.features.report.report import PRESETS, front_of, html

    target = target_of(arguments.out)
    optional = (
        *(arguments.qrels, arguments.baseline, arguments.judge),
        *(arguments.logo, arguments.assumptions),
    )
    named = [file for file in optional if file is not None]
    if arguments.profile is not None and is_file(arguments.profile):
        named.append(arguments.profile)
    several = (*(arguments.data or ()), *arguments.challenger, *arguments.timings)
    spare_the_input(target, [*several, *named])
    if arguments.hard_negatives is not None:
        spare_the_input(target_of(arguments.hard_negatives), [*several, *named])
    typed = [name.strip() for text in arguments.sections for name in text.split(",")]
    sections = tuple(name for name in typed if name)
    front = front_of(
        arguments.title,
        arguments.note,
        arguments.logo,
        sections or PRESETS[arguments.preset or "full"],
        arguments.language,
    )
    metrics = metrics_of(arguments.metrics or ["ndcg@10"])
    with speaking(front.language):
        study = _study(arguments, metrics)
    if arguments.assumptions is not None:
        names = {system: study.name(system) for system in study.challengers}
        study = replace(study, money=read_money(Path(arguments.assumptions), names))
    if arguments.example_values:
        study = replace(study, money=replace(study.money or Money(), example=True))
    if arguments.profile is not None:
        study = replace(study, goals=Goals.of(arguments.profile))
    content = html(study, front)
    write(content, target)
    if arguments.hard_negatives is not None:
        _write_triplets(study, target_of(arguments.hard_negatives))
    size = f"{len(content) / 1e6:.1f} MB" if len(content) >= _MB else f"{len(content) / 1e3:.0f} kB"
    sys.stderr.write(
        f"Written: {place_name(target)} ({size}, it opens in a browser without a network)\n"
    )
    return DONE


def _write_triplets(study: Study, target: Path) -> None:
    from rankdash.features.report.report_exports import triplet_lines

    lines = triplet_lines(study, study.challengers[0] if study.challengers else study.baseline)
    write(lines, target)
    count = lines.count(b"\n")
    triplets = "1 triplet" if count == 1 else f"{count:,} triplets"
    sys.stderr.write(f"Written: {place_name(target)} ({triplets})\n")


def _study(arguments: argparse.Namespace, metrics: MetricList) -> Study:
    challengers, timings = arguments.challenger, arguments.timings
    if arguments.qrels is not None and (arguments.baseline is None or not challengers):
        raise SpecError("--qrels also needs --baseline and --challenger.")
    files = Files(
        data=arguments.data or (),
        qrels=arguments.qrels,
        baseline=arguments.baseline,
        challengers=challengers,
        timings=timings_of(timings, challengers),
        first_stage=arguments.first_stage,
        retrieval=arguments.retrieval,
        retrieved=arguments.retrieved,
        judge=arguments.judge,
    )
    first, *others = metrics.specs
    study = study_of(files, rules(arguments, metrics.threshold), first, None, check=True)
    # In addition to the metrics of every report.
    return replace(study, others=(*others, *study.specs)) if others else study


def _closing() -> str:
    """Return the list of all sections and assumptions at the end of the help text."""
    from rankdash.features.report.report import SECTIONS

    sections = [f"  {section.id}: {section.title}" for section in SECTIONS]
    assumptions = [
        f"  {each.name} = {each.default:g}: {each.title}"
        + ("" if each.unit.casefold() == each.title.casefold() else f" ({each.unit})")
        for each in ASSUMPTIONS
    ]
    return "\n".join(
        [
            "sections (--sections ID …):", *sections,
            "", "what --assumptions may set, with the defaults:", *assumptions,
            "  machines = whole: whole machines by the hour, or a share of them (share)",
        ]
    )  # fmt: skip


def read_money(path: Path, names: Mapping[str, str]) -> Money:
    """Read the assumptions from a TOML file.

    It contains assumptions by name, machines ("whole" or "share"), currency, rates (`rates = { USD
    = 7.1 }`: price of one unit of another currency), and [[prices]] as in `assets/prices.toml`. The
    key of a price is the name of a system or "all".

    names: challenger → name. Raises DataError, which names the file, for other content.
    """
    with guarded(
        str(path),
        "The assumptions cannot be read: {reason}.",
        "Use TOML with a line such as: searches_per_day = 5000",
    ):
        return _money(from_toml(text_of(Source.from_path(path).data)), str(path), names)


def _money(read: dict[str, Any], file: str, names: Mapping[str, str]) -> Money:
    currency = str(read.pop("currency", "USD")).upper()
    rates = _rates(read.pop("rates", {}), file)
    listed = read.pop("prices", None)
    prices = () if listed is None else _prices(listed, file)
    money = Money.of(read, currency=currency, rates=rates)
    by_key = {each.key: each for each in prices}
    for key in by_key:
        if key != _EVERYONE and key not in names.values():
            raise DataError(
                "The price {key!r} does not match a system of the report.",
                remedy="The key of a price is {everyone!r} or one of: {names}.",
                file=file,
                key=key,
                everyone=_EVERYONE,
                names=", ".join(names.values()),
            )
    return replace(
        money,
        prices={
            system: price
            for system, name in names.items()
            if (price := by_key.get(name, by_key.get(_EVERYONE))) is not None
        },
    )


def _rates(read: Any, file: str) -> dict[str, float]:
    """Return currency → amount in the scenario's currency for one unit. Raises DataError for an
    invalid rate."""
    if not isinstance(read, dict):
        read = {"": read}
    for currency, rate in read.items():
        is_number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
        if not (is_number and 0 < rate < math.inf):
            raise DataError(
                "The exchange rate {currency} = {rate!r} is not a number above 0.",
                remedy="Write how much one unit is in the currency of the file, such as: "
                "rates = {{ USD = 7.1 }}",
                file=file,
                currency=currency,
                rate=rate,
            )
    return {str(currency).upper(): float(rate) for currency, rate in read.items()}


def _prices(listed: object, file: str) -> tuple[ListedPrice, ...]:
    return parse_prices(json.dumps({"prices": listed}, default=str).encode(), file)
