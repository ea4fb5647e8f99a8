"""`evaluate`: labels and rankings from files, scored under stated conventions; a table for the eye,
or JSON or CSV with unrounded numbers."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rankdash.cli.arguments import DONE, Parser, add_conflict, add_conventions, add_labels, rules
from rankdash.cli.output import aligned, or_null, printable
from rankdash.cli.rankings import Files, Rules, study_of, typed_metrics
from rankdash.metrics import Conventions, Evaluation, Measure
from rankdash.readers import Conflict
from rankdash.spreadsheet import defused
from rankdash.study.study import Study
from rankdash.words.counts import query_count

DEFAULT_METRICS = "ndcg@10,mrr@10,map,recall@10,judged@10"
_DIGITS = 4


def add(parser: Parser) -> None:
    parser.description = (
        "Score one or more rankings against labels. Rankings are read by score, and a "
        "system is called after its file."
    )
    add_labels(parser)
    parser.several(
        "--run", "FILE", "a ranking, in any form that is read; may be repeated", required=True
    )
    parser.option(
        "--metrics",
        "LIST",
        "metrics with commas between, such as ndcg@10,map (default: %(default)s)",
        nargs="+",
        default=[DEFAULT_METRICS],
    )
    parser.flag("--per-query", "write the values of every query as well (json always holds them)")
    add_conventions(parser)
    parser.choice(
        "--format",
        ("table", "json", "csv"),
        "json and csv hold unrounded numbers; in csv a text that a spreadsheet would run as "
        "a formula starts with an apostrophe (default: %(default)s)",
        default="table",
    )
    add_conflict(parser)
    parser.set_defaults(command=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> int:
    measures = typed_metrics(arguments.metrics)
    results = evaluate_files(arguments.qrels, arguments.run, measures, rules(arguments))
    sys.stdout.writelines(FORMATS[arguments.format](results, arguments.per_query))
    return DONE


@dataclass(frozen=True, eq=False)
class Results:
    """What was found, and what of the arguments is written with it.

    measures: as typed → measure. conflict: which of several labels of a pair was kept.
    """

    qrels: str
    measures: Mapping[str, Measure]
    conflict: Conflict
    study: Study

    @property
    def conventions(self) -> Conventions:
        return self.study.conventions

    @cached_property
    def systems(self) -> dict[str, Evaluation]:
        """Name → evaluation."""
        found = self.study.evaluations
        return {name: found[system] for system, name in self.study.names.items()}


def evaluate_files(
    qrels: str, runs: Sequence[str], measures: Mapping[str, Measure], rules: Rules
) -> Results:
    """Read and score. What the readers find odd goes to standard error.

    Raises DataError where a file cannot be used, or ranks none of the labelled queries.
    """
    first, *others = (measure.spec for measure in measures.values())
    files = Files(qrels=qrels, baseline=runs[0], challengers=runs[1:])
    return Results(qrels, measures, rules.conflict, study_of(files, rules, first, others))


def table(results: Results, per_query: bool) -> Iterator[str]:
    """Means in rounded columns, what was counted below, and the queries where asked for."""
    head = ["system", *results.measures]
    means = [
        [name, *(_rounded(value) for value in _means(results, found).values())]
        for name, found in results.systems.items()
    ]
    yield aligned([head, *means])
    yield "\n"
    for name, found in results.systems.items():
        used = sum(1 for values in _per_query(results, found).values() if values)
        words = _count_words(results.conventions)
        counts = [f"{found.counts[key]:,} {words[key]}" for key in words if found.counts[key]]
        text = "; ".join([f"{used:,} of {query_count(found.counts['queries'])} counted", *counts])
        yield f"{printable(name)}: {text}\n"
    yield f"{results.conventions.summary}.\n"
    if per_query:
        yield "\n"
        rows = [["system", "query", "state", *results.measures]]
        for name, query, state, values in _rows(results):
            rows.append([name, query, state, *(_rounded(value) for value in values)])
        yield aligned(rows, left=3)


def _count_words(rules: Conventions) -> dict[str, str]:
    """Key of `Evaluation.counts` → what it counts queries for."""
    zero = " (0 in the mean)" if rules.missing == "zero" else ""
    return {
        "missing": f"missing from the ranking{zero}",
        "no_relevant": "without a relevant document",
        "tied": "with tied scores",
        "unlabelled": "ranked but without labels",
    }


def as_json(results: Results, per_query: bool) -> Iterator[str]:
    """The values of every query are always in it: the means can be checked against them."""
    settings = {
        **results.conventions.as_dict(),
        "conflict": results.conflict,
        "qrels": results.qrels,
        "metrics": {typed: measure.spec for typed, measure in results.measures.items()},
    }
    systems = {
        name: {
            "mean": {spec: or_null(value) for spec, value in _means(results, found).items()},
            "counts": dict(found.counts),
            "left_out": {
                query: state
                for (query, values), state in zip(
                    _per_query(results, found).items(), found.states, strict=True
                )
                if not values
            },
            "per_query": {
                query: values for query, values in _per_query(results, found).items() if values
            },
        }
        for name, found in results.systems.items()
    }
    yield json.dumps({"settings": settings, "systems": systems}, indent=2, allow_nan=False)
    yield "\n"


def as_csv(results: Results, per_query: bool) -> Iterator[str]:
    """One row a system with its means and counts, or one a query with its values; no value is an
    empty cell. The last column names the tie rule."""
    ties = results.conventions.ties
    if per_query:
        yield _csv_line(["system", "query_id", "state", *results.measures, "ties"])
        for name, query, state, values in _rows(results):
            yield _csv_line([defused(name), defused(query), state, *map(_exact, values), ties])
        return
    counted = list(next(iter(results.systems.values())).counts)
    yield _csv_line(["system", *results.measures, *counted, "ties"])
    for name, found in results.systems.items():
        means = [_exact(value) for value in _means(results, found).values()]
        counts = (str(found.counts[key]) for key in counted)
        yield _csv_line([defused(name), *means, *counts, ties])


FORMATS: Mapping[str, Callable[[Results, bool], Iterator[str]]] = {
    "table": table,
    "json": as_json,
    "csv": as_csv,
}


def _means(results: Results, found: Evaluation) -> dict[str, float]:
    return {typed: found.mean(measure) for typed, measure in results.measures.items()}


def _per_query(results: Results, found: Evaluation) -> dict[str, dict[str, float]]:
    """Query id → metric as typed → value, without those that are left out of the mean."""
    columns = {typed: found.column(measure) for typed, measure in results.measures.items()}
    return {
        str(query): {
            typed: float(values[place])
            for typed, values in columns.items()
            if not math.isnan(values[place])
        }
        for place, query in enumerate(found.query_ids)
    }


def _rows(results: Results) -> Iterator[tuple[str, str, str, list[float]]]:
    """System, query, state and values, every query of every system."""
    for name, found in results.systems.items():
        columns = [found.column(measure) for measure in results.measures.values()]
        for place, (query, state) in enumerate(zip(found.query_ids, found.states, strict=True)):
            yield name, str(query), str(state), [float(values[place]) for values in columns]


def _rounded(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.{_DIGITS}f}"


def _exact(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _csv_line(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
