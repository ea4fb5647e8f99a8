"""The policy: the steps to deploy, applied to stored runs, and their expected effect.

A step is part of a policy only if the user chose it. The expected quality is measured by applying
all steps together, query by query. If a step is chosen on the labels, each query is evaluated with
the steps that are chosen on the other folds, and has the mean of its values over several splits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import Flags, Floats
from rankdash.core.data.measured import FEWEST_TIMED
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.rerankers.fusion import fuse as fuse_rankings
from rankdash.core.statistics.inference import ROUNDING, intervals
from rankdash.core.study.cache import Key, part
from rankdash.core.study.costs import refuse_weights
from rankdash.core.study.latency import timed_by
from rankdash.core.study.pricing import bill
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.value.depth import Cuts
from rankdash.features.policy.floor import (
    floor,
    floor_choice,
    floor_refusal,
    floored,
    lowest_score,
    rows_of,
)
from rankdash.features.policy.skipping import (
    Margin,
    best_without,
    margins,
    rank_after,
    rule_costs,
    skipping,
)
from rankdash.features.policy.weights import FOLDS, best_of, near_duplicates, weights
from rankdash.features.policy.weights import folds as folds_by_group

REPEATS = 20
"""The number of splits into folds for the expected quality."""


@dataclass(frozen=True)
class Choices:
    """The user's choices for a reranker; None for a step that is not chosen.

    system: the id of the reranker. depth: the number of candidates to rerank. skip_loss, margin:
    skip queries by a margin, at this acceptable loss (a share of the mean). deadline_ms: a query
    that takes longer has the first stage's order. weights: the systems to fuse, the reranker among
    them, with tuned weights. floor_alpha: the accepted share of answerable queries that lose all
    relevant documents.
    """

    system: str
    depth: int | None = None
    skip_loss: float | None = None
    margin: Margin = "first"
    deadline_ms: float | None = None
    weights: tuple[str, ...] = ()
    floor_alpha: float | None = None

    @property
    def any(self) -> bool:
        """True if a step is chosen."""
        return self != Choices(self.system, margin=self.margin)


@dataclass(frozen=True)
class Fuse:
    """A fusion of the reranker with other systems, in the order of ties. how: with a weight for
    each of the systems."""

    systems: tuple[str, ...]
    how: Fusion


@dataclass(frozen=True)
class Policy:
    """The steps in the order in which a search applies them; None for an absent one.

    skip_at: a query is not reranked if its margin after the rank `skip_rank` is at least this; the
    margin is computed over the first `skip_of` documents, all without it.
    system, depth, deadline_ms: the reranker, the number of candidates that it reads, and the time
    after which the first stage's order is shown. fuse: its order is fused with others. floor: the
    lowest score of the reranker that is shown.
    """

    system: str
    depth: int | None = None
    deadline_ms: float | None = None
    skip_rank: int = 1
    skip_at: float | None = None
    skip_of: int | None = None
    fuse: Fuse | None = None
    floor: float | None = None


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval, NaN with too few queries."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Expected:
    """The expected effect of a policy over n queries.

    quality, first_stage, full: means of the metric with the policy, without reranking, and with
    reranking of every query. over_first, over_full: the policy's differences from the other two.
    compared: the number of queries that the verdict compares.
    tuned: the steps that are chosen on the labels: each query is evaluated with steps chosen
    without it, and has its mean over `REPEATS` splits. skipped, late: shares of the queries.
    timed: the number of queries with a latency. p95_ms, full_p95_ms: of reranking, with 0 ms for a
    skipped query; NaN with too few latencies.
    """

    policy: Policy
    n: int
    compared: int
    tuned: tuple[str, ...]
    quality: Estimate
    first_stage: Estimate
    full: Estimate
    over_first: Estimate
    over_full: Estimate
    skipped: float
    late: float
    timed: int
    p95_ms: float
    full_p95_ms: float

    @property
    def skips_all(self) -> bool:
        """True if no query is reranked."""
        return self.skipped > 1 - ROUNDING


def apply(policy: Policy, study: Study) -> Ranking:
    """Return the documents that a search with this policy shows, in the order of the metrics, for
    the queries that the verdict compares."""
    rows = outcomes(policy, study)
    unchanged = set(rows.index[rows["skipped"] | rows["late"]])
    rules = study.conventions
    first, reranked = (
        each.with_ties(rules.order_rule(each.ties), rules.score_precision)
        for each in (study.ranking(FIRST_STAGE), _reranked(policy, study))
    )
    lists = []
    for query in map(str, rows.index):
        documents, scores = (first if query in unchanged else reranked).documents_of(query)
        lists.append((query, documents, scores.tolist()))
    return Ranking.from_lists(lists)


def outcomes(policy: Policy, study: Study) -> pd.DataFrame:
    """Return a row for each query that the verdict compares, with the query id as index.

    first, full, value: the metric without reranking, with reranking, and with the policy (NaN if
    the policy has a deadline and the query no latency). skipped, late: whether it has the first
    stage's order. ms: the latency of reranking to the depth of the policy; full_ms: of all
    candidates.
    """
    pairs = study.pairs_of(FIRST_STAGE, policy.system, study.spec).dropna(subset="delta")
    rows = pairs.set_index("query_id")[["before", "after"]].set_axis(["first", "full"], axis=1)
    gap = margins(study, FIRST_STAGE, policy.skip_rank, policy.skip_of)["edge"].reindex(rows.index)
    ms = _latencies(study, policy).reindex(rows.index)
    skipped = gap >= (math.inf if policy.skip_at is None else policy.skip_at)
    late = (ms > (policy.deadline_ms or math.inf)) & ~skipped
    order = replace(policy, deadline_ms=None, skip_rank=1, skip_at=None, skip_of=None)
    plain = order == Policy(policy.system)
    reranked = rows["full"] if plain else _values(study, order).reindex(rows.index)
    value = reranked.where(~(skipped | late), rows["first"])
    if policy.deadline_ms is not None:
        value = value.where(ms.notna())
    full_ms = _latencies(study, Policy(policy.system)).reindex(rows.index)
    return rows.assign(value=value, skipped=skipped, late=late, ms=ms, full_ms=full_ms)


def _latencies(study: Study, policy: Policy) -> pd.Series[float]:
    """Return query id → the latency of reranking in ms: at a depth in proportion to the number of
    documents, of fused systems the sum; NaN without a measurement."""
    total = pd.Series(dtype=np.float64)
    for place, system in enumerate(_rerankers(policy)):
        run = study.run(system)
        if run is None:
            continue
        rows = run.queries.set_index("query_id")[["latency_ms", "pairs"]].astype(np.float64)
        own, pairs = rows["latency_ms"], rows["pairs"]
        if policy.depth is not None and system == policy.system:
            own *= (pairs.clip(upper=policy.depth) / pairs).where(pairs > 0, 1.0)
        total = own if place == 0 else total + own.reindex(total.index)
    return total


def _rerankers(policy: Policy) -> tuple[str, ...]:
    """Return the rerankers that a query needs, the policy's own first."""
    fused = () if policy.fuse is None else policy.fuse.systems
    others = (each for each in fused if each not in (policy.system, FIRST_STAGE))
    return (policy.system, *others)


