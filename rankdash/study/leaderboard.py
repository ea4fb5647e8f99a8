"""The systems of a comparison side by side: quality, change, latency and price, the best first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rankdash.study import latency
from rankdash.study.pricing import Bill, bill
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE
from rankdash.value.pareto import pareto

Axis = Literal["p95", "cost"]
"""What quality is traded against."""

# Kinds of verdicts where too few queries were answered for a mean to stand among the others.
_INCOMPARABLE = ("too_few", "nothing_common", "no_values")

AXES: tuple[Axis, ...] = ("p95", "cost")


@dataclass(frozen=True)
class Standing:
    """One system of a leaderboard. Numbers that do not exist are NaN.

    system: its id. kind: that of its verdict, "baseline" for the baseline.
    mean, low, high: of the study's metric over the n queries that it has a value for, and its
        interval. failed: how many queries failed; none of them is in the mean.
    delta, delta_low, delta_high, helped, hurt: the change against the baseline over the queries
        that both have a value for; NaN and 0 for the baseline.
    p95: milliseconds that it adds to a search; 0 for the first stage, None where not measured.
    cost: what 1,000 searches cost; None for the first stage, which nobody bills for reranking.
    per_thousand: the same amount in the currency of the study; 0 for the first stage, None where
        it is not known.
    pareto: axis → whether no other system is as good and takes less, or takes as little and is
        better; None where what it takes is not known, or too few queries were answered.
    """

    system: str
    kind: str
    mean: float
    low: float
    high: float
    n: int
    failed: int
    delta: float
    delta_low: float
    delta_high: float
    helped: int
    hurt: int
    p95: float | None
    cost: Bill | None
    per_thousand: float | None
    pareto: Mapping[Axis, bool | None]

    def takes(self, axis: Axis) -> float | None:
        """Milliseconds or money."""
        return self.p95 if axis == "p95" else self.per_thousand


def standings(study: Study) -> tuple[Standing, ...]:
    """Every chosen system, the highest mean first; those last that answered too few queries to be
    compared."""
    taken = {system: _taken(study, system) for system in study.chosen}
    means = [_comparable_mean(study, system) for system in study.chosen]
    fronts = {
        axis: dict(
            zip(study.chosen, _front([each[axis] for each in taken.values()], means), strict=True)
        )
        for axis in AXES
    }
    rows = [
        _standing(study, system, taken[system], {axis: fronts[axis][system] for axis in AXES})
        for system in study.chosen
    ]
    return tuple(sorted(rows, key=lambda row: _place(row.kind, row.mean)))


def best_challenger(study: Study) -> str | None:
    """The challenger that stands first; None where there is no challenger."""

    def place(system: str) -> tuple[bool, float]:
        row = study.comparison.row(system, study.spec)
        return _place(str(row["verdict"]), float(row["mean"]))

    return min(study.challengers, key=place, default=None)


def _place(kind: str, mean: float) -> tuple[bool, float]:
    """What systems are sorted by."""
    return kind in _INCOMPARABLE, math.inf if math.isnan(mean) else -mean


def _taken(study: Study, system: str) -> Mapping[Axis, float | None]:
    """What a system takes on each axis; None where that is not known."""
    if system == FIRST_STAGE:
        return {"p95": 0.0, "cost": 0.0}
    measured, cost = latency.summary(study, system), bill(study, system)
    return {
        "p95": None if measured is None else measured.p95,
        "cost": None if cost is None else cost.per_thousand,
    }


def _comparable_mean(study: Study, system: str) -> float:
    """NaN where too few queries were answered."""
    kind = study.comparison.row(system, study.spec)["verdict"]
    return math.nan if kind in _INCOMPARABLE else study.mean(system)[0]


def _front(taken: Sequence[float | None], means: Sequence[float]) -> list[bool | None]:
    known = [math.nan if each is None else each for each in taken]
    return [
        None if math.isnan(at) or math.isnan(mean) else bool(on)
        for on, at, mean in zip(pareto(known, means), known, means, strict=True)
    ]


def _standing(
    study: Study,
    system: str,
    taken: Mapping[Axis, float | None],
    fronts: Mapping[Axis, bool | None],
) -> Standing:
    row = study.comparison.row(system, study.spec)
    mean, low, high = study.mean(system)
    change = [math.nan] * 3
    if system != study.baseline:
        change = [float(row[name]) for name in ("delta", "delta_low", "delta_high")]
    return Standing(
        system=system,
        kind=str(row["verdict"]),
        mean=mean,
        low=low,
        high=high,
        n=int(row["n"]),
        failed=sum(why == "failed" for why in study.excluded(system).values()),
        delta=change[0],
        delta_low=change[1],
        delta_high=change[2],
        helped=int(row["helped"]),
        hurt=int(row["hurt"]),
        p95=taken["p95"],
        cost=bill(study, system),
        per_thousand=taken["cost"],
        pareto=fronts,
    )
