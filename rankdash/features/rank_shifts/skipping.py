"""When not to rerank: leave a query as the first stage ordered it where that was sure of itself.

The rule is "skip where the margin is at least m". A threshold that looks best on some queries looks
better there than it is, so what a rule costs is also measured on queries it was not chosen on.
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
from rankdash.core.study.labelling import TOLERANCE

Flags = npt.NDArray[np.bool_]


FEWEST = 20
"""With fewer queries no rule is chosen: a fold would hold three or less."""

FOLDS = 5
_AT_ONCE = 5
"""Rules tried together: drawing weighs more than a rule, and few are tried in vain."""

_STEPS = 40
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Change:
    """A rule against reranking everything: the share of queries it skips, the change in the mean
    (negative: a loss) and the interval of that change."""

    share: float
    change: float
    low: float
    high: float


@dataclass(frozen=True)
class Rule(Change):
    """Skip where the margin is at least `threshold`."""

    threshold: float


@dataclass(frozen=True, eq=False)
class RuleCosts:
    """What every rule would cost, whatever loss is acceptable. n queries, T rules.

    curve: one row for each rule, the most careful first: threshold (inf: skip nothing), skipped,
        share, mean (of the mixed system), change (mean less that of reranking everything), low,
        high, and random, the change expected of skipping as many queries at random.
    reranked, first_stage: the means of reranking everything and nothing.
    advantage: how much better the margin picks what to skip than chance, averaged over all shares,
        in units of the metric, with its interval. As it depends on no chosen threshold, it needs
        no other queries to be judged on. gain: (n,) what each query adds to it.
    no_margin: queries that have none (a list too short): they are always reranked.
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
        """The p of the advantage, drawn where somebody asks."""
        # The same for whatever loss is acceptable.
        return float(p_values(self.gain[:, None], self.settings, again=True)[0])

    @property
    def margin_helps(self) -> bool:
        """Whether the margin is proven to pick better than chance, by the rule of the verdict: the
        interval lies above 0 and the p of this one comparison is significant."""
        return self.advantage_low > 0 and self.advantage_p <= 1 - self.settings.level + _ROUNDING


@dataclass(frozen=True, eq=False)
class Skipping(RuleCosts):
    """The rule that a loss allows, and what skipping by it would cost.

    tolerance: the acceptable loss, in units of the metric.
    rule: the rule that skips the largest share while `low` stays above -tolerance; None where only
        skipping nothing does, or there are too few queries. Judged on the queries it was chosen on.
    held_out: rules chosen in the same way on four fifths of the queries and applied to the rest,
        each query once; None under `FEWEST` queries.
    """

    tolerance: float
    rule: Rule | None
    held_out: Change | None

    @property
    def holds(self) -> bool:
        """Whether the loss on held-out queries is sure to stay within the tolerance."""
        return self.held_out is not None and self.held_out.low >= -self.tolerance - _ROUNDING


