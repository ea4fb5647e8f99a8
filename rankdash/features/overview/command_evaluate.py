"""`evaluate`: score rankings against labels. Tables have rounded numbers, JSON and CSV unrounded
ones."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rankdash.core.base.errors import SpecError
from rankdash.kit.commands.arguments import (
    DONE,
    Parser,
    add_conventions,
    add_judge,
    add_label_rules,
    metrics_of,
    rules,
)
from rankdash.kit.commands.output import STANDARD, aligned, csv_line, exact, or_null, printable

# Readers and metrics are loaded only to score, so help takes a tenth of a second.
if TYPE_CHECKING:
    from rankdash.core.metrics import Conventions, Evaluation, Measure
    from rankdash.core.readers import Conflict
    from rankdash.core.study.study import Study
    from rankdash.kit.commands.rankings import Rules

DEFAULT_METRICS = "ndcg@10,mrr@10,map,recall@10,judged@10"
_DIGITS = 4


class _Late(ModuleType):
    """A module that is imported when one of its attributes is first used."""

    def __getattr__(self, name: str) -> Any:
        object.__setattr__(self, "__class__", ModuleType)
        return getattr(importlib.reload(self), name)


def import_late(name: str) -> None:
    """Delay the import of a module until one of its attributes is used."""
    # `importlib.util.LazyLoader` stops working when a second module imports it.
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is not None:
        module = importlib.util.module_from_spec(spec)
        module.__class__ = _Late
        sys.modules[name] = module


def add(parser: Parser) -> None:
    # Scoring needs no pandas, whose import takes as long as scoring 100,000 rows.
    import_late("pandas")
    parser.description = (
        "Score one or more rankings against labels. Rankings are sorted by score, and each "
        "system has the name of its file. Failed queries, listed in a.timings.json or "
        "a.timings.csv beside a.trec, are excluded."
    )
    parser.add_argument(
        "files",
        nargs="*",
        action="extend",
        default=[],
        metavar="QRELS RUN",
        help="the labels, then one or more rankings, in any supported format; - is standard "
        "input. With --qrels, all of them are rankings. A single file must contain both labels "
        "and rankings",
    )
    parser.option("--qrels", "FILE", "the labels")
    parser.several("--run", "FILE", "a ranking; may be repeated", also=("--runs",), dest="run")
    parser.metrics(
        "comma-separated metrics, such as ndcg@10,map; may be repeated (default: "
        f"{DEFAULT_METRICS})",
        action=_Metrics,
    )
    parser.flag(
        "--per-query",
        "also write the values of every query (json always contains them)",
        also=("-q",),
    )
    add_judge(parser)
    add_conventions(parser)
    parser.formats(
        FORMATS,
        "json and csv contain unrounded numbers; csv puts an apostrophe before a text that a "
        "spreadsheet would run as a formula; latex needs booktabs",
    )
    add_label_rules(parser)
    parser.stands_for = _stands_for
    parser.set_defaults(command=_evaluate)


class _Metrics(argparse.Action):
    """Action of the option for metrics. Values from the first file name onwards are stored as
    `files` (QRELS and RUN)."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        first = next((place for place, value in enumerate(values) if _is_file(value)), len(values))
        for name, taken in (("metrics", values[:first]), ("files", values[first:])):
            setattr(namespace, name, [*(getattr(namespace, name, None) or ()), *taken])


def _is_file(value: str) -> bool:
    """Return whether the value is a file or standard input and not a metric."""
    from rankdash.core.metrics import parse_metrics

    try:
        parse_metrics(value)
    except SpecError:
        return value == STANDARD or Path(value).is_file()
    return False


def _evaluate(arguments: argparse.Namespace) -> int:
    metrics = metrics_of(arguments.metrics or [DEFAULT_METRICS])
    qrels, runs = _files(arguments)
    results = evaluate_files(
        qrels,
        runs,
        metrics.measures,
        rules(arguments, threshold=metrics.threshold),
        judge=arguments.judge,
    )
    if results.study is not None and results.estimated and arguments.format != "json":
        from rankdash.features.overview.command_compare import written

        sys.stdout.writelines(written(results.study, arguments.format))
    else:
        sys.stdout.writelines(FORMATS[arguments.format](results, arguments.per_query))
    return DONE


