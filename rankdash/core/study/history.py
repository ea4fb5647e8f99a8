"""All systems of a data set on one metric, over time.

Every run of the data set is looked at, which may be many large ones: what is kept of each is its
join with the labels, a small part of it, and never the run itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rankdash.core.metrics import Evaluation, Judged, evaluate, judge
from rankdash.core.study import study_latency
from rankdash.core.study.study import Study
from rankdash.core.study.trends import Trend
from rankdash.core.study.trends import trend as trend_of


@dataclass(frozen=True, eq=False)
class _Joined:
    """excluded: query id → "failed" or "skipped"."""

    judged: Judged
    excluded: Mapping[str, str]


def evaluation(study: Study, system: str) -> Evaluation:
    """Per-query values of the metric of the study for any system of the data set."""
    load = study.systems[system].load
    if load is None or system in study.chosen:
        return study.evaluate(system, (study.spec,))

    def join() -> _Joined:
        run = load()
        return _Joined(judge(run.ranking, study.dataset.qrels, study.conventions), run.left_out)

    def make() -> Evaluation:
        joined = study.shared(
            ("joined", study.dataset_id, system, *study.conventions.joining), join
        )
        return evaluate(joined.judged, [study.spec], study.conventions, joined.excluded)

    return study.shared(("history", study.dataset_id, system, study.spec, study.conventions), make)


def quantiles_ms(study: Study, system: str) -> tuple[float, float]:
    """p50 and p95 of a system's latencies in milliseconds, of a fused run those of the sums over
    its parts; NaN where there is none."""

    def make() -> tuple[float, float]:
        found = study_latency.summary(study, system)
        if found is None:
            return math.nan, math.nan
        return found.p50, math.nan if found.p95 is None else found.p95

    return study.shared(
        ("history latency", study.dataset_id, study_latency.timed_by(study, system)), make
    )


def trend(study: Study, systems: tuple[str, ...], *, every: bool) -> Trend:
    """Every system against the baseline of the study; ask for each `evaluation` first where their
    progress is to be shown. every: as for `analysis.statistics.history.trend`."""
    key = (study.dataset_id, systems, study.baseline, study.spec, every)
    return study.once(
        ("trend", *key, study.conventions, study.statistics),
        lambda: trend_of(
            {system: evaluation(study, system) for system in systems},
            study.baseline,
            study.spec,
            study.statistics,
            every=every,
        ),
    )
