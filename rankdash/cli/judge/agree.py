"""What `judge agreement` does."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from rankdash.analysis.judging.agreement import FEWEST_PAIRS, JudgeAgreement, agreement, lifted_by
from rankdash.analysis.labelling.kappa import Kappa
from rankdash.analysis.labelling.label_pool import LabelPool, pool_of
from rankdash.cli.arguments import DONE, columns_of
from rankdash.cli.output import aligned, one_line, or_null, warn
from rankdash.cli.rankings import labels_of, names_of, spare_the_labels
from rankdash.errors import DataError
from rankdash.loading import judgements_at
from rankdash.readers import read_beside
from rankdash.words.judged import copied_sentence

_KAPPAS = (("kappa", "kappa"), ("quadratic", "quadratic kappa"))


def run(arguments: argparse.Namespace) -> int:
    labels = labels_of(arguments.qrels, arguments)
    pool = _pool(arguments)
    for file in arguments.judge:
        spare_the_labels(file, [arguments.qrels])
    found = [_of(file, labels, pool, arguments) for file in names_of(arguments.judge).values()]
    if arguments.format == "json":
        sys.stdout.write(json.dumps([_numbers(each, pool) for each in found], indent=2) + "\n")
        return DONE
    for each in found:
        _say(each, pool)
    return DONE


def _pool(arguments: argparse.Namespace) -> LabelPool | None:
    if not arguments.run:
        return None
    joined = read_beside((), names_of(arguments.run), columns=columns_of(arguments.columns))
    warn(joined.findings)
    rankings = {name: each.ranking for name, each in joined.rankings.items()}
    return pool_of(rankings, arguments.depth)


def _of(
    file: Path, labels: pd.DataFrame, pool: LabelPool | None, arguments: argparse.Namespace
) -> JudgeAgreement:
    grades, noticed = judgements_at(file)
    warn(noticed)
    if pool is not None:
        labels = labels[pd.MultiIndex.from_frame(labels[["query_id", "doc_id"]]).isin(pool.index)]
    found = agreement(grades, labels, threshold=arguments.threshold)
    if not len(found.pairs):
        raise DataError(
            "The judge graded none of the {count} labelled pairs.",
            remedy="Check that query and document ids are those of the labels.",
            file=str(file),
            count=len(labels),
        )
    return found


def _numbers(found: JudgeAgreement, pool: LabelPool | None) -> dict[str, Any]:
    """All of it for JSON."""
    matrix = found.unweighted
    return {
        "judge": found.judge,
        "binary": found.binary,
        "threshold": found.threshold,
        "without_grade": found.without_grade,
        "copied": found.copied,
        "overall": _row(found.overall),
        "grades": matrix.grades.tolist(),
        "table": matrix.table.tolist(),
        "groups": [_row(row) for _, row in found.by_group(_groups(pool)).iterrows()],
        "favours": [
            {name: or_null(value) for name, value in vars(each).items()} | {"proven": each.proven}
            for each in _favours(found, pool)
        ],
    }


def _row(row: pd.Series) -> dict[str, Any]:
    return {
        str(name): or_null(value.item() if hasattr(value, "item") else value)
        for name, value in row.items()
    }


def _groups(pool: LabelPool | None) -> dict[str, pd.Series]:
    if pool is None:
        return {}
    return {f"ranked higher by, {name}": lifted_by(pool, name, pool.systems[0])
            for name in pool.systems[1:]}  # fmt: skip


def _favours(found: JudgeAgreement, pool: LabelPool | None) -> list[Any]:
    if pool is None:
        return []
    first = pool.systems[0]
    return [found.favours(lifted_by(pool, name, first), name, first) for name in pool.systems[1:]]


def _say(found: JudgeAgreement, pool: LabelPool | None) -> None:
    all_pairs = found.overall
    out = sys.stdout.write
    out(
        f"{one_line(found.judge)}: {all_pairs['pairs']:,} pairs of {all_pairs['queries']:,} "
        f"queries that people and the judge graded; {found.without_grade:,} labels without a "
        "grade\n"
    )
    if found.copied:
        out(f"Warning: {copied_sentence(found)}\n")
    if found.binary:
        out(
            "The scales differ, so both are compared as relevant (1) or not (0), at "
            f"{found.threshold:g}.\n"
        )
    out(
        f"The same grade on {all_pairs['agree']:.0%}, the judge higher on {all_pairs['over']:.0%}, "
        f"lower on {all_pairs['under']:.0%}. Relevant by people "
        f"{all_pairs['people_relevant']:.0%}, by the judge {all_pairs['judge_relevant']:.0%}.\n"
    )
    for name, title in _KAPPAS:
        low, high = all_pairs[f"{name}_low"], all_pairs[f"{name}_high"]
        value = all_pairs[name]
        shown = f"{value:.2f} ({low:.2f} to {high:.2f})"
        if math.isnan(value):
            few = all_pairs["pairs"] < FEWEST_PAIRS
            shown = f"not of fewer than {FEWEST_PAIRS} pairs" if few else "no value"
        out(f"{title}: {shown}\n")
    out(_matrix(found.unweighted))
    for each in _favours(found, pool):
        if math.isfinite(each.difference):
            out(
                f"{one_line(each.challenger)}: what it ranks higher gets {each.difference:+.2f} "
                f"grades more from the judge, against people, than what the baseline ranks higher "
                f"({each.low:+.2f} to {each.high:+.2f})"
                f"{': the judge errs in favour of one of them' if each.proven else ''}\n"
            )


def _matrix(found: Kappa) -> str:
    """People's labels in rows, the judge's grades in columns."""
    grades = [f"{grade:g}" for grade in found.grades]
    rows = [["label \\ grade", *grades]]
    rows += [
        [grade, *(f"{n:,}" for n in row)] for grade, row in zip(grades, found.table, strict=True)
    ]
    return aligned(rows)
