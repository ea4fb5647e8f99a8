"""The basis of a decision on one system: losses, missing measurements and settings, next step."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.data.measured import meets
from rankdash.core.sampling.label_plan import pool_of
from rankdash.core.statistics.alignment import direction
from rankdash.core.statistics.inference import MANY_VALUES
from rankdash.core.statistics.planning import FEWEST_PLANNED
from rankdash.core.statistics.verdict import Kind, is_below_minimum
from rankdash.core.study import costs
from rankdash.core.study.cache import part
from rankdash.core.study.costs import hits
from rankdash.core.study.groups import Group, groups
from rankdash.core.study.judged import JudgedVerdict, headline
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import Assumption
from rankdash.features.overview.caveat import Caveat
from rankdash.features.overview.caveats import (
    Implausible,
    MadeBaseline,
    TunedHere,
    UnknownTokens,
    Unlabelled,
    caveats,
)

Step = Literal[
    "data",
    "label",
    "rerank",
    "queries",
    "same_queries",
    "metric",
    "settle",
    "judge",
    "model",
    "fresh",
    "baseline",
    "price",
    "latency",
    "faster",
    "worse",
    "same",
    "unprovable",
    "more",
    "minimum",
    "open",
    "loss",
    "trial",
]
"""Next step; `rankdash.features.report.words` has the texts.

