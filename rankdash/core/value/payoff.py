"""Cost and value of a system: outcomes, benefits, and examples of assumptions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rankdash.core.base.errors import DataError
from rankdash.core.data.arrays import Flags
from rankdash.core.value import break_even
from rankdash.core.value.assumptions import DAYS_PER_MONTH, Assumptions
from rankdash.core.value.break_even import Figure, Reason, quotient
from rankdash.core.value.prices import Load, Machines, Number, Price, cost_per_thousand

Proof = Literal["proven", "same", "unproven", "too_few"]
"""Verdict on a change: a proven gain or loss; no query changes; not proven; or too few queries."""

End = float | Literal["never", "always", "loses", "tenfold"] | None
"""End of an interval; "never" or "always" if it does not pay off there at all, or for any value of
the input; "loses" or "tenfold" for a return; None without an interval."""

# A hundred years, more than any practical payback time.
_MOST_MONTHS = 1200.0
_ROUNDING = 1e-9
_MOST_RETURN = 10.0
"""Highest return that is shown as a number."""


@dataclass(frozen=True)
class Amount:
    """A number of an `Outcome`, such as the ROI, with its interval.

    value: None if the number does not exist; `reason` then has the cause. low, high: None without
    an interval.
    """

    value: float | None = None
    low: End = None
    high: End = None
    reason: Reason | None = None


@dataclass(frozen=True)
class MeasuredChange:
    """Measured change, with the interval and the verdict on it.

    low, high: None with too few queries.
    """

    value: float
    low: float | None = None
    high: float | None = None
    proof: Proof = "too_few"

    @property
    def sure(self) -> float | None:
        """Conservative change: the lower limit; a gain that is not proven counts as 0. An interval
        can exclude 0 although the corrected p is too large."""
        if self.low is None or self.proof == "proven":
            return self.low
        return min(self.low, 0.0)

    @property
    def conclusive(self) -> bool:
        """True if the change is proven to be positive or negative, or if no query changes."""
        return self.proof in ("proven", "same")


NO_CHANGE = MeasuredChange(0.0, 0.0, 0.0, "same")


@dataclass(frozen=True)
class Gain:
    """Gain measured on `queries` queries.

    relative: change of the metric as a share of the baseline's mean (0.2 = 20 % higher). hit:
        change of hit@k, as a share of the searches. judge: the name of the LLM judge whose grades
        are included, corrected with labels of these queries; "" without one. labels: number of
        labels that the change was estimated from; 0 if it was measured. in_sample: whether a system
        was tuned on these queries, so that the change proves nothing.
    """

    relative: MeasuredChange
    hit: MeasuredChange = NO_CHANGE
    queries: int = 0
    judge: str = ""
    labels: int = 0
    in_sample: bool = False

    def at(self, end: Literal["low", "high"]) -> Gain | None:
        """Return the gain with each measured value replaced by one end of its interval; None if the
        relative change has no interval."""
        ends = [getattr(each, end) for each in (self.relative, self.hit)]
        if ends[0] is None:
            return None
        return Gain(MeasuredChange(ends[0]), MeasuredChange(ends[1] or 0.0), self.queries)


@dataclass(frozen=True)
class Option:
    """Way to rank, with its cost, gain and latency.

    cost_per_search: without machines; None without a known price.
    machines: whole machines that have to be paid for.
    gain: None without measured quality, such as for a provider with only a known price.
    extra_ms: latency that it adds to a search (p50); None if not measured.
    passages_after: number of passages that an LLM needs afterwards; None: as many as before.
    free: whether it is the current system, which costs nothing and changes nothing.
    """

    name: str
    cost_per_search: float | None
    gain: Gain | None
    extra_ms: float | None = None
    passages_after: int | None = None
    free: bool = False
    machines: tuple[Machines, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Outcome of an option. Money is in the currency of the scenario.

    cost_per_thousand: for 1,000 searches, without maintenance.
    cost_per_month: with maintenance, without the one-off cost.
    value_per_month, net_per_month: the value, and the value minus the cost.
    roi: net ÷ cost, a share from 0 to `_MOST_RETURN`.
    payback_months: until the one-off cost is earned.
    break_even_elasticity: percentage of value that 1 % of quality must bring to pay off.
    break_even_worth: value of 1 % of quality, per 1,000 searches, at which it pays off.
    break_even_searches: searches per day above which it covers its maintenance.
    break_even_price: highest cost of 1,000 searches at which it pays off.
    brings: whether the value, or its upper end, is positive.
    proven: whether every change that affects the value is proven, or proven to be 0.
    pays: whether the net is positive at the conservative change (`MeasuredChange.sure`).
    pays_without_gain: whether it also is if better ranking has no value.
    """

    cost_per_thousand: Amount
    cost_per_month: Amount
    value_per_month: Amount
    net_per_month: Amount
    roi: Amount
    payback_months: Amount
    break_even_elasticity: Amount
    break_even_worth: Amount
    break_even_searches: Amount
    break_even_price: Amount
    brings: bool
    proven: bool
    pays: bool
    pays_without_gain: bool


