"""`evaluate`: labels and rankings from files, scored under stated conventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from rankdash.cli.rankings import made_ids, matching, names_of, no_ranking, read_run
from rankdash.cli.writing import warn
from rankdash.errors import DataError
from rankdash.metrics import Conventions, Evaluation, Measure, evaluate, judge, parse_measure
from rankdash.ranking.ranking import Ranking
from rankdash.readers import Conflict, Parsed, read, sources_at

_NONE_LEFT_OUT: Mapping[Path, Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Results:
    """What `evaluate` found.

    measures: as typed → measure. systems: name → evaluation. conflict: which of several labels of
    a pair was kept.
    """

    qrels: str
    measures: dict[str, Measure]
    conventions: Conventions
    conflict: Conflict
    systems: dict[str, Evaluation]


def typed_metrics(lists: Sequence[str]) -> dict[str, Measure]:
    """Specs as typed, in order → measures. Raises SpecError naming the nearest."""
    specs = (spec.strip() for text in lists for spec in text.split(","))
    return {spec: parse_measure(spec) for spec in specs if spec}


def conventions_of(preset: str, **changes: object) -> Conventions:
    """The preset ("rankdash" or "trec_eval") with the rules that are not None changed.

    Raises SpecError for a value that does not exist.
    """
    base = Conventions.trec_eval() if preset == "trec_eval" else Conventions.rankdash()
    given = {name: value for name, value in changes.items() if value is not None}
    if given.get("missing") == "zero":
        # A missing query can only score 0 where the labels say which queries there are.
        given["queries"] = "qrels"
    return replace(base, **given)  # type: ignore[arg-type]


def evaluate_files(
    qrels: str,
    runs: Sequence[str],
    measures: dict[str, Measure],
    conventions: Conventions,
    *,
    conflict: Conflict,
    left_out: Mapping[Path, Mapping[str, str]] = _NONE_LEFT_OUT,
) -> Results:
    """Read and score. What the readers find odd goes to standard error.

    left_out: run file → query id → "failed" or "skipped", where it is known why a run lacks a
        query: it has no value then, instead of a 0.

    Raises DataError where a file cannot be used, or ranks none of the labelled queries.
    """
    label_sources = sources_at([qrels])
    alone = read(label_sources, conflict=conflict)
    if not len(alone.qrels):
        raise DataError(
            "The file holds no labels.",
            remedy="Give the file that says which documents are relevant.",
            file=qrels,
        )
    # Which ranking the labels would start from is no matter here: each is named.
    noticed = [finding for finding in alone.findings if finding.code != "first_stage"]
    systems: dict[str, Evaluation] = {}
    for name, path in names_of(runs).items():
        out = left_out.get(path, {})
        together = read_run(path, label_sources, conflict)
        noticed += together.findings
        labels = _labels(alone, together)
        for system, ranking in _rankings(name, path, alone, together).items():
            expected = labels[~labels["query_id"].isin(out)] if out else labels
            noticed += matching(system, ranking, expected, path, made_ids(together))
            judged = judge(ranking, labels, conventions)
            systems[system] = evaluate(judged, list(measures.values()), conventions, out)
    warn(noticed)
    return Results(qrels, measures, conventions, conflict, systems)


def _labels(alone: Parsed, together: Parsed) -> pd.DataFrame:
    """The labels of the label file, whatever labels the file of the ranking holds."""
    return together.qrels if made_ids(alone) else alone.qrels


def _first_stage_of(parsed: Parsed) -> set[str]:
    """What the ranking to start from is called among the files; empty where there is none."""
    return {str(each.params["name"]) for each in parsed.findings if each.code == "first_stage"}


def _rankings(name: str, path: Path, alone: Parsed, together: Parsed) -> dict[str, Ranking]:
    """The ranking of a file under the file's name, and any other it holds under its own."""
    if together.candidates is None:
        raise no_ranking(path)
    known = {*alone.rankings, *_first_stage_of(alone)}
    others = {
        f"{name}/{other}": ranking
        for other, ranking in together.rankings.items()
        if other not in known
    }
    return {name: together.candidates} | others
