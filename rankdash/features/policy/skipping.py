"""When not to rerank: use the first stage's order for queries with a large score margin.

The rule is "skip if the margin is at least m". A threshold chosen on some queries looks better on
them than it is, so the cost of a rule is also measured on held-out queries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.data.ranking import Ranking
from rankdash.core.statistics.inference import intervals, p_values
from rankdash.core.study.cache import part
from rankdash.core.study.labelling import TOLERANCE
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE

Flags = npt.NDArray[np.bool_]


FEWEST = 20
"""The number of queries needed to choose a rule: with fewer, a fold has three or fewer."""

FOLDS = 5
_AT_ONCE = 5
"""The number of rules tried together: resampling costs more than a rule, and few are tried in
vain."""

_STEPS = 40
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Change:
    """A rule compared with reranking everything: the share of queries it skips, the change in the
    mean (negative: a loss) and the interval of that change."""

    share: float
    change: float
    low: float
    high: float


@dataclass(frozen=True)
class Rule(Change):
    """The rule to skip queries with a margin of at least `threshold`."""

    threshold: float


@dataclass(frozen=True, eq=False)
class RuleCosts:
    """The cost of every rule, for any acceptable loss. n queries, T rules.

    curve: one row for each rule, the most careful first: threshold (inf: skip nothing), skipped,
        share, mean (of the mixed system), change (mean minus the mean of reranking everything),
        low, high, and random, the expected change of skipping as many queries at random.
    reranked, first_stage: the means of reranking everything and nothing.
    advantage: the advantage of picking queries by margin instead of at random, averaged over all
        shares, in units of the metric, with its interval. It depends on no chosen threshold, so it
        needs no held-out queries. gain: (n,) the contribution of each query to it.
    no_margin: queries without a margin (a list too short): they are always reranked.
    lost, skips: (n, T) the change of each query under each rule, and whether it is skipped.
    possible: the lowest and the highest change of the metric.
    """

    n: int
    no_margin: int
    curve: pd.DataFrame
    reranked: float
    first_stage: float
    advantage: float
    advantage_low: float
    advantage_high: float
    gain: Floats
    lost: Floats
    skips: Flags
    settings: StatisticsSettings
    possible: tuple[float, float]

    @property
    def advantage_p(self) -> float:
        """The p-value of the advantage, computed only if it is used."""
        # The same for every acceptable loss.
        return float(p_values(self.gain[:, None], self.settings, again=True)[0])

    @property
    def margin_helps(self) -> bool:
        """True if the margin is proven to pick better than chance: as for the verdict, the interval
        is above 0 and the p-value of this one comparison is significant."""
        return self.advantage_low > 0 and self.advantage_p <= 1 - self.settings.level + _ROUNDING


@dataclass(frozen=True, eq=False)
class Skipping(RuleCosts):
    """The rule for an acceptable loss, and the cost of skipping by it.

    tolerance: the acceptable loss, in units of the metric.
    rule: the rule that skips the largest share while `low` stays above -tolerance; None if only
        skipping nothing does, or if there are too few queries. Measured on the queries it was
        chosen on.
    held_out: rules chosen in the same way on four fifths of the queries and applied to the rest,
        each query once; None below `FEWEST` queries.
    """

    tolerance: float
    rule: Rule | None
    held_out: Change | None

    @property
    def holds(self) -> bool:
        """True if the interval of the loss on held-out queries is within the tolerance."""
        return self.held_out is not None and self.held_out.low >= -self.tolerance - _ROUNDING


def rules_on(
    pairs: pd.DataFrame,
    margin: pd.Series[float],
    settings: StatisticsSettings,
    *,
    possible: tuple[float, float] = (-math.inf, math.inf),
) -> RuleCosts:
    """Return the cost of every rule on a margin.

    pairs: as from `compare.paired`, the first stage against a reranker. margin: query id → the
        first stage's margin, NaN if it has none. possible: the lowest and the highest change of the
        metric.
    """
    there = pairs["delta"].notna().to_numpy()
    paired = pairs[there]
    delta = paired["delta"].to_numpy(dtype=np.float64)
    # Usually both have the same queries, which pandas detects quickly.
    gap = np.asarray(margin.reindex(pairs["query_id"]), dtype=np.float64)[there]
    n = len(delta)
    reranked, first_stage = (
        float(paired[side].mean()) if n else math.nan for side in ("after", "before")
    )
    thresholds = _thresholds(gap)
    skips = _skips(gap, thresholds)
    share = skips.mean(axis=0) if n else np.zeros(len(thresholds))
    lost = -delta[:, None] * skips
    gain = (share - skips).mean(axis=1) * delta
    low, high = intervals(np.hstack([lost, gain[:, None]]), settings, possible=possible)
    change = lost.mean(axis=0) if n else np.full(len(thresholds), math.nan)
    curve = pd.DataFrame(
        {
            "threshold": thresholds,
            "skipped": skips.sum(axis=0),
            "share": share,
            "mean": reranked + change,
            "change": change,
            "low": low[:-1],
            "high": high[:-1],
            "random": -share * (reranked - first_stage),
        }
    )
    return RuleCosts(
        n=n,
        no_margin=int(np.isnan(gap).sum()),
        curve=curve,
        reranked=reranked,
        first_stage=first_stage,
        advantage=float(gain.mean()) if n else math.nan,
        advantage_low=float(low[-1]),
        advantage_high=float(high[-1]),
        gain=gain,
        lost=lost,
        skips=skips,
        settings=settings,
        possible=possible,
    )


def rule_within(rules: RuleCosts, tolerance: float = TOLERANCE) -> Skipping:
    """Return the rule to skip by. tolerance: as a share of the mean of reranking everything."""
    limit = tolerance * rules.reranked
    enough = rules.n >= FEWEST
    return Skipping(
        **vars(rules),
        tolerance=limit,
        rule=_rule(rules.curve, limit) if enough else None,
        held_out=_held_out(rules, limit) if enough else None,
    )


def _thresholds(gap: Floats) -> Floats:
    """Return at most `_STEPS` thresholds in steps of about equal shares of queries, after one that
    skips nothing. They depend on the margins only, not on the changes of the queries."""
    gaps = np.sort(gap[~np.isnan(gap)])[::-1]
    if not len(gaps):
        return np.array([math.inf])
    positions = np.ceil(np.arange(1, _STEPS + 1) / _STEPS * len(gaps)).astype(np.int64) - 1
    return np.concatenate([[math.inf], np.unique(gaps[positions])[::-1]])


def _skips(gap: Floats, thresholds: Floats) -> Flags:
    """Return flags of the queries that each rule skips, (n, T); False without a margin."""
    # Rules are contiguous in memory, because intervals are computed rule by rule.
    return (np.nan_to_num(gap, nan=-math.inf) >= thresholds[:, None]).T


def folds_of(n: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the fold of each query for cross-validation, (n,), in random folds of about equal
    sizes."""
    drawn: npt.NDArray[np.int64] = np.random.default_rng(seed).permutation(n) % FOLDS
    return drawn


