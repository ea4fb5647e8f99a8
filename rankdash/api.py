"""Functions and types of `import rankdash as rd`, from files to a verdict.

Functions store nothing between calls, and only `report` and `export` write files. A doubtful file
causes a `UserWarning`. Every error is a `RankdashError` that names the remedy.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from rankdash.core.base import files
from rankdash.core.base.arguments import PATH, expect, expect_each, expect_paths
from rankdash.core.base.errors import DataError, Finding, RankdashError, SpecError
from rankdash.core.base.i18n import speaking
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.measured import WithoutText
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.metrics import Conventions, Evaluation, one_threshold, parse_metrics
from rankdash.core.metrics.provider import ir_measures_provider
from rankdash.core.readers import Conflict, Match, Source, read_beside, sources_at, stem_of
from rankdash.core.readers.checks import doubtful_labels as doubtful
from rankdash.core.readers.checks.check import check
from rankdash.core.readers.checks.matching import match_labels
from rankdash.core.readers.loading import RETRIEVED, Retrieval, judgements_at, load
from rankdash.core.rerankers import SettingValue, create, get
from rankdash.core.rerankers.defaults import with_model
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.rerankers.neural.evaluator import SentenceEvaluator
from rankdash.core.rerankers.neural.packaged import misfit
from rankdash.core.runs import runner
from rankdash.core.runs.plan import Timing, plan
from rankdash.core.runs.stopping import StopRule, Watch
from rankdash.core.statistics.comparison import Comparison, StatisticsSettings
from rankdash.core.statistics.comparison import compare as compare_evaluations
from rankdash.core.study import leaderboard
from rankdash.core.study.labelling import with_sampled_labels
from rankdash.core.study.leaderboard import Standing
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money, systems_of
from rankdash.core.value.targets import Goals
from rankdash.core.words.queries import unknown_tokens

__all__ = [
    "Comparison",
    "Conventions",
    "Dataset",
    "Evaluation",
    "Judgements",
    "RankdashError",
    "Run",
    "SentenceEvaluator",
    "StatisticsSettings",
    "Study",
    "compare",
    "doubtful_labels",
    "evaluate",
    "export",
    "ir_measures_provider",
    "policy",
    "read",
    "read_run",
    "report",
    "rerank",
    "standings",
    "study_of",
]

METRICS = "ndcg@10, mrr@10, map, recall@10, judged@10"

NONE = type(None)

_Path = str | os.PathLike[str]


class ArrowTable(Protocol):
    """A table in memory, such as a data frame of pandas or polars, or a table of pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


_Table = ArrowTable | Mapping[str, Any]


def read(
    *paths: _Path | _Table,
    name: str | None = None,
    first_stage: str | None = None,
    conflict: Conflict = "highest",
    worst_label: float | None = None,
    columns: Mapping[str, str] | None = None,
    match: Match = "id",
    retrieval: Retrieval | None = None,
    retrieved: int = RETRIEVED,
) -> Dataset:
    """Read a data set from files, a folder or an archive, in any format of the dashboard.

    A name such as "ir_datasets:beir/scifact/test" or "hf:organization/name" also works, and so does
    a table in memory: a frame of pandas or polars, any object with `__arrow_c_stream__`, columns as
    {"query": [...], "document": [...], "label": [...]}, or labels as {"q1": {"d1": 2}}.

    name: of the data set, instead of one made from its files.
    first_stage: the ranking to start from, if the files contain several.
    conflict: the label to use if a pair has several: "highest", "lowest", "mean" or "refuse".
    worst_label: the grade that means not relevant, if the lowest grade is the best. Each label
        becomes `worst_label` minus itself.
    columns: field → column, such as {"query": "Frage", "label": "Note"}, if columns are detected
        wrongly. "" means that the files lack the field.
    match: "order" if the labels number the queries 1, 2, 3 … in the order of their file.
    retrieval: the method for a first stage if the files contain none: the best documents of the
        corpus by "bm25", "bi-encoder" or "fused"; the documents that the files list for a query,
        by BM25 ("listed"); or the order of the rows ("rows").
    retrieved: the number of documents to retrieve for a query.

    Raises DataError with file and line if the data set cannot be used.
    """
    expect_paths(paths)
    expect(
        columns=(columns, Mapping, NONE),
        worst_label=(worst_label, Real, NONE),
        retrieved=(retrieved, Integral),
        name=(name, str, NONE),
        first_stage=(first_stage, str, NONE),
    )
    loaded = load(
        _sources(paths),
        name=name,
        first_stage=first_stage,
        conflict=conflict,
        worst_label=worst_label,
        columns=columns,
        match=match,
        retrieval=retrieval,
        retrieved=retrieved,
    )
    _warn(loaded.report.warnings)
    return loaded.dataset


