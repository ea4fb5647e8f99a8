"""What a system costs and is worth: outcomes, benefits, and examples of assumptions."""

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
"""What the verdict on a change says: a proven gain or loss; no query changes; not proven; or too
few queries to tell."""

End = float | Literal["never", "always", "loses", "tenfold"] | None
"""An end of an interval; "never" or "always" where it does not pay there at all, or pays whatever
the input is; "loses" or "tenfold" of a return; None where there is no interval."""

# What is beyond it is none that anybody reaches: a hundred years.
_MOST_MONTHS = 1200.0
_ROUNDING = 1e-9
_MOST_RETURN = 10.0
"""The highest return that is given as a number."""


@dataclass(frozen=True)
class Amount:
    """A figure with the interval that the measurement leaves it. Where there is no figure, the
    reason, with the ends that there are nevertheless."""

    value: float | None = None
    low: End = None
    high: End = None
    reason: Reason | None = None


@dataclass(frozen=True)
class MeasuredChange:
    """A measured change, with the interval and the answer of the verdict on it.

    low, high: None where there are too few queries.
    """

    value: float
    low: float | None = None
    high: float | None = None
    proof: Proof = "too_few"

    @property
    def sure(self) -> float | None:
        """What may be counted on: the lower limit, where a gain that is not proven counts as none.
        An interval can exclude 0 and the corrected p still be too large."""
        if self.low is None or self.proof == "proven":
            return self.low
        return min(self.low, 0.0)

    @property
    def settled(self) -> bool:
        """Whether the verdict knows its sign, or that there is none."""
        return self.proof in ("proven", "same")


NO_CHANGE = MeasuredChange(0.0, 0.0, 0.0, "same")


@dataclass(frozen=True)
class Gain:
    """What was measured on so many queries.

    relative: change of the metric as a share of the baseline's mean (0.2 = 20 % higher). hit:
    change of hit@k, as a share of the searches. judge: the name of the LLM judge whose grades count
    too, corrected by labels of these queries; "" without one. labels: how many the change was
    estimated from; 0 where it was measured.
    """

    relative: MeasuredChange
    hit: MeasuredChange = NO_CHANGE
    queries: int = 0
    judge: str = ""
    labels: int = 0

    def at(self, end: Literal["low", "high"]) -> Gain | None:
        """The same, as if an end of the intervals had been measured; None where there is none."""
        ends = [getattr(each, end) for each in (self.relative, self.hit)]
        if ends[0] is None:
            return None
        return Gain(MeasuredChange(ends[0]), MeasuredChange(ends[1] or 0.0), self.queries)


@dataclass(frozen=True)
class Option:
    """One way to rank.

    cost_per_search: beside machines; None where no price is known.
    machines: that have to be paid for whole.
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
    machines: tuple[Machines, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What an option comes to. Money is in the currency of the scenario.

    cost_per_thousand: for 1,000 searches, upkeep left out.
    cost_per_month: upkeep included, the one-off cost left out.
    value_per_month, net_per_month: what it brings, and that less the cost.
    roi: net ÷ cost, a share from 0 to `_MOST_RETURN`.
    payback_months: until the one-off cost is earned.
    break_even_elasticity: percent of value that 1 % of quality must bring for it to pay.
    break_even_worth: what 1 % of quality must be worth, for 1,000 searches, for it to pay.
    break_even_searches: searches a day from which it pays its upkeep.
    break_even_price: highest cost for 1,000 searches at which it pays.
    brings: whether it brings something, or the upper end of the gain does.
    proven: whether every change that counts for the value is proven, or proven to be none.
    pays: whether it nets something at what may be counted on (`MeasuredChange.sure`).
    pays_without_gain: whether it does so as well if better ranking were worth nothing.
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
    """Return what an option costs in a month, upkeep left out; None where no price is known."""
    if option.cost_per_search is None:
        return None
    whole = sum(each.cost_per_month(assumptions.searches_per_day) for each in option.machines)
    return monthly_searches(assumptions) * option.cost_per_search + whole


def cost_per_search(option: Option, assumptions: Assumptions) -> float | None:
    """Return what a search costs, its share of whole machines included; None where no price is
    known, or machines serve no searches."""
    searches, cost = monthly_searches(assumptions), cost_per_month(option, assumptions)
    if not option.machines or cost is None:
        return option.cost_per_search
    return cost / searches if searches else None


def value_per_search(option: Option, assumptions: Assumptions) -> float | None:
    """What an option brings on one search by what was measured; None where no gain is known."""
    if option.gain is None:
        return None
    return _brought(option, assumptions, option.gain.relative.value, option.gain.hit.value)


def _brought(option: Option, assumptions: Assumptions, relative: float, hit: float) -> float:
    """What an option with such a gain brings on one search.

    Only the share of the traffic that the test set stands for gains; what an LLM no longer reads
    is saved on that share too, and waiting longer is paid by every search.
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