def monthly_searches(assumptions: Assumptions) -> float:
    return assumptions.searches_per_day * DAYS_PER_MONTH


def cost_per_month(option: Option, assumptions: Assumptions) -> float | None:
    """Return the cost of an option per month, without maintenance; None without a known price."""
    if option.cost_per_search is None:
        return None
    whole = sum(each.cost_per_month(assumptions.searches_per_day) for each in option.machines)
    return monthly_searches(assumptions) * option.cost_per_search + whole


def cost_per_search(option: Option, assumptions: Assumptions) -> float | None:
    """Return the cost of a search, its share of whole machines included; None without a known
    price, or if machines serve no searches."""
    searches, cost = monthly_searches(assumptions), cost_per_month(option, assumptions)
    if not option.machines or cost is None:
        return option.cost_per_search
    return cost / searches if searches else None


def value_per_search(option: Option, assumptions: Assumptions) -> float | None:
    """Return the value of an option per search from the measured gain; None without one."""
    if option.gain is None:
        return None
    return _brought(option, assumptions, option.gain.relative.value, option.gain.hit.value)


def _brought(option: Option, assumptions: Assumptions, relative: float, hit: float) -> float:
    """Return the value per search of an option with this gain.

    Only the share of the traffic that the test set represents gains; fewer passages for an LLM save
    cost on that share too, and every search pays for a higher latency.
    """
    worth = assumptions.value_per_search * assumptions.elasticity * relative
    worth += _hits_worth(assumptions) * hit
    if option.passages_after is not None and assumptions.passages:
        worth += llm_saving(
            assumptions.passages,
            min(option.passages_after, assumptions.passages),
            assumptions.passage_tokens,
            assumptions.llm_price,
        )
    return assumptions.traffic_share * worth - latency_penalty(
        option.extra_ms or 0.0, assumptions.loss_per_100_ms, assumptions.value_per_search
    )


def value_needed(option: Option, assumptions: Assumptions) -> tuple[float, float] | None:
    """Return (a, b): the option pays off if the value of a search is at least a + b × the price of
    1,000 searches. None if no value is enough."""
    free, one = (
        value_per_search(option, replace(assumptions, value_per_search=value))
        for value in (0.0, 1.0)
    )
    searches = monthly_searches(assumptions)
    if free is None or one is None or one <= free or not searches:
        return None
    return (assumptions.monthly_cost / searches - free) / (one - free), 1 / (one - free) / 1000


def least_value(option: Option, assumptions: Assumptions, price: float) -> Amount:
    """Return the least value of a search at which the option pays off.

    price: of 1,000 searches.
    """
    gains = [option.gain, *(option.gain and option.gain.at(end) for end in ("high", "low"))]

    def figure(gain: Gain | None) -> Figure | None:
        line = value_needed(replace(option, gain=gain), assumptions)
        if gain is None or line is None:
            return None if gain is None else "never"
        return max(line[0] + line[1] * price, 0.0) or "always"

    return _estimate(*map(figure, gains))


def _hits_worth(assumptions: Assumptions) -> float:
    """Return the saving per search that newly shows a relevant document."""
    tickets = deflection(1.0, assumptions.ticket_share, assumptions.ticket_cost)
    return float(tickets + staff_time(1.0, assumptions.seconds_saved, assumptions.hourly_wage))


