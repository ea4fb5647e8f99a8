"""Labelling plans: the pool of pairs, the metric, and the sampled pairs in their order.

    pool = pool_of({"first stage": a, "MiniLM": b}, 10)
    plan = LabelPlan.make(pool, Additive.of("dcg@10", top=3), seed=1)
    plan.order                              # the pairs to label, in this order
    (result,) = estimate(plan, labels)      # at any time: the difference, and whether conclusive

A draw is one step of the sampling: a pair of query and document, or all pairs of a query, to be
labelled. A guess is the prediction of a pair's gain before it has a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import Meta

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.data.arrays import Flags, Floats, Integers, owners, places
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Measure, parse_measure
from rankdash.core.metrics.definitions import EXPONENTIAL, LINEAR, GainForm, raw_gain


@dataclass(frozen=True, eq=False)
class LabelPool:
    """N pairs of Q queries that all of S systems rank, sorted by query.

    systems: their names. query_ids: (Q,) object array of str. query: (N,) index of the query.
    doc_ids: (N,) object array of str. ranks: (S, N) float64, the rank in each system from 1; inf
        beyond the depth. excluded: the queries that some systems lack.
    """

    systems: tuple[str, ...]
    query_ids: npt.NDArray[np.object_]
    query: Integers
    doc_ids: npt.NDArray[np.object_]
    ranks: Floats
    excluded: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def index(self) -> pd.MultiIndex:
        """(N,) query id and document id of each pair, as a lookup index."""
        return pd.MultiIndex.from_arrays([self.query_ids[self.query], self.doc_ids])

    def aligned(self, table: pd.DataFrame, column: str = "label") -> Floats:
        """Return (N,) a value of each pair; NaN if the table has none.

        table: query_id, doc_id and the column, one row per pair; other pairs are ignored.
        """
        keyed = pd.Series(
            table[column].to_numpy(dtype=np.float64),
            index=pd.MultiIndex.from_frame(table[["query_id", "doc_id"]]),
        )
        return keyed.reindex(self.index).to_numpy(dtype=np.float64)


def pool_of(rankings: Mapping[str, Ranking], depth: int, *, fewest: int = 2) -> LabelPool:
    """Return the pool of the first `depth` documents of each ranking, as in TREC pooling.

    rankings: name → ranking, with ties resolved. fewest: the minimum number of rankings.

    Raises DataError if there are fewer, or if they share no query.
    """
    if len(rankings) < fewest:
        raise DataError(
            "A labelling plan needs at least two rankings; {count} provided.",
            remedy="Provide at least two rankings of the same queries.",
            count=len(rankings),
        )
    lists = list(rankings.values())
    queries = pd.Index(lists[0].query_ids, dtype=object)
    for ranking in lists[1:]:
        queries = queries[queries.isin(ranking.query_ids)]
    if not len(queries):
        raise DataError(
            "The rankings have no query in common.",
            remedy="Provide rankings of the same queries, with the same query ids.",
        )
    everyone = dict.fromkeys(query for ranking in lists for query in ranking.query_ids)
    documents = pd.Index(pd.unique(np.concatenate([each.doc_ids for each in lists])))
    entries = [_within(each, queries, documents, depth) for each in lists]
    pairs, at = np.unique(np.concatenate([codes for codes, _ in entries]), return_inverse=True)
    ranks = np.full((len(lists), len(pairs)), np.inf)
    start = 0
    for system, (codes, rank) in enumerate(entries):
        ranks[system, at[start : start + len(codes)]] = rank
        start += len(codes)
    query, document = np.divmod(pairs, len(documents))
    shared = set(queries)
    return LabelPool(
        systems=tuple(rankings),
        query_ids=queries.to_numpy(dtype=object),
        query=query,
        doc_ids=documents.to_numpy(dtype=object)[document],
        ranks=ranks,
        excluded=tuple(query for query in everyone if query not in shared),
    )


def _within(
    ranking: Ranking, queries: pd.Index, documents: pd.Index, depth: int
) -> tuple[Integers, Integers]:
    """Return a code for each shared query and document within the depth, and its rank."""
    query = queries.get_indexer(pd.Index(ranking.query_ids, dtype=object))
    document = documents.get_indexer(pd.Index(ranking.doc_ids, dtype=object))
    rank = places(ranking.offsets)
    owner = query[owners(ranking.offsets)]
    inside = (rank <= depth) & (owner >= 0)
    codes = owner[inside].astype(np.int64) * len(documents) + document[ranking.docs[inside]]
    return codes, rank[inside]


# Predictions of the gains of unlabelled pairs: they reduce the number of labels needed and never
# bias the result, however bad they are.
#
# Pairs are in groups, such as one for each grade of a judge. The prediction for a group is the mean
# gain of its labels sampled so far, with two pseudo-labels at the group's initial value.

PSEUDO_LABELS = 2.0
_RANK_BANDS = (1.0, 3.0, 10.0)


@dataclass(frozen=True, eq=False)
class Guess:
    """Predictions of gains by group.

    groups: (N,) the group of each pair of the pool, from 0. start: (G,) the initial gain of each
        group, from 0 to 1.
    """

    groups: Integers
    start: Floats

    @classmethod
    def from_ranks(cls, pool: LabelPool) -> Self:
        """Return groups by the best rank in any system; all start at 0."""
        best = pool.ranks.min(axis=0)
        return cls(
            np.searchsorted(np.array(_RANK_BANDS), best).astype(np.int64),
            np.zeros(len(_RANK_BANDS) + 1),
        )

    @classmethod
    def from_gains(cls, gains: Floats) -> Self:
        """Return a group for each gain of a judge's grades, and one for pairs without a grade.

        gains: (N,) from 0 to 1; NaN without a grade.
        """
        values, groups = np.unique(np.where(np.isnan(gains), -1.0, gains), return_inverse=True)
        return cls(groups.astype(np.int64), np.maximum(values, 0.0))


# Metrics that are sums over documents, (weight of the rank) × (gain of the label), and can be
# estimated from some of the labels.
#
# NDCG, MAP and recall are normalised by all labels of a query, so they need complete labels.

_FORMS = {"dcg": LINEAR, "dcg_exp": EXPONENTIAL}
ADDITIVE = (*_FORMS, "precision", "rbp")
"""The additive metrics of the registry."""


@dataclass(frozen=True)
class Additive:
    """An additive metric with a cutoff, and the scale of its labels.

    top: the highest label of the scale. threshold: the lowest relevant label, for precision and
        RBP.
    """

    measure: Measure
    top: float
    threshold: float = 1.0

    @classmethod
    def of(cls, spec: str, *, top: float, threshold: float = 1.0) -> Self:
        """Return the metric of a spec such as "dcg@10".

        Raises SpecError for a metric that is not additive or has no cutoff, and for a scale whose
        top is not above 0 or below the threshold.
        """
        measure = parse_measure(spec)
        if measure.metric.name not in ADDITIVE or measure.k is None:
            raise SpecError(
                "{spec} cannot be estimated from a sample of the labels.",
                remedy="Use a sum over documents with a cutoff: dcg@10, dcg_exp@10, "
                "precision@10 or rbp@10. Other metrics need all labels of a query.",
                spec=spec,
            )
        if not (
            np.isfinite(top) and top > 0 and (measure.metric.name in _FORMS or top >= threshold)
        ):
            raise SpecError(
                "The highest label of the scale is {top}, but it must be above 0 and reach the "
                "relevance threshold.",
                remedy="For grades 0 to 3 it is 3; for relevant or not it is 1.",
                top=f"{top:g}",
            )
        return cls(measure, top, threshold)

    @property
    def k(self) -> int:
        """The cutoff."""
        return self.measure.k or 0

    @property
    def _form(self) -> GainForm | None:
        return _FORMS.get(self.measure.metric.name)

    def weights(self, ranks: Floats) -> Floats:
        """Return the contribution of a document with the gain 1 to its query's value, at (…) ranks
        from 1; 0 beyond the cutoff. In the units of the metric, so that sums equal the values of
        `evaluate`."""
        inside = ranks <= self.k
        rank = np.where(inside, ranks, 1.0)
        if self._form is not None:
            worth = float(raw_gain(self._form, np.array([self.top]))[0])
            weight = worth / self._form.discount(rank.astype(np.int64))
        elif self.measure.metric.name == "rbp":
            weight = (1 - self.measure.parameter) * self.measure.parameter ** (rank - 1)
        else:
            weight = np.full(rank.shape, 1 / self.k)
        return np.where(inside, weight, 0.0)

    def gains(self, labels: Floats) -> Floats:
        """Return (n,) the gains of labels, from 0 to 1; NaN without a label. A negative label has
        the gain 0. Raises DataError for a label above the top of the scale."""
        over = labels > self.top
        if over.any():
            raise DataError(
                "A label is {label}, but the highest grade of the scale is {top}.",
                remedy="Use grades on this scale, or start a new plan with the scale of these "
                "labels: existing labels count there too.",
                label=f"{labels[over].max():g}",
                top=f"{self.top:g}",
            )
        if self._form is None:
            return np.where(np.isnan(labels), np.nan, (labels >= self.threshold).astype(np.float64))
        worth = raw_gain(self._form, np.maximum(np.append(labels, self.top), 0.0))
        gains: Floats = worth[:-1] / worth[-1]
        return gains


# The sampled pairs and their order: draws with known probabilities.
#
# Sampling is without replacement, so that no label is requested twice and the estimate is unbiased
# at any time. The order depends only on the seed and the rankings, never on a label. The sampling
# unit is one of `MODES`:
#
# - "weight": pairs, with a probability proportional to their weight in the difference, so that
#   pairs that can change the result most tend to come early; a share of the draws is proportional
#   to the weight of the pair in the systems' own values;
# - "random": pairs, all equally likely, so that the first n are a random sample of that size;
# - "query": queries, all equally likely, each with all of its pairs.
#
# Source: Efraimidis and Spirakis 2006, weighted random sampling; Shekhar, Xu, Lipton, Liang and
# Ramdas 2023, Risk-limiting Financial Audits via Weighted Sampling without Replacement.

_Share = Annotated[float, Meta(ge=0, le=1)]

LEVEL = 0.95

Mode = Literal["weight", "random", "query"]
MODES: tuple[Mode, ...] = ("weight", "random", "query")

VALUE_SHARE = 0.2
"""The share of weighted draws that new plans use for the systems' own values."""

