"""Break-even values: the least of an input for which a reranker pays off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from rankdash.core.value.assumptions import DAYS_PER_MONTH
from rankdash.core.value.prices import Machines, Price

Reason = Literal[
    "no_cost",
    "loses",
    "tenfold",
    "no_gain",
    "no_traffic",
    "no_value",
    "no_setup",
    "never",
    "always",
    "unknown_cost",
    "unknown_gain",
    "unset_price",
    "unset_value",
    "unset_both",
]
"""Reason why a figure does not exist.

no_cost: no cost, so the return is undefined. loses: the return is below 0. tenfold: the return is
    more than ten times the cost, which no measurement of quality supports. no_gain: the quality
    does not rise. no_traffic: there are no searches. no_value: a search has no value. no_setup: no
    one-off cost to recover. never: it pays off for no value of the input. always: it pays off for
    any value of the input. unknown_cost: the option has no price. unknown_gain: no gain was
    measured. unset_price, unset_value, unset_both: the user did not set a price, the value of a
    search, or both.
"""

Figure = float | Reason

# Limits of practical values: percent of value, all searches of the world.
_MOST_ELASTICITY = 1e6

_MOST_SEARCHES = 1e10

_MOST_WORTH = 1e12

_THOUSAND, _SECONDS_PER_HOUR = 1e3, 3600.0


def least_elasticity(
    cost: float, searches: float, without: float, per_unit: float, relative: float
) -> Figure:
    """Return the percentage of value that 1 % of quality must bring to pay off.

    without: value of a search if better ranking has no value; per_unit: additional value for an
        elasticity of 1.
    """
    if searches <= 0:
        return "no_traffic"
    needed = cost / searches - without
    if needed <= 0:
        return "always"
    if per_unit <= 0:
        return "no_value" if relative > 0 else "no_gain"
    return quotient(needed, per_unit, _MOST_ELASTICITY)


def least_worth(
    cost: float, searches: float, without: float, relative: float, share: float
) -> Figure:
    """Return the value of 1 % of quality, per 1,000 searches, at which a reranker pays off.

    without: value of a search if better ranking has no value; share: of the traffic that gains.
    """
    if searches <= 0:
        return "no_traffic"
    needed = (cost / searches - without) * _THOUSAND
    if needed <= 0:
        return "always"
    if relative <= 0 or share <= 0:
        return "no_gain"
    return quotient(needed, relative * 100 * share, _MOST_WORTH)


def least_searches_a_day(margin: float, upkeep: float, machines: Sequence[Machines] = ()) -> Figure:
    """Return the least number of searches per day at which maintenance and machines are covered,
    also for all higher traffic.

    margin: value of a search minus its cost without machines.
    """
    if margin <= 0:
        return "never"
    if machines:
        return _searches_for_machines(margin * DAYS_PER_MONTH, upkeep, machines)
    if upkeep <= 0:
        return "always"
    return quotient(upkeep, margin * DAYS_PER_MONTH, _MOST_SEARCHES)


def _searches_for_machines(margin: float, upkeep: float, machines: Sequence[Machines]) -> Figure:
    """Return the least searches per day whose value covers whole machines and maintenance. margin:
    value per month of one search per day."""
    fixed = sum(each.per_month for each in machines)
    slope = sum(each.per_month / each.searches_per_day for each in machines)
    if fixed + upkeep <= 0:
        return "always"
    if margin <= slope:
        return "never"
    # Number of machines at which the first search that needs the last machine pays off.
    searches = (fixed + upkeep) / (margin - slope)
    if len(machines) == 1:
        [one] = machines
        searches = (one.cost_per_month(searches) + upkeep) / margin
    return searches if searches <= _MOST_SEARCHES else "never"


def highest_price(brought: float, searches: float, upkeep: float) -> Figure:
    """Return the highest price of 1,000 searches at which a reranker pays off; brought: value of a
    search."""
    if searches <= 0:
        return "no_traffic"
    value = (brought - upkeep / searches) * _THOUSAND
    return value if value > 0 else "never"


def quotient(needed: float, each: float, most: float) -> Figure:
    """Return needed / each, the number of units that cover an amount above 0; "never" above
    `most`."""
    return needed / each if needed <= most * each else "never"


def least_quality(
    baseline: float, *, value_per_search: float, cost_per_search: float, elasticity: float = 1.0
) -> float | None:
    """Return the quality above which `simple_roi` is positive; None if no quality is enough."""
    worth = value_per_search * elasticity
    quality = baseline * (1 + cost_per_search / worth) if worth > 0 else math.inf
    return quality if baseline > 0 and math.isfinite(quality) else None


def equal_rate(price: Price, per_thousand: float) -> float | None:
    """Return the searches per second at which a machine costs as much as `per_thousand` for 1,000
    searches.

    price: per hour. None if the other option is free, or costs too little for any number.
    """
    each = per_thousand / _THOUSAND
    if each <= 0:
        return None
    rate = price.amount / (_SECONDS_PER_HOUR * price.utilisation) / each
    return rate if math.isfinite(rate) else None