def outcome(option: Option, assumptions: Assumptions) -> Outcome:
    """Combine price, gain and scenario. The intervals have the level of the gain's interval."""
    unit, cost = cost_per_search(option, assumptions), cost_per_month(option, assumptions)
    middle, low, high, sure = (
        _figures_at(option, assumptions, end) for end in ("value", "low", "high", "sure")
    )
    rising = {name: _estimate(middle.get(name), low.get(name), high.get(name)) for name in _RISING}
    falling = {
        name: _estimate(middle.get(name), high.get(name), low.get(name)) for name in _FALLING
    }
    worthless = _figures_at(option, replace(assumptions, elasticity=0.0), "sure")
    no_traffic = unit is None and cost is not None
    per_thousand = _known(None if unit is None else unit * 1000)
    return Outcome(
        cost_per_thousand=Amount(reason="no_traffic") if no_traffic else per_thousand,
        cost_per_month=_known(None if cost is None else cost + _upkeep(option, assumptions)),
        **rising,
        **falling,
        brings=any(
            isinstance(each, float) and each > 0
            for each in (middle.get("value_per_month"), high.get("value_per_month"))
        ),
        proven=_counted_are_settled(option, assumptions),
        pays=_nets(sure),
        pays_without_gain=_nets(sure) and _nets(worthless),
    )


_RISING = ("value_per_month", "net_per_month", "roi", "break_even_price")
_FALLING = ("payback_months", "break_even_elasticity", "break_even_worth", "break_even_searches")
"""Figures that rise, and figures that fall, with the gain."""


def _upkeep(option: Option, assumptions: Assumptions) -> float:
    return 0.0 if option.free else assumptions.monthly_cost


def _counted_are_settled(option: Option, assumptions: Assumptions) -> bool:
    if option.gain is None:
        return False
    share = assumptions.traffic_share
    counted = [
        (option.gain.relative, assumptions.value_per_search * assumptions.elasticity),
        (option.gain.hit, _hits_worth(assumptions)),
    ]
    return all(change.conclusive for change, worth in counted if share * worth)


def _nets(figures: Mapping[str, Figure]) -> bool:
    net = figures.get("net_per_month")
    return isinstance(net, float) and net > 0


def _figures_at(option: Option, assumptions: Assumptions, end: str) -> Mapping[str, Figure]:
    """Return name → figure of an `Outcome`, computed from one value of the measured gain.

    end: the attribute of `MeasuredChange` that has this value, such as "low". Returns {} without
    it.
    """
    if option.gain is None:
        return {}
    relative: float | None = getattr(option.gain.relative, end)
    hit: float | None = getattr(option.gain.hit, end) if _hits_worth(assumptions) else 0.0
    if relative is None or hit is None:
        return {}
    searches, spent = monthly_searches(assumptions), cost_per_month(option, assumptions)
    upkeep = _upkeep(option, assumptions)
    brought = _brought(option, assumptions, relative, hit)
    price = break_even.highest_price(brought, searches, upkeep)
    figures: dict[str, Figure] = {"value_per_month": searches * brought, "break_even_price": price}
    if spent is None or option.cost_per_search is None:
        unknown: dict[str, Figure] = dict.fromkeys((*_RISING, *_FALLING), "unknown_cost")
        return unknown | figures
    cost = spent + upkeep
    net = searches * brought - cost
    setup = 0.0 if option.free else assumptions.setup_cost
    without = _brought(option, replace(assumptions, elasticity=0.0), relative, hit)
    per_unit = _brought(option, replace(assumptions, elasticity=1.0), relative, hit) - without
    return figures | {
        "net_per_month": net,
        "roi": return_on(net, cost, searches),
        "payback_months": _payback(net, setup),
        "break_even_elasticity": break_even.least_elasticity(
            cost, searches, without, per_unit, relative
        ),
        "break_even_worth": break_even.least_worth(
            cost, searches, without, relative, assumptions.traffic_share
        ),
        "break_even_searches": break_even.least_searches_a_day(
            brought - option.cost_per_search, upkeep, () if option.free else option.machines
        ),
    }