FEWEST_DRAWS, FEWEST_QUERIES, FEWEST_NON_ZERO = 50, 20, 10
"""The minimum number of draws of pairs, of draws of whole queries, and of draws among them that
change the difference, for an interval: with fewer, coverage is too low on sparse labels."""


@dataclass(frozen=True)
class LabelSettings:
    """The settings of a plan; the same settings and rankings make the same plan again.

    systems: their ids, the baseline first. metric: an additive metric with a cutoff, such as
        "dcg@10".
    top: the highest grade. threshold: the lowest relevant grade. double: the share of the pairs
        that two annotators label. judge: the id of the judge whose grades predict the gains; "" for
        none.
    share: of the draws for the systems' own values; 0 in plans of earlier versions.
    """

    systems: tuple[str, ...]
    metric: str
    top: float
    threshold: float
    seed: Annotated[int, Meta(ge=0)]
    double: _Share = 0.0
    mode: Mode = "weight"
    keep: bool = True
    before: float | None = None
    judge: str = ""
    share: _Share = 0.0


@dataclass(frozen=True, eq=False)
class LabelPlan:
    """A sampling plan that estimates the difference in a metric for pairs of systems.

    contrasts: (baseline, challenger) as indexes into the pool's systems, one for each verdict.
    seed: of the order. known: (N,) labels from before the first draw, NaN without one; they count
        in full and are not sampled.
    order: (M,) the pairs to label, in sampling order: all with a weight and without a label.
    level: the probability that all intervals of all verdicts are valid simultaneously.
    mode: the sampling unit, one of `MODES`.
    share: of the draws for the systems' own values, which allow the difference to be expressed as a
        share of the baseline's value: documents at the same rank in all systems are then sampled
        too. 0 in plans of earlier versions.
    """

    pool: LabelPool
    metric: Additive
    contrasts: tuple[tuple[int, int], ...]
    seed: int
    known: Floats
    order: Integers
    level: float = LEVEL
    mode: Mode = "weight"
    share: float = 0.0

    @classmethod
    def make(
        cls,
        pool: LabelPool,
        metric: Additive,
        *,
        seed: int,
        contrasts: Sequence[tuple[int, int]] = (),
        known: Floats | None = None,
        level: float = LEVEL,
        mode: Mode = "weight",
        share: float = 0.0,
    ) -> Self:
        """Return a plan for some contrasts; by default, for each system against the first.

        Raises DataError if the rankings are equal within the cutoff, so that no label can change
        the result.
        """
        before = np.full(len(pool), np.nan) if known is None else known
        chosen = tuple(contrasts) or tuple((0, other) for other in range(1, len(pool.systems)))
        empty = np.zeros(0, dtype=np.int64)
        plan = cls(pool, metric, chosen, seed, before, empty, level, mode, share)
        if not plan.reach.any():
            raise DataError(
                "The rankings are equal in the first {k} documents of every query, so labels "
                "cannot change the result.",
                remedy="Compare other rankings, or a metric with a larger cutoff.",
                k=metric.k,
            )
        open_pairs = np.flatnonzero(plan.weighs & np.isnan(before))
        random = np.random.default_rng(seed)
        waits = random.exponential(size=len(pool))[open_pairs]
        if mode == "weight":
            waits /= plan.size[open_pairs]
        order = open_pairs[np.argsort(waits, kind="stable")]
        if mode == "query":
            turn = random.permutation(len(pool.query_ids))
            order = order[np.argsort(turn[pool.query[order]], kind="stable")]
        return replace(plan, order=order)

    @cached_property
    def weights(self) -> Floats:
        """(C, N) the contribution of each pair to the mean difference of a contrast if its gain is
        1."""
        baselines, challengers = np.array(self.contrasts).T
        weights: Floats = self._worth[challengers] - self._worth[baselines]
        return weights

    @cached_property
    def baselines(self) -> Floats:
        """(C, N) the contribution of each pair to the mean of a contrast's baseline if its gain is
        1."""
        weights: Floats = self._worth[[baseline for baseline, _ in self.contrasts]]
        return weights

    @cached_property
    def _worth(self) -> Floats:
        worth: Floats = self.metric.weights(self.pool.ranks) / len(self.pool.query_ids)
        return worth

    @cached_property
    def reach(self) -> Floats:
        """(N,) the maximum effect of each pair on the differences: the sum of its absolute
        weights."""
        reach: Floats = np.abs(self.weights).sum(axis=0)
        return reach

    @cached_property
    def size(self) -> Floats:
        """(N,) the unnormalised sampling probability of a pair in the mode "weight": a mixture of
        its reach and its weight in the values of the systems."""
        if not self.share:
            return self.reach
        worth = self._worth.sum(axis=0)
        moves, contributes = self.reach / self.reach.sum(), worth / worth.sum()
        size: Floats = (1 - self.share) * moves + self.share * contributes
        return size

    @cached_property
    def weighs(self) -> Flags:
        """(N,) whether a label of the pair can change the result."""
        nonzero: Flags = self.size > 0
        return nonzero

    @cached_property
    def draw(self) -> Integers:
        """(M,) the number of the draw, from 0, that contains each pair of `order`."""
        if self.mode != "query":
            return np.arange(len(self.order))
        owner = self.pool.query[self.order]
        numbers: Integers = np.cumsum(np.diff(owner, prepend=owner[:1]) != 0)
        return numbers

    @property
    def fewest(self) -> int:
        """The minimum number of draws for an interval."""
        return FEWEST_QUERIES if self.mode == "query" else FEWEST_DRAWS

    @cached_property
    def drawing(self) -> Floats:
        """(D,) the unnormalised probability of each draw."""
        if self.mode == "weight":
            return self.size[self.order]
        return np.ones(int(self.draw.max(initial=-1)) + 1)

    @cached_property
    def remaining(self) -> Floats:
        """(D,) the share of the total of `drawing` that was not sampled before each draw; 1 for the
        first."""
        return _unsampled_share(self.drawing)

    @property
    def probabilities(self) -> Floats:
        """(M,) the sampling probability of the draw of each pair of `order`, after the draws before
        it."""
        if not len(self.order):
            return np.zeros(0)
        probabilities: Floats = (self.drawing / self.drawing.sum() / self.remaining)[self.draw]
        return probabilities

    @property
    def alpha(self) -> float:
        """The error probability of each contrast (Bonferroni)."""
        return (1 - self.level) / len(self.contrasts)

    def names(self, contrast: int) -> tuple[str, str]:
        """Return the names of the baseline and the challenger of a contrast."""
        baseline, challenger = self.contrasts[contrast]
        return self.pool.systems[baseline], self.pool.systems[challenger]


