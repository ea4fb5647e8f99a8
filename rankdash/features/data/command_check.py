"""`check`: what is in the files of a data set, and what is wrong with them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rankdash.core.base.errors import DataError, Finding
from rankdash.core.base.i18n import plain
from rankdash.features.overview.command_evaluate import import_late
from rankdash.kit.commands.arguments import (
    DONE,
    INCOMPLETE,
    NAMES,
    Parser,
    add_first_stage,
    add_label_rules,
    add_match,
    columns_of,
)
from rankdash.kit.commands.output import aligned, finding_line, one_line, printable

if TYPE_CHECKING:
    from rankdash.core.readers.checks.check import CheckReport, LabelSpread

_BAR = 30


def add(parser: Parser) -> None:
    # Labels and rankings need no tables, as for `evaluate`.
    import_late("pandas")
    parser.description = (
        "Read the files of one data set as the dashboard would, and report what is in "
        "them. Exit code 0 when they can be used (warnings included), 1 when they hold errors."
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help=f"a file, folder or archive{NAMES}; - is standard input",
    )
    add_first_stage(parser)
    add_label_rules(parser)
    add_match(parser)
    parser.formats(("text", "json"))
    parser.set_defaults(command=_check)


def _check(arguments: argparse.Namespace) -> int:
    """Write the check report to standard output. An error that ends the reading goes to standard
    error."""
    from rankdash.core.readers import sources_at
    from rankdash.core.readers.loading import examine

    sources = sources_at(arguments.paths)
    try:
        loaded = examine(
            sources,
            first_stage=arguments.first_stage,
            retrieval=arguments.retrieval,
            retrieved=arguments.retrieved,
            conflict=arguments.conflict,
            worst_label=arguments.worst_label,
            match=arguments.match,
            columns=columns_of(arguments.columns),
        )
    except DataError as problem:
        sys.stderr.write(f"error: {one_line(str(problem))}\n")
        return INCOMPLETE
    report = _json if arguments.format == "json" else _report
    sys.stdout.writelines(report(loaded.dataset.name, loaded.report))
    return INCOMPLETE if loaded.report.errors else DONE


def _json(name: str, report: CheckReport) -> Iterator[str]:
    content = {"name": name, **json.loads(report.to_json())}
    content["findings"] = [
        {"severity": each.severity, "code": each.code, "text": finding_line(each)}
        for each in report.findings
    ]
    yield json.dumps(content, indent=2)
    yield "\n"


def _report(name: str, report: CheckReport) -> Iterator[str]:
    from rankdash.core.words.queries import query_count

    yield f"{printable(name)}\n"
    blocking = report.blocks_reranking
    if blocking is not None:
        yield f"{finding_line(blocking)}\n"
    yield aligned(
        [
            ["queries", f"{report.queries:,}"],
            ["documents", f"{report.documents:,}"],
            ["labels", f"{report.labels:,} over {query_count(report.labelled_queries)}"],
            ["candidates a query", _spread(report.candidates_per_query)],
            ["characters a query", _spread(report.query_chars)],
            ["characters a document", _spread(report.document_chars)],
        ],
        left=2,
    )
    if report.label_histogram:
        yield "\n"
        yield _histogram(report)
    yield "\n"
    yield aligned(
        [
            ["ranking", "queries", "rows", "judged@10", "queries with ties"],
            *(
                [
                    found.name,
                    f"{found.queries:,}",
                    f"{found.rows:,}",
                    "–" if found.judged_at_10 is None else f"{found.judged_at_10:.1%}",
                    f"{found.tied_queries:,}",
                ]
                for found in report.rankings
            ),
        ]
    )
    yield from _section("error", report.errors)
    yield from _section("warning", report.warnings)
    yield from _section("note", [each for each in report.notes if each != blocking])


def _histogram(report: CheckReport) -> str:
    most = max(bar.count for bar in report.label_histogram)
    rows = [
        (
            plain(bar.low) if bar.low == bar.high else f"{plain(bar.low)} to {plain(bar.high)}",
            f"{bar.count:,}",
            # Never nothing where there is something.
            "#" * -(-bar.count * _BAR // most),
        )
        for bar in report.label_histogram
    ]
    counts = aligned([["label", "pairs"], *(row[:2] for row in rows)]).splitlines()
    bars = ["", *(row[2] for row in rows)]
    lines = (f"{line}  {bar}".rstrip() for line, bar in zip(counts, bars, strict=True))
    return "".join(f"{line}\n" for line in lines)


def _section(severity: str, findings: Sequence[Finding]) -> Iterator[str]:
    if findings:
        yield f"\n{len(findings)} {severity}{'s' if len(findings) > 1 else ''}\n"
        yield from (f"- {finding_line(finding)}\n" for finding in findings)


def _spread(spread: LabelSpread | None) -> str:
    if spread is None:
        return "–"
    return f"{spread.low:,.0f} to {spread.high:,.0f}, middle {spread.median:,.0f}"