def _estimate(middle: Figure | None, low: Figure | None, high: Figure | None) -> Amount:
    """Return a figure and its interval as an `Amount`.

    middle: the figure at the measured gain; None if the gain is unknown. low, high: the figures at
    the ends of the interval; None without an interval.
    """
    first, last = _end(low), _end(high)
    if not isinstance(middle, str | None):
        return Amount(middle, first, last)
    # If the whole interval is "never", the reason explains it better.
    if first == last:
        first = last = None
    return Amount(None, first, last, middle or "unknown_gain")


def _end(figure: Figure | None) -> End:
    if not isinstance(figure, str):
        return figure
    if figure == "no_cost":
        return None
    return figure if figure in ("always", "loses", "tenfold") else "never"


def _known(value: float | None) -> Amount:
    return Amount(reason="unknown_cost") if value is None else Amount(value)


def return_on(net: float, cost: float, searches: float = 1.0) -> Figure:
    """Return net ÷ cost, or the reason why it is not a number."""
    if cost <= 0:
        return "no_cost" if searches else "no_traffic"
    share = net / cost
    if share < -_ROUNDING:
        return "loses"
    return max(share, 0.0) if share <= _MOST_RETURN + _ROUNDING else "tenfold"


_NEEDS_BOTH = (
    *("value_per_month", "net_per_month", "roi", "payback_months"),
    *("break_even_elasticity", "break_even_searches"),
)


def only_from_set(came: Outcome, *, price: bool, value: bool) -> Outcome:
    """Return the outcome without the figures that depend on a price, or on the value of a search,
    that the user did not set."""
    if price and value:
        return came
    lacks: Reason = "unset_price" if value else "unset_value" if price else "unset_both"
    without = [*_NEEDS_BOTH, *([] if price else ["break_even_worth"])]
    without += [] if value else ["break_even_price"]
    figures: dict[str, Any] = {
        name: Amount(reason=lacks)
        for name in without
        if getattr(came, name).reason not in ("unknown_gain", "no_traffic")
    }
    return replace(came, **figures, pays=False, pays_without_gain=False)


def _payback(net: float, setup: float) -> Figure:
    """Return the months until the one-off cost is earned."""
    if setup <= 0:
        return "no_setup"
    return quotient(setup, net, _MOST_MONTHS)


# Benefits of better rankings: the published formula, and other sources of value.
# Amounts are in one currency, chosen by the caller. Gains may be arrays with one value per
# bootstrap draw, because all formulas are plain arithmetic.

_MILLION = 1e6
_SECONDS_PER_HOUR = 3600.0
_LATENCY_STEP_MS = 100.0
_ROUNDING_BENEFIT = 1e-12


@dataclass(frozen=True)
class SimpleRoi:
    """The results of the four steps of a published ROI formula (`simple_roi`). `improvement` and
    `roi` are shares, not percent."""

    improvement: float
    gain_per_day: float
    cost_per_day: float
    roi: float


def simple_roi(
    baseline: float,
    reranked: float,
    *,
    searches_per_day: float,
    value_per_search: float,
    cost_per_search: float,
    elasticity: float = 1.0,
) -> SimpleRoi:
    """Compute improvement = (reranked − baseline) / baseline; gain = searches × value × improvement
    × elasticity; ROI = (gain − cost) / cost.

    elasticity: percentage of value gained per percent of quality; the published formula assumes 1.

    Raises DataError if baseline or cost is 0, or too small to divide by: then the ratio does not
    exist.
    """
    if baseline <= 0 or math.isinf((reranked - baseline) / baseline):
        raise DataError("The baseline's value is 0, so the relative improvement is undefined.")
    cost = searches_per_day * cost_per_search
    improvement = (reranked - baseline) / baseline
    gain = searches_per_day * value_per_search * improvement * elasticity
    if cost <= 0 or math.isinf((gain - cost) / cost):
        raise DataError("The cost is 0, so ROI is undefined.")
    return SimpleRoi(improvement, gain, cost, (gain - cost) / cost)


