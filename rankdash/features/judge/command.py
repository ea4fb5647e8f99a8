"""Command `judge`: grades from an LLM judge, and their agreement with human labels."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from rankdash.core.base.errors import DataError, SettingError
from rankdash.core.metrics import Conventions
from rankdash.core.readers.loading import judgements_at
from rankdash.core.rerankers.remote.chat import JUDGE_SETTINGS, MOST_REPEATS
from rankdash.core.rerankers.remote.prompts import JUDGE
from rankdash.core.sampling.label_plan import LabelPool, pool_of
from rankdash.core.sampling.rater_agreement import (
    FEWEST_PAIRS,
    Favour,
    JudgeAgreement,
    Kappa,
    agreement,
)
from rankdash.core.study.judged import agreement_groups, favours, flagged
from rankdash.core.study.study import Study
from rankdash.core.words.judged import copied_sentence, group_kind, group_name
from rankdash.features.judge import command_run
from rankdash.kit.commands.arguments import (
    DONE,
    NAMES,
    Parser,
    add_first_stage,
    add_label_rules,
    add_labels,
    add_settings,
    columns_of,
    settings_lines,
)
from rankdash.kit.commands.output import aligned, one_line, or_null, warn
from rankdash.kit.commands.rankings import (
    Files,
    Rules,
    labels_of,
    names_of,
    spare_the_labels,
    study_of,
)

# Options with a separate command-line argument.
_APART = ("prompt", "guidelines", "repeats")


def add(parser: Parser) -> None:
    parser.description = (
        "Grade the relevance of documents with an LLM judge. Its grades are stored separately and "
        "are never used as human labels."
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)
    _add_run(actions.add_parser("run", help="grade a pool with a chat endpoint"))
    _add_agreement(
        actions.add_parser("agreement", help="measure how well judges agree with human labels")
    )


def _add_run(parser: Parser) -> None:
    parser.description = (
        "Grade each document in the first ranks of the rankings with a chat endpoint, and write "
        "the grades with their reasons as CSV or JSON lines. Failed pairs have an empty grade "
        "(never 0) and an error, and the exit code is 1. Run the command again with the same file "
        "to grade the missing pairs."
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.closing = lambda: "\n".join(
        [
            "settings of the endpoint and of the judge (--set key=value):",
            *settings_lines((spec for spec in JUDGE_SETTINGS if spec.name not in _APART), "  "),
        ]
    )
    parser.several(
        "--data",
        "PATH",
        f"the files, folder or archive with the texts of queries and documents{NAMES}",
        required=True,
    )
    parser.several(
        "--run",
        "FILE",
        "rankings whose first documents are graded (default: the rankings in the data)",
        also=("--runs",),
    )
    parser.number(
        "--depth", "number of documents per ranking (default: %(default)s)", kind=int, default=10
    )
    parser.number(
        "--sample",
        "number of queries, with all their documents: first queries with labels, then others, each "
        "sampled at random",
        kind=int,
    )
    parser.number("--seed", "random seed of the sample (default: %(default)s)", kind=int, default=0)
    parser.option(
        "--template",
        "NAME",
        f"the prompt: {' or '.join(JUDGE)}, or a text file with a custom prompt. It must contain "
        "{query} and {document}, may contain {guidelines}, and must request first the reason and "
        "then a last line such as Grade: 2 (default: %(default)s)",
        default="graded",
    )
    parser.option("--guidelines", "FILE", "a text file with the annotation guidelines")
    parser.number(
        "--repeats",
        f"number of grades per pair, up to {MOST_REPEATS}; repeats show how consistent the judge "
        "is (default: %(default)s)",
        kind=int,
        default=1,
    )
    add_settings(parser, "a setting of the endpoint or the judge; may be repeated")
    parser.option("--name", "NAME", "name of the judge (default: its model)", default="")
    parser.flag("--yes", "start without confirmation after the cost is shown")
    parser.option(
        "--out",
        "FILE",
        "file of grades: CSV if the name ends in .csv, JSON lines if it ends in .jsonl; an "
        "existing file is resumed",
        also=("-o",),
        required=True,
    )
    add_first_stage(parser)
    add_label_rules(parser)
    parser.set_defaults(command=command_run.run)


def _add_agreement(parser: Parser) -> None:
    parser.description = (
        "Measure how well judges agree with human labels, and whether they over-rate or "
        "under-rate. High agreement is not enough: a judge that favours one system can reverse "
        "the verdict. Pass the rankings (--run) to measure this bias. For the verdict from a "
        "judge corrected with human labels, see `compare --judge`."
    )
    parser.several(
        "--judge",
        "FILE",
        "the grades of each judge: CSV or JSON lines of query_id, doc_id and grade, as `judge run` "
        "writes them",
        required=True,
    )
    add_labels(parser)
    parser.several(
        "--data",
        "PATH",
        f"files with the texts{NAMES}. They add groups by script and length of the query and by "
        "length of the document, and show possible prompt injections",
    )
    parser.several(
        "--run",
        "FILE",
        "rankings, first the baseline: uses only their documents, and adds groups by kind of query "
        "and by the ranking that ranks a document higher",
        also=("--runs",),
    )
    parser.number(
        "--depth", "number of documents per ranking (default: %(default)s)", kind=int, default=10
    )
    parser.number(
        "--threshold", "lowest label that counts as relevant (default: %(default)g)", default=1.0
    )
    add_label_rules(parser)
    parser.formats(("text", "json"))
    parser.set_defaults(command=_agreement)


# Implementation of `judge agreement`.

_KAPPAS = (("kappa", "kappa"), ("quadratic", "quadratic kappa"))
_MOST_PAIRS = 20


def _agreement(arguments: argparse.Namespace) -> int:
    for file in arguments.judge:
        spare_the_labels(file, [arguments.qrels])
    study = _study(arguments)
    labels = labels_of(arguments.qrels, arguments) if study is None else study.dataset.qrels
    pool = _pool(study, arguments.depth)
    agreements = [
        Agreed.of(file, labels, study, pool, arguments.threshold)
        for file in names_of(arguments.judge).values()
    ]
    if arguments.format == "json":
        sys.stdout.write(json.dumps([_numbers(each) for each in agreements], indent=2) + "\n")
        return DONE
    for each in agreements:
        _say(each)
    return DONE


def _study(arguments: argparse.Namespace) -> Study | None:
    """Return the study of the rankings and texts; None without both."""
    if not (arguments.data or arguments.run):
        return None
    if arguments.depth < 1:
        raise SettingError("The depth must be at least 1, not {depth}.", depth=arguments.depth)
    labels = Path(arguments.qrels).resolve()
    paths = {Path(each).resolve() for each in arguments.data}
    included = not paths.isdisjoint({labels, labels.parent})
    baseline, *challengers = arguments.run or [None]
    files = Files(
        data=[] if not paths else [*arguments.data, *([] if included else [arguments.qrels])],
        qrels=None if paths else arguments.qrels,
        baseline=baseline,
        challengers=challengers,
    )
    rules = Rules(
        Conventions(threshold=arguments.threshold),
        conflict=arguments.conflict,
        worst_label=arguments.worst_label,
        columns=columns_of(arguments.columns),
    )
    return study_of(files, rules, f"ndcg@{arguments.depth}", (), check=baseline is None)


def _pool(study: Study | None, depth: int) -> LabelPool | None:
    if study is None or not study.challengers:
        return None
    return pool_of({study.name(each): study.ranking(each) for each in study.chosen}, depth)


@dataclass(frozen=True)
class Agreed:
    """Judge compared with human labels, on the pairs of the rankings if there are any.

    groups: as in `agreement_groups`; without a study, only by label and grade. favours: for each
    challenger, by name. flagged: as in `judge.verdict.flagged`; None without texts.
    """

    found: JudgeAgreement
    study: Study | None
    groups: pd.DataFrame
    favours: Sequence[Favour]
    flagged: pd.DataFrame | None

    @classmethod
    def of(
        cls,
        file: Path,
        labels: pd.DataFrame,
        study: Study | None,
        pool: LabelPool | None,
        threshold: float,
    ) -> Agreed:
        judge, noticed = judgements_at(file)
        warn(noticed)
        if pool is not None:
            inside, graded = (
                pd.MultiIndex.from_frame(table[["query_id", "doc_id"]]).isin(pool.index)
                for table in (labels, judge.table)
            )
            labels = labels[inside]
            judge = replace(judge, table=judge.table[graded])
        agreed = agreement(judge, labels, threshold=threshold)
        if not len(agreed.pairs):
            raise DataError(
                "The judge graded none of the {count} labelled pairs.",
                remedy="Check that the query and document ids match those in the labels.",
                file=str(file),
                count=len(labels),
            )
        if study is None:
            return cls(agreed, None, agreed.by_group(), (), None)
        toward = [
            replace(each, challenger=study.name(each.challenger))
            for each in favours(study, judge).values()
        ]
        read = flagged(study, judge) if study.dataset.has_texts else None
        return cls(agreed, study, agreement_groups(study, judge), toward, read)


def _numbers(each: Agreed) -> dict[str, Any]:
    """Return the statistics of a judge for JSON."""
    stats, matrix = each.found, each.found.unweighted
    return {
        "judge": stats.judge,
        "binary": stats.binary,
        "threshold": stats.threshold,
        "grade_threshold": stats.cut,
        "without_grade": stats.without_grade,
        "copied": stats.copied,
        "overall": _row(stats.overall),
        "grades": matrix.grades.tolist(),
        "table": matrix.table.tolist(),
        "groups": [_row(row) | _of_system(each.study, row) for _, row in each.groups.iterrows()],
        "favours": [
            {name: or_null(value) for name, value in vars(favour).items()}
            | {"proven": favour.proven}
            for favour in each.favours
        ],
        "flagged": None
        if each.flagged is None
        else [_row(row) for _, row in each.flagged.iterrows()],
    }


def _row(row: pd.Series) -> dict[str, Any]:
    return {
        str(name): or_null(value.item() if hasattr(value, "item") else value)
        for name, value in row.items()
    }


def _of_system(study: Study | None, row: pd.Series) -> dict[str, str]:
    """Return the fields of a group for JSON, with a system's name instead of its id."""
    if study is None or row["by"] not in study.challengers:
        return {}
    by = f"ranked higher by, {study.name(row['by'])}"
    return {"by": by, "group": study.name(str(row["group"]))}