def read_run(path: _Path | _Table, data: Dataset, *, name: str | None = None) -> Run:
    """Read another system's ranking of `data`: a TREC run, or rows with a score or a rank.

    path: a file, or a table in memory as for `read`, such as {"q1": {"d1": 0.9, "d2": 0.4}}.
    name: of the run, instead of its file's name.

    Raises DataError if the file does not contain a ranking of any labelled query.
    """
    expect_paths([path])
    expect(data=(data, Dataset))
    file = Path(path) if isinstance(path, PATH) else Source.of_table(path, name or "ranking")
    stem = stem_of(file.name)
    joined = read_beside(data, {stem: file})
    read = joined.rankings[stem]
    _warn([*joined.findings, *_matched(stem, read.ranking, data, {})])
    return run_from_ranking(name or stem, data.id, read.ranking, file.name, read.outcomes)


def _sources(paths: Sequence[_Path | _Table]) -> list[Source]:
    """Return the files of paths and names, and tables in memory as files."""
    sources, tables = sources_at([path for path in paths if isinstance(path, PATH)]), 0
    for path in paths:
        if not isinstance(path, PATH):
            tables += 1
            sources.append(Source.of_table(path, f"table {tables}" if tables > 1 else "table"))
    return sources


def rerank(
    data: Dataset,
    reranker: str,
    *,
    depth: int | None = None,
    without_text: WithoutText = "exclude",
    stop_when_conclusive: str | None = None,
    **settings: SettingValue,
) -> Run:
    """Rerank the first `depth` candidates (None: all) of every query.

    reranker, settings: as listed by `rankdash rerankers`, such as "cross-encoder" and
        model="cross-encoder/ms-marco-MiniLM-L6-v2". Without a model, rankdash chooses one for the
        language of the texts.
    without_text: "exclude" leaves candidates without a text in first-stage order below the others;
        "empty" scores them as an empty text.
    stop_when_conclusive: a metric, such as "ndcg@10": score the queries in random order, and stop
        when its change against the first stage is conclusive. All later intervals of this run are
        anytime-valid.

    A failed query is listed in `Run.queries` with its reason, and never counts as 0.

    Raises SettingError for an unknown reranker or setting, and UnavailableError if the model or
    package is not available.
    """
    expect(data=(data, Dataset), reranker=(reranker, str), depth=(depth, Integral, NONE))
    kind = get(reranker)
    made = create(reranker, with_model(kind, settings, data))
    _warn([*misfit(made.settings, data.language)])
    able, watch = kind.able(made.settings), None
    if stop_when_conclusive is not None:
        planned = plan(data, depth, needs_text=able.needs_text, without_text=without_text)
        watch = Watch(data, planned, StopRule(stop_when_conclusive, by_itself=True), Timing().seed)
    run = runner.rerank(
        data,
        made,
        depth=depth,
        without_text=without_text,
        capabilities=able,
        watch=watch,
    )
    if run.measured is not None and run.measured.illiterate:
        warnings.warn(unknown_tokens(run.name, run.measured.unknown_tokens), stacklevel=2)
    return run