def llm_saving(
    passages_before: float, passages_after: float, passage_tokens: float, price_per_million: float
) -> float:
    """Return the saving per search if an LLM reads fewer passages; price per million input tokens.

    Negative if it reads more.
    """
    return (passages_before - passages_after) * passage_tokens * price_per_million / _MILLION


def equal_recall_depth(recall_low: Mapping[int, float], recall_before: float) -> int | None:
    """Return the fewest reranked passages that contain at least as many relevant ones as before,
    with confidence.

    recall_low: k → lower confidence limit of recall@k after reranking. recall_before: recall@K0 of
        the first stage, for the K0 passages that the LLM reads now. None if no k reaches it: then
        nothing is saved.
    """
    return min(
        (k for k, low in recall_low.items() if low >= recall_before - _ROUNDING_BENEFIT),
        default=None,
    )


def deflection(hit_gain: Number, ticket_share: float, cost_per_ticket: float) -> Number:
    """Return the saving per search from answers that prevent tickets.

    hit_gain: change of hit@k, the share of searches with a relevant document in the first k.
        ticket_share: share of those searches that would have opened a ticket.
    """
    return hit_gain * ticket_share * cost_per_ticket


def staff_time(hit_gain: Number, seconds_saved: float, cost_per_hour: float) -> Number:
    """Return the saving per search from less time spent on searching.

    hit_gain: change of hit@k. seconds_saved: per search that newly succeeds.
    """
    return hit_gain * seconds_saved / _SECONDS_PER_HOUR * cost_per_hour


def latency_penalty(extra_ms: float, loss_per_100_ms: float, value_per_search: float) -> float:
    """Return the loss per search due to a higher latency. loss_per_100_ms: share of the value."""
    return max(extra_ms, 0.0) / _LATENCY_STEP_MS * loss_per_100_ms * value_per_search


# Archetypes: ways to rerank, as examples for a calculation before any run.

EXAMPLE_BEFORE, EXAMPLE_AFTER, EXAMPLE_PRICE = 0.72, 0.87, 1.0
"""Published example: quality before and after, and US dollars per 1,000 searches."""

# Payload of a search: fifty documents of 200 tokens each.
_QUERY, _DOCUMENTS, _TOKENS = 12, 50, 200
# Example price with the prompt around each document.
_LLM = Price(0.20, "template", template_tokens=70)


@dataclass(frozen=True)
class Archetype:
    """Example of a way to rank, with its price.

    per_thousand: US dollars per 1,000 searches. p95_ms: a rule of thumb, or None. meaning: the
        basis of the example.
    """

    title: str
    meaning: str
    per_thousand: float
    p95_ms: float | None = None


ARCHETYPES = (
    Archetype("No reranker", "The ranking of the current search.", 0.0, 0.0),
    Archetype(
        "Cross-encoder",
        "The price of the published example; p95 by a rule of thumb for 50 documents.",
        EXAMPLE_PRICE,
        300.0,
    ),
    Archetype(
        "LLM pointwise",
        "Fifty documents of 200 tokens, each in a separate prompt, at $0.20 per million tokens.",
        float(cost_per_thousand(_LLM, Load(_QUERY, _DOCUMENTS, _TOKENS))),
    ),
    Archetype(
        "LLM listwise",
        "Fifty documents of 200 tokens in one prompt, at $0.20 per million tokens.",
        float(cost_per_thousand(_LLM, Load(_QUERY, 1, _DOCUMENTS * _TOKENS))),
    ),
)
"""Archetypes in display order, from no reranker to the archetype that reads most at a time."""


# Pareto-optimal options: no other option is better on cost and quality.


def pareto(costs: Sequence[float], qualities: Sequence[float]) -> Flags:
    """Return which options are Pareto-optimal, (n,): no other is as cheap and better, or as good
    and cheaper.

    NaN on either side is never on the front.
    """
    cost, quality = np.asarray(costs, dtype=float), np.asarray(qualities, dtype=float)
    at_least = (cost[:, None] <= cost) & (quality[:, None] >= quality)
    better = at_least & ((cost[:, None] < cost) | (quality[:, None] > quality))
    front: Flags = ~better.any(axis=0) & np.isfinite(cost) & np.isfinite(quality)
    return front
