"""A sequence over nights: whether a metric fell on the same labelled queries, compared with a
pinned run, with a limited chance of any false alarm in a year.

Null hypothesis: on these queries, the expected mean change of no night is below `-smallest`. The
queries are the same every night, so that the error of sampling queries is common to all nights and
does not count as evidence. Nights differ by churn (the same request, answered differently) and by
changes of the index; the pinned run has churn too, which is also common to all nights.

The evidence of a night is `exp(l·x - l²/2)`, with x the drop beyond `smallest` and beyond the error
of the pinned run, in standard deviations of a night; its mean is at most 1 under the null. The
evidence of all nights is the sum over the possible first nights of a drop of the product since then
(Shiryaev and Roberts). Its mean after n nights is at most n, so that by Doob's inequality it
exceeds n/alpha in at most a share alpha of all series. Source: Shin, Ramdas and Rinaldo 2024,
E-detectors: a nonparametric framework for sequential change detection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from rankdash.core.data.arrays import Floats

RATES = (0.5, 1.0, 2.0, 3.0)
"""The values of l, with equal weights: how large a drop is, in standard deviations of a night."""

REMEMBERED = 60
"""The number of previous nights, and of their steps, that estimate the noise."""

# Of alpha, for the churn of the pinned runs; the rest is for the nights.
_PINNED_SHARE = 0.5
# With little churn, a night varies by at least such a change of one query.
_LEAST_CHANGE = 0.25
# Of the previous nights: those with the largest steps may have a new release.
_RELEASES = 1 / 30
_FEW_STEPS = 2


@dataclass(frozen=True)
class NightRule:
    """Rule of an alarm.

    alpha: the chance of any false alarm in `per_year` nights. smallest: the smallest drop that
    matters, above 0.
    """

    alpha: float = 0.05
    smallest: float = 0.01
    per_year: int = 365

    @property
    def threshold(self) -> float:
        """The evidence of an alarm."""
        return self.per_year / (self.alpha * (1 - _PINNED_SHARE))

    def p(self, evidence: float) -> float:
        """Return the highest chance of this much evidence in a year without a drop."""
        return min(1.0, self.alpha * self.threshold / evidence) if evidence > 0 else 1.0


@dataclass(frozen=True)
class Night:
    """One night's metric, compared with the pinned run.

    queries: the number of queries with a value in both. change: their mean change; NaN without any.
    churn: the variance of the mean of one fetch, from the fetches of this night; None for one
    fetch. step: the variance of a night's mean, from the difference to the night before, or to the
    pinned run; None without queries in both. fetches, pinned: the number of fetches of this night
    and of the pinned run.
    """

    queries: int
    change: float
    churn: float | None = None
    step: float | None = None
    fetches: int = 1
    pinned: int = 1


@dataclass(frozen=True)
class Noise:
    """Standard deviations: of a night's mean, and of the pinned run's mean."""

    night: float
    pinned: float


def compared(pinned: Floats, night: Floats, before: Floats | None = None) -> Night:
    """Compare the values of a night with the values of the pinned run.

    All have the shape (fetches, queries), with the same queries; NaN for a query without a value.
    before: the values of the night before; None for the first night.
    """
    reference, value = _mean(pinned), _mean(night)
    change = value - reference
    queries = int((~np.isnan(change)).sum())
    return Night(
        queries,
        float(np.nanmean(change)) if queries else math.nan,
        _churn(night),
        _step(change if before is None else value - _mean(before)),
        len(night),
        len(pinned),
    )


def _mean(values: Floats) -> Floats:
    """Return the mean of each query over its fetches."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)
    return mean


def _churn(values: Floats) -> float | None:
    whole = values[:, ~np.isnan(values).any(axis=0)]
    if len(values) < 2 or not whole.shape[1]:
        return None
    return float(whole.var(axis=0, ddof=1).sum() / whole.shape[1] ** 2)


def _step(difference: Floats) -> float | None:
    """Return half the variance of a mean difference, of queries that vary independently or all
    together."""
    known = difference[~np.isnan(difference)]
    if not len(known):
        return None
    apart = float((known**2).sum() / len(known) ** 2 / 2)
    together = float(known.mean() ** 2 / 2)
    # The changes of independent queries have such a mean in one of 20 nights.
    return together if together > 4 * apart else apart


def without_alarms(nights: Sequence[Night], alarmed: Sequence[bool]) -> list[Night]:
    """Return the nights without the steps to and from a night with an alarm in force.

    Such a step is a defect or its repair: as noise, it would hide the same defect later. Until the
    first alarm of a series no step is removed, so the chance of a false alarm does not change.
    """
    pairs = zip(nights, alarmed, (False, *alarmed), strict=False)
    return [
        replace(night, step=None) if alarm or before else night for night, alarm, before in pairs
    ]


def noise(before: Sequence[Night], night: Night) -> Noise:
    """Return the noise of a night, from the nights before and the churn of this one.

    Its step would hide a drop, so that it counts only while fewer than two steps are known.
    """
    recent = (*before[-REMEMBERED:], night)
    churns = [each.churn for each in recent if each.churn is not None]
    steps = [each.step for each in before if each.step is not None][-REMEMBERED:]
    if len(steps) < _FEW_STEPS and night.step is not None:
        steps.append(night.step)
    if len(steps) >= _FEW_STEPS:
        steps = sorted(steps)[: len(steps) - math.ceil(_RELEASES * len(steps))]
    churn = sum(churns) / len(churns) if churns else 0.0
    step = sum(steps) / len(steps) if steps else 0.0
    least = (_LEAST_CHANGE / max(night.queries, 1)) ** 2
    between = max(step - churn / night.fetches, 0.0)
    return Noise(
        math.sqrt(max(churn / night.fetches + between, least)),
        math.sqrt(churn / night.pinned + between),
    )


def margin(rule: NightRule, pinned: float, references: int) -> float:
    """Return the drop above which a night is evidence.

    pinned: the standard deviation of the pinned run's mean. references: the number of pinned runs
    in the last year, including this one; each has a part of alpha.
    """
    part = rule.alpha * _PINNED_SHARE / (references * (references + 1))
    return rule.smallest - NormalDist().inv_cdf(part) * pinned


def added(
    rule: NightRule, evidence: Sequence[float], night: Night, spread: Noise, references: int = 1
) -> tuple[float, ...]:
    """Return the evidence after one more night, for each of `RATES`; unchanged without a value.

    evidence: after the night before; empty before the first night.
    """
    previous = tuple(evidence) or (0.0,) * len(RATES)
    if not night.queries:
        return previous
    x = (-night.change - margin(rule, spread.pinned, references)) / spread.night
    # Further digits do not change an alarm.
    most = rule.threshold * 1e6
    return tuple(
        min((1 + sum_so_far) * math.exp(min(rate * x - rate**2 / 2, 50.0)), most)
        for rate, sum_so_far in zip(RATES, previous, strict=True)
    )


def total(evidence: Sequence[float]) -> float:
    """Return the evidence over all `RATES`; 0 without any."""
    return sum(evidence) / len(evidence) if evidence else 0.0