def _hits_worth(assumptions: Assumptions) -> float:
    """Saved on one search that now shows something relevant."""
    tickets = deflection(1.0, assumptions.ticket_share, assumptions.ticket_cost)
    return float(tickets + staff_time(1.0, assumptions.seconds_saved, assumptions.hourly_wage))


def outcome(option: Option, assumptions: Assumptions) -> Outcome:
    """Put price, gain and scenario together. The level of the intervals is that of the gain's."""
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
"""The larger the gain, the larger or the smaller these are."""


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
    return all(change.settled for change, worth in counted if share * worth)


def _nets(figures: Mapping[str, Figure]) -> bool:
    net = figures.get("net_per_month")
    return isinstance(net, float) and net > 0


def _figures_at(option: Option, assumptions: Assumptions, end: str) -> Mapping[str, Figure]:
    """Every figure at an end of the gain, an attribute of `MeasuredChange`; empty without one."""
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
    """None: no gain is known, or it has no interval."""
    first, last = _end(low), _end(high)
    if not isinstance(middle, str | None):
        return Amount(middle, first, last)
    # Where the whole interval is "never", the reason says it better.
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
    """Return net ÷ cost, or why it is not given as a number."""
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
    """Return the outcome without the figures that rest on a price, or on the value of a search,
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
    """Months until the one-off cost is earned."""
    if setup <= 0:
        return "no_setup"
    return quotient(setup, net, _MOST_MONTHS)


# What better rankings bring: the published formula, and the other ways in which value arises.
#
# Amounts are in one currency, which the caller keeps. Gains may be arrays, one value for each
# bootstrap draw: everything here is plain arithmetic on them.

_MILLION = 1e6
_SECONDS_PER_HOUR = 3600.0
_LATENCY_STEP_MS = 100.0
_ROUNDING_BENEFIT = 1e-12


@dataclass(frozen=True)
class SimpleRoi:
    """The published formula, all four steps. `improvement` and `roi` are shares, not percent."""

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
    """improvement = (reranked − baseline) / baseline; gain = searches × value × improvement ×
    elasticity; ROI = (gain − cost) / cost.

    elasticity: percent of value gained for each percent of quality; the published formula takes 1
        for granted.

    Raises DataError where baseline or cost is 0, or too small to divide by: then the ratio does
    not exist.
    """
    if baseline <= 0 or math.isinf((reranked - baseline) / baseline):
        raise DataError("The baseline's value is 0, so a relative improvement does not exist.")
    cost = searches_per_day * cost_per_search
    improvement = (reranked - baseline) / baseline
    gain = searches_per_day * value_per_search * improvement * elasticity
    if cost <= 0 or math.isinf((gain - cost) / cost):
        raise DataError("The cost is 0, so a return on it does not exist.")
    return SimpleRoi(improvement, gain, cost, (gain - cost) / cost)


def llm_saving(
    passages_before: float, passages_after: float, passage_tokens: float, price_per_million: float
) -> float:
    """Saved on one search when an LLM is given fewer passages; price for a million input tokens.

    Negative where it is given more.
    """
    return (passages_before - passages_after) * passage_tokens * price_per_million / _MILLION


def equal_recall_depth(recall_low: Mapping[int, float], recall_before: float) -> int | None:
    """The fewest reranked passages that surely hold as many relevant ones as before.

    recall_low: k → lower confidence limit of recall@k after reranking. recall_before: recall@K0 of
    the first stage, for the K0 passages that the LLM reads now. None if no k reaches it: then there
    is no saving to claim.
    """
    return min(
        (k for k, low in recall_low.items() if low >= recall_before - _ROUNDING_BENEFIT),
        default=None,
    )


def deflection(hit_gain: Number, ticket_share: float, cost_per_ticket: float) -> Number:
    """Saved on one search by answers found that would have become tickets.

    hit_gain: change of hit@k, the share of searches with a relevant document in the first k.
    ticket_share: share of those searches that would have opened a ticket.
    """
    return hit_gain * ticket_share * cost_per_ticket


def staff_time(hit_gain: Number, seconds_saved: float, cost_per_hour: float) -> Number:
    """Saved on one search by what people no longer spend looking.

    hit_gain: change of hit@k. seconds_saved: by a person whose search now finds what it is for.
    """
    return hit_gain * seconds_saved / _SECONDS_PER_HOUR * cost_per_hour


def latency_penalty(extra_ms: float, loss_per_100_ms: float, value_per_search: float) -> float:
    """Lost on one search by waiting longer. loss_per_100_ms: share of the value."""
    return max(extra_ms, 0.0) / _LATENCY_STEP_MS * loss_per_100_ms * value_per_search


# Ways to rerank, as examples to reckon with before anything was run.

EXAMPLE_BEFORE, EXAMPLE_AFTER, EXAMPLE_PRICE = 0.72, 0.87, 1.0
"""The published example: quality before and after, and US dollars for 1,000 searches."""

# What a search sends: fifty documents of 200 tokens each.
_QUERY, _DOCUMENTS, _TOKENS = 12, 50, 200
# The example of a price with the prompt around each document.
_LLM = Price(0.20, "template", template_tokens=70)


@dataclass(frozen=True)
class Archetype:
    """A way to rerank.

    per_thousand: US dollars for 1,000 searches, as an example. p95_ms: a rule of thumb, None where
    there is none. meaning: what the example rests on.
    """

    title: str
    meaning: str
    per_thousand: float
    p95_ms: float | None = None


ARCHETYPES = (
    Archetype("No reranker", "The ranking of the search as it is.", 0.0, 0.0),
    Archetype(
        "Cross-encoder",
        "The price of the published example; p95 by a rule of thumb for 50 documents.",
        EXAMPLE_PRICE,
        300.0,
    ),
    Archetype(
        "LLM pointwise",
        "Fifty documents of 200 tokens, each in a prompt of its own, at $0.20 for a million "
        "tokens.",
        float(cost_per_thousand(_LLM, Load(_QUERY, _DOCUMENTS, _TOKENS))),
    ),
    Archetype(
        "LLM listwise",
        "Fifty documents of 200 tokens in one prompt, at $0.20 for a million tokens.",
        float(cost_per_thousand(_LLM, Load(_QUERY, 1, _DOCUMENTS * _TOKENS))),
    ),
)
"""Side by side in this order, from none to the one that reads most at once."""


# Which options no other beats on cost and quality: the Pareto-optimal ones.


def pareto(costs: Sequence[float], qualities: Sequence[float]) -> Flags:
    """(n,) which options no other beats: none is as cheap and better, or as good and cheaper.

    NaN on either side is never on the front.
    """
    cost, quality = np.asarray(costs, dtype=float), np.asarray(qualities, dtype=float)
    at_least = (cost[:, None] <= cost) & (quality[:, None] >= quality)
    better = at_least & ((cost[:, None] < cost) | (quality[:, None] > quality))
    front: Flags = ~better.any(axis=0) & np.isfinite(cost) & np.isfinite(quality)
    return front
