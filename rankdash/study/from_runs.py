"""From runs to the subject of a report: names, the baseline, the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rankdash.analysis.labels.check import CheckReport
from rankdash.analysis.statistics.comparison import StatisticsSettings
from rankdash.dataset import Dataset
from rankdash.i18n import gettext as _
from rankdash.metrics import Conventions, parse_measure
from rankdash.ranking.ranking import Run
from rankdash.study.study import Subject
from rankdash.study.systems import FIRST_STAGE, Money, System
from rankdash.words import names


def first_stage(dataset: Dataset) -> str:
    """What the data set's own ranking is called in the language spoken."""
    return _("First stage (BM25)") if dataset.first_stage == "bm25" else _("First stage")


def subject_of(
    dataset: Dataset,
    runs: Sequence[Run],
    baseline: Run | None,
    metric: str,
    *,
    conventions: Conventions,
    statistics: StatisticsSettings,
    check: CheckReport | None,
    money: Money | None = None,
) -> Subject:
    """Runs against a baseline (None: the first stage), under their own names, numbered where two
    are alike. metric: a spec, such as "ndcg@10"."""
    measure = parse_measure(metric)
    found = {FIRST_STAGE: first_stage(dataset)}
    found |= {run.id: run.name for run in (*([] if baseline is None else [baseline]), *runs)}
    by_id = {run.id: run for run in (*([] if baseline is None else [baseline]), *runs)}
    systems = {
        system: System(system, name, by_id.get(system))
        for system, name in names.distinct(found).items()
    }
    return Subject(
        dataset,
        systems,
        FIRST_STAGE if baseline is None else baseline.id,
        tuple(run.id for run in runs),
        metric=replace(measure, k=None).spec,
        cutoff=measure.k,
        conventions=conventions,
        statistics=statistics,
        check=check,
        money=money,
    )
