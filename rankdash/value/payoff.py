"""Is it worth it: a price, a measured gain with its uncertainty, and a scenario, put together.

The draws of a bootstrap of the paired difference are pushed through the formula while prices and
assumptions are held fixed, so an interval here says how sure the *measurement* is, not how good
the assumptions are. What has no value has a reason instead: nothing is NaN, infinite or a negative
payback time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from rankdash.value.assumptions import DAYS_PER_MONTH, Assumptions
from rankdash.value.benefit import deflection, latency_penalty, llm_saving, staff_time

Draws = npt.NDArray[np.float64]

Reason = Literal[
    "no_cost",
    "no_gain",
    "no_traffic",
    "no_value",
    "no_setup",
    "never",
    "always",
    "unknown_cost",
    "unknown_gain",
]
"""Why a figure does not exist.

no_cost: nothing is spent, so there is no return on it. no_gain: the quality does not rise.
no_traffic: there are no searches. no_value: a search is worth nothing. no_setup: nothing is spent
at the start, so there is nothing to pay back. never: no value of the input makes it pay. always: it
pays whatever the input is. unknown_cost: the option has no price. unknown_gain: no gain was
measured.
"""


@dataclass(frozen=True)
class Estimate:
    """A figure with the interval that the measurement leaves it; or the reason why there is none.

    low and high are None where nothing was resampled, or an end is not a number ("never paid").
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: Reason | None = None


@dataclass(frozen=True, eq=False)
class Gain:
    """What was measured, as relative change of the metric (0.2 = 20 % higher).

    draws: (B,) bootstrap draws of `relative`; empty where there are none.
    hit: change of hit@k, as a share of the searches; hit_draws: (B,) its draws, drawn together.
    queries: how many it was measured on.
    """

    relative: float
    draws: Draws = field(default_factory=lambda: np.zeros(0))
    hit: float = 0.0
    hit_draws: Draws = field(default_factory=lambda: np.zeros(0))
    queries: int = 0

    def interval(self, level: float) -> tuple[float, float] | None:
        """Of `relative`; None where nothing was resampled."""
        low, high = _interval(self.draws, level)
        return None if low is None or high is None else (low, high)

    def proven(self, level: float) -> bool:
        """Whether the interval of the gain lies above 0."""
        ends = self.interval(level)
        return ends is not None and ends[0] > 0


@dataclass(frozen=True, eq=False)
class Option:
    """One way to rank.

    cost_per_search: None where no price is known.
    gain: None where no quality was measured, such as for a provider known by its price only.
    extra_ms: waiting that it adds to a search (p50); None where not measured.
    passages_after: how many passages are enough for an LLM afterwards; None: as many as before.
    free: whether it is the system as it is, which costs nothing and changes nothing.
    """

    name: str
    cost_per_search: float | None
    gain: Gain | None
    extra_ms: float | None = None
    passages_after: int | None = None
    free: bool = False


@dataclass(frozen=True)
class Outcome:
    """What an option comes to. Money is in the currency of the scenario.

    cost_per_thousand: for 1,000 searches, upkeep left out.
    cost_per_month: upkeep included, the one-off cost left out.
    value_per_month, net_per_month: what it brings, and that less the cost.
    roi: net ÷ cost, a share.
    payback_months: until the one-off cost is earned.
    break_even_elasticity: percent of value that 1 % of quality must bring for it to pay.
    break_even_searches: searches a day from which it pays its upkeep.
    break_even_price: highest cost for 1,000 searches at which it pays.
    proven: whether the interval of the gain lies above 0; None where no gain was measured.
    """

    cost_per_thousand: Estimate
    cost_per_month: Estimate
    value_per_month: Estimate
    net_per_month: Estimate
    roi: Estimate
    payback_months: Estimate
    break_even_elasticity: Estimate
    break_even_searches: Estimate
    break_even_price: Estimate
    proven: bool | None


def monthly_searches(assumptions: Assumptions) -> float:
    return assumptions.searches_per_day * DAYS_PER_MONTH


def value_per_search(option: Option, assumptions: Assumptions) -> tuple[float, Draws] | None:
    """What an option brings on one search, and the draws of that; None where no gain is known.

    Only the share of the traffic that the test set stands for gains; what an LLM no longer reads
    is saved on that share too, and waiting longer is paid by every search.
    """
    if option.gain is None:
        return None
    known = option.gain
    fixed = 0.0
    if option.passages_after is not None and assumptions.passages:
        saved = llm_saving(
            assumptions.passages,
            min(option.passages_after, assumptions.passages),
            assumptions.passage_tokens,
            assumptions.llm_price,
        )
        fixed += assumptions.traffic_share * saved
    fixed -= latency_penalty(
        option.extra_ms or 0.0, assumptions.loss_per_100_ms, assumptions.value_per_search
    )

    def brought(relative: float | Draws, hit: float | Draws) -> float | Draws:
        worth = assumptions.value_per_search * assumptions.elasticity * relative
        worth = worth + deflection(hit, assumptions.ticket_share, assumptions.ticket_cost)
        worth = worth + staff_time(hit, assumptions.seconds_saved, assumptions.hourly_wage)
        return assumptions.traffic_share * worth + fixed

    hits = known.hit_draws if len(known.hit_draws) == len(known.draws) else known.hit
    return float(brought(known.relative, known.hit)), np.asarray(brought(known.draws, hits))