def _best(low: Floats, limit: float) -> int:
    """Return the index of the last rule whose loss is certainly at most `limit`; later rules skip
    more."""
    good = np.flatnonzero(low >= -limit - _ROUNDING)
    return int(good[-1]) if len(good) else 0


def best_without(
    rules: RuleCosts, folds: npt.NDArray[np.int64], limit: float
) -> npt.NDArray[np.int64]:
    """Return the best rule for each fold, chosen on the queries of all others, (FOLDS,)."""
    fold_losses = [rules.lost[folds == fold] for fold in range(FOLDS)]
    sums = np.stack([lost.sum(axis=0) for lost in fold_losses])
    sizes = np.array([len(lost) for lost in fold_losses])[:, None]
    means = (sums.sum(axis=0) - sums) / (sizes.sum() - sizes)
    # Few rules need an interval: no interval begins above its mean, and only the last good rule
    # counts.
    likely = means >= -limit - 2 * _ROUNDING
    likely[:, 0] = False
    best = np.zeros(FOLDS, dtype=np.int64)
    while likely.any():
        tried = likely & (likely[:, ::-1].cumsum(axis=1)[:, ::-1] <= _AT_ONCE)
        fold, rule = np.nonzero(tried)
        training = np.where(folds[:, None] == fold, np.nan, rules.lost[:, rule])
        good = intervals(training, rules.settings)[0] >= -limit - _ROUNDING
        np.maximum.at(best, fold[good], rule[good])
        likely &= ~tried & (best == 0)[:, None]
    return best


