"""What better rankings bring: the published formula, and the other ways in which value arises.

Amounts are in one currency, which the caller keeps. Gains may be arrays, one value for each
bootstrap draw: everything here is plain arithmetic on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rankdash.core.base.errors import DataError
from rankdash.core.value.billing import Number

_MILLION = 1e6
_SECONDS_PER_HOUR = 3600.0
_LATENCY_STEP_MS = 100.0
_ROUNDING = 1e-12


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


def equal_recall_depth(recall_low: Mapping[int, float], wanted: float) -> int | None:
    """The fewest reranked passages that surely hold as many relevant ones as before.

    recall_low: k → lower confidence limit of recall@k after reranking. wanted: recall@K0 of the
    first stage, for the K0 passages that the LLM is given now. None where no k reaches it: then
    there is no saving to claim.
    """
    return min((k for k, low in recall_low.items() if low >= wanted - _ROUNDING), default=None)


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