def evaluate(
    data: Dataset,
    run: Run | Ranking | None = None,
    metrics: str | Iterable[str] = METRICS,
    conventions: Conventions | None = None,
) -> Evaluation:
    """Score a run (None: the first stage) per query against the labels of `data`.

    metrics: a list or a comma-separated text, as for `rankdash evaluate`. `rel=2` in one metric is
        the relevance threshold of all.
    conventions: None for the dashboard's defaults; `Conventions.trec_eval()` for trec_eval's.

    Raises SpecError for an unknown metric or two thresholds, and DataError if run and labels share
    no query or no document.
    """
    expect(data=(data, Dataset), run=(run, Run, Ranking, NONE), metrics=(metrics, str, Iterable))
    if isinstance(run, Ranking):
        run = run_from_ranking("ranking", data.id, run, "")
    first, *others = parse_metrics(metrics).measures
    study = study_of(
        data, () if run is None else run, metric=first, others=others, conventions=conventions
    )
    ranked = FIRST_STAGE if run is None else run.id
    name = "first stage" if run is None else run.name
    _warn(_matched(name, study.ranking(ranked), data, study.excluded(ranked)))
    return study.evaluations[ranked]


def compare(
    evaluations: Mapping[str, Evaluation],
    baseline: str | None = None,
    settings: StatisticsSettings | None = None,
) -> Comparison:
    """Compare every system with the baseline (None: the first): intervals, tests and verdicts.

    evaluations: system → evaluation. A query without a value in one system is excluded from both.
    settings: None for the dashboard's defaults.

    Raises SpecError if there is nothing to compare, or if the systems were evaluated by different
    conventions.
    """
    expect(evaluations=(evaluations, Mapping))
    expect_each("evaluations", evaluations.values(), Evaluation)
    expect(settings=(settings, StatisticsSettings, NONE))
    if not evaluations:
        raise SpecError("There is nothing to compare.", remedy="Pass at least two evaluations.")
    first = next(iter(evaluations)) if baseline is None else baseline
    queries = max(len(each.query_ids) for each in evaluations.values())
    return compare_evaluations(
        evaluations, first, settings or StatisticsSettings.for_queries(queries)
    )


def standings(study: Study) -> tuple[Standing, ...]:
    """Return the rows of the leaderboard, the highest mean first.

    Systems that answered too few queries for a comparison are last.
    """
    expect(study=(study, Study))
    return leaderboard.standings(study)


def study_of(
    data: Dataset,
    runs: Run | Iterable[Run],
    *,
    baseline: Run | None = None,
    metric: str = "ndcg@10",
    others: Iterable[str] | None = None,
    conventions: Conventions | None = None,
    settings: StatisticsSettings | None = None,
    assumptions: Mapping[str, float] | None = None,
    profile: _Path | None = None,
    drawn: _Path | None = None,
    judge: _Path | Judgements | None = None,
) -> Study:
    """Return a study: a comparison with everything that the pages and the report show.

    Each part, such as `evaluations`, `comparison`, `reasons(…)` or `headroom(…)`, is computed on
    first use.

    runs: the challengers.
    baseline: None for the first stage.
    metric: of the verdict. others: further metrics; None for the dashboard's.
    conventions, settings: None for the dashboard's defaults.
    assumptions: of the page Cost & ROI, by name, such as {"searches_per_day": 5000}.
    profile: the name of a profile of targets, such as "faq", or your own file.
    drawn: the file of sampled labels that `rankdash label status` or the page Label wrote.
        `Study.labelling` then has estimates with intervals, and means are not computed.
    judge: the grades of an LLM judge: a CSV or JSON lines file with query_id, doc_id and grade.
        They never become labels. In `rankdash.core.study.judged`, `verdicts(study, study.judge)`
        returns the verdicts by the judge, by human labels, and corrected by human labels;
        `headline(study, run.id)` returns the corrected one or None.

    Raises SpecError for an unknown metric or a run that is compared with itself. Raises DataError
    for a run of another data set, an invalid assumption or profile, labels without sampling
    probabilities, and a file without grades.
    """
    expect(
        data=(data, Dataset),
        runs=(runs, Run, Iterable),
        baseline=(baseline, Run, NONE),
        metric=(metric, str),
        conventions=(conventions, Conventions, NONE),
        settings=(settings, StatisticsSettings, NONE),
        assumptions=(assumptions, Mapping, NONE),
    )
    compared = [runs] if isinstance(runs, Run) else list(runs)
    expect_each("runs", compared, Run)
    everything = [*compared, *([] if baseline is None else [baseline])]
    for run in everything:
        if run.dataset_id != data.id:
            raise DataError(
                "The run {run!r} is of another data set than {data!r}.",
                remedy="Rerank this data set, or read the run with it.",
                run=run.name,
                data=data.name,
            )
    money = None
    if assumptions is not None:
        money = Money.of(assumptions)
    metrics = parse_metrics([metric, *(others or ())])
    rules = conventions or Conventions()
    usual = rules.threshold == Conventions().threshold
    threshold = one_threshold([None if usual else rules.threshold, metrics.threshold])
    if threshold is not None:
        rules = replace(rules, threshold=threshold)
    first, *beside = metrics.specs
    study = Study.on(
        first,
        others=None if others is None and not beside else tuple(beside),
        dataset=data,
        systems=systems_of(data, everything),
        baseline=FIRST_STAGE if baseline is None else baseline.id,
        challengers=tuple(run.id for run in compared),
        conventions=rules,
        statistics=settings or StatisticsSettings.for_queries(data.labelled_queries),
        money=money,
        goals=None if profile is None else Goals.of(os.fspath(profile)),
        judge=_judge(judge),
    )
    return study if drawn is None else with_sampled_labels(study, draws_of(drawn))


