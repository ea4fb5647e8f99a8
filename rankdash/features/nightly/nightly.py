"""One night: the metrics of its fetches compared with the pinned run, and the evidence after it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import Floats
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge
from rankdash.core.search.fetching import churn
from rankdash.core.statistics.inference import intervals
from rankdash.core.statistics.nights import (
    NightRule,
    added,
    compared,
    margin,
    noise,
    total,
    without_alarms,
)
from rankdash.features.nightly.state import MetricNight, Nights

TOP = 10
"""The number of documents of a query for churn and the unlabelled share."""

_JUDGED = f"judged@{TOP}"


@dataclass(frozen=True, eq=False)
class Fetch:
    """A ranking, and its queries that failed or were skipped."""

    ranking: Ranking
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Values:
    """The values of fetches: spec → (fetches, queries), in the order of `query_ids`."""

    query_ids: tuple[str, ...]
    by_spec: Mapping[str, Floats]

    @classmethod
    def of(cls, dataset: Dataset, fetches: Sequence[Fetch], specs: Sequence[str]) -> Values:
        """Evaluate fetches on the labelled queries; NaN for a query without a value."""
        tables = []
        for each in fetches:
            judged = judge(each.ranking, dataset.labels)
            failed = dict.fromkeys(each.failed, "failed")
            tables.append(evaluate(judged, [*specs, _JUDGED], left_out=failed).wide())
        # Each fetch is joined with the same labels, so that the queries are the same.
        ids = tuple(tables[0].index)
        columns = (*specs, _JUDGED)
        return cls(ids, {spec: np.array([each[spec] for each in tables]) for spec in columns})

    @property
    def unlabelled(self) -> float | None:
        """The share of the first ten documents without a label; None without any."""
        judged = self.by_spec[_JUDGED]
        return None if np.isnan(judged).all() else float(1 - np.nanmean(judged))


def churned(fetches: Sequence[Fetch], queries: Iterable[str]) -> float | None:
    """Return the share of the first ten documents that differ between the first two fetches of a
    night; None for one fetch. queries: of both fetches, also those without documents."""
    if len(fetches) < 2:
        return None
    first, second, *_more = fetches
    lost = {*first.failed, *second.failed}
    compared_queries = [query for query in dict.fromkeys(queries) if query not in lost]
    share = churn(first.ranking, second.ranking, TOP, compared_queries).mean
    return None if math.isnan(share) else share


def p95(latencies: Iterable[pd.Series]) -> float | None:
    """Return the p95 of all latencies, in milliseconds; None without any."""
    known = np.concatenate([[], *(each.dropna().to_numpy(np.float64) for each in latencies)])
    return float(np.quantile(known, 0.95)) if len(known) else None


def references(nights: Nights, reference: str, per_year: int) -> int:
    """Return the number of pinned runs in the last year, with the one of tonight."""
    used = [each.reference for each in nights.lines[-per_year:] if each.reference] + [reference]
    return 1 + sum(one != other for one, other in pairwise(used))


def decided(
    spec: str,
    rule: NightRule,
    nights: Nights,
    reference: str,
    pinned: Values,
    tonight: Values,
    before: Values | None,
) -> MetricNight:
    """Compare one metric of a night with the pinned run, and decide.

    reference: identifies the pinned run. before: the values of the night before.

    While an alarm is in force, nights add no evidence. The alarm ends when the drop is gone, and
    the evidence then starts again, as it does with another pinned run and with each year.

    Raises DataError if no query has a value in both.
    """
    night = compared(
        pinned.by_spec[spec],
        tonight.by_spec[spec],
        None if before is None else before.by_spec[spec],
    )
    if not night.queries:
        raise DataError(
            "No query has a value of {spec} both tonight and in the pinned run.",
            remedy="Check that queries and documents have the ids of the labels.",
            spec=spec,
        )
    known = [each.metrics[spec] for each in nights.lines if spec in each.metrics]
    *earlier, usable = without_alarms(
        [*(each.night for each in known), night],
        [*(each.alarm is not None for each in known), False],
    )
    spread = noise(earlier, usable)
    count = references(nights, reference, rule.per_year)
    both = ~np.isnan(tonight.by_spec[spec]).all(axis=0) & ~np.isnan(pinned.by_spec[spec]).all(
        axis=0
    )
    # A query counts once, even if it failed in some of the fetches.
    mean, reference_mean = (
        float(np.nanmean(each.by_spec[spec][:, both], axis=0).mean()) for each in (tonight, pinned)
    )
    last = next((each for each in reversed(nights.lines) if spec in each.metrics), None)
    previous = None
    if last is not None and last.reference == reference:
        previous = last.metrics[spec]
    alarm = None if previous is None else previous.alarm
    ended = alarm is not None and night.change >= -rule.smallest
    number = 1 if nights.last is None else nights.last.night + 1
    # The first night of a year may not be usable.
    new_year = (
        last is not None and (number - 1) // rule.per_year != (last.night - 1) // rule.per_year
    )
    evidence = () if previous is None or ended else previous.evidence
    if alarm is None or ended:
        evidence = added(rule, () if new_year else evidence, night, spread, count)
        alarm = number if total(evidence) >= rule.threshold else None
    return MetricNight(
        night,
        mean,
        reference_mean,
        evidence,
        spread.night,
        margin(rule, spread.pinned, count),
        rule.p(total(evidence)),
        alarm,
        ended and alarm is None,
    )


def changes(spec: str, pinned: Values, tonight: Values) -> pd.Series:
    """Return the change of each query, the largest drop first."""
    with np.errstate(invalid="ignore"):
        before, after = (
            pd.DataFrame(each.by_spec[spec].T, index=each.query_ids).mean(axis=1)
            for each in (pinned, tonight)
        )
    return (after - before).dropna().sort_values(kind="stable")


def for_other_queries(change: pd.Series) -> tuple[float, float]:
    """Return the ends of the 95 % interval of the mean change of queries like these; NaN for too
    few."""
    values = change.to_numpy(np.float64)[:, None]
    low, high = intervals(values, StatisticsSettings.for_queries(len(values)))
    return float(low[0]), float(high[0])
