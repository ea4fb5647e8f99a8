"""Floor: documents with a score below a threshold are not shown.

A query is answerable if the labels name a relevant document. A floor loses the query if it removes
all relevant documents among the first k, the cutoff of the metric; a query without one loses
nothing. The threshold is chosen by conformal risk control: the largest one with which, among n
answerable queries, the share of lost ones plus 1 / (n + 1) is at most alpha. On new queries the
expected share of lost ones is then at most alpha. A document without a score is below every
threshold.
Source: Angelopoulos, Bates, Fisch, Lei and Schuster (2022), Conformal Risk Control.

A score must mean the same for every query, so a floor is refused for scores that depend on the
other documents of the query, or only on their ranks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError, Phrase
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import (
    Flags,
    Floats,
    Integers,
    equal_runs,
    offsets_from,
    owners,
    places,
    tied_groups,
)
from rankdash.core.data.ranking import Ranking, Run, digest
from rankdash.core.metrics import Judged, evaluate
from rankdash.core.rerankers.kinds.precomputed import Precomputed
from rankdash.core.runs import combining
from rankdash.core.statistics.alignment import places_of
from rankdash.core.statistics.inference import intervals
from rankdash.core.study.cache import part
from rankdash.core.study.costs import listwise
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE

FEWEST = 60
"""The fewest answerable queries."""

ALPHAS = (0.01, 0.02, 0.05, 0.1)
"""The accepted shares of lost queries that a user may choose."""

ALPHA = 0.05
"""The accepted share for examples."""

SPLITS = 500

_STEPS = 20
_MOST = 0.5
_ROUNDING = 1e-9
# Scores in files are rounded.
_CLOSE, _EQUAL = 1e-3, 1e-9


def lowest_score(best: Floats, alpha: float) -> float:
    """Return the largest threshold with which at most a share `alpha` of new queries is lost; -inf
    if none is.

    best: (n,), as `Floor.best`. Above the highest finite score, a threshold would lose no more
        queries and show nothing, so it is the most.
    """
    scores = np.sort(best[~np.isnan(best)])
    n, finite = len(scores), scores[np.isfinite(scores)]
    allowed = math.floor(n * (alpha - 1 / (n + 1)) + _ROUNDING)
    if allowed < 0 or not len(finite):
        return -math.inf
    return float(min(scores[allowed], finite[-1]))


def floored(ranking: Ranking, score: float) -> Ranking:
    """Return the ranking without documents below a score. A list may become empty."""
    return ranking if score == -math.inf else rows_of(ranking, ranking.scores >= score)


def rows_of(ranking: Ranking, shown: Flags) -> Ranking:
    """Return the ranking with some of its rows only. A list may become empty."""
    counts = np.bincount(owners(ranking.offsets)[shown], minlength=len(ranking.query_ids))
    offsets, scores = offsets_from(counts), ranking.scores[shown]
    return replace(
        ranking,
        offsets=offsets,
        docs=ranking.docs[shown],
        scores=scores,
        tied=tied_groups(equal_runs(scores, offsets)[0], offsets),
        given=ranking.given[shown],
    )


@dataclass(frozen=True, eq=False)
class Floor:
    """A reranker with a floor, for all queries of the first stage and the reranker.

    table: one row for each threshold, ascending; the first one, -inf, removes nothing. score; mean,
        low, high (of the metric); shown (share of the first k documents of an answerable query);
        lost (share of the answerable queries); empty (share of the answerable queries with an empty
        list if their relevant documents are removed from the data); unanswerable (share of the
        queries in `unanswerable` with an empty list; NaN without any).
    query_ids: (n,), as in `Study.pairs_of`. values: (n, thresholds), NaN for a query without a
        value in one of the two systems.
    best: (n,) the highest score of a relevant document among the first k; -inf if none of them has
        a score, inf if none is there. other: (n,) the highest score of another document; -inf
        without one. Both are NaN for a query that is not answerable.
    unanswerable: (n,) the highest score of a query whose labels are all not relevant; NaN for
        others.
    fingerprint: of the reranker, as from `fingerprint`.
    """

    table: pd.DataFrame
    query_ids: npt.NDArray[np.object_]
    values: Floats
    best: Floats
    other: Floats
    unanswerable: Floats
    fingerprint: str

    @property
    def answerable(self) -> int:
        return int((~np.isnan(self.best)).sum())


@dataclass(frozen=True)
class Share:
    """A mean over queries, with its interval."""

    mean: float
    low: float
    high: float

    @property
    def row(self) -> tuple[float, float, float]:
        return self.mean, self.low, self.high

    @classmethod
    def of(
        cls,
        values: Floats,
        settings: StatisticsSettings,
        possible: tuple[float, float] = (0.0, 1.0),
    ) -> Share:
        """Return the mean of (n,) values; NaN without any."""
        if np.isnan(values).all():
            return cls(math.nan, math.nan, math.nan)
        low, high = intervals(values[:, None], settings, possible=possible)
        return cls(float(np.nanmean(values)), float(low[0]), float(high[0]))


@dataclass(frozen=True, eq=False)
class FloorChoice:
    """The threshold for an accepted share of lost queries, and its effect on held-out queries.

    score: chosen on all answerable queries; -inf if half of them are too few for any threshold.
    The effect: `SPLITS` times, a threshold is chosen on a random half of the answerable queries and
    applied to the other half; each query has its mean over the splits in which it was held out.
    Queries that are not answerable are held out in each split.
    lost, empty, unanswerable, shown: as the columns of `Floor.table`. difference: empty minus lost.
    change: of the metric, compared with no floor, over the queries with a value.
    lost_by_split: (SPLITS,).
    """

    alpha: float
    score: float
    lost: Share
    empty: Share
    difference: Share
    unanswerable: Share
    shown: Share
    change: Share
    lost_by_split: Floats

    @property
    def separates(self) -> Literal["no", "partly", "yes"]:
        """The proof that lists without a relevant document become empty more often than answerable
        queries are lost; a floor that empties lists at random has none. "partly": proven. "yes":
        also proven that most of these lists become empty. "no": not proven."""
        if not self.difference.low > 0:
            return "no"
        return "yes" if self.empty.low > _MOST else "partly"


def floor(study: Study, challenger: str) -> Floor:
    """Return the results of a system with each floor.

    Raises DataError, with the reason, if a floor is refused.
    """
    _refuse(study, challenger)
    return _floor(study, challenger)


@part("labels", "metric", "conventions", "statistics")
def _floor(study: Study, challenger: str) -> Floor:
    lists = _Lists.of(study, challenger)
    scores, best = (each[np.isfinite(each)] for each in (lists.scores[lists.first], lists.best))
    shares = np.arange(_STEPS) / _STEPS
    steps = [np.quantile(each, shares, method="lower") for each in (scores, best) if len(each)]
    safe = [lowest_score(lists.best, alpha) for alpha in ALPHAS]
    thresholds = np.unique(np.concatenate([[-math.inf], *steps, safe]))
    values = lists.values(study, thresholds)
    low, high = intervals(values, study.rules(challenger), possible=study.measure.metric.range)
    run = study.run(challenger)
    return Floor(
        table=pd.DataFrame(
            {
                "score": thresholds,
                "mean": np.nanmean(values, axis=0),
                "low": low,
                "high": high,
                "shown": np.nanmean(lists.shown(thresholds), axis=0),
                "lost": np.nanmean(_below(lists.best, thresholds), axis=0),
                "empty": np.nanmean(_below(lists.other, thresholds), axis=0),
                "unanswerable": np.nanmean(_below(lists.unanswerable, thresholds), axis=0)
                if not np.isnan(lists.unanswerable).all()
                else math.nan,
            }
        ),
        query_ids=lists.query_ids,
        values=values,
        best=lists.best,
        other=lists.other,
        unanswerable=lists.unanswerable,
        fingerprint="" if run is None else fingerprint(run),
    )


def floor_values(study: Study, challenger: str, thresholds: tuple[float, ...]) -> Floats:
    """Return the values of the queries with each threshold, (n, thresholds), as `Floor.values`."""
    return _Lists.of(study, challenger).values(study, np.array(thresholds))


def floor_choice(study: Study, challenger: str, alpha: float) -> FloorChoice:
    """Return the threshold for an accepted share of lost queries, with its effect.

    Raises DataError as `floor` does.
    """
    _refuse(study, challenger)
    return _choice(study, challenger, alpha)


def _refuse(study: Study, challenger: str) -> None:
    reason = floor_refusal(study, challenger)
    if reason is not None:
        raise reason.with_traceback(None)


@part("labels", "metric", "conventions", "statistics")
def _choice(study: Study, challenger: str, alpha: float) -> FloorChoice:
    lists, settings = _Lists.of(study, challenger), study.rules(challenger)
    known = ~np.isnan(lists.best)
    held_out, chosen = splits(lists.best, alpha, settings.seed)
    thresholds, at = np.unique(chosen, return_inverse=True)
    # How often each query was held out with each threshold, (n, thresholds).
    counts = np.stack([held_out[at == each].sum(axis=0) for each in range(len(thresholds))], axis=1)
    weights = counts / counts.sum(axis=1, keepdims=True)

    def mean(values: Floats) -> Floats:
        return np.asarray((values * weights).sum(axis=1))

    lost, empty = (_below(each, thresholds) for each in (lists.best, lists.other))
    none = _below(lists.unanswerable, thresholds)
    values = lists.values(study, thresholds)
    full = lists.values(study, np.array([-math.inf]))
    return FloorChoice(
        alpha=alpha,
        score=lowest_score(lists.best, alpha) if np.isfinite(chosen).any() else -math.inf,
        lost=Share.of(mean(lost), settings),
        empty=Share.of(mean(empty), settings),
        difference=Share.of(mean(empty - lost), settings, (-1.0, 1.0)),
        unanswerable=Share.of(mean(none), settings),
        shown=Share.of(mean(lists.shown(thresholds)), settings),
        change=Share.of(mean(values - full), settings, study.measure.changes),
        lost_by_split=np.array(
            [lost[rows & known, place].mean() for rows, place in zip(held_out, at, strict=True)]
        ),
    )


def splits(best: Floats, alpha: float, seed: int) -> tuple[Flags, Floats]:
    """Return the held-out queries of each split, (SPLITS, n), and its threshold, (SPLITS,).

    best: as for `lowest_score`. The threshold is chosen on a random half of the answerable queries;
    all others are held out.
    """
    rng = np.random.default_rng(seed)
    answerable = np.flatnonzero(~np.isnan(best))
    held_out = np.ones((SPLITS, len(best)), dtype=bool)
    for each in held_out:
        each[rng.permutation(answerable)[: len(answerable) // 2]] = False
    return held_out, np.array([lowest_score(best[~each], alpha) for each in held_out])


def _below(scores: Floats, thresholds: Floats) -> Floats:
    """Return 1 for each score below a threshold, (n, thresholds); NaN without a score."""
    return np.where(np.isnan(scores)[:, None], np.nan, scores[:, None] < thresholds)


@dataclass(frozen=True, eq=False)
class _Lists:
    """The lists of a system, joined with the labels, for n queries and Q labelled queries.

    judged: the join. excluded: as for `evaluate`. at: (n,) the places of the queries among the
        labelled ones. compared: (n,) whether a query has a value in both systems.
    query, scores, first: (N,) of the rows of the labelled queries: the place of the query; the
        score, -inf without one; whether the row is among the first k.
    query_ids, best, other, unanswerable: as in `Floor`.
    """

    judged: Judged
    excluded: Mapping[str, str]
    at: Integers
    compared: Flags
    query: Integers
    scores: Floats
    first: Flags
    query_ids: npt.NDArray[np.object_]
    best: Floats
    other: Floats
    unanswerable: Floats

    @classmethod
    def of(cls, study: Study, system: str) -> _Lists:
        pairs = study.pairs_of(FIRST_STAGE, system, study.spec)
        query_ids = pairs["query_id"].to_numpy(dtype=object)
        judged, threshold = study.judged(system), study.conventions.threshold
        at, every = places_of(judged.query_ids, query_ids), np.arange(len(judged.query_ids))
        offsets = offsets_from(judged.lengths)
        query, rank = owners(offsets), places(offsets)
        scores = np.nan_to_num(
            study.ranking(system).scores[judged.starts[query] + rank - 1], nan=-math.inf
        )
        first = rank <= (study.measure.k or math.inf)
        hits = judged.label >= threshold
        relevant = np.zeros(len(query), dtype=bool)
        relevant[offsets[judged.query[hits]] + judged.rank[hits] - 1] = True
        best = np.where(np.isin(every, query[relevant & first]), -math.inf, math.inf)
        other = np.full(len(every), -math.inf)
        for highest, chosen in ((best, relevant & first), (other, ~relevant)):
            np.maximum.at(highest, query[chosen], scores[chosen])
        labelled = np.isin(every, owners(judged.pool_offsets)[judged.pool_label >= threshold])
        answerable, irrelevant = (each & (judged.lengths > 0) for each in (labelled, ~labelled))
        return cls(
            judged=judged,
            excluded=study.excluded(system),
            at=at,
            compared=pairs["delta"].notna().to_numpy(),
            query=query,
            scores=scores,
            first=first,
            query_ids=query_ids,
            best=np.where(answerable, best, np.nan)[at],
            other=np.where(answerable, other, np.nan)[at],
            unanswerable=np.where(irrelevant, other, np.nan)[at],
        )

    def _count(self, rows: Flags) -> Integers:
        return np.bincount(self.query[rows], minlength=len(self.judged.query_ids))

    def shown(self, thresholds: Floats) -> Floats:
        """Return the share of the first documents of each answerable query, (n, thresholds)."""
        shown = [self._count(self.first & (self.scores >= each)) for each in thresholds]
        answerable = ~np.isnan(self.best)
        whole = np.where(answerable, self._count(self.first)[self.at], np.nan)
        return np.stack(shown, axis=1)[self.at] / whole[:, None]

    def values(self, study: Study, thresholds: Floats) -> Floats:
        """Return the values of the queries, (n, thresholds)."""
        columns = []
        for each in thresholds:
            lengths = self._count(self.scores >= each)
            ranked = self.judged.rank <= lengths[self.judged.query]
            shorter = replace(
                self.judged,
                lengths=lengths,
                query=self.judged.query[ranked],
                rank=self.judged.rank[ranked],
                judged_rank=self.judged.judged_rank[ranked],
                label=self.judged.label[ranked],
            )
            found = evaluate(shorter, [study.spec], study.conventions, self.excluded)
            columns.append(found.values[places_of(found.query_ids, self.query_ids), 0])
        # A query that is not evaluated has no value in the comparison either.
        return np.where(self.compared[:, None], np.stack(columns, axis=1), np.nan)


# Refusals.


@part("labels", "metric", "conventions")
def floor_refusal(study: Study, challenger: str) -> DataError | None:
    """Return why a floor on the scores of a system has no meaning; None if it has one."""
    run = study.run(challenger)
    if run is not None and run.reranker == combining.KIND:
        return DataError(
            "A floor is not possible: the scores of this fused run depend only on ranks."
            if run.settings.get("method") == "rrf"
            else "A floor is not possible: this fused run rescales the scores of each query.",
            remedy="Choose one of its parts.",
        )
    if listwise(study, challenger):
        return DataError(
            "A floor is not possible: this reranker scores all documents of a query together.",
            remedy="Choose a reranker that scores each document separately.",
        )
    if sign := _sign(study.ranking(challenger)):
        return DataError(
            "A floor is not possible: {sign}. Scores of different queries are then not comparable.",
            remedy="Use the scores as the model returns them.",
            sign=sign,
        )
    answerable = int((~np.isnan(_Lists.of(study, challenger).best)).sum())
    if answerable < FEWEST:
        return DataError(
            "A floor is not possible: only {n} of the queries have a relevant document; at least "
            "{fewest} are needed.",
            remedy="Label more queries.",
            n=answerable,
            fewest=FEWEST,
        )
    return None


def _sign(ranking: Ranking) -> Phrase | None:
    """Return a sign that scores of different queries are not comparable, if there is one."""
    scored = np.isfinite(ranking.scores)
    counts = np.bincount(owners(ranking.offsets)[scored], minlength=len(ranking.query_ids))
    scores, counts = ranking.scores[scored], counts[counts > 0]
    if not len(counts):
        return Phrase("the ranking has no scores")
    offsets = offsets_from(counts)
    query, rank = owners(offsets), places(offsets)
    length, scale = counts[query], float(np.ptp(scores))
    # Scores such as 1 / rank, the number of documents below, and both divided by the length.
    if any(_same(key, scores) for key in (rank, length - rank, length + rank / (len(rank) + 1))):
        return Phrase("the scores depend only on ranks")
    several = counts > 1
    sums = np.bincount(query, scores)
    squares = np.bincount(query, (scores - (sums / counts)[query]) ** 2)
    top, sums, squares = scores[offsets[:-1]][several], sums[several], squares[several]
    sizes = counts[several]
    if not len(top):
        return None
    if np.ptp(top) <= _EQUAL * scale:
        return Phrase("the highest score is the same in each query")
    if (np.abs(sums - 1) <= _CLOSE).all() and scores.min() >= 0:
        return Phrase("the scores of each query add up to 1")
    deviations = [np.sqrt(squares / (sizes - less)) for less in (0, 1)]
    if (np.abs(sums / sizes) <= _CLOSE).all() and any(
        (np.abs(each - 1) <= _CLOSE).all() for each in deviations
    ):
        return Phrase("the scores of each query have the mean 0 and the standard deviation 1")
    return None


def _same(keys: npt.NDArray[np.generic], scores: Floats) -> bool:
    """Return whether scores with the same key are equal, if most of them share their key."""
    groups = pd.Series(scores).groupby(keys).agg(["min", "max", "size"])
    shared = groups[groups["size"] > 1]
    spread = _EQUAL * float(np.ptp(scores))
    most = 2 * shared["size"].sum() > len(scores)
    return bool(most and (shared["max"] - shared["min"] <= spread).all())


def fingerprint(run: Run) -> str:
    """Return a hash of everything recorded about the reranker that can change its scores: its kind,
    and its own fingerprint, which local models record, or else its settings. For a ranking from a
    file, a hash of the ranking."""
    if run.reranker == Precomputed.name:
        return run.id
    weights = run.machine.get("model_sha256", "")
    recorded = run.machine.get("fingerprint") or (*sorted(run.settings.items()), weights)
    parts = (run.reranker, repr(recorded))
    return digest(each.encode("utf-8", "surrogatepass") for each in parts)