def _judge(judge: _Path | Judgements | None) -> Judgements | None:
    if judge is None or isinstance(judge, Judgements):
        return judge
    judgements, findings = judgements_at(judge)
    _warn(findings)
    return judgements


def policy(
    study: Study,
    run: Run | None = None,
    *,
    depth: int | None = None,
    skip_loss: float | None = None,
    deadline_ms: float | None = None,
    floor_alpha: float | None = None,
    fuse: bool = False,
) -> dict[str, Any]:
    """Return a serving policy with its expected effect: the content of policy.json.

    run: the reranker; the first challenger by default. A step is part of the policy only if you
        pass its argument.
    depth: the number of candidates to rerank.
    skip_loss: skip queries with a large margin between ranks 1 and 2 of the first stage, at this
        acceptable loss, as a share of the mean.
    deadline_ms: the first stage's order is shown if reranking takes longer.
    floor_alpha: the accepted share of answerable queries that lose all relevant documents.
    fuse: fuse the orders of the reranker and the first stage, with tuned weights.

    Raises DataError if no query has a value with the policy, or if a floor has no meaning.
    """
    from rankdash.features.policy.policy_file import content_of

    expect(
        study=(study, Study),
        run=(run, Run, NONE),
        depth=(depth, Integral, NONE),
        skip_loss=(skip_loss, Real, NONE),
        deadline_ms=(deadline_ms, Real, NONE),
        floor_alpha=(floor_alpha, Real, NONE),
        fuse=(fuse, bool),
    )
    system = study.challengers[0] if run is None else run.id
    return content_of(study, system, depth, skip_loss, deadline_ms, floor_alpha, fuse=fuse)


def doubtful_labels(
    data: Dataset,
    runs: Run | Iterable[Run] = (),
    judge: _Path | Judgements | None = None,
) -> doubtful.DoubtfulLabels:
    """List labels that look wrong, for a second look: `candidates` is a table of them, `checks` has
    the counts and error rates of each check, and `shift` a likely shift of query ids.

    runs: systems that labels are compared with, in addition to the first stage.
    judge: as for `study_of`.
    """
    expect(data=(data, Dataset), runs=(runs, Run, Iterable), judge=(judge, Judgements, *PATH, NONE))
    compared = [runs] if isinstance(runs, Run) else list(runs)
    expect_each("runs", compared, Run)
    rankings = {run.id: run.ranking for run in compared}
    judges = [each for each in (_judge(judge),) if each is not None]
    return doubtful.doubtful_labels(data, rankings, judges)


