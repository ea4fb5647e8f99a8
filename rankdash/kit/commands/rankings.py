"""From files to a study: the shared input of `evaluate`, `compare`, `gate` and `report`."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.dataset import Dataset, Tables
from rankdash.core.data.ranking import Run
from rankdash.core.metrics import Conventions
from rankdash.core.readers import (
    Conflict,
    ReadLimits,
    Source,
    name_of,
    read,
    read_beside,
    sources_at,
    stem_of,
)
from rankdash.core.readers.checks.matching import match_labels
from rankdash.core.readers.files import Beside
from rankdash.core.readers.parse.limits import limit_set
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, System, first_stage_name, numbered, systems_of
from rankdash.kit.commands.arguments import columns_of
from rankdash.kit.commands.output import warn
from rankdash.kit.commands.timings import Timings, timed, timings_in, with_beside

if TYPE_CHECKING:
    import argparse

    import pandas as pd

    from rankdash.core.data.judgements import Judgements
    from rankdash.core.data.ranking import Ranking, Run
    from rankdash.core.metrics import Evaluation, Measure
    from rankdash.core.readers.loading import Retrieval


# The constant in malloc.h.
_MMAP_THRESHOLD = -3
MOST_ROWS = 50_000_000
"""The row limit of a file that is only scored, which takes a tenth of the memory of a data set."""


@dataclass(frozen=True)
class Files:
    """The files of a comparison; paths as they were typed.

    data: of a data set, or else qrels: of its labels, which need a baseline. timings: one for each
        of the first challengers, or None; for others, see `Timings.beside`.
        retrieval, retrieved: as for `loading.checked`. judge: the grades of a judge.
    """

    data: Sequence[str] = ()
    qrels: str | None = None
    baseline: str | None = None
    challengers: Sequence[str] = ()
    timings: Sequence[Timings | None] = ()
    first_stage: str | None = None
    retrieval: Retrieval | None = None
    retrieved: int | None = None
    judge: str | None = None


@dataclass(frozen=True)
class Rules:
    """The rules of a comparison.

    statistics: the settings for a number of labelled queries. conflict: which of several labels of
        a pair counts. worst_label, columns: as for `readers.read`. frequencies: the file of a table
        of queries.
    """

    conventions: Conventions
    statistics: Callable[[int], StatisticsSettings] = StatisticsSettings.for_queries
    conflict: Conflict = "highest"
    worst_label: float | None = None
    columns: Mapping[str, str] | None = None
    frequencies: str | None = None

    def with_frequencies(self, files: Sequence[str]) -> list[str]:
        """Return the files of a data set with the table of queries, if there is one."""
        return [*files, *filter(None, [self.frequencies])]


def study_of(
    files: Files, rules: Rules, metric: str, others: Sequence[str] | None, *, check: bool = False
) -> Study:
    """Return the study of the files, each of which is read once. Warnings of the readers go to
    standard error. Rankings are named after their files; further rankings in a file are challengers
    too.

    metric, others: specs, as for `Study`. check: check the data set as a whole too, and refuse it
        for its errors.

    Raises DataError if a file cannot be used, or ranks none of the labelled queries.
    """
    from rankdash.core.readers.loading import RETRIEVED, checked

    # Refuse invalid settings before the work.
    rules.statistics(0)
    large = None if check else _large_study_of(files, rules, metric, others)
    if large is not None:
        return large
    from_labels = files.qrels is not None
    paths = names_of([*([files.baseline] if files.baseline else []), *files.challengers])
    sources = sources_at(rules.with_frequencies(files.data or [files.qrels or ""]))
    judge = _judge(files.judge, files.data or [files.qrels or ""])
    challengers = list(paths)[len(paths) - len(files.challengers) :]
    timings = with_beside(paths, dict(zip(challengers, files.timings, strict=False)))
    joined = read_beside(sources, paths, start=from_labels, columns=rules.columns)
    parsed = joined.parsed(
        conflict=rules.conflict, worst_label=rules.worst_label, first_stage=files.first_stage
    )
    if files.qrels is not None and not len(parsed.qrels):
        raise _no_labels(files.qrels)
    name = _called(files.qrels) if files.qrels is not None else None
    first = next(iter(joined.rankings)) if from_labels else parsed.candidates_name
    if from_labels:
        inside = {"": timings[first]} if first in timings else {}
    else:
        inside = timings_in(files.data, parsed)
    if check:
        depth = RETRIEVED if files.retrieved is None else files.retrieved
        lost = {each: found.lost for each, found in inside.items()}
        loaded = checked(parsed, name=name, retrieval=files.retrieval, retrieved=depth, lost=lost)
        for error in loaded.report.errors:
            raise error.as_error()
        warn(loaded.report.warnings)
        dataset, report = loaded.dataset, loaded.report
        labelled = set(dataset.qrels["query_id"])
        loaded_runs = tuple(
            timed(run, inside[run.name], labelled) if run.name in inside else run
            for run in loaded.runs
        )
    else:
        warn(parsed.findings)
        candidates = next(iter(joined.rankings.values())).ranking
        tables = (parsed.queries, parsed.documents, parsed.qrels)
        dataset, loaded_runs, report = Dataset(name or parsed.name, *tables, candidates), (), None
    excluded = {}
    if "" in inside:
        start = Beside(dataset.candidates, Path(first), by_text=False)
        excluded = _run(first, start, inside[""], dataset, dataset.qrels).excluded
    runs = []
    for system, ranked in joined.rankings.items():
        if from_labels and system == first:
            continue
        run = _run(system, ranked, timings.get(system), dataset, dataset.qrels)
        _match(system, ranked, dataset.labels, run.excluded)
        runs.append(run)
    if from_labels and not check:
        _match(first, joined.rankings[first], dataset.labels, excluded)
    ids = [run.id for run in runs]
    baseline = ids.pop(0) if files.baseline and not from_labels else FIRST_STAGE
    if not files.challengers:
        ids = [run.id for run in (loaded_runs or runs) if run.id != baseline]
    study = Study.on(
        metric,
        others=None if others is None else tuple(others),
        dataset=dataset,
        systems=systems_of(
            dataset,
            {run.id: run for run in (*loaded_runs, *runs)}.values(),
            first if from_labels else first_stage_name(dataset),
            excluded,
        ),
        baseline=baseline,
        challengers=tuple(ids),
        conventions=rules.conventions,
        statistics=rules.statistics(dataset.labelled_queries),
        check=report,
        judge=judge,
    )
    return _with_sampled_labels(study, joined.draws)


def scores_of(
    qrels: str,
    rankings: Sequence[str],
    rules: Rules,
    metric: str,
    others: Sequence[str],
    *,
    judge: str | None = None,
) -> Study:
    """Return the study of labels and rankings for commands that need only ids: the systems have no
    other data, and tables of texts are read only if a part of the study uses them."""
    paths = names_of(rankings)
    timings = with_beside(paths)
    joined = read_beside(
        sources_at(rules.with_frequencies([qrels])),
        paths,
        start=True,
        columns=rules.columns,
        limits=ReadLimits(rows=limit_set("rows", MOST_ROWS)),
    )
    pairs, findings = joined.labels(conflict=rules.conflict, worst_label=rules.worst_label)
    if not len(pairs):
        raise _no_labels(qrels)
    warn(findings)

    def tables() -> Tables:
        parsed = joined.parsed(conflict=rules.conflict, worst_label=rules.worst_label)
        return Tables(parsed.queries, parsed.documents, parsed.qrels)

    labels = pairs.columns("label")
    candidates = next(iter(joined.rankings.values())).ranking
    dataset = Dataset.of_labels(_called(qrels), labels, candidates, tables)
    systems: list[System] = []
    for name, ranked in joined.rankings.items():
        lost = {}
        if name in timings or ranked.outcomes is not None:
            lost = _run(name, ranked, timings.get(name), dataset, dataset.qrels).excluded
        _match(name, ranked, labels, lost)
        system_id = f"file {len(systems) + 1}" if systems else FIRST_STAGE
        systems.append(System(system_id, name, ranking=ranked.ranking, lost=lost))
    study = Study.on(
        metric,
        others=tuple(others),
        dataset=dataset,
        systems=numbered(systems),
        baseline=FIRST_STAGE,
        challengers=tuple(system.id for system in systems[1:]),
        conventions=rules.conventions,
        statistics=rules.statistics(dataset.labelled_queries),
        judge=_judge(judge, [qrels]),
    )
    return _with_sampled_labels(study, joined.draws)


def large_scores_of(
    qrels: str, rankings: Sequence[str], rules: Rules, measures: Sequence[Measure]
) -> dict[str, Evaluation] | None:
    """Return system name → its metrics, for plain TREC files that are too large to read as a whole;
    None for others. Raises DataError as `scores_of` does."""
    if rules.columns or rules.frequencies or qrels in rankings:
        return None
    from rankdash.core.study.large import LargeFiles, evaluate_large

    paths = names_of(rankings)
    lost = {name: each.lost for name, each in with_beside(paths).items()}
    files = LargeFiles(Path(qrels), paths, rules.conflict, rules.worst_label, lost)
    outcome = evaluate_large(files, measures, rules.conventions)
    if outcome is None:
        return None
    evaluations, noticed = outcome
    warn(noticed)
    return evaluations


def _large_study_of(
    files: Files, rules: Rules, metric: str, others: Sequence[str] | None
) -> Study | None:
    """Return the study of large files, as `large_scores_of` reads them; None for others."""
    rankings = [*filter(None, [files.baseline]), *files.challengers]
    if files.qrels is None or files.qrels in rankings or len(rankings) < 2:
        return None
    paths = names_of(rankings)
    timings = with_beside(paths, dict(zip([*paths][1:], files.timings, strict=False)))
    stopped = any(each.stopped for each in timings.values())
    if others is None or rules.columns or rules.frequencies or files.judge or stopped:
        return None
    from rankdash.core.study.large import LargeFiles, study_large

    give_memory_back()
    lost = {name: each.lost for name, each in timings.items()}

    def run_of(name: str, ranking: Ranking, dataset: Dataset) -> Run:
        ranked = Beside(ranking, paths[name], by_text=False)
        return _run(name, ranked, timings.get(name), dataset, dataset.queries)

    outcome = study_large(
        LargeFiles(Path(files.qrels), paths, rules.conflict, rules.worst_label, lost),
        _called(files.qrels),
        metric,
        others,
        rules.conventions,
        rules.statistics,
        run_of,
    )
    if outcome is None:
        return None
    study, noticed = outcome
    if not len(study.dataset.queries):
        raise _no_labels(files.qrels)
    warn(noticed)
    return study


def labels_of(
    file: str, arguments: argparse.Namespace, sources: Sequence[Source] = ()
) -> pd.DataFrame:
    """Return query_id, doc_id and label of a file, read by the rules in the arguments."""
    parsed = read(
        sources or sources_at([file]),
        columns=columns_of(arguments.columns),
        conflict=arguments.conflict,
        worst_label=arguments.worst_label,
    )
    warn(parsed.findings)
    if not len(parsed.qrels):
        raise DataError(
            "The file contains no labels.",
            remedy="Provide rows of query, document and label.",
            file=file,
        )
    return parsed.qrels[["query_id", "doc_id", "label"]]


def give_memory_back() -> None:
    """Make glibc return freed arrays to the system immediately. By default it retains ever larger
    ones, which for files of a million rows is a third of the peak memory."""
    import pyarrow

    # NumPy uses the same allocator, so both share freed memory.
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 128 * 1024)


def spare_the_labels(judge: str | Path, labels: Sequence[str]) -> None:
    """Raise DataError if the file of a judge's grades is also a file of human labels."""
    if Path(judge).resolve() in {Path(each).resolve() for each in labels}:
        raise DataError(
            "The judge's grades and the human labels are the same file.",
            remedy="Provide the file with the judge's grades, as written by `judge run`.",
            file=str(judge),
        )


