"""How little of an input is enough for a reranker to pay off."""

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
"""Why a figure does not exist.

no_cost: nothing is spent, so there is no return on it. loses: the return is below 0. tenfold: it is
more than ten times the cost, which no measurement of quality supports. no_gain: the quality does
not rise. no_traffic: there are no searches. no_value: a search is worth nothing. no_setup: nothing
is spent at the start, so there is nothing to pay back. never: no value of the input makes it pay.
always: it pays whatever the input is. unknown_cost: the option has no price. unknown_gain: no gain
was measured. unset_price, unset_value, unset_both: the user set no price, or not what a search is
worth.
"""

Figure = float | Reason

# What is beyond these is none that anybody reaches: percent of value, all searches of the world.
_MOST_ELASTICITY = 1e6

_MOST_SEARCHES = 1e10

_MOST_WORTH = 1e12

_THOUSAND, _SECONDS_PER_HOUR = 1e3, 3600.0


def least_elasticity(
    cost: float, searches: float, without: float, per_unit: float, relative: float
) -> Figure:
    """Percent of value that a percent of quality must bring for it to pay.

    without: what a search brings if better ranking is worth nothing; per_unit: what it brings
    more for an elasticity of 1.
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
    """What 1 % of quality must be worth, for 1,000 searches, for it to pay.

    without: what a search brings if better ranking is worth nothing; share: of the traffic that
    gains.
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
    """Searches a day from which it pays its upkeep and its machines at any higher traffic too.

    margin: what a search brings less what it costs beside machines.
    """
    if margin <= 0:
        return "never"
    if machines:
        return _searches_for_machines(margin * DAYS_PER_MONTH, upkeep, machines)
    if upkeep <= 0:
        return "always"
    return quotient(upkeep, margin * DAYS_PER_MONTH, _MOST_SEARCHES)


def _searches_for_machines(margin: float, upkeep: float, machines: Sequence[Machines]) -> Figure:
    """margin: of a month, for one search per day."""
    fixed = sum(each.per_month for each in machines)
    slope = sum(each.per_month / each.searches_per_day for each in machines)
    if fixed + upkeep <= 0:
        return "always"
    if margin <= slope:
        return "never"
    # As many machines as pay from the first search that needs the last of them.
    searches = (fixed + upkeep) / (margin - slope)
    if len(machines) == 1:
        [one] = machines
        searches = (one.cost_per_month(searches) + upkeep) / margin
    return searches if searches <= _MOST_SEARCHES else "never"


def highest_price(brought: float, searches: float, upkeep: float) -> Figure:
    """The price of 1,000 searches up to which it pays; brought: what a search brings."""
    if searches <= 0:
        return "no_traffic"
    value = (brought - upkeep / searches) * _THOUSAND
    return value if value > 0 else "never"


def quotient(needed: float, each: float, most: float) -> Figure:
    """How often `each` makes up for what is needed, which is above 0; "never" where more often than
    `most`."""
    return needed / each if needed <= most * each else "never"


def least_quality(
    baseline: float, *, value_per_search: float, cost_per_search: float, elasticity: float = 1.0
) -> float | None:
    """The quality from which `simple_roi` is above 0; None where no quality is enough."""
    worth = value_per_search * elasticity
    quality = baseline * (1 + cost_per_search / worth) if worth > 0 else math.inf
    return quality if baseline > 0 and math.isfinite(quality) else None


def equal_rate(price: Price, per_thousand: float) -> float | None:
    """Searches per second at which a machine costs as much as `per_thousand` for 1,000 searches.

    price: by the hour. None where the other option is free, or costs too little for any number.
    """
    each = per_thousand / _THOUSAND
    if each <= 0:
        return None
    rate = price.amount / (_SECONDS_PER_HOUR * price.utilisation) / each
    return rate if math.isfinite(rate) else None