def _files(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the labels and the rankings; a single file is used for both."""
    files, qrels = arguments.files, arguments.qrels
    if files and qrels is None:
        qrels, *files = files
    runs = [*files, *arguments.run]
    if qrels is None or (qrels == STANDARD and not runs):
        raise SpecError(
            "Labels and at least one ranking are needed.",
            remedy="For example: evaluate QRELS RUN, evaluate --qrels QRELS --run RUN, or "
            "evaluate FILE if the file contains both.",
        )
    return qrels, runs or [qrels]


def _stands_for(typed: argparse.Namespace, in_file: Collection[str]) -> Collection[str]:
    files = getattr(typed, "files", ())
    if len(files) == 1:
        return ("run",) if "qrels" in typed or "qrels" in in_file else ("qrels",)
    return ("qrels", "run") if files else ()


@dataclass(frozen=True, eq=False)
class Results:
    """Result of `evaluate`, with the arguments that are written next to it.

    measures: metric as typed → measure. conflict: rule for pairs with several labels. worst_label:
        the grade from which the labels were reversed. systems: name → evaluation. study: None if
        the files are too large for more than metrics.
    """

    qrels: str
    measures: Mapping[str, Measure]
    conflict: Conflict
    worst_label: float | None
    conventions: Conventions
    systems: Mapping[str, Evaluation]
    study: Study | None

    @property
    def estimated(self) -> bool:
        """True if the labels were sampled, so that means would be biased."""
        return self.study is not None and self.study.labelling is not None


def evaluate_files(
    qrels: str,
    runs: Sequence[str],
    measures: Mapping[str, Measure],
    rules: Rules,
    *,
    judge: str | None = None,
) -> Results:
    """Read the labels and rankings, and compute the metrics. Findings of the readers go to standard
    error. judge: file of a judge's grades, to compare the first ranking with the others.

    Raises DataError if a file cannot be used, or ranks none of the labelled queries.
    """
    from rankdash.kit.commands.rankings import give_memory_back, large_scores_of, scores_of

    give_memory_back()
    study = None
    systems = None if judge else large_scores_of(qrels, runs, rules, list(measures.values()))
    if systems is None:
        first, *others = (measure.spec for measure in measures.values())
        study = scores_of(qrels, runs, rules, first, others, judge=judge)
        evaluations = study.evaluations
        systems = {name: evaluations[system] for system, name in study.names.items()}
    return Results(
        qrels, measures, rules.conflict, rules.worst_label, rules.conventions, systems, study
    )


def text(results: Results, per_query: bool) -> Iterator[str]:
    """Yield rounded means in columns, the counts below, and on request each query."""
    yield from (f"{line}\n" for line in _drawn(results))
    yield aligned(_mean_table(results))
    yield "\n"
    yield from (f"{line}\n" for line in _notes(results))
    if per_query:
        yield "\n"
        yield aligned(_query_table(results), left=3)


def markdown(results: Results, per_query: bool) -> Iterator[str]:
    """Yield the tables in Markdown, for a pull request."""
    from rankdash.kit.html.tables import markdown_safe, plain_markdown

    yield from (f"{markdown_safe(line)}\n\n" for line in _drawn(results))
    yield from plain_markdown(_mean_table(results))
    yield "\n"
    yield from (f"- {markdown_safe(line)}\n" for line in _notes(results))
    if per_query:
        yield "\n"
        yield from plain_markdown(_query_table(results), left=(0, 1, 2))


def latex(results: Results, per_query: bool) -> Iterator[str]:
    """Yield the tables in LaTeX, for a paper."""
    from rankdash.kit.html.tables import plain_latex

    yield from (f"% {line}\n" for line in _drawn(results))
    yield from plain_latex(_mean_table(results))
    yield from (f"% {line}\n" for line in _notes(results))
    if per_query:
        yield from plain_latex(_query_table(results), left=(0, 1, 2))


def _drawn(results: Results) -> Iterator[str]:
    """Yield the verdicts corrected with human labels, if there is a judge."""
    if results.study is not None and results.study.judge is not None:
        from rankdash.core.words.judged import judged_lines

        yield from map(printable, judged_lines(results.study))


def _mean_table(results: Results) -> list[list[str]]:
    means = [
        [name, *(_rounded(value) for value in _means(results, evaluation).values())]
        for name, evaluation in results.systems.items()
    ]
    return [["system", *results.measures], *means]


def _query_table(results: Results) -> list[list[str]]:
    rows = [
        [name, query, state, *(_rounded(value) for value in values)]
        for name, query, state, values in _rows(results)
    ]
    return [["system", "query", "state", *results.measures], *rows]


def _notes(results: Results) -> Iterator[str]:
    """Yield the notes below the table: how many queries each system's means include, and the
    rules."""
    import numpy as np

    from rankdash.core.readers import reversed_note
    from rankdash.core.words.queries import query_count

    words = _count_words(results.conventions)
    for name, evaluation in results.systems.items():
        used = int((~np.isnan(evaluation.values)).any(axis=1).sum())
        counts = [
            f"{evaluation.counts[key]:,} {words[key]}" for key in words if evaluation.counts[key]
        ]
        of_all = f"{used:,} of {query_count(evaluation.counts['queries'])} counted"
        yield f"{printable(name)}: {'; '.join([of_all, *counts])}"
    if results.worst_label is not None:
        yield reversed_note(results.worst_label).text
    yield f"{results.conventions.summary}."


def _count_words(rules: Conventions) -> dict[str, str]:
    """Return key of `Evaluation.counts` → description of the queries that it counts."""
    zero = " (0 in the mean)" if rules.missing == "zero" else ""
    return {
        "missing": f"missing from the ranking{zero}",
        "failed": "failed (excluded)",
        "skipped": "not run (excluded)",
        "no_relevant": "without a relevant document",
        "tied": "with tied scores",
        "unlabelled": "ranked but without labels",
    }


def as_json(results: Results, per_query: bool) -> Iterator[str]:
    """Yield JSON. Values per query are always included, so the means can be checked."""
    import msgspec

    settings = {
        **results.conventions.as_dict(),
        "conflict": results.conflict,
        "worst_label": results.worst_label,
        "qrels": results.qrels,
        "metrics": {typed: measure.spec for typed, measure in results.measures.items()},
    }
    systems: dict[str, Any] = {}
    for name, evaluation in () if results.estimated else results.systems.items():
        values = _per_query(results, evaluation)
        states = dict(zip(values, evaluation.states, strict=True))
        systems[name] = {
            "mean": {spec: or_null(value) for spec, value in _means(results, evaluation).items()},
            "counts": dict(evaluation.counts),
            "left_out": {query: states[query] for query in values if not values[query]},
            "per_query": {query: each for query, each in values.items() if each},
        }
    labelling = None if results.study is None else results.study.labelling
    content = {
        "settings": settings,
        "labelling": None if labelling is None else labelling.numbers(),
        "judge": _judge(results.study),
        "systems": systems,
    }
    try:
        # Python's own indenting is slow for many queries.
        yield msgspec.json.format(json.dumps(content, allow_nan=False), indent=2)
    except msgspec.DecodeError:
        # A file name that is not valid text is not valid JSON for msgspec.
        yield json.dumps(content, indent=2, allow_nan=False)
    yield "\n"


def _judge(study: Study | None) -> dict[str, Any] | None:
    if study is None or study.judge is None:
        return None
    from rankdash.core.study.judged import numbers

    return numbers(study)


def as_csv(results: Results, per_query: bool) -> Iterator[str]:
    """Yield one row per system with its means and counts, or one per query with its values.

    A missing value is an empty cell. The last columns are the tie rule and, if means are per
    search, the weights.
    """
    ties = results.conventions.ties
    if per_query:
        yield csv_line(["system", "query_id", "state", *results.measures, "ties"])
        for name, query, state, values in _rows(results):
            yield csv_line([name, query, state, *map(exact, values), ties])
        return
    counted = list(next(iter(results.systems.values())).counts)
    weights = {"weights": results.conventions.weights} if results.conventions.weighted else {}
    yield csv_line(["system", *results.measures, *counted, "ties", *weights])
    for name, evaluation in results.systems.items():
        means = [exact(value) for value in _means(results, evaluation).values()]
        counts = (str(evaluation.counts[key]) for key in counted)
        yield csv_line([name, *means, *counts, ties, *weights.values()])


FORMATS: Mapping[str, Callable[[Results, bool], Iterator[str]]] = {
    "text": text,
    "json": as_json,
    "csv": as_csv,
    "markdown": markdown,
    "latex": latex,
}


def _means(results: Results, evaluation: Evaluation) -> dict[str, float]:
    return {typed: evaluation.mean(measure) for typed, measure in results.measures.items()}


def _per_query(results: Results, evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """Return query id → metric as typed → value, without values that are excluded from the mean."""
    columns = [evaluation.column(measure).tolist() for measure in results.measures.values()]
    return {
        str(query): {
            typed: value
            for typed, value in zip(results.measures, values, strict=True)
            if not math.isnan(value)
        }
        for query, values in zip(evaluation.query_ids, zip(*columns, strict=True), strict=True)
    }


def _rows(results: Results) -> Iterator[tuple[str, str, str, list[float]]]:
    """Yield system, query, state and values for every query of every system."""
    for name, evaluation in results.systems.items():
        columns = [evaluation.column(measure) for measure in results.measures.values()]
        for place, (query, state) in enumerate(
            zip(evaluation.query_ids, evaluation.states, strict=True)
        ):
            yield name, str(query), str(state), [float(values[place]) for values in columns]


def _rounded(value: float) -> str:
    """Return a value with a fixed number of decimals. Not formatted with Babel: loading it takes
    longer than `evaluate` runs."""
    return "–" if math.isnan(value) else f"{value:.{_DIGITS}f}"