def _judge(file: str | None, labels: Sequence[str]) -> Judgements | None:
    if file is None:
        return None
    from rankdash.core.readers.loading import judgements_at

    spare_the_labels(file, labels)
    judgements, noticed = judgements_at(file)
    warn(noticed)
    return judgements


def _with_sampled_labels(study: Study, draws: pd.DataFrame | None) -> Study:
    if draws is None:
        return study
    from rankdash.core.study.labelling import with_sampled_labels

    return with_sampled_labels(study, draws)


def _no_labels(qrels: str) -> DataError:
    return DataError(
        "The file contains no labels.",
        remedy="Provide the file that lists relevant documents.",
        file=qrels,
    )


def _called(qrels: str) -> str:
    """Return the name of the data set of a file of labels."""
    return Path(name_of(Path(qrels))).stem


def _run(
    name: str, ranked: Beside, timings: Timings | None, dataset: Dataset, labelled: pd.DataFrame
) -> Run:
    """Return the run of a ranking. labelled: has the column query_id, of the labelled queries."""
    from rankdash.core.rerankers.kinds.precomputed import run_from_ranking

    file = name_of(ranked.path)
    run = run_from_ranking(name, dataset.id, ranked.ranking, file, ranked.outcomes)
    return run if timings is None else timed(run, timings, set(labelled["query_id"]))