Steps that request labelled queries: label, for the first verdict; queries, if too few have labels;
settle, as many as the verdict estimates; more, if there are too few to estimate how many; open, if
their number cannot be estimated.
"""

# Above this share, unlabelled documents outweigh the labelled ones.
_MOST_UNLABELLED = 0.5


@dataclass(frozen=True)
class HitCounts:
    """Number of queries, of n, with a relevant document in the first k, before and after reranking.

    change: row of a comparison with the verdict on the difference.
    """

    before: int
    after: int
    n: int
    k: int
    change: pd.Series


@dataclass(frozen=True)
class Decision:
    """Everything that is known about one challenger.

    row: of the study's comparison.
    headline: verdict of a judge corrected with human labels, None without one. If present, it is
        the main verdict; the other fields on quality use human labels only.
    hits: None if no query has a value.
    worst: query_id, before, after and delta of the query with the largest loss; None if no query is
        hurt.
    groups: kinds of queries without a proven gain, proven losses first.
    unlabelled: number of documents without a label that either system ranks within the cutoff, over
        all queries with results of both.
    caveats: of the verdict.
    choice: the system at its price.
    target_ms: limit of the p95 latency.
    priced: price and assumptions are set.
    defaults: assumptions that affect the result and have their default values.
    more: number of queries that the step requests, 0 if it requests none.
    """

    challenger: str
    row: pd.Series
    headline: JudgedVerdict | None
    hits: HitCounts | None
    worst: pd.Series | None
    groups: tuple[Group, ...]
    unlabelled: int
    caveats: tuple[Caveat, ...]
    choice: costs.Choice
    target_ms: float
    priced: bool
    defaults: tuple[Assumption, ...]
    step: Step
    more: int = 0

    @property
    def kind(self) -> Kind:
        """Kind of the main verdict."""
        verdict: Kind = self.row["verdict"] if self.headline is None else self.headline.kind
        return verdict


def decision(study: Study, challenger: str) -> Decision:
    """Return the decision on a challenger, with its next step."""
    money = study.money or Money()
    pairs = study.pairs(challenger).dropna(subset="delta")
    hurt = pairs[direction(pairs["delta"].to_numpy(), study.statistics.tie_band) < 0]
    choice = next(each for each in costs.choices(study) if each.system == challenger)
    assessment = Decision(
        challenger=challenger,
        row=study.comparison.row(challenger, study.spec),
        headline=headline(study, challenger),
        hits=hit_counts(study, challenger),
        worst=None if hurt.empty else hurt.nsmallest(1, "delta", keep="first").iloc[0],
        groups=_without_gain(study, challenger),
        unlabelled=_unlabelled(study, challenger),
        caveats=caveats(study, challenger),
        choice=choice,
        target_ms=money.assumptions.latency_target_ms,
        priced=money.valued and not choice.unset,
        defaults=money.defaults,
        step="trial",
    )
    step, more = _next(study, assessment)
    # Enough queries are labelled already and only need to be reranked.
    if step in ("label", "queries", "settle", "more") and 0 < more <= (
        skipped := _not_run(study, challenger)
    ):
        step, more = "rerank", skipped
    return replace(assessment, step=step, more=more)


@part("labels", "baseline", "metric", "conventions")
def _unlabelled(study: Study, challenger: str) -> int:
    """Return the number of documents without a label that either system ranks within the cutoff.

    All queries with results of both systems count: a query without a value may get one from these
    labels.
    """
    if not study.measures_quality:
        return 0
    rules = study.conventions
    sides = {
        side: ranking.with_ties(rules.order_rule(ranking.ties), rules.score_precision)
        for side in (study.baseline, challenger)
        for ranking in [study.ranking(side)]
    }
    try:
        pool = pool_of(sides, study.measure.k or sys.maxsize)
    except DataError:
        return 0
    return int(np.isnan(pool.aligned(study.dataset.qrels)).sum())


def hit_counts(study: Study, challenger: str) -> HitCounts | None:
    """Return the counts of a challenger; None if no query has a value, and if means are per search:
    a share of searches is not a number of queries."""
    row = hits(study, challenger)
    n = int(row["paired"])
    if not n or study.conventions.weighted:
        return None
    # Each query counts 1 or 0, so n times the mean is a count.
    before, after = (round(row[side] * n) for side in ("before", "after"))
    return HitCounts(before, after, n, study.cutoff or 10, row)


def _without_gain(study: Study, challenger: str) -> tuple[Group, ...]:
    """Return the kinds of queries without a proven gain; none for metrics that describe labels."""
    if not study.measures_quality:
        return ()
    selected = [each for each in groups(study, challenger) if not (each.proven and each.delta > 0)]
    return tuple(sorted(selected, key=lambda each: (not each.proven, each.delta)))


def _next(study: Study, assessment: Decision) -> tuple[Step, int]:
    """Return the next step, and how many queries it requires."""
    kind, row = assessment.kind, assessment.row
    if any(isinstance(each, Implausible) for each in assessment.caveats) and kind != "no_values":
        return "data", 0
    if any(isinstance(each, UnknownTokens) for each in assessment.caveats):
        return "model", 0
    if kind == "unproven" and any(isinstance(each, TunedHere) for each in assessment.caveats):
        return "fresh", 0
    few_labels = any(
        isinstance(each, Unlabelled) and max(each.baseline, each.challenger) > _MOST_UNLABELLED
        for each in assessment.caveats
    )
    fewest = study.comparison.verdict(assessment.challenger, study.spec).fewest
    match kind:
        case "no_values":
            return "label", fewest
        case "too_few":
            # 0 if only the effective number of queries is too small: the least number is unknown.
            return "queries", max(0, fewest - int(row["paired"]))
        case "nothing_common":
            return "same_queries", 0
        case "descriptive":
            return "metric", 0
        case "identical" if few_labels and _open(study, assessment.challenger):
            return "judge", 0
        case "worse" | "equal" | "unproven" | "better" | "small" if few_labels:
            return "judge", 0
        case "worse" | "equal" | "identical" if _made_here(assessment):
            return "baseline", 0
        case "worse" | "equal" | "identical":
            return ("worse" if kind == "worse" else "same"), 0
        case "unproven":
            return _unproven(study, assessment)
    return _of_a_gain(assessment), 0


def _not_run(study: Study, challenger: str) -> int:
    """Return how many labelled queries one of the two systems was not run on."""
    skipped = {
        query
        for side in (study.baseline, challenger)
        for query, state in study.excluded(side).items()
        if state == "skipped"
    }
    return len(skipped & set(study.dataset.qrels["query_id"])) if skipped else 0


def _unproven(study: Study, assessment: Decision) -> tuple[Step, int]:
    """Return the next step after a change that is not proven, and how many queries it requires.

    The step "unprovable" needs a minimum gain that the user set and that the interval excludes.
    """
    row, minimum = assessment.row, study.statistics.worthwhile
    more = study.comparison.verdict(assessment.challenger, study.spec).more
    n, before, high = int(row["paired"]), row["before"], row["delta_high"]
    if assessment.headline is not None:
        three = assessment.headline.three
        more, n = three.more, three.corrected.n
        before, high = assessment.headline.before, three.corrected.high
    if n < FEWEST_PLANNED:
        return "more", FEWEST_PLANNED - n
    if np.isnan(high):
        return "more", MANY_VALUES - n
    if is_below_minimum(high, before, minimum):
        return "unprovable", 0
    if more:
        return "settle", more
    return ("minimum" if minimum is None else "open"), 0


def _open(study: Study, challenger: str) -> bool:
    """Return True if more labels could change the difference between the two systems."""
    change = study.unjudged_change(challenger).bounds
    return change.lowest < change.highest


def _of_a_gain(assessment: Decision) -> Step:
    """Return the next step after a proven gain, by the first thing that a decision lacks."""
    net, waited = assessment.choice.outcome.net_per_month.value, assessment.choice.waiting
    if assessment.priced and net is not None and net <= 0:
        return "loss"
    if _made_here(assessment):
        return "baseline"
    if waited.p95 is None and not waited.whole:
        return "latency"
    if waited.p95 is not None and not meets(waited.p95, assessment.target_ms):
        # An idle machine may meet the target.
        return "latency" if waited.busy else "faster"
    return "trial" if assessment.priced else "price"


def _made_here(assessment: Decision) -> bool:
    """Return True if the baseline is not the user's own search."""
    return any(isinstance(each, MadeBaseline) for each in assessment.caveats)
