"""Sensitivity of the net value: one input at a time, and two at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.core.value.payoff import (
    MeasuredChange,
    Option,
    cost_per_month,
    cost_per_search,
    monthly_searches,
    value_per_search,
)

PRICE = "cost_per_thousand"
GAIN = "relative_gain"
"""Names of the inputs that belong to the option, not to the scenario."""

INPUTS = (GAIN, PRICE, *(each.name for each in ASSUMPTIONS if each.name != "latency_target_ms"))


@dataclass(frozen=True)
class Swing:
    """Net value per month with an input at its `low` and at its `high` value."""

    name: str
    low: float
    high: float
    net_low: float
    net_high: float

    @property
    def width(self) -> float:
        return abs(self.net_high - self.net_low)


def input_value(option: Option, assumptions: Assumptions, name: str) -> float | None:
    """Return the present value of an input; None if the option does not have it."""
    if name == PRICE:
        cost = cost_per_search(option, assumptions)
        return None if cost is None else cost * 1000
    if name == GAIN:
        return None if option.gain is None else option.gain.relative.value
    return float(getattr(assumptions, name))


def net_per_month(option: Option, assumptions: Assumptions) -> float | None:
    """Return value minus cost per month; None if price or gain is unknown."""
    brought, cost = value_per_search(option, assumptions), cost_per_month(option, assumptions)
    if brought is None or cost is None:
        return None
    upkeep = 0.0 if option.free else assumptions.monthly_cost
    return monthly_searches(assumptions) * brought - cost - upkeep


def net_by_price(
    option: Option, assumptions: Assumptions, months: int = 1
) -> tuple[float, float] | None:
    """Return (a, b) of the net value a + b × the price of 1,000 searches; None without a gain."""
    brought, searches = value_per_search(option, assumptions), monthly_searches(assumptions)
    if brought is None:
        return None
    return months * (searches * brought - assumptions.monthly_cost), -months * searches / 1000


def tornado(
    option: Option, assumptions: Assumptions, ranges: Mapping[str, tuple[float, float]]
) -> list[Swing]:
    """Return one swing for each input, the widest first, without inputs that change nothing.

    ranges: input → its two values, while the other inputs stay.
    """
    swings = []
    for name, (low, high) in ranges.items():
        ends = [net_per_month(*_with(option, assumptions, {name: value})) for value in (low, high)]
        if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
            swings.append(Swing(name, low, high, ends[0], ends[1]))
    return sorted(swings, key=lambda swing: -swing.width)


def usual_ranges(
    option: Option,
    assumptions: Assumptions,
    gain: tuple[float, float] | None,
    share: float = 0.5,
) -> dict[str, tuple[float, float]]:
    """Return a range for every input that is not 0: from `share` below to `share` above its present
    value, within its limits. The gain has its interval."""
    ends = {each.name: (each.least, each.most) for each in ASSUMPTIONS}
    ranges: dict[str, tuple[float, float]] = {}
    for name in INPUTS:
        value = input_value(option, assumptions, name)
        if name == GAIN and gain is not None:
            ranges[name] = gain
        elif value:
            least, most = ends.get(name, (-np.inf, np.inf))
            low, high = sorted((value * (1 - share), value * (1 + share)))
            ranges[name] = (max(low, least), min(high, most))
    return ranges


def net_grid(
    option: Option,
    assumptions: Assumptions,
    across: tuple[str, Sequence[float]],
    upward: tuple[str, Sequence[float]],
) -> npt.NDArray[np.float64]:
    """Return the (upward, across) net values per month while two inputs vary; NaN if price or gain
    is unknown."""
    grid = np.full((len(upward[1]), len(across[1])), np.nan)
    for row, y in enumerate(upward[1]):
        for column, x in enumerate(across[1]):
            net = net_per_month(*_with(option, assumptions, {across[0]: x, upward[0]: y}))
            if net is not None:
                grid[row, column] = net
    return grid


def _with(
    option: Option, assumptions: Assumptions, values: Mapping[str, float]
) -> tuple[Option, Assumptions]:
    scenario = {name: value for name, value in values.items() if name not in (PRICE, GAIN)}
    if PRICE in values and option.cost_per_search is not None:
        option = replace(option, cost_per_search=values[PRICE] / 1000, machines=())
    if GAIN in values and option.gain is not None:
        option = replace(option, gain=replace(option.gain, relative=MeasuredChange(values[GAIN])))
    return option, replace(assumptions, **scenario) if scenario else assumptions