def rules_on(
    pairs: pd.DataFrame,
    margin: pd.Series[float],
    settings: StatisticsSettings,
    *,
    possible: tuple[float, float] = (-math.inf, math.inf),
) -> RuleCosts:
    """What the rules on a margin would skip, lose and keep.

    pairs: as from `compare.paired`, the first stage against a reranker. margin: query id → the
    first stage's margin, NaN where there is none. possible: the lowest and the highest change of
    the metric.
    """
    there = pairs["delta"].notna().to_numpy()
    known = pairs[there]
    delta = known["delta"].to_numpy(dtype=np.float64)
    # All queries are mostly those of the margin, which pandas sees at once.
    gap = np.asarray(margin.reindex(pairs["query_id"]), dtype=np.float64)[there]
    n = len(delta)
    reranked, first_stage = (
        float(known[side].mean()) if n else math.nan for side in ("after", "before")
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


def skipping(rules: RuleCosts, tolerance: float = TOLERANCE) -> Skipping:
    """The rule to skip by. tolerance: as a share of the mean of reranking everything."""
    limit = tolerance * rules.reranked
    enough = rules.n >= FEWEST
    return Skipping(
        **vars(rules),
        tolerance=limit,
        rule=_rule(rules.curve, limit) if enough else None,
        held_out=_held_out(rules, limit) if enough else None,
    )


def _thresholds(gap: Floats) -> Floats:
    """At most `_STEPS` thresholds that skip about equal shares more each, after one that skips
    nothing. They follow from the margins alone, not from what came of the queries."""
    known = np.sort(gap[~np.isnan(gap)])[::-1]
    if not len(known):
        return np.array([math.inf])
    positions = np.ceil(np.arange(1, _STEPS + 1) / _STEPS * len(known)).astype(np.int64) - 1
    return np.concatenate([[math.inf], np.unique(known[positions])[::-1]])


def _skips(gap: Floats, thresholds: Floats) -> Flags:
    """(n, T) whether each rule skips each query; never where there is no margin."""
    # A rule after the other lies in memory, as intervals look at them.
    return (np.nan_to_num(gap, nan=-math.inf) >= thresholds[:, None]).T


def _folds(n: int, seed: int) -> npt.NDArray[np.int64]:
    """(n,) the fold of each query, of about equal sizes."""
    drawn: npt.NDArray[np.int64] = np.random.default_rng(seed).permutation(n) % FOLDS
    return drawn


def _best(low: Floats, limit: float) -> int:
    """The last rule, that is the one that skips most, whose loss is sure to be small enough."""
    good = np.flatnonzero(low >= -limit - _ROUNDING)
    return int(good[-1]) if len(good) else 0


def _best_without(
    rules: RuleCosts, folds: npt.NDArray[np.int64], limit: float
) -> npt.NDArray[np.int64]:
    """(FOLDS,) for each fold the best rule on the queries of all others."""
    fold_losses = [rules.lost[folds == fold] for fold in range(FOLDS)]
    sums = np.stack([lost.sum(axis=0) for lost in fold_losses])
    sizes = np.array([len(lost) for lost in fold_losses])[:, None]
    means = (sums.sum(axis=0) - sums) / (sizes.sum() - sizes)
    # Few rules need an interval: none begins above its mean, and the last that is good is sought.
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
    """Each query under the rule that was chosen without it."""
    folds = _folds(rules.n, rules.settings.seed)
    best = _best_without(rules, folds, limit)
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
    """What a rule saves on n reranked queries.

    share: of the calls of the reranker. pairs: of the query–document pairs; NaN where unknown.
    timed: queries with a measured latency; mean and p95 in milliseconds over them, reranking
        everything and with the rule, a skipped query taking none; NaN where timed is 0.
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
    """What skipping from `threshold` on would have saved in a run.

    queries: the rows of a run (`Run.queries`). Failed and skipped queries are no calls.
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


# How decided a ranking is: the gap between neighbours in score, free of the scale of the scores.
#
# Raw scores of two models share no scale, and those of one model drift from query to query. So a
# gap is given as a share of what the query's own scores span, from its best document to its last:
# 0 is a tie, 1 leaves nothing for the rest of the list. Stretching or shifting the scores changes
# nothing.

Margin = Literal["first", "edge"]
MARGINS: tuple[Margin, ...] = ("first", "edge")
"""The gap between ranks 1 and 2, and between ranks k and k + 1."""

NEAR_TIE = 0.01
"""A gap of at most this share of the span is a near-tie."""


def margins(ranking: Ranking, k: int) -> pd.DataFrame:
    """One row for each query: query_id, first (the gap between ranks 1 and 2), edge (between ranks
    k and k + 1), each 0 to 1; NaN where the list is too short. Documents without a score count as
    not there."""
    # Documents without a score stand at the end of their list.
    scored = np.concatenate([[0], np.cumsum(~np.isnan(ranking.scores))])
    starts = ranking.offsets[:-1]
    lengths = scored[ranking.offsets[1:]] - scored[starts]
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
    """What a frame from `margins` adds up to, one row for each of `MARGINS`.

    Columns: margin; n (queries that have it); median; tied (share of exact ties); near (share of
    gaps of at most `near`, ties among them). NaN where n is 0.
    """
    rows = []
    for name in MARGINS:
        known = table[name].dropna().to_numpy()
        statistics = (
            (float(np.median(known)), float((known == 0).mean()), float((known <= near).mean()))
            if len(known)
            else (np.nan, np.nan, np.nan)
        )
        rows.append((name, len(known), *statistics))
    return pd.DataFrame(rows, columns=["margin", "n", "median", "tied", "near"])


def by_margin(pairs: pd.DataFrame, margin: pd.Series[float], groups: int = 10) -> pd.DataFrame:
    """The mean change of queries with about the same margin, the least decided first.

    pairs: as from `compare.paired`. margin: query id → margin. Columns: margin (the mean of the
    group's), n, delta. Queries without a change or a margin are left out; equal margins stay
    together, so that there may be fewer groups.
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
    """Whether all gaps are as good as equal, as where a file gave ranks and no scores."""
    known = values.dropna()
    return known.empty or float(known.max() - known.min()) <= _ROUNDING


def _at(ranking: Ranking, starts: Integers, place: int | Integers, lengths: Integers) -> Floats:
    """(Q,) the score at a rank; NaN where the list does not reach it."""
    rows = starts + place - 1
    inside = place <= lengths
    return np.where(inside, np.append(ranking.scores, np.nan)[np.where(inside, rows, -1)], np.nan)


def _share(gap: Floats, span: Floats) -> Floats:
    """gap / span, 0 where all scores are equal."""
    result = np.where(np.isnan(gap), np.nan, 0.0)
    np.divide(gap, span, out=result, where=span > 0)
    return result