def _reranked(policy: Policy, study: Study) -> Ranking:
    """Return the documents that are shown if every query is reranked in time."""
    ranking = study.ranking(policy.system)
    if policy.depth is not None:
        ranking = Cuts(ranking, study.dataset.candidates).at(policy.depth)
    shown = ranking if policy.floor is None else floored(ranking, policy.floor)
    if policy.fuse is None:
        return shown
    fuse = policy.fuse
    parts = [ranking if each == policy.system else study.ranking(each) for each in fuse.systems]
    fused = fuse_rankings(parts, fuse.how)
    if policy.floor is None:
        return fused
    known, every = (
        pd.MultiIndex.from_frame(each.frame()[["query_id", "doc_id"]]) for each in (shown, fused)
    )
    return rows_of(fused, np.asarray(every.isin(known)))


@part("labels", "metric", "conventions")
def _values(study: Study, policy: Policy) -> pd.Series[float]:
    """Return query id → the metric if every query is reranked in time."""
    judged = judge(_reranked(policy, study), study.dataset.labels, study.conventions)
    excluded = study.excluded(policy.system)
    evaluation = evaluate(judged, [study.spec], study.conventions, excluded)
    return pd.Series(evaluation.values[:, 0], index=evaluation.query_ids)


# From choices to a policy, on all queries or without the queries of a fold.


