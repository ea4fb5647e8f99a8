"""What `import rankdash as rd` offers: the package's own steps, from files to a verdict.

Nothing is kept between calls, and nothing is written. What a file is read with doubts about is a
`UserWarning`; what cannot be done is a `RankdashError` that says what to do instead.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import pandas as pd

from rankdash.core.base import files
from rankdash.core.base.errors import DataError, Finding, RankdashError, SpecError
from rankdash.core.base.i18n import speaking
from rankdash.core.data.dataset import Dataset, Judgements
from rankdash.core.data.measured import WithoutText
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.metrics import Conventions, Evaluation, one_threshold, parse_metrics
from rankdash.core.readers import Conflict, Match, read_beside, sources_at, stem_of
from rankdash.core.readers.checks.check import check
from rankdash.core.readers.checks.matching import match_labels
from rankdash.core.readers.loading import RETRIEVED, Retrieval, judgements_at, load
from rankdash.core.rerankers import SettingValue, create, get
from rankdash.core.rerankers.defaults import with_model
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.rerankers.neural.packaged import misfit
from rankdash.core.runs import runner
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
    "StatisticsSettings",
    "Study",
    "compare",
    "evaluate",
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


def read(
    *paths: _Path,
    name: str | None = None,
    first_stage: str | None = None,
    conflict: Conflict = "highest",
    worst_label: float | None = None,
    columns: Mapping[str, str] | None = None,
    match: Match = "id",
    retrieval: Retrieval | None = None,
    retrieved: int = RETRIEVED,
) -> Dataset:
    """A data set from its files, folder or archive, in any format that the dashboard reads; or from
    its name, as "ir_datasets:beir/scifact/test" or "hf:organization/name".

    first_stage: the ranking to start from, where the files hold several. conflict: which label is
    kept where a pair has several: "highest", "lowest", "mean", or "refuse". worst_label: the
    grade that means not relevant, where the lowest grade is the best: each label becomes
    `worst_label` minus itself. columns: such as {"query": "Frage", "label": "Note"} where they are
    guessed wrongly; "" is no column. match: "order" if the labels
    count the queries 1, 2, 3 … in the order of their file. retrieval: how a first stage is made
    where the files give none: the `retrieved` best of all documents by "bm25", "bi-encoder" or
    "fused"; by BM25 from those that the files list for a query ("listed"); or the order of the rows
    ("rows").

    Raises DataError, which names file and line, where it cannot be used.
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
        sources_at(paths),
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


def read_run(path: _Path, data: Dataset, *, name: str | None = None) -> Run:
    """A ranking that another system made of `data`: a TREC run, or rows with a score or a rank.

    name: what the run is called; else its file. Raises DataError where the file holds no ranking,
    or ranks none of the labelled queries.
    """
    expect(path=(path, PATH), data=(data, Dataset))
    file = Path(path)
    stem = stem_of(file.name)
    joined = read_beside(data, {stem: file})
    ranking = joined.rankings[stem].ranking
    _warn([*joined.findings, *_matched(stem, ranking, data, {})])
    return run_from_ranking(name or stem, data.id, ranking, file.name)