def _say(each: Agreed) -> None:
    stats, all_pairs = each.found, each.found.overall
    out = sys.stdout.write
    for favour in each.favours:
        out(_bias(favour))
    out(
        f"{one_line(stats.judge)}: {all_pairs['pairs']:,} pairs of {all_pairs['queries']:,} "
        f"queries with a human label and a grade; {stats.without_grade:,} labels without a grade\n"
    )
    if stats.copied:
        out(f"Warning: {copied_sentence(stats)}\n")
    if stats.binary:
        out(
            f"The scales differ (labels up to {stats.highest:g}, grades up to {stats.top:g}). Both "
            "are compared as relevant (1) or not relevant (0): labels of at least "
            f"{stats.threshold:g} and grades of at least {stats.cut:g} are relevant.\n"
        )
    out(
        f"Same grade: {all_pairs['agree']:.0%}, judge higher: {all_pairs['over']:.0%}, "
        f"judge lower: {all_pairs['under']:.0%}. Relevant by human label: "
        f"{all_pairs['people_relevant']:.0%}, by the judge: {all_pairs['judge_relevant']:.0%}.\n"
    )
    for name, title in _KAPPAS:
        low, high = all_pairs[f"{name}_low"], all_pairs[f"{name}_high"]
        value = all_pairs[name]
        ends = "no interval" if math.isnan(low) else f"{low:.2f} to {high:.2f}"
        shown = f"{value:.2f} ({ends})"
        if math.isnan(value):
            few = all_pairs["pairs"] < FEWEST_PAIRS
            shown = f"needs at least {FEWEST_PAIRS} pairs" if few else "no value"
        out(f"{title}: {shown}\n")
    out(_matrix(stats.unweighted))
    out(_groups(each))
    if each.flagged is not None:
        out(_flagged(each.flagged))