def report(
    data: Dataset,
    runs: Run | Iterable[Run],
    path: _Path,
    *,
    baseline: Run | None = None,
    metric: str = "ndcg@10",
    conventions: Conventions | None = None,
    settings: StatisticsSettings | None = None,
    assumptions: Mapping[str, float] | None = None,
    profile: _Path | None = None,
    drawn: _Path | None = None,
    judge: _Path | Judgements | None = None,
    title: str = "",
    note: str = "",
    logo: _Path | None = None,
    sections: Iterable[str] | None = None,
    language: str = "en",
) -> Path:
    """Write the results as one HTML file, which opens and prints without a network.

    runs, baseline, metric, conventions, settings, profile: as for `study_of`.
    assumptions: of the page Cost & ROI, by name, such as {"searches_per_day": 5000,
        "value_per_search": 0.02}. None: the report contains only the break-even.
    drawn: as for `study_of`. The estimates come first in the report.
    judge: as for `study_of`. The corrected verdict comes first in the report.
    logo: a PNG, JPEG, GIF or WebP file.
    sections: None for all of "decision", "verdict", "systems", "cutoffs", "queries", "segments",
        "reasons", "latency", "cost", "data", "rules", "origin". ["decision"] writes one page.
    language: "en" or "zh".

    Returns the path of the file. Raises SpecError for an unknown metric, section or language.
    Raises DataError for a run of another data set, an invalid assumption, an unreadable logo or a
    missing folder.
    """
    from rankdash.features.report import report as report_report

    expect(path=(path, PATH))
    target = existing_place(path)
    front = report_report.front_of(title, note, logo, sections, language)
    with speaking(language):
        study = study_of(
            data,
            runs,
            baseline=baseline,
            metric=metric,
            conventions=conventions,
            settings=settings,
            assumptions=assumptions,
            profile=profile,
            drawn=drawn,
            judge=judge,
        )
    study = replace(study, check=check(data, (), {}))
    files.write(target, report_report.html(study, front))
    return target


def export(
    data: Dataset,
    runs: Run | Iterable[Run],
    path: _Path,
    format: str,
    *,
    metric: str = "ndcg@10",
    others: Iterable[str] | None = None,
    conventions: Conventions | None = None,
) -> Path:
    """Write a data set and its rankings in the format of another tool.

    path: the file to write, or a new or empty folder if the format consists of several files.
    format: "trec", "beir", "rank-llm", "mteb", "ranx", "rank-eval", "quepid" or "model-card", as
        listed by `rankdash export --help`.
    metric, others, conventions: of the format "model-card", as for `study_of`.

    IDs are never changed. Returns the path. Raises SpecError for an unknown format, and DataError
    for an id, a label or a text that the format cannot carry, a missing folder, and a folder that
    is not empty.
    """
    from rankdash.features.report.report_formats import format_of

    expect(path=(path, PATH), format=(format, str))
    target, form = existing_place(path), format_of(format)
    form.save(study_of(data, runs, metric=metric, others=others, conventions=conventions), target)
    return target


def _matched(
    name: str, ranking: Ranking, data: Dataset, left_out: Mapping[str, str]
) -> list[Finding]:
    """Return findings on how a ranking fits the labels. Raise DataError for an error among them."""
    expected = data.qrels
    if left_out:
        expected = expected[~expected["query_id"].isin(left_out)]
    findings = match_labels(name, ranking, expected, made_ids=False)
    for finding in findings:
        if finding.severity == "error":
            raise finding.as_error()
    return findings


def existing_place(path: _Path) -> Path:
    """Return the path to write to. Raises DataError if its folder is missing."""
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError(
            "The folder {folder} does not exist.",
            remedy="Create it first, or choose another folder.",
            folder=str(target.parent),
        )
    return target


def _warn(findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.severity == "warning":
            where = f"{finding.where}: " if finding.where else ""
            remedy = finding.remedy.format(**finding.params)
            # The line of the caller of `read`, `read_run` or `evaluate`.
            warnings.warn(f"{where}{finding.text} {remedy}".strip(), UserWarning, stacklevel=3)


def draws_of(file: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the sampling probabilities of a file of labels. Raise DataError if it lacks them."""
    draws = read_beside(sources_at([file]), {}).draws
    if draws is None:
        raise DataError(
            "The file lacks the sampling probability of each label.",
            remedy="The file needs the columns draw and probability, as `rankdash label status "
            "--out` writes them.",
            file=os.fspath(file),
        )
    return draws
