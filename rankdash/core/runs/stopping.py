"""Runs that may stop by their result: queries in random order, and after each batch the change of a
metric against the first stage, with an anytime-valid interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np

from rankdash.core.base.rules import LEVEL, Conventions
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import STOPPED, Stopped
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge, parse_measure
from rankdash.core.runs.plan import Plan, random_order
from rankdash.core.runs.results import QueryResult, ranked
from rankdash.core.statistics.anytime import anytime_interval


@dataclass(frozen=True)
class StopRule:
    """Rule by which a run may stop.

    metric, conventions, level: by which a change against the first stage is conclusive.
    by_itself: whether the run stops at the first conclusive look; otherwise a user decides.
    dollars: the estimated cost of all queries; NaN if it is not known.

    Raises SpecError for an unknown metric.
    """

    metric: str = "ndcg@10"
    conventions: Conventions = Conventions()  # noqa: RUF009 - it is frozen
    level: float = LEVEL
    by_itself: bool = False
    dollars: float = math.nan

    def __post_init__(self) -> None:
        parse_measure(self.metric)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON, which has no NaN."""
        dollars = None if math.isnan(self.dollars) else self.dollars
        return {**asdict(self), "dollars": dollars}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> StopRule:
        """Build from the result of `as_dict`, also after JSON."""
        dollars = math.nan if values["dollars"] is None else values["dollars"]
        rules = Conventions(**values["conventions"])
        return cls(**{**values, "conventions": rules, "dollars": dollars})


@dataclass(frozen=True)
class Look:
    """Interim result of a run.

    done: number of scored queries in the random order. queries: the number with a value.
    change, low, high: the mean change of the metric, with its interval; NaN while it is too early.
    """

    done: int
    queries: int
    change: float
    low: float
    high: float

    @property
    def conclusive(self) -> bool:
        """True if the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def as_dict(self) -> dict[str, float | None]:
        """Return the fields for JSON, which has no NaN."""
        return {name: None if math.isnan(value) else value for name, value in vars(self).items()}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Look:
        """Build from the result of `as_dict`, also after JSON."""
        known: dict[str, Any] = {
            name: math.nan if each is None else each for name, each in values.items()
        }
        return cls(**known)


class Watch:
    """The change of the scored queries of a plan against the first stage.

    Only the start of the random order up to the first query without a result counts: which later
    queries have cached scores may depend on earlier results.

    look: after the last results. rule: may be replaced during the run.
    """

    def __init__(self, dataset: Dataset, planned: Plan, rule: StopRule, seed: int) -> None:
        self.rule, self.seed = rule, seed
        self.order = random_order(planned.documents, seed)
        self._dataset, self._planned = dataset, planned
        self._before = self._values(dataset.candidates)
        self._changes: dict[str, float] = {}
        self.look = self._look()

    @property
    def stopped(self) -> bool:
        """True if the run has to stop."""
        return self.rule.by_itself and self.look.conclusive

    def add(self, results: Iterable[QueryResult]) -> None:
        """Add results of queries, which change the look."""
        lists = []
        for result in results:
            self._changes[result.query_id] = math.nan
            if result.state == "done":
                lists.append(ranked(self._dataset, self._planned, result).scored)
        if lists:
            after = self._values(Ranking.from_lists(lists))
            self._changes |= {query: after[query] - self._before[query] for query in after}
        self.look = self._look()

    def scored(self, results: Mapping[str, QueryResult]) -> tuple[Plan, dict[str, QueryResult]]:
        """Return the plan without the queries that a stopped run skips, and the other results."""
        start = self._start(results)
        documents = {query: self._planned.documents[query] for query in start}
        skipped = dict.fromkeys(self.order[len(start) :], STOPPED)
        planned = replace(
            self._planned, documents=documents, skipped={**self._planned.skipped, **skipped}
        )
        return planned, {query: results[query] for query in start}

    def record(self) -> Stopped:
        """Return the record of a stopped run."""
        conventions = self.rule.conventions.as_dict()
        return Stopped(
            *(self.look.done, len(self.order), self.seed),
            *(self.rule.metric, conventions, self.rule.level),
        )

    def _look(self) -> Look:
        start = self._start(self._changes)
        changes = np.array([self._changes[query] for query in start], dtype=np.float64)
        known = changes[~np.isnan(changes)]
        low, high = anytime_interval(known[:, None], self.rule.level)[:, 0]
        mean = float(known.mean()) if len(known) else math.nan
        return Look(len(start), len(known), mean, float(low), float(high))

    def _start(self, results: Mapping[str, object]) -> tuple[str, ...]:
        """Return the start of the order, up to the first query without a result."""
        return tuple(takewhile(results.__contains__, self.order))

    def _values(self, ranking: Ranking) -> dict[str, float]:
        """Return query → its value; NaN without one."""
        rules = self.rule.conventions
        judged = judge(ranking, self._dataset.labels, rules)
        evaluation = evaluate(judged, [self.rule.metric], rules)
        values = dict(zip(evaluation.query_ids, evaluation.values[:, 0].tolist(), strict=True))
        return {query: values.get(query, math.nan) for query in ranking.query_ids}
