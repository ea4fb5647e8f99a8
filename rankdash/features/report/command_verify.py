"""`verify`: the certificate of a report, checked against the files."""

from __future__ import annotations

import argparse
import html
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.base.files import guarded
from rankdash.core.base.i18n import LANGUAGES, speaking
from rankdash.core.base.rules import Conventions, StatisticsSettings
from rankdash.core.base.text import html_safe
from rankdash.core.study import certificate as certificates
from rankdash.core.study.certificate import MOST_BYTES, Check
from rankdash.core.study.leaderboard import best_challenger
from rankdash.core.study.study import Study
from rankdash.core.words.verdicts import change_interval, interval, sentence
from rankdash.features.report.decision import hit_counts
from rankdash.kit.commands.arguments import (
    DONE,
    INCOMPLETE,
    NAMES,
    Parser,
    add_first_stage,
    add_judge,
    add_label_rules,
    columns_of,
)
from rankdash.kit.commands.output import one_line, spare_the_input, target_of, write
from rankdash.kit.commands.rankings import Files, Rules, Timings, study_of

_REMEDY = "Use the file as `report` or `compare --json` wrote it."
_ROW = "<tr><th scope=row>"
_TAG = re.compile(r"<[^<>]*>")


def add(parser: Parser) -> None:
    parser.description = (
        "Check a report: compute every number of its certificate again from the files, by the "
        "rules in the certificate, and compare with the certificate and with the printed numbers. "
        "docs/certificate.md describes the certificate; docs/verify.py checks it without rankdash. "
        "Exit code 0: everything is correct. 1: something differs. 2: the check could not run."
    )
    parser.add_argument(
        "report", metavar="REPORT", help="the HTML file of `report`, or the JSON of `compare`"
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--data",
        nargs="+",
        action="extend",
        metavar="PATH",
        help=f"the files, folder or archive of a data set{NAMES}",
    )
    source.add_argument("--qrels", metavar="FILE", help="the labels, without a data set")
    parser.several(
        "--run",
        "FILE",
        "a ranking of the report; may be repeated, in any order. With --qrels, the baseline is "
        "one of them",
        also=("--runs",),
    )
    parser.several(
        "--timings",
        "FILE",
        "the failed queries of each --run after the first with --qrels, or of each --run with "
        "--data, in the same order, as written by `rerank --timings`",
    )
    parser.option(
        "--values", "FILE", "also write the values of the queries as JSON, for docs/verify.py"
    )
    add_first_stage(parser)
    add_judge(parser)
    parser.formats(("text", "json"))
    add_label_rules(parser)
    parser.set_defaults(command=_verify)


def _verify(arguments: argparse.Namespace) -> int:
    inputs = [arguments.report, *(arguments.data or ()), *arguments.run, *arguments.timings]
    inputs += [file for file in (arguments.qrels, arguments.judge) if file is not None]
    if arguments.values is not None:
        spare_the_input(target_of(arguments.values), inputs)
    content, document, rules = _opened(Path(arguments.report))
    checks = [*certificates.seal_checks(content, document)]
    study = None
    if not any(each.reason for each in checks):
        read = _read_files(arguments, _rules(arguments, *rules), content)
        study, of_inputs = certificates.same_study(content, read)
        checks += of_inputs
    if study is not None:
        checks += certificates.number_checks(content, study)
        checks += printed_checks(content, document.decode("utf-8", "replace"), study)
        if arguments.values is not None:
            specs = [spec for family in content["families"] for spec in family]
            values = certificates.query_values(study, specs)
            write(certificates.canonical(values), target_of(arguments.values))
    passed = not any(each.reason for each in checks)
    write_out = _as_json if arguments.format == "json" else _text
    sys.stdout.writelines(write_out(content, checks, passed=passed))
    return DONE if passed else INCOMPLETE


def _opened(path: Path) -> tuple[dict[str, Any], bytes, tuple[Conventions, StatisticsSettings]]:
    """Return the certificate of a report, the report without it, and its rules. Raises DataError
    if it has another form."""
    with guarded(str(path), "The certificate cannot be used: {reason}.", _REMEDY):
        if path.stat().st_size > MOST_BYTES:
            raise DataError("The report has more than {most:,} bytes.", most=MOST_BYTES)
        content, document = certificates.opened(path.read_bytes())
        return content, document, certificates.settings_of(content)


def _rules(
    arguments: argparse.Namespace, conventions: Conventions, statistics: StatisticsSettings
) -> Rules:
    return Rules(
        conventions,
        lambda _queries: statistics,
        arguments.conflict,
        arguments.worst_label,
        columns_of(arguments.columns),
    )