def _match(
    name: str, ranked: Beside, labels: Mapping[str, Any], lost: Collection[str] = ()
) -> None:
    """Report problems of the ranking with the labels. lost: queries without a result. Raises
    DataError if they have no query in common."""
    noticed = match_labels(name, ranked.ranking, labels, made_ids=ranked.by_text, lost=lost)
    for finding in noticed:
        if finding.code == "queries_match_nothing":
            raise finding.as_error(str(ranked.path))
    warn(noticed)


def names_of(runs: Sequence[str]) -> dict[str, Path]:
    """Return system name → file: its stem, with as many folders before it as distinguish two files.

    Raises DataError if a file is listed twice.
    """
    paths = [Path(run) for run in runs]
    folders = [path.resolve().parts[1:-1] for path in paths]
    twice = [path for path, n in Counter(path.resolve() for path in paths).items() if n > 1]
    if twice:
        raise DataError("The ranking is listed twice.", remedy="List it once.", file=str(twice[0]))
    stems = [(*folder, stem_of(name_of(path))) for folder, path in zip(folders, paths, strict=True)]
    # Two endings of one name in one folder, such as a.trec and a.csv: only the whole name differs.
    wholes = [(*folder, path.name) for folder, path in zip(folders, paths, strict=True)]
    named: dict[str, Path] = {}
    for path, stem, whole in zip(paths, stems, wholes, strict=True):
        name = _unique_end(stem, stems) or _unique_end(whole, wholes) or str(path)
        named[str(path) if name in named else name] = path
    return named


def _unique_end(parts: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str | None:
    """Return the shortest end of the parts that no other has; None if another is equal."""
    for length in range(1, len(parts) + 1):
        if [other[-length:] for other in others].count(parts[-length:]) == 1:
            return "/".join(parts[-length:])
    return None