def _bias(favour: Favour) -> str:
    """Return which system the judge favours; "" if unknown."""
    if math.isnan(favour.difference):
        return ""
    ends = f"{favour.low:+.2f} to {favour.high:+.2f}"
    verdict = "not proven that the judge favours one of the two"
    if math.isnan(favour.low):
        ends, verdict = "no interval", "too few queries to prove it"
    elif favour.proven:
        verdict = "the judge favours one of the two"
    return (
        f"Bias: what {one_line(favour.challenger)} ranks higher gets {favour.difference:+.2f} "
        f"grades more from the judge, compared with the human labels, than what the baseline ranks "
        f"higher ({ends}): {verdict}\n"
    )


def _groups(each: Agreed) -> str:
    rows = [["by", "group", "pairs", "same", "higher", "lower", "judge minus human", "kappa"]]
    rows += [
        [
            one_line(group_kind(each.study, row["by"])),
            one_line(group_name(each.study, row["by"], row["group"])),
            f"{row['pairs']:,}",
            *(f"{row[name]:.0%}" for name in ("agree", "over", "under")),
            f"{row['difference']:+.2f}",
            "–" if math.isnan(row["kappa"]) else f"{row['kappa']:.2f}",
        ]
        for row in each.groups.to_dict("records")
    ]
    return "\n" + aligned(rows, left=2)


def _flagged(pairs: pd.DataFrame) -> str:
    """Return the list of possible prompt injections for the terminal, the first pairs by id."""
    if not len(pairs):
        return "\nNo possible prompt injections.\n"
    lines = [f"\nPossible prompt injections in {len(pairs):,} pairs; review them:\n"]
    lines += [
        f"  query {one_line(row['query_id'])}, document {one_line(row['doc_id'])}: "
        f"{'no grade' if math.isnan(row['grade']) else format(row['grade'], 'g')}\n"
        for row in pairs.head(_MOST_PAIRS).to_dict("records")
    ]
    if len(pairs) > _MOST_PAIRS:
        lines.append("  … (--json lists all)\n")
    return "".join(lines)


def _matrix(kappa: Kappa) -> str:
    """Return the matrix of human labels (rows) by judge's grades (columns)."""
    grades = [f"{grade:g}" for grade in kappa.grades]
    rows = [["label \\ grade", *grades]]
    rows += [
        [grade, *(f"{n:,}" for n in row)] for grade, row in zip(grades, kappa.table, strict=True)
    ]
    return aligned(rows)
