"""`verify`: the certificate of a report, checked against the files."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.base.files import guarded
from rankdash.core.base.i18n import LANGUAGES, speaking
from rankdash.core.base.rules import Conventions, StatisticsSettings
from rankdash.core.study import certificate as certificates
from rankdash.core.study.certificate import MOST_BYTES, Check
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
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
from rankdash.kit.commands.rankings import Files, Rules, names_of, study_of
from rankdash.kit.commands.timings import Timings

_REMEDY = "Use the file as `report` or `compare --json` wrote it."
_MOST_NAMED = 5


def add(parser: Parser) -> None:
    parser.description = (
        "Check a report: compute every number of its certificate again from the files, by the "
        "rules in the certificate. Compare with the certificate, and with the printed numbers and "
        "sentences. docs/certificate.md describes the certificate; docs/verify.py checks it "
        "without rankdash. Exit code 0: everything is correct. 1: something differs. 2: the check "
        "could not run."
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
        study, of_inputs = _same_study(arguments, _rules(arguments, *rules), content, document)
        checks += of_inputs
    if study is not None:
        checks += certificates.number_checks(content, study)
        text = document.decode("utf-8", "replace")
        checks += _printed_checks(content, text, study, arguments)
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


def _same_study(
    arguments: argparse.Namespace, rules: Rules, content: Mapping[str, Any], document: bytes
) -> tuple[Study | None, list[Check]]:
    """Return `same_study` of the files. `compare` reads the baseline first, so that its output is
    checked against files in this order."""
    if arguments.qrels is not None and not arguments.run:
        raise SpecError("--qrels also needs --run.")
    timings: list[Timings | None] = [*map(Timings.read, arguments.timings)]
    if arguments.qrels is not None:
        timings = [None, *timings]
    if len(timings) > max(1, len(arguments.run)):
        raise SpecError("There are more --timings than --run with timings.")
    files = [*zip_longest(arguments.run, timings)]
    read = _read_files(arguments, rules, content, files)
    found = certificates.same_study(content, read)
    study = found[0]
    if study is None or not document.startswith(b"{") or study.baseline == FIRST_STAGE:
        return found
    first = names_of(arguments.run).get(read.name(study.baseline))
    files.sort(key=lambda each: Path(each[0]) != first)
    if arguments.qrels is None or files[0][1] is not None:
        return found
    return certificates.same_study(content, _read_files(arguments, rules, content, files))


def _read_files(
    arguments: argparse.Namespace,
    rules: Rules,
    content: Mapping[str, Any],
    rankings: Sequence[tuple[str, Timings | None]],
) -> Study:
    """Return the study of the files. No name in the certificate is a path that is opened.

    rankings: with timings; the first one is the first stage if there is no data set.
    """
    alone = arguments.qrels is not None
    files = Files(
        data=arguments.data or (),
        qrels=arguments.qrels,
        baseline=rankings[0][0] if alone else None,
        challengers=[run for run, _timings in rankings[alone:]],
        timings=[timings for _run, timings in rankings[alone:]],
        first_stage=arguments.first_stage,
        retrieval=arguments.retrieval,
        retrieved=arguments.retrieved,
        judge=arguments.judge,
    )
    return study_of(files, rules, content["metric"], None, check=bool(arguments.data))


def _printed_checks(
    content: Mapping[str, Any], document: str, study: Study, arguments: argparse.Namespace
) -> Iterator[Check]:
    """Yield the checks of the printed texts: the document is made again from the files."""
    if not content["families"]:
        return
    if study.judge is None and certificates.JUDGE in content["not_covered"]:
        yield Check("verdicts of the LLM judge", "pass the file of its grades with --judge")
    if document.startswith("{"):
        again = _json_again(study, arguments)
        yield Check("printed JSON", _difference(json.loads(document), again))
        return
    # Loading all charts takes long.
    from rankdash.features.report.report_checks import section_checks

    language = re.search(r'<html lang="([^"]*)">', document)
    with speaking(language[1] if language and language[1] in LANGUAGES else "en"):
        yield from section_checks(document, study)


def _json_again(study: Study, arguments: argparse.Namespace) -> Any:
    """Return the JSON of `compare` without a certificate."""
    from rankdash.features.overview.command_compare import Compared, document_of

    compared = Compared("", arguments.conflict, arguments.worst_label, replace(study, check=None))
    return json.loads(certificates.canonical(document_of(compared)))


def _difference(stored: Any, computed: Any) -> str:
    """Return the first differences of two JSON documents; "" if they are equal. The path of the
    labels may differ."""
    one, other = dict(_leaves(stored)), dict(_leaves(computed))
    wrong = [
        f"{'.'.join(map(str, path))} is {one.get(path)!r}, computed {other.get(path)!r}"
        for path in {**other, **one}
        if path != ("settings", "qrels")
        and not (path in one and path in other and _same(one[path], other[path]))
    ]
    return "; ".join([*wrong[:_MOST_NAMED], *(["…"] if len(wrong) > _MOST_NAMED else [])])


def _leaves(value: Any, *path: str | int) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the path and the value of each item; a list or an object is an item without content."""
    if isinstance(value, dict | list):
        yield path, type(value)()
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(each, *path, key)
    else:
        yield path, value


def _same(stored: Any, computed: Any) -> bool:
    if all(type(each) in (int, float) for each in (stored, computed)):
        return certificates.close(stored, computed)
    return type(stored) is type(computed) and bool(stored == computed)


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