def _rule(curve: pd.DataFrame, limit: float) -> Rule | None:
    row = curve.iloc[_best(curve["low"].to_numpy(), limit)]
    if not row["skipped"]:
        return None
    return Rule(
        threshold=float(row["threshold"]),
        share=float(row["share"]),
        change=float(row["change"]),
        low=float(row["low"]),
        high=float(row["high"]),
    )


def _held_out(rules: RuleCosts, limit: float) -> Change:
    """Return the change of applying to each query the rule that was chosen without it."""
    folds = folds_of(rules.n, rules.settings.seed)
    best = best_without(rules, folds, limit)
    if not best.any():
        return Change(share=0.0, change=0.0, low=0.0, high=0.0)
    chosen = best[folds]
    rows = np.arange(rules.n)
    losses = rules.lost[rows, chosen]
    low, high = intervals(losses[:, None], rules.settings, possible=rules.possible)
    return Change(
        share=float(rules.skips[rows, chosen].mean()),
        change=float(losses.mean()),
        low=float(low[0]),
        high=float(high[0]),
    )


@dataclass(frozen=True)
class Saving:
    """The savings of a rule on n reranked queries.

    share: of the calls of the reranker. pairs: of the query–document pairs; NaN if unknown.
    timed: queries with a measured latency; mean and p95 in milliseconds over them, of reranking
        everything and with the rule, with 0 for a skipped query; NaN if timed is 0.
    """

    n: int
    share: float
    pairs: float
    timed: int
    mean_before: float
    mean_after: float
    p95_before: float
    p95_after: float


def saving(queries: pd.DataFrame, margin: pd.Series[float], threshold: float) -> Saving:
    """Return what skipping at a margin of at least `threshold` would have saved in a run.

    queries: the rows of a run (`Run.queries`). Failed and skipped queries are not calls.
    """
    done = queries[queries["state"] == "done"]
    gap = np.asarray(margin.reindex(done["query_id"]), dtype=np.float64)
    skipped = _skips(gap, np.array([threshold]))[:, 0]
    pairs = done["pairs"].to_numpy(dtype=np.float64)
    latency = done["latency_ms"].to_numpy(dtype=np.float64)
    timed = ~np.isnan(latency)
    spent, remaining = latency[timed], np.where(skipped, 0.0, latency)[timed]
    total = float(pairs.sum()) if len(pairs) else math.nan

    def of(values: Floats, quantile: float | None) -> float:
        if not len(values):
            return math.nan
        return float(values.mean() if quantile is None else np.quantile(values, quantile))

    return Saving(
        n=len(done),
        share=float(skipped.mean()) if len(done) else math.nan,
        pairs=float(pairs[skipped].sum()) / total if total > 0 else math.nan,
        timed=int(timed.sum()),
        mean_before=of(spent, None),
        mean_after=of(remaining, None),
        p95_before=of(spent, 0.95),
        p95_after=of(remaining, 0.95),
    )


# Margins: the gap between neighbouring scores, independent of the scale of the scores.
#
# Raw scores of two models have no common scale, and scores of one model drift from query to query.
# A gap is therefore a share of the query's score range, from its best document to its last: 0 is a
# tie, 1 leaves nothing for the rest of the list. Scaling or shifting the scores changes nothing.

Margin = Literal["first", "edge"]
MARGINS: tuple[Margin, ...] = ("first", "edge")
"""The gap between ranks 1 and 2, and between ranks k and k + 1."""

NEAR_TIE = 0.01
"""The largest gap, as a share of the score range, that counts as a near-tie."""


def margins_of(ranking: Ranking, k: int, of_first: int | None = None) -> pd.DataFrame:
    """Return one row for each query: query_id, first (the gap between ranks 1 and 2), edge (between
    ranks k and k + 1), each 0 to 1; NaN if the list is too short. Documents without a score do not
    count, nor those after the first `of_first`."""
    # Documents without a score are at the end of their list.
    scored = np.concatenate([[0], np.cumsum(~np.isnan(ranking.scores))])
    starts = ranking.offsets[:-1]
    lengths = (scored[ranking.offsets[1:]] - scored[starts]).clip(max=of_first)
    best, worst = (_at(ranking, starts, place, lengths) for place in (1, lengths))
    span = best - worst
    return pd.DataFrame(
        {
            "query_id": ranking.query_ids,
            **{
                name: _share(
                    _at(ranking, starts, place, lengths) - _at(ranking, starts, place + 1, lengths),
                    span,
                )
                for name, place in (("first", 1), ("edge", k))
            },
        }
    )