def _read_files(arguments: argparse.Namespace, rules: Rules, content: Mapping[str, Any]) -> Study:
    """Return the study of the files. No name in the certificate is a path that is opened."""
    runs, baseline = list(arguments.run), None
    if arguments.qrels is not None:
        if not runs:
            raise SpecError("--qrels also needs --run.")
        baseline = runs.pop(0)
    if len(arguments.timings) > len(runs):
        raise SpecError("There are more --timings than --run with timings.")
    files = Files(
        data=arguments.data or (),
        qrels=arguments.qrels,
        baseline=baseline,
        challengers=runs,
        timings=[Timings.read(file) for file in arguments.timings],
        first_stage=arguments.first_stage,
        retrieval=arguments.retrieval,
        retrieved=arguments.retrieved,
        judge=arguments.judge,
    )
    return study_of(files, rules, content["metric"], None, check=bool(arguments.data))


def printed_checks(content: Mapping[str, Any], document: str, study: Study) -> Iterator[Check]:
    """Yield the checks of the printed numbers against the certificate."""
    if document.startswith("{"):
        with guarded("", "The comparisons cannot be read: {reason}.", _REMEDY):
            yield _json_check(content, json.loads(document))
        return
    lines = [each.partition("</tr>")[0] for each in document.split(_ROW)[1:]]
    rows = [[*map(html.unescape, _TAG.split(each))] for each in lines]
    if not rows or not content["numbers"]:
        return
    language = re.search(r'<html lang="([^"]*)">', document)
    code = language[1] if language and language[1] in LANGUAGES else "en"
    names = [*map(html.unescape, map(html_safe, content["systems"]))]
    for at, (name, row) in enumerate(
        zip(names, content["numbers"].get(content["metric"], []), strict=False)
    ):
        shown = next((each for each in rows if name in each), None)
        with speaking(code):
            expected = _texts(row, compared=at > 0)
        missing = ["the system"] if shown is None else [e for e in expected if e not in shown]
        reason = f"the leaderboard lacks {', '.join(missing)}" if missing else ""
        yield Check(f"printed numbers of {name}", reason)
    best = best_challenger(study)
    if best is not None:
        with speaking(code):
            lacking = [each for each in _sentences(study, best) if html_safe(each) not in document]
        reason = f"the report lacks: {' '.join(lacking)}" if lacking else ""
        yield Check(f"printed verdict on {study.name(best)}", reason)


def _texts(row: Mapping[str, Any], *, compared: bool) -> list[str]:
    """Return the numbers of a row as the leaderboard prints them. compared: whether the system is
    a challenger."""
    texts = [f"{row['helped'][1]} / {row['hurt'][1]}"] if compared else []
    for name, text in (("mean", interval), ("delta", change_interval))[: 1 + compared]:
        ends = (row[f"{name}_{end}"][0] for end in ("low", "high"))
        texts += [row[name][1], text(*(math.nan if each is None else each for each in ends))]
    return [each for each in texts if each != "–"]


def _sentences(study: Study, best: str) -> list[str]:
    """Return the sentences of the decision that have numbers of the certificate."""
    # Loading all charts takes long.
    from rankdash.features.report import report_sections, words

    hits = hit_counts(study, best)
    verdict = sentence(study.comparison.verdict(best, study.spec, study.names))
    if hits is None or not study.measures_quality:
        return [verdict]
    return [verdict, words.hits(hits), report_sections.sureness(study, hits.change)]


def _json_check(content: Mapping[str, Any], document: Mapping[str, Any]) -> Check:
    """Return the check of the rows of `compare --json`."""
    rows = {(row["metric"], row["system"]): row for row in document["comparisons"]}
    wrong = []
    for spec in content["families"][0] if content["families"] else ():
        for name, row in zip(content["systems"], content["numbers"][spec], strict=False):
            shown = rows.get((spec, name), {})
            wrong += [
                f"{field} of {name} in {spec}"
                for field, value in row.items()
                if field != "verdict" and not certificates.close(shown.get(field), value[0])
            ]
            kind = shown.get("verdict", {"kind": "baseline"})["kind"]
            wrong += [] if kind == row["verdict"] else [f"verdict on {name} in {spec}"]
    return Check("printed comparisons", f"they differ: {', '.join(wrong)}" if wrong else "")


def _text(content: Mapping[str, Any], checks: Sequence[Check], *, passed: bool) -> Iterator[str]:
    for each in checks:
        line = f"{each.subject}: {each.reason}" if each.reason else each.subject
        yield f"{'refused' if each.reason else 'ok':<9}{one_line(line)}\n"
    for text in content["not_covered"]:
        yield f"{'-':<9}{one_line(f'not covered: {text}')}\n"
    refused = sum(bool(each.reason) for each in checks)
    result = "PASSED" if passed else f"FAILED: {refused} refused"
    yield f"{result} ({len(checks)} checks; made with rankdash {one_line(_version(content))})\n"


def _version(content: Mapping[str, Any]) -> str:
    return str(content["made"].get("rankdash", "?"))


def _as_json(content: Mapping[str, Any], checks: Sequence[Check], *, passed: bool) -> Iterator[str]:
    document = {
        "passed": passed,
        "checks": [{"ok": not each.reason, **asdict(each)} for each in checks],
        "not_covered": content["not_covered"],
        "made": content["made"],
    }
    yield json.dumps(document, indent=2) + "\n"
