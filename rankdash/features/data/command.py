"""`check`: report on the files of a data set. `workspace`: export, import, repair and check."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rankdash import __version__
from rankdash.core.base.errors import DataError, Finding, SpecError
from rankdash.core.base.i18n import plain
from rankdash.core.base.text import csv_bytes
from rankdash.core.readers import name_of
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.core.workspace.workspace_file.archive import DAMAGED_DATASET
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
from rankdash.kit.commands.output import (
    STANDARD,
    aligned,
    finding_line,
    one_line,
    place_name,
    printable,
    target_of,
    warn,
    write,
    writing,
)

if TYPE_CHECKING:
    from rankdash.core.readers.checks.check import CheckReport, LabelSpread
    from rankdash.core.readers.checks.doubtful_labels import DoubtfulLabels
    from rankdash.core.readers.loading import Loaded

_BAR = 30


def add_check(parser: Parser) -> None:
    # Labels and rankings need no tables, as for `evaluate`.
    import_late("pandas")
    parser.description = (
        "Read the files of one data set like the dashboard, and report their content and their "
        "problems. Exit code 0 if they can be used (warnings included), 1 if they contain errors."
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
    parser.flag(
        "--labels",
        "also list labels that look wrong, by equal texts, by all rankings, and by the words of "
        "query and documents",
    )
    parser.several(
        "--judge",
        "FILE",
        "with --labels: the grades of LLM judges, as written by `rankdash judge run`; a label is "
        "then listed only if they contradict it too",
    )
    parser.formats(
        ("text", "json", "csv"), "csv lists the labels that look wrong, and needs --labels"
    )
    parser.set_defaults(command=_check)


def _check(arguments: argparse.Namespace) -> int:
    """Write the check report to standard output, and an error that ends the reading to standard
    error."""
    from rankdash.core.readers import read, sources_at
    from rankdash.core.readers.loading import checked
    from rankdash.kit.commands.timings import timings_in

    if not arguments.labels and (arguments.judge or arguments.format == "csv"):
        raise SpecError("--judge and --format csv need --labels.")
    sources = sources_at(arguments.paths)
    try:
        parsed = read(
            sources,
            first_stage=arguments.first_stage,
            conflict=arguments.conflict,
            worst_label=arguments.worst_label,
            match=arguments.match,
            columns=columns_of(arguments.columns),
        )
        timings = timings_in(arguments.paths, parsed)
        loaded = checked(
            parsed,
            retrieval=arguments.retrieval,
            retrieved=arguments.retrieved,
            lost={name: each.lost for name, each in timings.items()},
        )
    except DataError as problem:
        sys.stderr.write(f"error: {one_line(str(problem))}\n")
        return INCOMPLETE
    doubtful = _doubtful(loaded, arguments.judge) if arguments.labels else None
    if doubtful is not None and arguments.format == "csv":
        from rankdash.features.data import words_labels

        write(csv_bytes(words_labels.exported(doubtful, loaded.dataset)), Path(STANDARD))
    elif arguments.format == "json":
        sys.stdout.writelines(_json(loaded.dataset.name, loaded.report, doubtful))
    else:
        sys.stdout.writelines(_report(loaded.dataset.name, loaded.report))
        if doubtful is not None:
            sys.stdout.writelines(_doubtful_report(doubtful))
    return INCOMPLETE if loaded.report.errors else DONE


def _doubtful(loaded: Loaded, judges: Sequence[str]) -> DoubtfulLabels:
    from rankdash.core.readers.checks.doubtful_labels import doubtful_labels
    from rankdash.core.readers.loading import judgements_at

    read = [judgements_at(each) for each in judges]
    warn(finding for _, findings in read for finding in findings)
    return doubtful_labels(loaded.dataset, loaded.rankings, [judge for judge, _ in read])


def _doubtful_report(found: DoubtfulLabels) -> Iterator[str]:
    from rankdash.features.data import words_labels

    yield "\nLabels that look wrong\n"
    yield from (f"{one_line(each)}\n" for each in words_labels.warnings(found))
    checks = words_labels.check_rows(found)
    yield aligned(
        [words_labels.check_headings(), *([cell or "–" for cell in row] for row in checks)]
    )
    yield from (f"{each}\n" for each in words_labels.notes(found))
    for reason, title in words_labels.titles().items():
        rows = words_labels.candidates_of(found, reason)
        if rows:
            yield f"\n{title}\n"
            yield aligned([("query", "document", "label", "evidence"), *rows], left=4)


def _json(name: str, report: CheckReport, doubtful: DoubtfulLabels | None) -> Iterator[str]:
    content = {"name": name, **json.loads(report.to_json())}
    if doubtful is not None:
        from rankdash.features.data import words_labels

        content["doubtful_labels"] = words_labels.as_json(doubtful)
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
            ["candidates per query", _spread(report.candidates_per_query)],
            ["characters per query", _spread(report.query_chars)],
            ["characters per document", _spread(report.document_chars)],
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
                    ranking.name,
                    f"{ranking.queries:,}",
                    f"{ranking.rows:,}",
                    "–" if ranking.judged_at_10 is None else f"{ranking.judged_at_10:.1%}",
                    f"{ranking.tied_queries:,}",
                ]
                for ranking in report.rankings
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
            # At least one character for a count above 0.
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
    return f"{spread.low:,.0f} to {spread.high:,.0f}, median {spread.median:,.0f}"


# `workspace`: data sets with their runs and notes, to and from one file; repair and check.

_ADDED = {
    "datasets": "data sets",
    "runs": "runs",
    "notes": "notes",
    "corrections": "corrected labels",
    "explanations": "explanations",
    "judges": "judges with their grades",
    "settings": "kinds of settings",
}

_LISTED = {
    "datasets": "data sets",
    "runs": "runs",
    "notes": "notes on queries",
    "run_notes": "notes on runs",
    "corrections": "label corrections",
    "settings": "settings",
}


def add_workspace(parser: Parser) -> None:
    parser.description = (
        "The workspace is the folder in RANKDASH_HOME (for a new workspace: an empty or new "
        "folder), or by default a folder in your user data directory."
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)
    export = actions.add_parser(
        "export",
        help="write data sets, runs, notes, corrections, scenarios, prices and targets",
        description="Write data sets with their runs, notes, corrected labels, judges and "
        "explanations, "
        "and the scenarios, prices and targets, into one file. Without keys, cached scores, "
        "unfinished runs, and paths on this machine.",
    )
    export.add_argument(
        "file",
        metavar="FILE",
        help="the file to write; replaced if it exists; - is standard output",
    )
    export.add_argument(
        "--data",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="a data set, by its name or id (default: all)",
    )
    export.set_defaults(command=_export)
    bring = actions.add_parser(
        "import",
        help="add the contents of such a file to the workspace",
        description="Add everything in the file that the workspace lacks. Existing content does "
        "not change, and differences are listed. A broken file adds nothing.",
    )
    bring.add_argument("file", metavar="FILE", help="the file to import; - is standard input")
    bring.set_defaults(command=_import)
    mend = actions.add_parser(
        "repair",
        help="rebuild a database that is missing, damaged or an older copy",
        description="Rebuild the database from the folders, the readable part of the old "
        "database, and its newest copy in the folder backups. Nothing is deleted: the "
        "old database is moved to the folder trash. Close other programs that use the "
        "workspace first. An intact workspace does not change.",
    )
    mend.set_defaults(command=_repair)
    check = actions.add_parser(
        "check",
        help="find data sets and runs that changed after they were written",
        description="Read every table of the workspace and compare it with its stored hash. "
        "Tables from versions without hashes get one. Damaged data sets and runs are "
        "listed, and the exit code is then 1.",
    )
    check.set_defaults(command=_check_workspace)


def _export(arguments: argparse.Namespace) -> int:
    """Write the file; on failure, leave none. If damaged parts are excluded, list them and return
    1."""
    target, workspace = target_of(arguments.file), Workspace.open()
    if workspace.trouble is not None:
        sys.stderr.write(f"warning: {printable(str(workspace.trouble))}\n")
    chosen = _chosen(workspace, arguments.data)
    with writing(target) as stream:
        excluded = archive.export(workspace, stream, __version__, chosen, _progress)
        size = stream.tell()
    warn(excluded)
    whole = [each for each in excluded if each.code == DAMAGED_DATASET]
    sys.stderr.write(
        f"Data sets exported: {len(chosen) - len(whole)}, {size / 1e6:,.1f} MB. "
        f"Written: {place_name(target)}\n"
    )
    return INCOMPLETE if excluded else DONE


def _import(arguments: argparse.Namespace) -> int:
    """Import a file; list on standard error what differs from the workspace."""
    file = Path(arguments.file)
    with tempfile.TemporaryFile() as stream:
        source: Path | BinaryIO = file
        if arguments.file == STANDARD:
            # A zip is read from its end.
            shutil.copyfileobj(sys.stdin.buffer, stream)
            source = stream
        imported = import_workspace.bring_in(Workspace.open(), source, name_of(file), _progress)
    warn(imported.findings)
    added = [f"{_ADDED[kind]} {n:,}" for kind, n in imported.added.items() if n and kind in _ADDED]
    sys.stderr.write(f"Added: {', '.join(added) or 'nothing, the workspace contains everything'}\n")
    return DONE


def _repair(_arguments: argparse.Namespace) -> int:
    """Rebuild the database of the workspace, and report on standard error what was recovered."""
    workspace = Workspace.open()
    done = workspace.repair()
    if done is None:
        sys.stderr.write(f"There is nothing to repair in {printable(str(workspace.root))}\n")
        return DONE
    rows = ", ".join(f"{words} {done.rows[name]:,}" for name, words in _LISTED.items())
    lines = [f"Repaired: {workspace.root}", f"Contents: {rows}"]
    if done.from_folders:
        lines.append(f"Data sets and runs recovered from folders: {done.from_folders:,}")
    if done.copy_of:
        lines.append(f"Also used: the database copy of {done.copy_of}")
    if done.changed:
        lines.append(
            f"Quarantined because they changed after they were written: {done.changed:,} rows"
        )
    lines += [f"Could not be listed (left unchanged): {folder}" for folder in done.unlisted]
    lines += [f"Folder missing: {name}" for name in done.gone]
    if done.trash is not None:
        lines.append(f"The old database is in {done.trash} for 30 days")
    sys.stderr.writelines(f"{printable(line)}\n" for line in lines)
    return DONE


def _check_workspace(_arguments: argparse.Namespace) -> int:
    """List damaged data sets and runs on standard output."""
    workspace = Workspace.open()
    stored = [
        *(("datasets", row.id, row.name) for row in workspace.datasets()),
        *(("runs", row.id, row.name) for row in workspace.runs()),
    ]
    damaged = [
        f"{name}: {error}"
        for kind, key, name in stored
        if (error := workspace.damage(kind, key)) is not None
    ]
    sys.stdout.writelines(f"{printable(line)}\n" for line in damaged)
    sys.stderr.write(f"Data sets and runs checked: {len(stored):,}. Damaged: {len(damaged):,}.\n")
    return INCOMPLETE if damaged else DONE


def _chosen(workspace: Workspace, names: Sequence[str]) -> list[str]:
    rows = workspace.datasets()
    if not rows:
        raise DataError(
            "There is no data set in the workspace {folder}.",
            remedy="Set RANKDASH_HOME to the folder of another workspace.",
            folder=str(workspace.root),
        )
    if not names:
        return [row.id for row in rows]
    selected: dict[str, str] = {}
    for name in names:
        fitting = [row.id for row in rows if name in (row.id, row.name)]
        if not fitting:
            raise DataError(
                "There is no data set {name!r} in the workspace.",
                remedy="Possible: {names}.",
                name=name,
                names=", ".join(row.name for row in rows),
            )
        selected |= dict.fromkeys(fitting, name)
    return list(selected)


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done} of {total}" + ("\n" if done == total else ""))