def rerank(
    data: Dataset,
    reranker: str,
    *,
    depth: int | None = None,
    without_text: WithoutText = "exclude",
    **settings: SettingValue,
) -> Run:
    """Rerank the first `depth` candidates (None: all) of every query.

    reranker and settings: as `rankdash rerankers` lists them, such as "cross-encoder" and
    model="cross-encoder/ms-marco-MiniLM-L6-v2"; without a model, one that reads the texts is used.
    without_text: whether candidates without a text are excluded, which leaves them in first-stage
    order below the others, or scored as "empty".

    A query that fails stays in `Run.queries` with its reason and is no zero later. Raises
    SettingError for an unknown reranker or setting, UnavailableError where its model or package
    cannot be had.
    """
    expect(data=(data, Dataset), reranker=(reranker, str), depth=(depth, Integral, NONE))
    kind = get(reranker)
    made = create(reranker, with_model(kind, settings, data))
    _warn([*misfit(made.settings, data.language)])
    run = runner.rerank(
        data,
        made,
        depth=depth,
        without_text=without_text,
        capabilities=kind.able(made.settings),
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
    """Score a run (None: the first stage) query by query against the labels of `data`.

    metrics: specs, in a list or with commas between, as `rankdash evaluate` reads them; `rel=2` in
    one is the relevance threshold of all. conventions: as in the dashboard where None;
    `Conventions.trec_eval()` gives the numbers of trec_eval.

    Raises SpecError for a metric that does not exist or two thresholds, DataError where run and
    labels have no query or no document in common.
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
    """Every system against the baseline (None: the first), with intervals, tests and verdicts.

    evaluations: system → its evaluation. A query without a value on one side leaves both.
    settings: as in the dashboard where None.

    Raises SpecError where there is nothing to compare, or the systems were evaluated differently.
    """
    expect(evaluations=(evaluations, Mapping))
    expect_each("evaluations", evaluations.values(), Evaluation)
    expect(settings=(settings, StatisticsSettings, NONE))
    if not evaluations:
        raise SpecError("There is nothing to compare.", remedy="Give at least two evaluations.")
    first = next(iter(evaluations)) if baseline is None else baseline
    queries = max(len(each.query_ids) for each in evaluations.values())
    return compare_evaluations(
        evaluations, first, settings or StatisticsSettings.for_queries(queries)
    )


def standings(study: Study) -> tuple[Standing, ...]:
    """Return the rows of the leaderboard: the system with the highest mean first; last the systems
    that answered too few queries for a comparison."""
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
    """One comparison with all that the pages and the report show of it, each part computed when it
    is asked for: `evaluations`, `comparison`, `reasons(...)`, `headroom(...)` and so on.

    runs: what is compared with the baseline (None: the first stage). metric: what the verdict is
    on; others: what is evaluated beside it (None: as in the dashboard). assumptions: what a search
    is worth, by the names of the Cost page, such as {"searches_per_day": 5000}. profile: targets to
    be judged by, such as "faq", or the file of one's own. drawn: the labels of `data` as `rankdash
    label status` or the page Label wrote them, where they came by draws: `Study.labelling` has the
    estimates with their intervals, and means over such labels are none. judge: the grades of a
    judge, such as a language model, as CSV or JSON lines of query_id, doc_id and grade: kept apart
    from the labels. `verdicts(study, study.judge)` of `rankdash.core.study.judged` has its
    verdict, people's and the one corrected by people; `headline(study, run.id)` there is the
    corrected one, which counts, or None.

    Raises SpecError for a metric that does not exist or a run that is compared with itself,
    DataError for a run of another data set, an assumption or profile that cannot be, or a file
    that does not say how labels were drawn or holds no grades.
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
    """Write what was found as one HTML file, which opens and prints without a network.

    runs: what is compared with the baseline (None: the first stage). metric: what the verdict is
    on. assumptions: what a search is worth, by the names of the Cost page, such as
    {"searches_per_day": 5000, "value_per_search": 0.02}; None: the report gives the break-even
    alone. profile: targets that are shown beside the metrics, such as "faq", or the file of one's
    own. drawn: as for `study_of`; what they say stands above all. judge: as for `study_of`; the
    verdict corrected by people stands first. logo: a PNG, JPEG, GIF or WebP
    file. sections: None for all of "decision", "verdict", "systems", "cutoffs", "queries",
    "segments", "reasons", "latency", "cost", "data", "rules", "origin"; ["decision"] for one page
    to decide by. language: "en" or "zh".

    Returns where the file is. Raises SpecError for a metric, section or language that does not
    exist, DataError for a run of another data set, an assumption that cannot be, a logo that cannot
    be read or a folder that does not exist.
    """
    from rankdash.features.report import report as report_report

    expect(path=(path, PATH))
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError(
            "The folder {folder} does not exist.",
            remedy="Create it first, or choose another folder.",
            folder=str(target.parent),
        )
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


def _matched(
    name: str, ranking: Ranking, data: Dataset, left_out: Mapping[str, str]
) -> list[Finding]:
    """What is odd about ranking and labels together. Raises DataError where no number follows."""
    expected = data.qrels
    if left_out:
        expected = expected[~expected["query_id"].isin(left_out)]
    findings = match_labels(name, ranking, expected, made_ids=False)
    for finding in findings:
        if finding.severity == "error":
            raise finding.as_error()
    return findings


def _warn(findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.severity == "warning":
            where = f"{finding.where}: " if finding.where else ""
            remedy = finding.remedy.format(**finding.params)
            # The line of the caller of `read`, `read_run` or `evaluate`.
            warnings.warn(f"{where}{finding.text} {remedy}".strip(), UserWarning, stacklevel=3)


# What a caller of the Python interface passes: its types, so that a slip is a RankdashError, and
# the files that it names.

PATH = (str, os.PathLike)
_WORDS = {
    str: "text",
    os.PathLike: "a path",
    Integral: "a whole number",
    int: "a whole number",
    Real: "a number",
    float: "a number",
    Iterable: "a list",
    Mapping: "a dictionary",
    type(None): "None",
}


def expect(**arguments: tuple[Any, ...]) -> None:
    """Raise SpecError if an argument, given as (value, kind, …), is of none of its kinds."""
    for name, (value, *kinds) in arguments.items():
        flat = [kind for each in kinds for kind in (each if isinstance(each, tuple) else (each,))]
        if not isinstance(value, tuple(flat)):
            raise SpecError(
                "The argument {name} must be {expected}, not {given}.",
                remedy="`help` of the function lists its arguments.",
                name=name,
                expected=" or ".join(map(_words, flat)),
                given=_words(type(value)),
            )


def expect_each(name: str, values: Iterable[object], kind: type[Any]) -> None:
    """Raise SpecError if a value of the argument `name`, which is a list, is not of that kind."""
    for value in values:
        expect(**{name: (value, kind)})


def expect_paths(paths: Iterable[object]) -> None:
    """Raise SpecError if one of the files to read is not a path, such as a list of paths."""
    for path in paths:
        if isinstance(path, (list, tuple, set, frozenset)):
            raise SpecError(
                "A path must be text or a path, not a list.",
                remedy='Pass the paths one by one: read("qrels.tsv", "run.trec").',
            )
        expect(paths=(path, PATH))


def _words(kind: type[Any]) -> str:
    if kind in (list, tuple, set, dict):
        kind = Mapping if kind is dict else Iterable
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return _WORDS.get(kind) or f"{article} {kind.__name__}"


def draws_of(file: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the draws in a file of labels. Raises DataError if it does not contain them."""
    draws = read_beside(sources_at([file]), {}).draws
    if draws is None:
        raise DataError(
            "The file does not say in which draw each label came.",
            remedy="Give labels with the columns draw and probability, as `rankdash label status "
            "--out` writes them.",
            file=os.fspath(file),
        )
    return draws
