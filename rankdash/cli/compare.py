"""`compare`: challengers against a baseline, with intervals, tests and verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rankdash.analysis.statistics.comparison import Comparison, StatisticsSettings, compare
from rankdash.cli.evaluate import Results, evaluate_files
from rankdash.cli.writing import aligned, one_line
from rankdash.metrics import Conventions, Measure
from rankdash.readers import Conflict
from rankdash.reporting.exports.tables import HEAD, cells, latex, made_with, markdown

LEFT_OUT = {
    "failed": "failed",
    "skipped": "skipped",
    "no_relevant": "without a relevant document",
    "missing": "missing from a ranking",
    "undefined": "the metric says nothing of",
    "absent": "evaluated for one side only",
}


@dataclass(frozen=True, eq=False)
class Compared:
    """A comparison with the evaluation that it rests on."""

    results: Results
    comparison: Comparison


def compare_files(
    qrels: str,
    baseline: str,
    challengers: Sequence[str],
    measures: Mapping[str, Measure],
    conventions: Conventions,
    settings: StatisticsSettings,
    *,
    conflict: Conflict,
) -> Compared:
    """Read, score and compare. What the readers find odd goes to standard error.

    Raises DataError where a file cannot be used, or ranks none of the labelled queries.
    """
    once = {measure.spec: measure for measure in measures.values()}
    results = evaluate_files(qrels, [baseline, *challengers], once, conventions, conflict=conflict)
    first = next(iter(results.systems))
    return Compared(results, compare(results.systems, first, settings))


def table(compared: Compared) -> Iterator[str]:
    """A table for each metric, the verdicts below, what was left out, and how it was made."""
    comparison = compared.comparison
    for measure in comparison.measures:
        rows = [[measure.title, *HEAD[1:]]]
        for system in (comparison.baseline, *comparison.challengers):
            rows.append([system, *cells(comparison.row(system, measure), comparison.settings)])
        yield aligned(rows)
        yield "\n"
        for system in comparison.challengers:
            yield f"{one_line(comparison.verdict(system, measure).sentence)}\n"
        yield from _notes(comparison, measure)
        yield "\n"
    yield f"{made_with(comparison)}\n"


def _notes(comparison: Comparison, measure: Measure) -> Iterator[str]:
    for system in comparison.challengers:
        out = comparison.left_out(system, measure)
        if out:
            counted = ", ".join(f"{n:,} {LEFT_OUT[reason]}" for reason, n in out.items())
            yield f"Left out of both sides for {one_line(system)}: {counted}.\n"
    for system in (comparison.baseline, *comparison.challengers):
        row = comparison.row(system, measure)
        if row["missing"]:
            yield f"{one_line(system)} lacks {row['missing']:,} queries, which count 0.\n"
        if row["verdict"] == "unproven":
            reach = row["smallest_detectable"]
            yield (
                f"So many queries find a change of {reach:.4f} with {one_line(system)} four times "
                "out of five.\n"
            )


def as_json(compared: Compared) -> Iterator[str]:
    """Unrounded numbers, null where one does not exist."""
    comparison, results = compared.comparison, compared.results
    rows = []
    for row in comparison.frame.to_dict("records"):
        system, spec = row["system"], row["metric"]
        said: dict[str, object] = {
            str(name): _or_null(value) for name, value in row.items() if name != "verdict"
        }
        said["left_out"] = dict(comparison.left_out(system, spec))
        if system != comparison.baseline:
            verdict = comparison.verdict(system, spec)
            said["verdict"] = {"kind": verdict.kind, "sentence": verdict.sentence}
        rows.append(said)
    document = {
        "settings": {
            **results.conventions.as_dict(),
            **comparison.settings.as_dict(),
            "conflict": results.conflict,
            "qrels": results.qrels,
        },
        "baseline": comparison.baseline,
        "challengers": list(comparison.challengers),
        "comparisons": rows,
    }
    yield json.dumps(document, indent=2, allow_nan=False)
    yield "\n"


def _or_null(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


FORMATS: Mapping[str, Callable[[Compared], Iterator[str]]] = {
    "table": table,
    "json": as_json,
    "markdown": lambda compared: markdown(compared.comparison),
    "latex": lambda compared: latex(compared.comparison),
}
