"""The systems of a study beside the targets of a profile: what is met, by the interval, and what
these labels and candidates allow at most."""

from __future__ import annotations

import math

import numpy as np

from rankdash.core.data.measured import meets
from rankdash.core.statistics.inference import intervals
from rankdash.core.study import headroom, study_latency
from rankdash.core.study.latency import OnTarget, on_target
from rankdash.core.study.pricing import bill
from rankdash.core.study.study import Study
from rankdash.core.value.assumptions import DOLLARS
from rankdash.core.value.targets import Goals, Limit, Reached, Status, TargetRow, judge


def rows(study: Study, system: str, goals: Goals) -> tuple[TargetRow, ...]:
    """A row for each target and each limit of the profile."""
    reached = figures(study, system, goals.profile.specs())
    quality = [
        judge(target, reached[target.metric], goals.targets) for target in goals.profile.targets
    ]
    return (*quality, *(_limited(study, system, limit) for limit in goals.profile.limits))


def figures(study: Study, system: str, specs: tuple[str, ...]) -> dict[str, Reached]:
    """Spec → the mean of a system with its interval, and that of the best order of the documents
    over the same queries."""
    if not specs:
        return {}

    def make() -> dict[str, Reached]:
        found, best = study.evaluate(system, specs), headroom.best_of_all(study, specs)
        low, high = intervals(
            found.values,
            study.statistics,
            possible=tuple(np.array([each.metric.range for each in found.measures]).T),
        )
        places = {query: place for place, query in enumerate(best.query_ids)}
        at = [places[query] for query in found.query_ids]
        most = np.where(np.isnan(found.values), np.nan, np.fmax(best.values[at], found.values))
        known = ~np.isnan(most)
        with np.errstate(invalid="ignore"):
            mosts = np.where(known, most, 0.0).sum(axis=0) / known.sum(axis=0)
        return {
            measure.spec: Reached(
                found.mean(measure), float(low[column]), float(high[column]), float(mosts[column])
            )
            for column, measure in enumerate(found.measures)
        }

    return study.once(study.key("reached", system, study.chosen, specs, study.statistics), make)


def _limited(study: Study, system: str, limit: Limit) -> TargetRow:
    return (_timed if limit.what == "p95_ms" else _billed)(study, system, limit)


_ON_TARGET: dict[str, Status] = {
    "meets": "met",
    "misses": "missed",
    "likely": "undecided",
    "unlikely": "undecided",
}


def _timed(study: Study, system: str, limit: Limit) -> TargetRow:
    times = study_latency.times(study, system)
    p95 = None if times is None else times.summary.p95
    if times is None or p95 is None:
        return TargetRow(limit.what, Reached(math.nan), limit, None)

    def within(target_ms: float) -> OnTarget | None:
        return on_target(
            times.ordered,
            target_ms,
            timed_out=times.apart.timed_out,
            level=study.statistics.level,
        )

    met = within(limit.target)
    best = None if limit.excellent is None else within(limit.excellent)
    return TargetRow(
        limit.what,
        Reached(p95, *times.summary.p95_interval),
        limit,
        None if met is None else _ON_TARGET[met.kind],
        excellent=best is not None and best.kind == "meets",
    )


def _billed(study: Study, system: str, limit: Limit) -> TargetRow:
    """A limit in dollars; a price in another currency says nothing of it, and one that nobody set
    decides nothing."""
    cost = bill(study, system)
    value = None if cost is None else cost.per_million_tokens
    if cost is None or cost.currency != DOLLARS or value is None:
        return TargetRow(limit.what, Reached(math.nan), limit, None)
    example = cost.example
    status: Status = "met" if meets(value, limit.target) else "missed"
    return TargetRow(
        limit.what,
        Reached(value),
        limit,
        "undecided" if example else status,
        excellent=not example and limit.excellent is not None and meets(value, limit.excellent),
        example=example,
    )
