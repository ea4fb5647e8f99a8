"""The leaderboard: quality, change, latency and price of each system, the best one first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rankdash.core.statistics.comparison import Comparison, compare
from rankdash.core.study import latency
from rankdash.core.study.cache import part
from rankdash.core.study.pricing import Bill, bill
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money
from rankdash.core.value.payoff import pareto

Axis = Literal["p95", "cost"]
"""The quantities that are traded off against quality."""

# Kinds of verdicts with too few answered queries for a comparable mean.
_INCOMPARABLE = ("too_few", "nothing_common", "no_values")

AXES: tuple[Axis, ...] = ("p95", "cost")


@dataclass(frozen=True)
class Standing:
    """One system of a leaderboard. Missing numbers are NaN.

    system: its id. kind: the kind of its verdict, "baseline" for the baseline.
    mean, low, high: of the study's metric over the n queries with a value, with its interval.
        failed: the number of failed queries; the mean excludes them.
    delta, delta_low, delta_high, helped, hurt: the change against the baseline over the queries
        with a value for both; NaN and 0 for the baseline.
    p95: milliseconds added to a search; 0 for the first stage, None if not measured, or measured
        for whole searches.
    cost: of 1,000 searches; None for the first stage, which costs nothing for reranking.
    per_thousand: the same amount in the currency of the study; 0 for the first stage, None if
        unknown, or if the user did not set the price and does not use example values.
    pareto: axis → whether the system is Pareto-optimal; None if its latency or price is unknown,
        too few queries were answered, no other system is comparable, or the noise of a busy machine
        could change the answer.
    busy: whether it was measured on a busy machine. unsure: the axes on which Pareto optimality is
        uncertain for that reason.
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
        """Return the value on an axis: p95 in milliseconds, or the cost of 1,000 searches."""
        return self.p95 if axis == "p95" else self.per_thousand


@part(alone=True)
def standings(study: Study) -> tuple[Standing, ...]:
    """Return every chosen system, the highest mean first; systems with too few answered queries are
    last."""
    rows = [_standing(study, system) for system in study.chosen]
    means = [math.nan if row.kind in _INCOMPARABLE else row.mean for row in rows]
    fronts = {axis: _front([row.takes(axis) for row in rows], means) for axis in AXES}
    ends = [
        latency.least(study, row.system) if row.busy and row.p95 is not None else (row.p95, row.p95)
        for row in rows
    ]
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


@part(alone=True)
def as_good_as_best(study: Study) -> dict[str, tuple[Axis, ...]]:
    """Return the fastest and the cheapest of the systems that are as good as the best one, within
    the user's margin, and faster or cheaper than it: system → the axes it is first on."""
    best, *others = standings(study)
    if study.statistics.equal_margin is None or not others:
        return {}
    comparison = compared_with(study, best.system, tuple(row.system for row in others))
    as_good = [
        row
        for row in others
        if comparison.row(row.system, study.spec)["verdict"] in ("equal", "identical")
    ]
    first: dict[str, tuple[Axis, ...]] = {}
    for axis in AXES:
        least = _own_amount(best, axis)
        amounts = [(_own_amount(row, axis), row.system) for row in as_good]
        known = [(amount, system) for amount, system in amounts if amount is not None]
        if least is not None and known and (lowest := min(known))[0] < least:
            first[lowest[1]] = (*first.get(lowest[1], ()), axis)
    return first


def known_axes(rows: Sequence[Standing]) -> tuple[Axis, ...]:
    """Return the axes with a known value for a system other than the first stage."""
    rerankers = [row for row in rows if row.system != FIRST_STAGE]
    return tuple(axis for axis in AXES if any(row.takes(axis) is not None for row in rerankers))


def usual_axis(rows: Sequence[Standing]) -> Axis:
    """Return "p95" if all latencies are known, or if no price is known; otherwise "cost"."""
    all_timed = all(row.p95 is not None for row in rows if row.system != FIRST_STAGE)
    return "p95" if all_timed or known_axes(rows) == ("p95",) else "cost"


def ranked_names(study: Study) -> dict[str, str]:
    """Return id → name, in the order of `standings`; with one challenger, the baseline is first."""
    if len(study.challengers) < 2:
        return study.names
    return {row.system: study.name(row.system) for row in standings(study)}


def best_challenger(study: Study) -> str | None:
    """Return the challenger with the highest rank; None without challengers."""

    def place(system: str) -> tuple[bool, float]:
        row = study.comparison.row(system, study.spec)
        return _place(str(row["verdict"]), float(row["mean"]))

    return min(study.challengers, key=place, default=None)


def _place(kind: str, mean: float) -> tuple[bool, float]:
    """Return the sort key of a system."""
    return kind in _INCOMPARABLE, math.inf if math.isnan(mean) else -mean


def _settled(
    row: Standing,
    at: int,
    ends: Sequence[tuple[float | None, float | None]],
    means: Sequence[float],
) -> Standing:
    """Return the row, with Pareto optimality by latency unset if a new measurement could change it.
    ends: the lowest and highest latency of each system; equal if the machine was not busy."""
    for end, others in ((0, 1), (1, 0)):
        amounts = [each[end if place == at else others] for place, each in enumerate(ends)]
        if row.pareto["p95"] is not None and _front(amounts, means)[at] != row.pareto["p95"]:
            return replace(row, pareto={**row.pareto, "p95": None}, unsure=frozenset({"p95"}))
    return row


def _front(amounts: Sequence[float | None], means: Sequence[float]) -> list[bool | None]:
    values = [math.nan if each is None else each for each in amounts]
    alone = sum(not math.isnan(at + mean) for at, mean in zip(values, means, strict=True)) < 2
    return [
        None if alone or math.isnan(at) or math.isnan(mean) else bool(on)
        for on, at, mean in zip(pareto(values, means), values, means, strict=True)
    ]


def _standing(study: Study, system: str) -> Standing:
    """Return the row of a system, without Pareto optimality."""
    row = study.comparison.row(system, study.spec)
    mean, low, high = study.mean(system)
    baseline, first = system == study.baseline, system == FIRST_STAGE
    change = [math.nan if baseline else float(row[f"delta{end}"]) for end in ("", "_low", "_high")]
    whole = latency.of_whole_search(study, system)
    measured = None if whole else latency.summary(study, system)
    cost = bill(study, system)
    unset = cost is None or (cost.example and not (study.money or Money()).example)
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
        per_thousand=0.0 if first else None if unset or cost is None else cost.per_thousand,
        pareto={},
        busy=latency.busy(study, system),
    )


def _own_amount(row: Standing, axis: Axis) -> float | None:
    """Return a system's latency in milliseconds or its cost; None if the price is an example or the
    value is uncertain."""
    example = axis == "cost" and row.cost is not None and row.cost.example
    return None if example or axis in row.unsure else row.takes(axis)


@part("labels", "metric", "conventions", "statistics")
def compared_with(study: Study, one: str, others: tuple[str, ...]) -> Comparison:
    """Compare other systems with one system on the chosen metric."""
    evaluations = {each: study.evaluations[each] for each in (one, *others)}
    return compare(evaluations, one, study.statistics, measures=[study.measure])