def outcome(option: Option, assumptions: Assumptions, level: float = 0.95) -> Outcome:
    """Put price, gain and scenario together. level: of the intervals."""
    searches = monthly_searches(assumptions)
    unit = option.cost_per_search
    upkeep = 0.0 if option.free else assumptions.monthly_cost
    cost = None if unit is None else searches * unit + upkeep
    brought = value_per_search(option, assumptions)
    value = _value(brought, searches, level)
    return Outcome(
        cost_per_thousand=_known(None if unit is None else unit * 1000),
        cost_per_month=_known(cost),
        value_per_month=value,
        net_per_month=_net(value, cost),
        roi=_roi(value, cost, searches),
        payback_months=_payback(value, cost, 0.0 if option.free else assumptions.setup_cost),
        break_even_elasticity=_break_even_elasticity(option, assumptions, cost, level),
        break_even_searches=_break_even_searches(brought, unit, upkeep, level),
        break_even_price=_break_even_price(brought, searches, upkeep, level),
        proven=None if option.gain is None else option.gain.proven(level),
    )


def _known(value: float | None) -> Estimate:
    return Estimate(reason="unknown_cost") if value is None else Estimate(value)


def _value(brought: tuple[float, Draws] | None, searches: float, level: float) -> Estimate:
    if brought is None:
        return Estimate(reason="unknown_gain")
    value, draws = brought
    low, high = _interval(draws * searches, level)
    return Estimate(value * searches, low, high)


def _net(value: Estimate, cost: float | None) -> Estimate:
    if value.value is None:
        return value
    if cost is None:
        return Estimate(reason="unknown_cost")
    return Estimate(value.value - cost, _less(value.low, cost), _less(value.high, cost))


def _roi(value: Estimate, cost: float | None, searches: float) -> Estimate:
    if value.value is None:
        return value
    if cost is None:
        return Estimate(reason="unknown_cost")
    if cost <= 0:
        return Estimate(reason="no_cost" if searches else "no_traffic")
    net = _net(value, cost)
    # A cost too small to divide by is none.
    return _finite(_over(net.value, cost), _over(net.low, cost), _over(net.high, cost), "no_cost")


def _payback(value: Estimate, cost: float | None, setup: float) -> Estimate:
    """Months until the one-off cost is earned; an end of the interval that never earns is None."""
    net = _net(value, cost)
    if net.value is None:
        return net
    if setup <= 0:
        return Estimate(reason="no_setup")
    if net.value <= 0:
        return Estimate(reason="never")
    # The less it nets, the longer it takes: the ends change places.
    return _finite(setup / net.value, _paid(setup, net.high), _paid(setup, net.low), "never")


def _paid(setup: float, net: float | None) -> float | None:
    return setup / net if net is not None and net > 0 else None


def _break_even_elasticity(
    option: Option, assumptions: Assumptions, cost: float | None, level: float
) -> Estimate:
    if cost is None:
        return Estimate(reason="unknown_cost" if option.gain else "unknown_gain")
    searches = monthly_searches(assumptions)
    if searches <= 0:
        return Estimate(reason="no_traffic")
    without = value_per_search(option, replace(assumptions, elasticity=0.0))
    one = value_per_search(option, replace(assumptions, elasticity=1.0))
    if without is None or one is None:
        return Estimate(reason="unknown_gain")
    needed = cost / searches - without[0]
    per_unit = one[0] - without[0]
    if needed <= 0:
        return Estimate(reason="always")
    if per_unit <= 0:
        gained = option.gain is not None and option.gain.relative > 0
        return Estimate(reason="no_value" if gained else "no_gain")
    low, high = _quotient(cost / searches - without[1], one[1] - without[1], level)
    return _finite(needed / per_unit, low, high, "never")


def _break_even_searches(
    brought: tuple[float, Draws] | None, unit: float | None, upkeep: float, level: float
) -> Estimate:
    if brought is None:
        return Estimate(reason="unknown_gain")
    if unit is None:
        return Estimate(reason="unknown_cost")
    margin, draws = brought[0] - unit, brought[1] - unit
    if margin <= 0:
        return Estimate(reason="never")
    if upkeep <= 0:
        return Estimate(reason="always")
    low, high = _quotient(np.full(len(draws), upkeep), draws, level)
    days = DAYS_PER_MONTH
    return _finite(upkeep / margin / days, _over(low, days), _over(high, days), "never")


def _break_even_price(
    brought: tuple[float, Draws] | None, searches: float, upkeep: float, level: float
) -> Estimate:
    if brought is None:
        return Estimate(reason="unknown_gain")
    if searches <= 0:
        return Estimate(reason="no_traffic")
    share = upkeep / searches
    value = (brought[0] - share) * 1000
    if value <= 0:
        return Estimate(reason="never")
    low, high = _interval((brought[1] - share) * 1000, level)
    return Estimate(value, None if low is None else max(low, 0.0), high)


def _quotient(
    numerator: Draws, denominator: Draws, level: float
) -> tuple[float | None, float | None]:
    """Interval of a break-even: draws that never break even count as larger than any number, and
    ends that fall among them are None."""
    if not len(denominator):
        return None, None
    pays = denominator > 0
    drawn = np.full(len(denominator), np.inf)
    with np.errstate(over="ignore"):
        drawn[pays] = np.maximum(numerator[pays], 0.0) / denominator[pays]
    ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    low, high = (float(end) if math.isfinite(end) else None for end in ends)
    return low, high


def _interval(draws: Draws, level: float) -> tuple[float | None, float | None]:
    if not len(draws):
        return None, None
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _less(end: float | None, cost: float) -> float | None:
    return None if end is None else end - cost


def _finite(
    value: float | None, low: float | None, high: float | None, otherwise: Reason
) -> Estimate:
    """A figure that is too large for a number has a reason instead, and such an end is None."""
    if value is None or not math.isfinite(value):
        return Estimate(reason=otherwise)
    low, high = (None if end is None or not math.isfinite(end) else end for end in (low, high))
    return Estimate(value, low, high)


def _over(end: float | None, divisor: float) -> float | None:
    return None if end is None else end / divisor