def _unsampled_share(drawing: Floats) -> Floats:
    """Return, for (…, M) unnormalised probabilities in sampling order, the share of their sum at or
    after each draw. It is summed from the end, so that rounding errors do not dominate the last
    ones."""
    behind: Floats = np.cumsum(drawing[..., ::-1], axis=-1)[..., ::-1]
    return behind / behind[..., :1]


# Answers of raters: one label for each pair, and the next pairs of a rater.
#
# Answers are a table with one row for each, in the order in which they arrived: query_id, doc_id,
# label (float64; NaN for "cannot tell"), rater (str) and time (ISO 8601 in UTC, or ""). A later
# answer of a rater for a pair replaces the earlier one.

CANNOT_TELL = "cannot tell"
"""The value of the column label if no rater could tell; every reader of labels recognises it."""

COLUMNS = ("query_id", "doc_id", "label", "rater", "time")


def no_answers() -> pd.DataFrame:
    """Return an empty table of answers."""
    table = pd.DataFrame({name: pd.Series(dtype=object) for name in COLUMNS})
    return table.astype({"label": np.float64})


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers for the pairs of a pool.

    latest: one row for each pair and rater: `COLUMNS`, and pair, its index in the pool.
    labels: (N,) the mean of the raters' labels; 0 if all of them cannot tell, since an unlabelled
        document counts as not relevant; NaN without an answer.
    cannot_tell: (N,) whether all of them cannot tell. raters: (N,) the number of raters.
    """

    latest: pd.DataFrame
    labels: Floats
    cannot_tell: Flags
    raters: Integers

    @classmethod
    def of(cls, pool: LabelPool, answers: pd.DataFrame) -> Answered:
        """Return the answers for the pairs of a pool; answers for other pairs are ignored."""
        ids = pd.MultiIndex.from_frame(answers[["query_id", "doc_id"]])
        placed = answers.assign(pair=pool.index.get_indexer(ids))
        latest = placed[placed["pair"] >= 0].drop_duplicates(["pair", "rater"], keep="last")
        pair, label = latest["pair"].to_numpy(), latest["label"].to_numpy(dtype=np.float64)
        labelled = ~np.isnan(label)
        size = len(pool)
        raters = np.bincount(pair, minlength=size)
        labels = np.bincount(pair[labelled], minlength=size)
        total = np.bincount(pair[labelled], label[labelled], size)
        mean = np.where(raters > 0, total / np.maximum(labels, 1), np.nan)
        return cls(latest, mean, (raters > 0) & (labels == 0), raters)


def next_pairs(
    plan: LabelPlan,
    answered: Answered,
    rater: str,
    count: int,
    *,
    doubled: float = 0.0,
    largest: bool = False,
) -> Integers:
    """Return the next pairs of a rater, at most `count`, as indexes into the pool.

    doubled: the share of pairs that a second rater gets too, spread evenly over the draws.
    largest: whether to sort by the maximum effect on the differences instead of the order of the
        draws.
    """
    order = plan.order
    mine = np.zeros(len(plan.pool), dtype=bool)
    mine[answered.latest.loc[answered.latest["rater"] == rater, "pair"]] = True
    places = np.arange(len(order))
    twice = np.floor((places + 1) * doubled) > np.floor(places * doubled)
    raters = answered.raters[order]
    eligible = (raters == 0) | (twice & (raters == 1) & ~mine[order])
    selected: Integers = order[eligible]
    if largest:
        selected = selected[np.argsort(-plan.reach[selected], kind="stable")]
    return selected[:count]


def draws_table(plan: LabelPlan) -> pd.DataFrame:
    """Return one row for each pair of the pool: draw (Int64, from 1; the same for all pairs of a
    sampled query) and probability (of the draw, after those before it). Both are missing for
    earlier labels and for pairs without a weight."""
    draw, chance = np.full(len(plan.pool), np.nan), np.full(len(plan.pool), np.nan)
    draw[plan.order] = plan.draw + 1
    chance[plan.order] = plan.probabilities
    return pd.DataFrame({"draw": pd.array(draw, dtype="Int64"), "probability": chance})


def labels_table(plan: LabelPlan, answered: Answered) -> pd.DataFrame:
    """Return one row for each pair with a label, in a format that the readers accept: query_id,
    doc_id, label (the mean of several raters' labels, or "cannot tell"), draw and probability (as
    in `draws_table`), rater (names with semicolons between) and time (of the last answer)."""
    pool = plan.pool
    labels = np.where(answered.raters > 0, answered.labels, plan.known)
    cells = labels.astype(object)
    cells[answered.cannot_tell] = CANNOT_TELL
    by_pair = answered.latest.sort_values("rater").groupby("pair")
    names, times = by_pair["rater"].agg("; ".join), by_pair["time"].max()
    table = pd.DataFrame(
        {
            "query_id": pool.query_ids[pool.query],
            "doc_id": pool.doc_ids,
            "label": cells,
            **draws_table(plan),
            "rater": names.reindex(range(len(pool))).fillna("").to_numpy(dtype=object),
            "time": times.reindex(range(len(pool))).fillna("").to_numpy(dtype=object),
        }
    )
    return table[~np.isnan(labels)].reset_index(drop=True)