@part("labels", "chosen", "metric", "metrics", "conventions", "statistics")
def policy_of(study: Study, choices: Choices) -> tuple[Policy, tuple[str, ...]]:
    """Return the policy that the choices make on all queries, and the names of its steps that are
    chosen on the labels.

    A depth is fixed, because the user chose it. A step without a safe rule or floor is omitted.
    """
    refuse_weights(study)
    system, tuned = choices.system, []
    policy = Policy(system, choices.depth, choices.deadline_ms)
    if choices.skip_loss is not None:
        k = rank_after(study)
        rule = skipping(study, system, choices.margin, k, choices.skip_loss).rule
        if rule is not None:
            rank = 1 if choices.margin == "first" else k
            of = longest(study)
            policy = replace(policy, skip_rank=rank, skip_at=rule.threshold, skip_of=of)
            tuned.append("skip")
    if fuse := _fused(study, choices):
        policy = replace(policy, fuse=fuse)
        tuned.append("weights")
    if choices.floor_alpha is not None and floor_refusal(study, system) is None:
        score = floor_choice(study, system, choices.floor_alpha).score
        if score > -math.inf:
            policy = replace(policy, floor=score)
            tuned.append("floor")
    return policy, tuple(tuned)


def longest(study: Study) -> int:
    """Return the number of documents in the longest list of the first stage."""
    return int(np.diff(study.ranking(FIRST_STAGE).offsets).max(initial=0))


def _fused(study: Study, choices: Choices, without: Flags | None = None) -> Fuse | None:
    """Return the fusion of the chosen systems; None if the reranker is the best without it.

    without: (n,) the queries of `weights` that are held out; None for none.
    """
    if choices.system not in choices.weights:
        return None
    try:
        found = weights(study, choices.weights)
    except RankdashError:
        return None
    own = choices.weights.index(choices.system)
    # Any other single system would be another reranker.
    places = [
        place
        for place, each in enumerate(found.variants)
        if each.fusion is not None or each.fused == (own,)
    ]
    values = found.values[:, places]
    best = found.variants[places[best_of(values if without is None else values[~without])]]
    if best.fusion is None:
        return None
    return Fuse(tuple(choices.weights[place] for place in best.fused), best.fusion)


def _without_fold(
    study: Study, choices: Choices, policy: Policy, tuned: tuple[str, ...], folds: pd.Series[int]
) -> list[Policy]:
    """Return the policy of each fold: its tuned steps are chosen on the queries of the other folds.

    folds: query id → fold, of the queries that the verdict compares.
    """
    system, policies = policy.system, [policy] * FOLDS
    if "skip" in tuned and choices.skip_loss is not None:
        rules = rule_costs(study, system, choices.margin, rank_after(study))
        best = best_without(
            rules, np.asarray(folds, dtype=np.int64), choices.skip_loss * rules.reranked
        )
        thresholds = rules.curve["threshold"].to_numpy()[best].tolist()
        pairs = zip(policies, thresholds, strict=True)
        policies = [replace(each, skip_at=threshold) for each, threshold in pairs]
    if "weights" in tuned:
        ids = weights(study, choices.weights).query_ids
        held = np.asarray(folds.reindex(ids))
        for each in range(FOLDS):
            fuse = _fused(study, choices, held == each)
            policies[each] = replace(policies[each], fuse=fuse)
    if "floor" in tuned and choices.floor_alpha is not None:
        found = floor(study, system)
        other = np.asarray(folds.reindex(found.query_ids))
        for each in range(FOLDS):
            score = lowest_score(found.best[other != each], choices.floor_alpha)
            policies[each] = replace(policies[each], floor=None if score == -math.inf else score)
    return policies


