"""`evaluate`: labels and rankings from files, scored under stated conventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from rankdash.analysis.matching import match_labels
from rankdash.cli.writing import warn
from rankdash.errors import DataError
from rankdash.findings import Finding
from rankdash.metrics import Conventions, Evaluation, Measure, evaluate, judge, parse_measure
from rankdash.ranking import Ranking
from rankdash.readers import Conflict, Parsed, Source, read, sources_at

# What a reader notes when a file names queries or documents by their text only.
_NAMED_BY_TEXT = {"made_query_id", "made_doc_id"}
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
    if preset == "trec_eval":
        base = Conventions.trec_eval()
    else:
        base = replace(Conventions.rankdash(), ties="trec")
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
    noticed = list(alone.findings)
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


def names_of(runs: Sequence[str]) -> dict[str, Path]:
    """System name → file: its stem, with as many folders before it as tell two files apart.

    Raises DataError where a file is given twice.
    """
    paths = [Path(run) for run in runs]
    stems = [(*path.resolve().parts[1:-1], Source(path.name, b"").stem) for path in paths]
    twice = [path for path, n in Counter(path.resolve() for path in paths).items() if n > 1]
    if twice:
        raise DataError("The ranking is given twice.", remedy="Name it once.", file=str(twice[0]))
    named: dict[str, Path] = {}
    for path, parts in zip(paths, stems, strict=True):
        same = [other for other in stems if other[-1] == parts[-1]]
        depth = next(
            (n for n in range(1, len(parts) + 1) if [o[-n:] for o in same].count(parts[-n:]) == 1),
            0,
        )
        # Two endings of one name in one folder, such as a.trec and a.csv: only the whole name
        # tells them apart.
        named["/".join(parts[-depth:]) if depth else path.name] = path
    return named


def run_source(path: Path, others: Sequence[Source]) -> Source | None:
    """The file of a ranking, under a name that none of the others has; None where it is one of
    them."""
    source = Source.from_path(path)
    if any(source.data == other.data for other in others):
        return None
    if any(source.name == other.name for other in others):
        return replace(source, name=f"{path.resolve().parent.name}/{source.name} (run)")
    return source


def read_run(path: Path, labels: Sequence[Source], conflict: Conflict) -> Parsed:
    """The ranking in a file, read together with the labels, so that queries and documents which
    both give by their text only are the same ones. Raises DataError where it holds none."""
    source = run_source(path, labels)
    if source is None:
        return read(labels, conflict=conflict)
    try:
        return read([*labels, source], conflict=conflict, first_stage=source.name)
    except DataError as problem:
        if problem.params.get("wanted") != source.name:
            raise
        raise no_ranking(path) from problem


def no_ranking(path: Path) -> DataError:
    """What to raise for a file that ranks nothing."""
    return DataError(
        "The file holds no ranking: there are neither scores nor ranks in it.",
        remedy="A ranking has a score or a rank for each query and document, as a TREC run does.",
        file=str(path),
    )


def _labels(alone: Parsed, together: Parsed) -> pd.DataFrame:
    """The labels of the label file, whatever labels the file of the ranking holds."""
    return together.qrels if made_ids(alone) else alone.qrels


def _rankings(name: str, path: Path, alone: Parsed, together: Parsed) -> dict[str, Ranking]:
    """The ranking of a file under the file's name, and any other it holds under its own."""
    if together.candidates is None:
        raise no_ranking(path)
    known = alone.rankings if alone.candidates is None else together.rankings
    others = {
        f"{name}/{other}": ranking
        for other, ranking in together.rankings.items()
        if other not in known
    }
    return {name: together.candidates} | others


def made_ids(parsed: Parsed) -> bool:
    """Whether queries or documents are named by their text."""
    return any(finding.code in _NAMED_BY_TEXT for finding in parsed.findings)


def matching(
    name: str, ranking: Ranking, labels: pd.DataFrame, path: Path, by_text: bool
) -> list[Finding]:
    """What is odd about ranking and labels together. Raises DataError where they have no query in
    common."""
    found = match_labels(name, ranking, labels, made_ids=by_text)
    for finding in found:
        if finding.code == "queries_match_nothing":
            raise DataError(
                finding.template,
                remedy=finding.remedy,
                file=str(path),
                line=finding.line,
                **finding.params,
            )
    return found
