"""`compare`: challengers against a baseline, with intervals, tests and verdicts."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankdash.core.base.i18n import number
from rankdash.core.metrics import Measure
from rankdash.core.readers import Conflict, reversed_note
from rankdash.core.statistics.comparison import Comparison
from rankdash.core.statistics.planning import POWER
from rankdash.core.study.certificate import CERTIFICATE, canonical, certificate, seal
from rankdash.core.study.judged import headline
from rankdash.core.study.judged import numbers as judged_numbers
from rankdash.core.study.labelling import estimate_of, only_estimates
from rankdash.core.study.leaderboard import ranked_names, standings
from rankdash.core.study.study import Study
from rankdash.core.words.columns import records
from rankdash.core.words.judged import judged_lines, judged_sentence
from rankdash.core.words.labelling import estimate_sentences, labelling_sentences
from rankdash.core.words.queries import excluded_line, missing_line, query_count
from rankdash.features.overview.caveats import caveats
from rankdash.kit.commands.arguments import (
    DONE,
    Parser,
    add_conventions,
    add_judge,
    add_label_rules,
    add_labels,
    add_statistics,
    metrics_of,
    rules,
)
from rankdash.kit.commands.output import aligned, csv_line, exact, one_line, or_null
from rankdash.kit.commands.rankings import Files, study_of
from rankdash.kit.commands.timings import timings_of
from rankdash.kit.html.tables import latex, made_with, markdown, markdown_safe, table_of


def add(parser: Parser) -> None:
    parser.description = (
        "Compare rankings with a baseline, query by query: the change with its "
        "interval, p values, queries helped and hurt, and a verdict with its caveats. Several "
        "challengers are ranked in a leaderboard by the first metric."
    )
    add_labels(parser)
    parser.option("--baseline", "FILE", "the ranking to compare with", required=True)
    parser.several(
        "--challenger",
        "FILE",
        "a ranking to compare; may be repeated",
        also=("--challengers",),
        required=True,
    )
    parser.several(
        "--timings",
        "FILE",
        "the timings of each --challenger, in the same order, as written by `rerank --timings`. "
        "Failed queries are excluded for both systems. For every ranking without this option, "
        "their states are read from a.timings.json or a.timings.csv beside a.trec. A run "
        "that was stopped by its result has anytime-valid intervals",
    )
    parser.metrics("metrics, such as ndcg@10,map; may be repeated (default: ndcg@10)")
    add_judge(parser)
    add_statistics(parser)
    add_conventions(parser)
    parser.formats(
        FORMATS,
        "json and csv contain unrounded numbers; csv puts an apostrophe before a text that a "
        "spreadsheet would run as a formula; latex needs booktabs",
    )
    add_label_rules(parser)
    parser.set_defaults(command=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    metrics = metrics_of(arguments.metrics or ["ndcg@10"])
    first, *others = metrics.specs
    files = Files(
        qrels=arguments.qrels,
        baseline=arguments.baseline,
        challengers=arguments.challenger,
        timings=timings_of(arguments.timings, arguments.challenger),
        judge=arguments.judge,
    )
    study = study_of(files, rules(arguments, metrics.threshold), first, others)
    compared = Compared(arguments.qrels, arguments.conflict, arguments.worst_label, study)
    if only_estimates(study) and arguments.format != "json":
        sys.stdout.writelines(written(study, arguments.format))
    else:
        sys.stdout.writelines(FORMATS[arguments.format](compared))
    return DONE


@dataclass(frozen=True, eq=False)
class Compared:
    """Result of `compare`, with the arguments that the output mentions."""

    qrels: str
    conflict: Conflict
    worst_label: float | None
    study: Study

    @property
    def comparison(self) -> Comparison:
        return self.study.comparison


def text(compared: Compared) -> Iterator[str]:
    """Yield a table, verdicts and caveats for each metric, the excluded queries, and the method.

    With several challengers, all systems are in the order of the leaderboard.
    """
    study, comparison = compared.study, compared.comparison
    names = ranked_names(study)
    yield from _drawn(compared, end="\n")
    if len(study.challengers) > 1:
        yield f"Leaderboard by {study.title}, best first\n\n"
    for measure in comparison.measures:
        (_, *titles), *rows = table_of(comparison, measure, names)
        yield aligned([[study.titled(measure), *titles], *rows])
        yield "\n"
        for system in comparison.challengers:
            yield f"{one_line(comparison.verdict(system, measure, names).sentence)}\n"
            if measure == study.measure:
                for each in caveats(study, system):
                    yield f"  Caveat: {each.sentence(study, one_line)}\n"
        yield from _notes(study, measure)
        yield "\n"
    yield from _reversed(compared)
    yield f"{made_with(comparison)}\n"


def _drawn(compared: Compared, before: str = "", end: str = "") -> Iterator[str]:
    """Yield the verdicts of a judge, corrected with human labels, one line each. Nothing without a
    judge. before: the start of each line. end: text after the last line."""
    lines = judged_lines(compared.study)
    for each in lines:
        yield f"{before}{one_line(each)}\n"
    if lines:
        yield end


def _reversed(compared: Compared, before: str = "") -> Iterator[str]:
    """Yield a note on reversed labels, if the labels were reversed. before: the start of the
    line."""
    if compared.worst_label is not None:
        yield f"{before}{reversed_note(compared.worst_label).text}\n"


def as_markdown(compared: Compared) -> Iterator[str]:
    """Yield the tables with the verdicts below them, for a pull request."""
    for each in _drawn(compared):
        yield f"{markdown_safe(each)}\n"
    yield from markdown(compared.comparison, ranked_names(compared.study))
    for measure in compared.comparison.measures:
        for system in compared.study.challengers:
            for each in _other_means(compared.study, system, measure):
                yield f"\n{measure.title}: {markdown_safe(each.strip())}\n"
    yield from _reversed(compared, "\n")


def as_latex(compared: Compared) -> Iterator[str]:
    """Yield the comparison as a LaTeX table, for a paper."""
    yield from _drawn(compared, "% ")
    yield from latex(compared.comparison, ranked_names(compared.study))
    for measure in compared.comparison.measures:
        for system in compared.study.challengers:
            yield from (
                f"% {measure.title}: {each}"
                for each in _other_means(compared.study, system, measure)
            )
    yield from _reversed(compared, "% ")


def _notes(study: Study, measure: Measure) -> Iterator[str]:
    comparison = study.comparison
    for system in study.challengers:
        counts = comparison.excluded(system, measure)
        name = one_line(study.name(system))
        if line := excluded_line(name, counts):
            yield f"{line}\n"
        yield from _other_means(study, system, measure)
    for system, name in study.names.items():
        row = comparison.row(system, measure)
        if line := missing_line(one_line(name), row["missing"]):
            yield f"{line}\n"
        if row["verdict"] == "unproven" and math.isfinite(row["smallest_detectable"]):
            yield (
                f"Minimum detectable change with {one_line(name)}: "
                f"{number(row['smallest_detectable'], 4)} ({POWER:.0%} power at "
                f"{100 * row['planned_level']:.4g}% confidence).\n"
            )


def _other_means(study: Study, system: str, measure: Measure) -> Iterator[str]:
    """Yield the means over the queries of a difference, if the table has means over others."""
    comparison = study.comparison
    row, start = (comparison.row(each, measure) for each in (system, study.baseline))
    if (
        row["left_out"]
        and row["paired"]
        and not np.allclose((row["before"], row["after"]), (start["mean"], row["mean"]))
    ):
        yield (
            f"The column mean has all queries of each ranking. Over the "
            f"{query_count(int(row['paired']))} of the comparison, "
            f"{one_line(study.name(study.baseline))} has {number(row['before'], 4)} and "
            f"{one_line(study.name(system))} {number(row['after'], 4)}.\n"
        )


def as_json(compared: Compared) -> Iterator[str]:
    """Yield the JSON of `document_of` with its certificate, null if it cannot have one."""
    document, content = document_of(compared), certificate(compared.study)
    if content is not None:
        content = seal(content, canonical(document))
    # On one line: a certificate has many values.
    text = json.dumps({**document, CERTIFICATE: None}, indent=2, allow_nan=False)
    yield text.removesuffix("null\n}")
    yield f"{json.dumps(content, allow_nan=False)}\n}}\n"


def document_of(compared: Compared) -> dict[str, Any]:
    """Return unrounded numbers for JSON, None if a number does not exist.

    Caveats belong to the first metric, which also orders the leaderboard. For sampled labels,
    it contains only the estimates.
    """
    study, comparison, names = compared.study, compared.comparison, compared.study.names
    estimated = only_estimates(study)
    rows = []
    for row in [] if estimated else records(comparison):
        system, spec = row["system"], row["metric"]
        entry = {name: or_null(value) for name, value in row.items() if name != "verdict"}
        entry["system"] = names[system]
        entry["left_out"] = dict(comparison.excluded(system, spec))
        if system != comparison.baseline:
            verdict = comparison.verdict(system, spec, names)
            entry["verdict"] = {"kind": verdict.kind, "sentence": verdict.sentence}
        rows.append(entry)
    return {
        "settings": {
            **comparison.conventions.as_dict(),
            **comparison.settings.as_dict(),
            "conflict": compared.conflict,
            "worst_label": compared.worst_label,
            "qrels": compared.qrels,
        },
        "baseline": names[comparison.baseline],
        "challengers": [names[system] for system in comparison.challengers],
        "leaderboard": [] if estimated else [names[each.system] for each in standings(study)],
        "headline": {names[system]: _headline(study, system) for system in study.challengers},
        "caveats": {
            names[system]: [
                {"code": each.code, "sentence": each.sentence(study)}
                for each in (() if estimated else caveats(study, system))
            ]
            for system in comparison.challengers
        },
        "labelling": None if study.labelling is None else study.labelling.numbers(),
        "judge": judged_numbers(study),
        "stopped": [names[system] for system in study.chosen if system in comparison.stopped],
        "comparisons": rows,
    }


def _headline(study: Study, system: str) -> dict[str, str]:
    """Return the main verdict on the first metric, for JSON: corrected with human labels if there
    is a judge, or from the estimate if labels are sampled."""
    corrected = headline(study, system)
    if corrected is not None:
        return {
            "by": "corrected",
            "kind": corrected.kind,
            "sentence": judged_sentence(study, corrected),
        }
    if only_estimates(study):
        return headline_of(study, system)
    verdict = study.comparison.verdict(system, study.spec, study.names)
    return {"by": "people", "kind": verdict.kind, "sentence": verdict.sentence}


def as_csv(compared: Compared) -> Iterator[str]:
    """Yield a row for each system and metric with the rules; a missing value is an empty cell."""
    comparison, names = compared.comparison, compared.study.names
    conventions = comparison.conventions
    rules: dict[str, object] = {
        "confidence": comparison.settings.level,
        "ties": conventions.ties,
    }
    if conventions.weighted:
        rules["weights"] = conventions.weights
    rows = records(comparison)
    yield csv_line([*rows[0], *rules])
    for row in rows:
        row["system"] = names[row["system"]]
        cells = (exact(each) if isinstance(each, float) else str(each) for each in row.values())
        yield csv_line([*cells, *map(str, rules.values())])


FORMATS: Mapping[str, Callable[[Compared], Iterator[str]]] = {
    "text": text,
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
    "latex": as_latex,
}


# Estimates from sampled labels, which `compare` and `evaluate` write instead of means.

_COLUMNS = (
    *("baseline", "challenger", "metric", "state", "difference", "low", "high"),
    *("relative", "relative_low", "relative_high", "level", "queries"),
    *("labels", "known", "pairs", "conclusive_at"),
)


def written(study: Study, form: str) -> Iterator[str]:
    """Yield the results from sampled labels and from a judge, as text or CSV.

    form: "text", "markdown", "latex" (comments) or "csv" (a row for each estimate; a missing value
        is an empty cell).
    """
    if form == "csv":
        yield csv_line(_COLUMNS)
        for estimate in () if study.labelling is None else study.labelling.estimates:
            values = asdict(estimate)
            yield csv_line([_cell(values[name]) for name in _COLUMNS])
        return
    for line in [*judged_lines(study), *sampled_lines(study)]:
        single_line = one_line(line)
        if form == "markdown":
            yield f"{markdown_safe(single_line)}\n\n"
        else:
            yield f"% {single_line}\n" if form == "latex" else f"{single_line}\n"


def sampled_lines(study: Study) -> list[str]:
    """Return the results from sampled labels, one line each."""
    return [] if study.labelling is None else labelling_sentences(study.labelling)


def headline_of(study: Study, challenger: str) -> dict[str, str]:
    """Return the kind of verdict that the labels of a challenger allow, and its sentence."""
    estimate = estimate_of(study, challenger)
    if estimate is None:
        return {"by": "estimate", "kind": "too_few", "sentence": sampled_lines(study)[0]}
    sentence = " ".join(estimate_sentences(estimate))
    return {"by": "estimate", "kind": estimate.kind, "sentence": sentence}


def _cell(value: object) -> str:
    if value is None:
        return ""
    return exact(value) if isinstance(value, float) else str(value)