def _held_out(
    study: Study, choices: Choices, policy: Policy, tuned: tuple[str, ...], queries: pd.Index[str]
) -> Floats:
    """Return the value of each query with steps that are chosen on the other folds, (n,): the mean
    over `REPEATS` splits."""
    texts = study.dataset.query_text().reindex(queries).tolist()
    groups = near_duplicates(texts) if any(texts) else np.arange(len(queries))
    total, known = np.zeros(len(queries)), dict[Policy, Floats]()
    for repeat in range(REPEATS):
        drawn = folds_by_group(groups, study.statistics.seed, repeat)
        folds = pd.Series(drawn, index=queries)
        others = _without_fold(study, choices, policy, tuned, folds)
        for each in set(others) - set(known):
            known[each] = outcomes(each, study)["value"].to_numpy()
        values = np.stack([known[each] for each in others], axis=1)
        total += values[np.arange(len(queries)), drawn]
    mean: Floats = total / REPEATS
    return mean


def expected(study: Study, choices: Choices) -> Expected | None:
    """Return the expected effect of the policy that the choices make; None without a query that
    has a value with the policy."""
    return _expected(study, choices, timed_by(study, choices.system))


# The latencies depend on more than the id of the system.
@part("labels", "chosen", "metric", "metrics", "conventions", "statistics")
def _expected(study: Study, choices: Choices, timed: Key) -> Expected | None:
    policy, tuned = policy_of(study, choices)
    rows = outcomes(policy, study)
    if tuned and len(rows):
        rows["value"] = _held_out(study, choices, policy, tuned, rows.index)
    known = rows[rows["value"].notna()]
    if known.empty:
        return None
    means = known[["value", "first", "full"]].to_numpy()
    changes = means[:, [0]] - means[:, 1:]
    changes[np.abs(changes) <= ROUNDING] = 0.0
    measure, settings = study.measure, study.rules(choices.system)
    quality, first, full = _estimates(means, settings, measure.metric.range)
    over_first, over_full = _estimates(changes, settings, measure.changes)
    latencies = known[known["ms"].notna()]
    spent = latencies["ms"].clip(upper=policy.deadline_ms).where(~latencies["skipped"], 0.0)
    return Expected(
        policy=policy,
        n=len(known),
        compared=len(rows),
        tuned=tuned,
        quality=quality,
        first_stage=first,
        full=full,
        over_first=over_first,
        over_full=over_full,
        skipped=float(known["skipped"].mean()),
        late=float(known["late"].mean()),
        timed=len(latencies),
        p95_ms=_p95(spent),
        full_p95_ms=_p95(latencies["full_ms"]),
    )


def _estimates(
    columns: Floats, settings: StatisticsSettings, possible: tuple[float, float]
) -> list[Estimate]:
    low, high = intervals(columns, settings, possible=possible)
    rows = zip(columns.mean(axis=0).tolist(), low.tolist(), high.tolist(), strict=True)
    return [Estimate(*row) for row in rows]


def _p95(ms: pd.Series[float]) -> float:
    return float(ms.quantile(0.95)) if len(ms) >= FEWEST_TIMED else math.nan


def prices(study: Study, found: Expected) -> tuple[float, float] | None:
    """Return the price of 1,000 searches with the policy, and with reranking of every query; None
    if the user set no price. A skipped query costs nothing; a late one costs as much as others."""
    policy, system_bill = found.policy, bill(study, found.policy.system)
    if system_bill is None or system_bill.unset or system_bill.per_thousand is None:
        return None
    others = [bill(study, each) for each in _rerankers(policy)[1:]]
    if any(each is None or each.unset or each.per_thousand is None for each in others):
        return None
    beside = sum(each.per_thousand or 0.0 for each in others if each is not None)
    share = 1 - found.skipped
    reranked = replace(system_bill, traffic=system_bill.traffic and system_bill.traffic * share)
    documents = float(system_bill.load.load.documents)
    depth = documents if policy.depth is None else min(policy.depth, documents)
    price = (reranked.at(depth) + beside) * share if share else 0.0
    return price, system_bill.per_thousand
