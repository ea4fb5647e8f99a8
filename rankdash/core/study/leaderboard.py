"""The systems of a comparison side by side: quality, change, latency and price, the best first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rankdash.core.study import latency
from rankdash.core.study.cache import part
from rankdash.core.study.pricing import Bill, bill
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.value.payoff import pareto

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
        better; None where what it takes is not known, too few queries were answered, no other
        system can be compared with it, or the answer lies within the noise of a busy machine.
    busy: whether it was measured on a busy machine. unsure: the axes on which that leaves it open
        whether it is Pareto-optimal.
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
    busy: bool = False
    unsure: frozenset[Axis] = frozenset()

    def takes(self, axis: Axis) -> float | None:
        """Milliseconds or money."""
        return self.p95 if axis == "p95" else self.per_thousand


@part(alone=True)
def standings(study: Study) -> tuple[Standing, ...]:
    """Every chosen system, the highest mean first; those last that answered too few queries to be
    compared."""
    rows = [_standing(study, system) for system in study.chosen]
    means = [math.nan if row.kind in _INCOMPARABLE else row.mean for row in rows]
    fronts = {axis: _front([row.takes(axis) for row in rows], means) for axis in AXES}
    ends = [latency.least(study, row.system) if row.busy else (row.p95, row.p95) for row in rows]
    rows = [
        _settled(
            replace(row, pareto={axis: front[at] for axis, front in fronts.items()}),
            at,
            ends,
            means,
        )
        for at, row in enumerate(rows)
    ]
    return tuple(sorted(rows, key=lambda row: _place(row.kind, row.mean)))


def known_axes(rows: Sequence[Standing]) -> tuple[Axis, ...]:
    """Return those of which a value is known for a system besides the first stage."""
    rerankers = [row for row in rows if row.system != FIRST_STAGE]
    return tuple(axis for axis in AXES if any(row.takes(axis) is not None for row in rerankers))


def usual_axis(rows: Sequence[Standing]) -> Axis:
    """Return latency if it is known of every system, or if no price is: a price may be assumed."""
    all_timed = all(row.p95 is not None for row in rows if row.system != FIRST_STAGE)
    return "p95" if all_timed or known_axes(rows) == ("p95",) else "cost"


def ranked_names(study: Study) -> dict[str, str]:
    """id → name, as `standings` has them; the baseline first where it is compared with one."""
    if len(study.challengers) < 2:
        return study.names
    return {row.system: study.name(row.system) for row in standings(study)}


def best_challenger(study: Study) -> str | None:
    """The challenger that stands first; None where there is no challenger."""

    def place(system: str) -> tuple[bool, float]:
        row = study.comparison.row(system, study.spec)
        return _place(str(row["verdict"]), float(row["mean"]))

    return min(study.challengers, key=place, default=None)


def _place(kind: str, mean: float) -> tuple[bool, float]:
    """What systems are sorted by."""
    return kind in _INCOMPARABLE, math.inf if math.isnan(mean) else -mean


def _settled(
    row: Standing,
    at: int,
    ends: Sequence[tuple[float | None, float | None]],
    means: Sequence[float],
) -> Standing:
    """Without its place on the front of latency if a new measurement may change it. ends: of the
    latency of each system, the same twice for one that was not measured on a busy machine."""
    for end, others in ((0, 1), (1, 0)):
        taken = [each[end if place == at else others] for place, each in enumerate(ends)]
        if row.pareto["p95"] is not None and _front(taken, means)[at] != row.pareto["p95"]:
            return replace(row, pareto={**row.pareto, "p95": None}, unsure=frozenset({"p95"}))
    return row


def _front(taken: Sequence[float | None], means: Sequence[float]) -> list[bool | None]:
    known = [math.nan if each is None else each for each in taken]
    alone = sum(not math.isnan(at + mean) for at, mean in zip(known, means, strict=True)) < 2
    return [
        None if alone or math.isnan(at) or math.isnan(mean) else bool(on)
        for on, at, mean in zip(pareto(known, means), known, means, strict=True)
    ]


def _standing(study: Study, system: str) -> Standing:
    """Without its place among the others."""
    row = study.comparison.row(system, study.spec)
    mean, low, high = study.mean(system)
    baseline, first = system == study.baseline, system == FIRST_STAGE
    change = [math.nan if baseline else float(row[f"delta{end}"]) for end in ("", "_low", "_high")]
    measured, cost = latency.summary(study, system), bill(study, system)
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
        p95=0.0 if first else None if measured is None else measured.p95,
        cost=cost,
        per_thousand=0.0 if first else None if cost is None else cost.per_thousand,
        pareto={},
        busy=latency.busy(study, system),
    )