def near_ties(table: pd.DataFrame, near: float = NEAR_TIE) -> pd.DataFrame:
    """Return a summary of a frame from `margins`, one row for each of `MARGINS`.

    Columns: margin; n (queries that have it); median; tied (share of exact ties); near (share of
    gaps of at most `near`, ties among them). NaN if n is 0.
    """
    rows = []
    for name in MARGINS:
        gaps = table[name].dropna().to_numpy()
        statistics = (
            (float(np.median(gaps)), float((gaps == 0).mean()), float((gaps <= near).mean()))
            if len(gaps)
            else (np.nan, np.nan, np.nan)
        )
        rows.append((name, len(gaps), *statistics))
    return pd.DataFrame(rows, columns=["margin", "n", "median", "tied", "near"])


def by_margin(pairs: pd.DataFrame, margin: pd.Series[float], groups: int = 10) -> pd.DataFrame:
    """Return the mean change of queries with about the same margin, the smallest margin first.

    pairs: as from `compare.paired`. margin: query id → margin. Columns: margin (mean of the group),
        n, delta. Queries without a change or a margin are excluded; equal margins stay together, so
        there may be fewer groups.
    """
    frame = pd.DataFrame(
        {
            "margin": margin.reindex(pairs["query_id"]).to_numpy(),
            "delta": pairs["delta"].to_numpy(),
        }
    ).dropna()
    rank = frame["margin"].rank(method="min").to_numpy() - 1
    group = np.floor(rank * groups / max(len(frame), 1)).astype(np.int64)
    gathered = frame.groupby(group)
    means = gathered.mean().assign(n=gathered.size())
    return means[["margin", "n", "delta"]].reset_index(drop=True)


def even(values: pd.Series[float]) -> bool:
    """Return True if all gaps are practically equal, as in a file with ranks but no scores."""
    gaps = values.dropna()
    return gaps.empty or float(gaps.max() - gaps.min()) <= _ROUNDING


def _at(ranking: Ranking, starts: Integers, place: int | Integers, lengths: Integers) -> Floats:
    """Return the score at a rank, (Q,); NaN if the list is shorter."""
    rows = starts + place - 1
    inside = place <= lengths
    return np.where(inside, np.append(ranking.scores, np.nan)[np.where(inside, rows, -1)], np.nan)


def _share(gap: Floats, span: Floats) -> Floats:
    """Return gap / span, 0 if all scores are equal."""
    result = np.where(np.isnan(gap), np.nan, 0.0)
    np.divide(gap, span, out=result, where=span > 0)
    return result


# Skipping in a study: the first stage against a challenger.


def rank_after(study: Study) -> int:
    """Return the last rank that counts: the cutoff, or 10 without one."""
    return study.cutoff or 10


@part("texts")
def margins(study: Study, system: str, k: int, of_first: int | None = None) -> pd.DataFrame:
    """Return first and edge as from `margins_of`; the index is the query id."""
    return margins_of(study.ranking(system), k, of_first).set_index("query_id")


def against_first_stage(study: Study, challenger: str) -> pd.DataFrame:
    """Return `Study.pairs` with the first stage in place of the baseline."""
    return study.pairs_of(FIRST_STAGE, challenger, study.spec)


@part("labels", "metric", "conventions")
def change_by_margin(study: Study, challenger: str, margin: Margin, k: int) -> pd.DataFrame:
    """Return the mean change of queries with about the same margin of the first stage, as from
    `by_margin`. k: of the margin."""
    gaps = margins(study, FIRST_STAGE, k)[margin]
    return by_margin(against_first_stage(study, challenger), gaps)


@part("labels", "metric", "conventions", "statistics")
def skipping(study: Study, challenger: str, margin: Margin, k: int, tolerance: float) -> Skipping:
    """Return the cost of skipping the challenger for queries with a large margin of the first
    stage. k: of the margin. tolerance: as a share of the mean."""
    return rule_within(rule_costs(study, challenger, margin, k), tolerance)


@part("labels", "metric", "conventions", "statistics")
def rule_costs(study: Study, challenger: str, margin: Margin, k: int) -> RuleCosts:
    """Return the cost of each rule on a margin, over all queries with a change. k: of the
    margin."""
    pairs = against_first_stage(study, challenger)
    gaps = margins(study, FIRST_STAGE, k)[margin]
    return rules_on(pairs, gaps, study.rules(challenger), possible=study.measure.changes)
